"""What a placement costs, by where its groups lie; fragments cut into groups, and what bounds their number."""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.placement.small_jobs import cluster, placed
from topodiag.model.cluster import Assignment, Cluster, Demand, Level
from topodiag.placement.cut import Counts, cuts
from topodiag.placement.price import (
    heaviest_first,
    labels,
    off_rail_us,
    pairs_of,
    price_demand,
    price_placement,
    spans_of,
)
from topodiag.placement.room import most_groups
from topodiag.placement.shares import Class, make_seats
from topodiag.placement.worth import WHOLE, weights, worths

FABRIC = cluster([8] * 4, 2)
"""Four nodes, two to a leaf."""


def packed(ranks: int) -> Assignment:
    return Assignment(np.arange(ranks, dtype=np.int64))


def demand(*groups: list[int], collective: str = "all_reduce", size: float = 64e6, **more: float) -> Demand:
    return Demand("tp", np.asarray(groups, np.int64), collective, size, **more)


def test_a_group_in_one_node_meets_there() -> None:
    spans = spans_of(FABRIC, np.asarray([[0, 1, 2, 3]]), packed(8))
    assert (spans.nodes.tolist(), spans.least.tolist(), spans.level.tolist()) == ([1], [4], [0])


def test_nodes_of_one_leaf_meet_at_the_leaf_and_others_at_the_spine() -> None:
    spans = spans_of(FABRIC, np.asarray([[0, 8], [0, 16], [0, 7]]), packed(32))
    assert spans.level.tolist() == [1, 2, 0]
    assert spans.nodes.tolist() == [2, 2, 1]


def test_the_fewest_members_in_a_node_are_counted() -> None:
    spans = spans_of(FABRIC, np.asarray([[0, 1, 2, 8]]), packed(32))
    assert (spans.nodes.tolist(), spans.least.tolist()) == ([2], [1])


def test_a_split_group_costs_more_than_a_packed_one_and_less_than_one_over_the_spine() -> None:
    def took(*slots: int) -> float:
        return price_demand(FABRIC, demand([0, 1, 2, 3]), placed(*slots)).step_us

    inside, leaf, spine = took(0, 1, 2, 3), took(0, 1, 8, 9), took(0, 1, 16, 17)
    assert inside < leaf < spine


def test_the_step_waits_for_the_slowest_group() -> None:
    cost = price_demand(FABRIC, demand([0, 1], [2, 3]), placed(0, 1, 2, 16))
    assert cost.slowest == 1
    assert cost.step_us == pytest.approx(cost.each_us.max())


def test_calls_and_what_is_hidden_are_counted() -> None:
    once = price_demand(FABRIC, demand([0, 1]), packed(2)).step_us
    many = price_demand(FABRIC, demand([0, 1], calls=10, exposed=0.5), packed(2)).step_us
    assert many == pytest.approx(5 * once)


def test_a_pipeline_is_priced_between_neighbours() -> None:
    assert pairs_of(np.asarray([[0, 1, 2]])).tolist() == [[0, 1], [1, 2]]
    stages = demand([0, 1, 2], collective="send_recv")
    near = price_demand(FABRIC, stages, placed(0, 8, 16)).step_us
    nearer = price_demand(FABRIC, stages, placed(0, 1, 2)).step_us
    assert nearer < near


def test_the_bound_is_the_price_of_the_best_place() -> None:
    cost = price_demand(FABRIC, demand([0, 1, 2, 3]), packed(4))
    assert cost.step_us == pytest.approx(cost.bound_us)
    large = price_demand(FABRIC, demand(list(range(16))), packed(16))
    assert large.spans.level.tolist() == [1]
    assert large.step_us == pytest.approx(large.bound_us)


def test_a_dimension_of_one_rank_costs_nothing() -> None:
    assert price_placement(FABRIC, [demand([0], [1])], packed(2)).step_us == 0


def on_rails(oversubscribed: float = 2.0, rails: int = 8) -> Cluster:
    leaf, spine = FABRIC.levels
    return replace(FABRIC, levels=(leaf, replace(spine, gbs=leaf.gbs / oversubscribed)), rails=rails)


