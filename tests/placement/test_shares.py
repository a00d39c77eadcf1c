"""Seats for groups, whole and split."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.placement.small_jobs import cluster
from topodiag.model.cluster import Assignment, Cluster, Demand, Ints, Level
from topodiag.placement.bound import step_bound_us
from topodiag.placement.pack import pack
from topodiag.placement.price import price_placement
from topodiag.placement.shares import Class, classes, make_seats
from topodiag.placement.solve import in_order, solve


def free_of(machines: Cluster) -> Ints:
    return machines.usable.sum(axis=1).astype(np.int64)


TP8 = Demand("tp", np.arange(64).reshape(-1, 8), bytes=64e6, calls=100, keep_together=True)


def test_whole_seats_come_from_nodes_with_the_room() -> None:
    machines = cluster([8, 5, 8])
    seats = make_seats(machines, free_of(machines), 4, Class(), 5)
    assert sorted(seats.parts) == [((0, 4),), ((0, 4),), ((1, 4),), ((2, 4),), ((2, 4),)]


def test_classes_go_from_the_fastest_to_any_split() -> None:
    machines = cluster([7, 7], [0, 1])
    made = classes(machines, TP8, 8)
    assert made[0].least == ()
    assert made[-1].least == (1, 1, 1)
    assert [each.time_us for each in made] == sorted(each.time_us for each in made)


def test_a_split_is_as_equal_as_its_class_asks() -> None:
    machines = cluster([7, 7])
    seats = make_seats(machines, free_of(machines), 8, Class((4, 0, 0)), 1)
    assert seats.parts == [((0, 4), (1, 4))]


def test_three_groups_fit_where_pairs_alone_would_leave_threes() -> None:
    """Four nodes with seven free GPUs hold three groups of eight in shares of three to five, not only two."""
    machines = cluster([7, 7, 7, 7])
    assert len(make_seats(machines, free_of(machines), 8, Class((3, 0, 0)), 3)) == 3


def test_a_split_stays_within_its_leaf_while_its_class_says_so() -> None:
    machines = cluster([4, 4], [0, 1])
    assert len(make_seats(machines, free_of(machines), 8, Class((4, 0, 0)), 1)) == 0
    assert len(make_seats(machines, free_of(machines), 8, Class((4, 4, 4)), 1)) == 1


@given(
    st.lists(st.integers(0, 8), min_size=1, max_size=12),
    st.integers(1, 10),
    st.lists(st.integers(0, 4), min_size=3, max_size=3),
)
def test_no_gpu_has_two_seats_and_no_share_is_too_small(free: list[int], size: int, least: list[int]) -> None:
    check_seats(free, size, least)


@given(
    st.lists(st.integers(0, 2), min_size=20, max_size=40),
    st.integers(33, 40),
    st.lists(st.integers(0, 2), min_size=3, max_size=3),
)
def test_nor_where_groups_are_of_many_nodes(free: list[int], size: int, least: list[int]) -> None:
    check_seats(free, size, least)


def test_groups_of_many_nodes_take_the_largest_nodes_and_leave_no_rests() -> None:
    machines = cluster([8] * 34 + [4] * 2)
    seats = make_seats(machines, free_of(machines), 136, Class((4, 4, 4)), 2)
    assert [len(parts) for parts in seats.parts] == [17, 17]


def check_seats(free: list[int], size: int, least: list[int]) -> None:
    machines = cluster(free, [node % 2 for node in range(len(free))])
    seats = make_seats(machines, free_of(machines), size, Class(tuple(least)), 99)
    taken = np.zeros(len(free), np.int64)
    for parts in seats.parts:
        assert sum(share for _, share in parts) == size
        assert len({node for node, _ in parts}) == len(parts)
        for node, share in parts:
            taken[node] += share
        if len(parts) > 1:
            assert min(share for _, share in parts) >= min(number for number in least if number)
    assert (taken <= free_of(machines)).all()


@settings(max_examples=15)
@given(st.lists(st.integers(1, 8), min_size=2, max_size=10), st.integers(0, 2**16), st.sampled_from([2, 4, 8]))
def test_relabelling_nodes_changes_no_packed_cost_bound(free: list[int], seed: int, tp: int) -> None:
    machines = cluster(free, [node % 2 for node in range(len(free))])
    world = machines.free // tp * tp
    if not world:
        return
    demands = [Demand("tp", np.arange(world).reshape(-1, tp), bytes=1e7, keep_together=True)]
    order = np.random.default_rng(seed).permutation(len(free))
    levels = tuple(Level(level.kind, level.group[order], level.alpha_us, level.gbs) for level in machines.levels)
    names = tuple(machines.names[node] for node in order.tolist())
    again = Cluster(names, machines.usable[order], machines.nvlink_domain, levels, 1.0, 400.0)
    assert step_bound_us(again, demands, world) == pytest.approx(step_bound_us(machines, demands, world))
    one, other = (
        price_placement(fabric, demands, pack(fabric, demands, world)).step_us for fabric in (machines, again)
    )
    assert min(one, other) >= step_bound_us(machines, demands, world) * (1 - 1e-9)


def test_ranks_take_the_gpus_of_a_node_in_order() -> None:
    machines = cluster([8, 8])
    assignment = in_order(machines, Assignment(np.asarray([9, 3, 8, 1])))
    assert assignment.slot.tolist() == [8, 1, 9, 3]


def test_what_is_found_is_never_worse_than_what_was_given() -> None:
    machines = cluster([8, 8, 8, 8], [0, 0, 1, 1])
    given = Assignment(np.arange(32))
    demands = [Demand("dp", np.arange(32).reshape(8, 4).T.copy(), bytes=1e9)]
    solution = solve(machines, demands, 32, tries=1, at_most=given)
    assert solution.cost.step_us <= price_placement(machines, demands, given).step_us


def test_five_per_cent_of_holes_leave_no_group_over_a_spine() -> None:
    """1,024 GPUs, of which one in twenty is broken, and a job of 896 ranks with tensor groups of 8."""
    random = np.random.default_rng(0)
    holes = random.random((128, 8)) >= 0.05
    nodes = np.arange(128)
    levels = (Level("leaf", nodes // 16, 5.0, 45.0), Level("spine", np.zeros(128, np.int64), 7.0, 22.5))
    machines = Cluster(tuple(f"n{n}" for n in nodes), holes, nodes, levels, 1.0, 400.0)
    demands = [Demand("tp", np.arange(896).reshape(-1, 8), bytes=64e6, calls=160, keep_together=True)]
    solution = solve(machines, demands, 896, tries=1)
    assert solution.cost.demands[0].spans.level.max() == 1
    assert solution.cost.demands[0].spans.least.min() >= 3
    assert solution.gap == pytest.approx(0.0, abs=1e-9)
    (split,) = solution.splits
    assert "need a node with 8 free GPUs" in split.why
