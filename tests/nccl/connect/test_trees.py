"""Trees over nodes and rings over nodes: NCCL's shapes, and what holds for any number of nodes."""

from hypothesis import given
from hypothesis import strategies as st

from benchmarks.nccl_rings import (
    Branch,
    NodeOrders,
    TreePlace,
    btree,
    connect_rings,
    connect_trees,
    double_tree,
)
from tests.nccl.printed import channel_line, trees_text
from topodiag.nccl.graph.graph import BALANCED_TREE, TREE


def node(first: int, count: int, channels: int = 1, pattern: int = TREE, cross_nic: int = 0) -> NodeOrders:
    """A node of `count` ranks from `first` on; channel c begins at its c-th rank."""
    ranks = tuple(range(first, first + count))
    orders = tuple(ranks[c % count :] + ranks[: c % count] for c in range(channels))
    return NodeOrders(ranks, orders, orders, ranks, pattern, cross_nic)


def test_the_tree_of_fourteen_nodes_is_the_one_drawn_in_nccls_source() -> None:
    assert btree(14, 0) == Branch(-1, -1, 8)
    assert btree(14, 8) == Branch(0, 4, 12, is_child=1)
    assert btree(14, 12) == Branch(8, 10, 13, is_child=1)
    assert btree(14, 10) == Branch(12, 9, 11, is_child=0)
    assert btree(14, 13) == Branch(12, -1, -1, is_child=1)


def test_the_second_tree_of_an_even_count_is_the_mirror_image() -> None:
    first, second = double_tree(12, 3)
    assert first == Branch(2, -1, -1, is_child=1)
    assert second == Branch(11, 7, 1, is_child=1)  # node 8 of the first tree, whose neighbours are 0, 4 and 10


def test_the_second_tree_of_an_odd_count_is_the_first_one_node_on() -> None:
    assert double_tree(13, 1)[1] == Branch(-1, -1, 9)
    assert double_tree(13, 0)[1] == Branch(9, 11, -1, is_child=1)


def test_one_node_has_no_tree_above_it() -> None:
    assert double_tree(1, 0) == (Branch(-1, -1, -1), Branch(-1, -1, -1))


@given(st.integers(1, 200))
def test_both_trees_reach_every_node_once_from_one_root(count: int) -> None:
    for which in (0, 1):
        branches = [double_tree(count, index)[which] for index in range(count)]
        assert [b.parent for b in branches].count(-1) == 1
        for index, branch in enumerate(branches):
            for number, child in enumerate((branch.child0, branch.child1)):
                if child >= 0:
                    assert branches[child].parent == index
                    assert branches[child].is_child == number
        root = next(index for index, branch in enumerate(branches) if branch.parent == -1)
        seen, front = {root}, [root]
        while front:
            branch = branches[front.pop()]
            below = [child for child in (branch.child0, branch.child1) if child >= 0]
            assert not seen.intersection(below)
            seen.update(below)
            front += below
        assert seen == set(range(count))


@given(st.integers(2, 100))
def test_an_inner_node_of_one_tree_has_at_most_one_child_in_the_other(count: int) -> None:
    for index in range(count):
        first, second = double_tree(count, index)
        inner = [min(b.child0, b.child1) >= 0 for b in (first, second)]
        if count % 2 == 0:
            assert not all(inner)


def test_two_nodes_with_the_plain_tree_meet_at_the_first_rank_of_their_chains() -> None:
    places = connect_trees([node(0, 4), node(4, 4)], 1)
    assert [place[0] for place in places] == [TreePlace(-1, (1, 4, -1)), TreePlace(4, (1, -1, -1))]
    assert [place[4] for place in places] == [TreePlace(0, (5, -1, -1)), TreePlace(-1, (5, 0, -1))]
    assert places[0][1] == TreePlace(0, (2, -1, -1))


def test_a_balanced_tree_takes_the_first_child_at_the_second_rank() -> None:
    nodes = [node(n * 2, 2, pattern=BALANCED_TREE) for n in range(4)]
    # Node 2 is the second child of node 0 and has nodes 1 and 3 below it.
    places = connect_trees(nodes, 1)[0]
    assert places[4] == TreePlace(0, (5, 6, -1))
    assert places[5] == TreePlace(4, (2, -1, -1))
    assert places[2].up == 5
    assert places[6].up == 4


def test_the_trees_line_reads_as_nccl_prints_it() -> None:
    places = connect_trees([node(0, 4), node(4, 4)], 1)
    assert trees_text([place[0] for place in places], 0) == " [0] 1/4/-1->0->-1 [1] 1/-1/-1->0->4"


@given(st.lists(st.integers(1, 5), min_size=1, max_size=9), st.integers(1, 3))
def test_every_rank_hangs_below_the_one_root_of_each_channel(sizes: list[int], channels: int) -> None:
    nodes = [node(sum(sizes[:i]), size, channels, TREE) for i, size in enumerate(sizes)]
    for places in connect_trees(nodes, channels):
        assert sorted(places) == list(range(sum(sizes)))
        assert [place.up for place in places.values()].count(-1) == 1
        for rank, place in places.items():
            assert place.up == -1 or rank in places[place.up].down


def test_a_ring_enters_each_node_once_and_begins_at_rank_0() -> None:
    assert connect_rings([node(0, 3), node(3, 2)], 1, minor=28, cross_nic=0) == ((0, 1, 2, 3, 4),)
    assert connect_rings([node(0, 3, 2), node(3, 2, 2)], 2, minor=28, cross_nic=0)[1] == (0, 4, 3, 1, 2)


def test_a_node_whose_ring_crosses_nics_exchanges_channels_in_pairs() -> None:
    crossing = [node(0, 2, 2, cross_nic=2), node(2, 2, 2, cross_nic=2)]
    assert connect_rings(crossing, 2, minor=28, cross_nic=2) == ((0, 1, 3, 2), (0, 2, 3, 1))
    straight = ((0, 1, 2, 3), (0, 3, 2, 1))
    assert connect_rings(crossing, 2, minor=19, cross_nic=2) == straight
    # 2.28 goes by each node's own value, 2.26 and 2.27 by what all agreed on, and take only 2.
    one_sided = [node(0, 2, 2, cross_nic=2), node(2, 2, 2, cross_nic=0)]
    assert connect_rings(one_sided, 2, minor=28, cross_nic=2) == straight
    assert connect_rings(one_sided, 2, minor=27, cross_nic=2) != straight
    assert connect_rings(crossing, 2, minor=26, cross_nic=1) == straight
    assert connect_rings(crossing, 2, minor=25, cross_nic=1) != straight


def test_2_20_exchanges_on_an_even_number_of_nodes_only() -> None:
    three = [node(2 * n, 2, 2, cross_nic=1) for n in range(3)]
    assert connect_rings(three, 2, minor=20, cross_nic=1) != connect_rings(three, 2, minor=21, cross_nic=1)
    assert connect_rings(three[:2], 2, minor=20, cross_nic=1) == connect_rings(three[:2], 2, minor=21, cross_nic=1)


def test_the_channel_line_aligns_numbers_and_is_cut_where_nccl_cuts_it() -> None:
    assert channel_line(0, 24, range(8), 8, 28) == "Channel 00/24 : 0 1 2 3 4 5 6 7"
    assert channel_line(3, 16, (0, 15), 16, 28) == "Channel 03/16 :  0 15"
    long = channel_line(0, 16, range(64), 64, 23)
    assert len(long) == 127
    assert long.endswith("...")
    assert channel_line(0, 2, range(64), 64, 22) == "Channel 00/02 : " + "".join(f" {rank:3d}" for rank in range(20))