def test_peers_on_one_rail_pay_the_leaf_and_others_the_spine() -> None:
    """One rank in each node: nobody of the group could hand its data on over NVLink."""

    def took(*slots: int) -> float:
        return price_demand(on_rails(), demand([0, 1]), placed(*slots)).step_us

    assert took(0, 8) == price_demand(FABRIC, demand([0, 1]), placed(0, 8)).step_us
    assert took(0, 9) == pytest.approx(took(0, 16))
    assert took(0, 9) > took(0, 8)


def test_a_group_that_meets_at_the_spine_pays_nothing_for_other_rails() -> None:
    fabric = on_rails()
    apart, along = (price_demand(fabric, demand([0, 1]), placed(0, slot)).step_us for slot in (17, 16))
    assert apart == along
    assert off_rail_us(fabric, demand([0, 1]), placed(0, 17)) == 0
    assert off_rail_us(fabric, demand([0, 1]), placed(0, 9)) > 0


def test_nodes_that_share_some_rails_go_out_by_these() -> None:
    """NVLink carries the rest there, where that is faster than the spine."""
    groups = demand([0, 1, 2, 3], size=1e9)
    straight, turned = placed(0, 1, 8, 9), placed(0, 1, 9, 10)
    spans = spans_of(on_rails(), groups.groups, turned)
    assert (spans.least.tolist(), spans.on_rail.tolist()) == ([2], [1])
    half, tenth = on_rails(1.1), on_rails(10.0)
    assert price_demand(half, groups, turned).step_us < price_demand(tenth, groups, turned).step_us
    one_way = price_demand(tenth, groups, straight).step_us
    assert one_way < price_demand(tenth, groups, turned).step_us < 2.1 * one_way


def test_the_rails_of_a_rack_are_those_of_all_its_nodes() -> None:
    """Behind NVLink it does not matter which node of the domain brings which rail."""
    fabric = on_rails()
    racks = replace(fabric, nvlink_domain=np.arange(4) // 2)
    levels = (Level("nvlink", np.arange(4) // 2, 1.0, 400.0), Level("fabric", np.zeros(4, np.int64), 5.0, 45.0))
    spans = spans_of(replace(racks, levels=levels), np.asarray([[0, 1, 2, 3]]), placed(0, 9, 17, 24))
    assert (spans.level.tolist(), spans.on_rail.tolist()) == ([2], [1])
    spans = spans_of(replace(racks, levels=levels), np.asarray([[0, 1, 2, 3]]), placed(0, 9, 18, 27))
    assert spans.on_rail.tolist() == [0]


def test_rails_without_a_known_spine_cost_two_more_switches() -> None:
    fabric = on_rails()
    flat = replace(fabric, levels=(Level("fabric", np.zeros(4, np.int64), 5.0, 45.0),))
    assert 0 < off_rail_us(flat, demand([0, 1]), placed(0, 9)) < 2
    tight = replace(flat, levels=(replace(flat.levels[0], oversubscription=4.0),))
    assert off_rail_us(tight, demand([0, 1]), placed(0, 9)) > 1000


FABRICS = st.sampled_from([FABRIC, *(on_rails(rails=rails) for rails in range(2, 9))])


@given(FABRICS, st.permutations(range(16)), st.integers(0, 2), st.floats(1.0, 20.0))
def test_a_faster_link_never_raises_a_cost(slow: Cluster, ranks: list[int], which: int, factor: float) -> None:
    levels = [replace(level, gbs=level.gbs * (factor if n == which else 1.0)) for n, level in enumerate(slow.levels)]
    fast = replace(slow, levels=tuple(levels), inside_gbs=slow.inside_gbs * (factor if which == 2 else 1.0))
    slots = Assignment(np.asarray(ranks, np.int64) * 2)
    wanted = [demand(list(range(8)), list(range(8, 16))), demand([0, 8], collective="send_recv")]
    assert price_placement(fast, wanted, slots).step_us <= price_placement(slow, wanted, slots).step_us * (1 + 1e-12)


@given(st.sampled_from([FABRIC, on_rails()]), st.permutations(range(4)), st.permutations(range(32)))
def test_relabelling_nodes_changes_no_cost(one: Cluster, order: list[int], slots: list[int]) -> None:
    levels = tuple(replace(level, group=level.group[order]) for level in one.levels)
    renamed = replace(one, nvlink_domain=one.nvlink_domain[order], levels=levels)
    before = np.asarray(slots[:16], np.int64)
    moved = np.argsort(order)[before // 8] * 8 + before % 8
    wanted = [demand(*np.arange(16).reshape(4, 4).tolist()), demand([0, 4], [1, 5], collective="all_to_all")]
    assert price_placement(renamed, wanted, Assignment(moved)).step_us == pytest.approx(
        price_placement(one, wanted, Assignment(before)).step_us
    )


@given(st.permutations(range(32)), st.integers(2, 8))
def test_rails_never_make_a_placement_cheaper(slots: list[int], rails: int) -> None:
    placement = placed(*slots[:8])
    for groups in (demand([0, 1, 2, 3], [4, 5, 6, 7]), demand([0, 1], [2, 3], collective="send_recv")):
        assert off_rail_us(on_rails(rails=rails), groups, placement) >= 0


def test_a_hundred_thousand_gpus_are_a_few_arrays() -> None:
    large = cluster([8] * 12_500, 16)
    ranks = np.arange(100_000, dtype=np.int64)
    wanted = [demand(*ranks.reshape(-1, 8).tolist()), demand(*ranks.reshape(8, -1).T[:, :].tolist())]
    cost = price_placement(large, wanted, Assignment(ranks))
    assert cost.demands[0].spans.level.max() == 0
    assert cost.demands[1].spans.nodes.min() == 8


# --- which demands count most, and which ranks they join ------------------------------------------------------


def alike(name: str, groups: list[list[int]], size: float, *, together: bool = False) -> Demand:
    return Demand(name, np.asarray(groups, np.int64), bytes=size, keep_together=together)


def test_families_join_what_any_group_joins() -> None:
    chain = [alike("a", [[0, 1], [1, 2], [3, 4]], 1.0)]
    assert labels(6, chain)[0].tolist() == [0, 0, 0, 3, 3, 5]


@given(st.lists(st.lists(st.integers(0, 9), min_size=2, max_size=2, unique=True), min_size=1, max_size=12))
def test_families_are_what_a_search_finds(pairs: list[list[int]]) -> None:
    made = labels(10, [alike("a", pairs, 1.0)])[0].tolist()
    parent = list(range(10))

    def root(x: int) -> int:
        while parent[x] != x:
            x = parent[x]
        return x

    for a, b in pairs:
        low, high = sorted((root(a), root(b)))
        parent[high] = low
    assert made == [root(rank) for rank in range(10)]


def test_what_belongs_together_comes_before_what_is_merely_large() -> None:
    large, inside = alike("dp", [[0, 1]], 1e9), alike("tp", [[0, 1]], 1e6, together=True)
    assert [each.dimension for each in heaviest_first([large, inside])] == ["tp", "dp"]


def counted(free: list[int], most: int = 8) -> Counts:
    return tuple(free.count(have) for have in range(most + 1))


def by_trying(free: list[int], size: int, least: int) -> int:
    """The most groups, by trying every share of every node."""

    @cache
    def best(left: tuple[int, ...]) -> int:
        return max((1 + best(after) for after in after_one(left, size, 0)), default=0)

    def after_one(left: tuple[int, ...], need: int, start: int) -> Iterator[tuple[int, ...]]:
        if not need:
            yield tuple(sorted(left))
            return
        for node in range(start, len(left)):
            for share in range(least, min(left[node], need) + 1):
                yield from after_one((*left[:node], left[node] - share, *left[node + 1 :]), need - share, node + 1)

    return best(tuple(sorted(free)))


def test_four_nodes_of_seven_hold_three_groups_of_eight_in_threes_to_fives() -> None:
    assert len(cuts(counted([7, 7, 7, 7]), 8, 3, 0)) == 3
    assert len(cuts(counted([7, 7, 7, 7]), 8, 4, 0)) == 2


@given(st.lists(st.integers(1, 7), min_size=1, max_size=5), st.sampled_from([4, 6, 8]), st.integers(1, 4))
def test_no_other_cut_makes_more_groups(free: list[int], size: int, least: int) -> None:
    free = [min(have, size - 1) for have in free]
    if 2 * least <= size:
        assert len(cuts(counted(free), size, least, 0)) == by_trying(free, size, least)


@given(
    st.lists(st.integers(1, 7), min_size=1, max_size=24), st.integers(2, 12), st.integers(1, 6), st.sampled_from([0, 1])
)
def test_shares_are_there_to_be_taken(free: list[int], size: int, least: int, later: int) -> None:
    free = [min(have, size - 1) for have in free]
    if 2 * least > size:
        return
    left = list(counted(free))
    for group in cuts(counted(free), size, least, later and least):
        assert sum(share for _, share in group) == size
        for have, share in group:
            assert share >= least
            assert left[have] > 0
            left[have] -= 1
            left[have - share] += 1


def test_what_is_left_is_kept_useful_for_those_after() -> None:
    """Seven and five: one group of eight in shares of three leaves four, or nothing; four is half a group elsewhere."""
    taken = cuts(counted([7, 5]), 8, 3, 4)
    assert [sorted(share for _, share in group) for group in taken] == [[3, 5]]


@pytest.mark.parametrize("size", range(2, 11))
def test_the_shares_of_any_group_weigh_at_least_a_whole(size: int) -> None:
    for least in range(1, size // 2 + 1):
        for weight in weights(size, least):
            for parts in partitions(size, least):
                assert sum(weight[part] for part in parts) >= WHOLE


def partitions(total: int, least: int) -> list[list[int]]:
    numbers = [[total]]
    for part in range(least, total // 2 + 1):
        numbers += [[part, *rest] for rest in partitions(total - part, part) if total - part >= part]
    return numbers


def test_sevens_count_for_three_quarters_where_shares_are_three_to_five() -> None:
    assert min(worth.node[7] for worth in worths(8, 3, 8)) == WHOLE * 3 // 4
    assert min(sum(worth.node[have] for have in (7, 7, 7, 7)) for worth in worths(8, 3, 8)) < 4 * WHOLE


@given(
    st.lists(st.tuples(st.integers(0, 8), st.integers(0, 2)), min_size=1, max_size=5),
    st.sampled_from([4, 6, 8]),
    st.integers(1, 4),
)
def test_no_region_holds_more_groups_than_are_told(nodes: list[tuple[int, int]], size: int, least: int) -> None:
    if 2 * least > size:
        return
    free, leaf = [have for have, _ in nodes], [where for _, where in nodes]
    machines = cluster(free, leaf)
    ndarray = most_groups(machines, size, Class((least, 0, 0)), level=1)
    for number in set(leaf):
        mine = [have for have, where in nodes if where == number]
        assert ndarray[number] >= by_trying(mine, size, least)
    everywhere = most_groups(machines, size, Class((least, least, least)), level=3)
    assert int(everywhere.sum()) >= by_trying(free, size, least)


@given(
    st.lists(st.tuples(st.integers(0, 8), st.integers(0, 3)), min_size=1, max_size=40),
    st.lists(st.integers(1, 4), min_size=3, max_size=3).map(lambda least: tuple(sorted(least))),
)
def test_seats_are_never_more_than_there_is_room_for(nodes: list[tuple[int, int]], least: tuple[int, ...]) -> None:
    free = [have for have, _ in nodes]
    machines = cluster(free, [where for _, where in nodes])
    seats = make_seats(machines, np.asarray(free, np.int64), 8, Class(least), 99)
    assert len(seats) <= int(most_groups(machines, 8, Class(least), level=3).sum())


def test_two_copies_of_every_share_need_nodes_twice_as_large() -> None:
    machines = cluster([8, 8, 7, 7], [0, 0, 0, 0])
    assert most_groups(machines, 8, Class((4, 0, 0)), level=3, copies=2).sum() == 2
    assert most_groups(machines, 8, Class(), level=3, copies=2).sum() == 0
