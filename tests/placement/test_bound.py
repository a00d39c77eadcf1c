"""Bounds of layouts: least cuts, rails, local search, exchanges, declared places."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.placement.small_jobs import cluster, job, placed
from tests.tables import examples
from topodiag.evidence.layout.rank_files import ranks_on
from topodiag.model.cluster import Assignment, Cluster, Demand, RankHosts
from topodiag.placement.bound import step_bound_us
from topodiag.placement.declared import compare_layouts
from topodiag.placement.exchange import exchanges
from topodiag.placement.local_search import improve
from topodiag.placement.pack import layings, pack
from topodiag.placement.price import off_rail_us, price_placement, spans_of
from topodiag.placement.rails import _Row, _Turning, on_rails
from topodiag.placement.solve import solve


def gap(machines: Cluster, demands: list[Demand], world: int) -> float:
    return solve(machines, demands, world, tries=1).gap


def test_tensor_groups_whole_in_their_nodes_leave_one_rank_of_a_replica_group_in_each() -> None:
    machines = cluster([8] * 4, 4)
    assert gap(machines, job(8, 1, 4), 32) == pytest.approx(0, abs=1e-9)


def test_pipelines_and_replicas_cannot_both_stay_under_a_leaf() -> None:
    """Together they join the whole job, and no leaf holds that."""
    machines = cluster([8] * 8, 4)
    both = job(8, 4, 2)
    assert gap(machines, both, 64) == pytest.approx(0, abs=1e-9)
    apart = sum(step_bound_us(machines, [demand], 64) for demand in both)
    assert step_bound_us(machines, both, 64) > apart


def test_leaves_hold_so_many_pipelines_and_no_more() -> None:
    """Two leaves of three nodes hold one pipeline of two nodes each; the third crosses the spine."""
    machines = cluster([8] * 6, 3)
    demands = job(8, 2, 3)[:2]
    over_spine = price_placement(machines, demands, Assignment(np.arange(48))).demands[1].step_us
    bound = step_bound_us(machines, demands, 48)
    value = step_bound_us(machines, demands[:1], 48)
    assert bound == pytest.approx(value + over_spine)
    roomy = cluster([8] * 8, 4)
    assert step_bound_us(roomy, demands, 48) < bound


def test_fragments_are_counted_leaf_by_leaf() -> None:
    """Twelve nodes of seven hold nine groups of eight in threes to fives if they are four and four and four, and six if
    no leaf has more than three."""
    demands = [Demand("tp", np.arange(72).reshape(-1, 8), "all_reduce", 64e6, calls=160, keep_together=True)]
    together, apart = (step_bound_us(cluster([7] * 12, leaf), demands, 72) for leaf in (4, 3))
    assert together < apart
    assert gap(cluster([7] * 12, 4), demands, 72) == pytest.approx(0, abs=1e-9)


@given(
    st.lists(st.integers(1, 8), min_size=2, max_size=16),
    st.tuples(st.sampled_from([2, 4, 8]), st.sampled_from([1, 2, 4]), st.sampled_from([1, 2, 3])),
    st.sampled_from([1, 2, 4]),
    st.sampled_from([0, 8]),
)
def test_no_solution_is_below_the_bound(free: list[int], sizes: tuple[int, int, int], leaf: int, rails: int) -> None:
    machines, demands, world = cluster(free, leaf, rails), job(*sizes), int(np.prod(sizes))
    if world > machines.free:
        return
    solution = solve(machines, demands, world, tries=1)
    assert step_bound_us(machines, demands, world) <= solution.cost.step_us * (1 + 1e-9)


@given(st.permutations(range(32)), st.sampled_from([1, 2, 4]), st.sampled_from([(2, 2, 4), (4, 2, 2), (2, 4, 2)]))
def test_no_placement_at_random_is_below_the_bound(slots: list[int], leaf: int, sizes: tuple[int, int, int]) -> None:
    machines, demands = cluster([8] * 4, leaf), job(*sizes)
    placed = Assignment(np.asarray(slots[:16], np.int64))
    assert step_bound_us(machines, demands, 16) <= price_placement(machines, demands, placed).step_us * (1 + 1e-9)


# --- which GPU of its node each rank takes


TP = Demand("tp", np.arange(8).reshape(1, 8), "all_reduce", 64e6, calls=100, keep_together=True)


def test_the_halves_of_a_split_group_take_the_same_gpus() -> None:
    machines = cluster([8] * 2, 4, 8)
    start = placed(0, 1, 2, 3, 12, 13, 14, 15)
    assert off_rail_us(machines, TP, start) > 0
    assignment = on_rails(machines, [TP], start)
    assert off_rail_us(machines, TP, assignment) == 0
    assert machines.node_of(assignment.slot).tolist() == machines.node_of(start.slot).tolist()


def test_a_rail_that_another_group_holds_is_exchanged_along_the_chain() -> None:
    """Three groups over three nodes in a row, each node with a half of two of them."""
    demand = replace(TP, groups=np.arange(24).reshape(3, 8))
    low, high = [0, 1, 2, 3], [4, 5, 6, 7]
    gpus = [low, high, low, low, high, high]  # halves of the groups: on nodes 0 1, 1 2, 2 0
    nodes = [0, 1, 1, 2, 2, 0]
    start = placed(*(8 * node + gpu for node, part in zip(nodes, gpus, strict=True) for gpu in part))
    machines = cluster([8] * 4, 4, 8)
    assignment = on_rails(machines, [demand], start)
    assert price_placement(machines, [demand], assignment).step_us < price_placement(machines, [demand], start).step_us


def test_the_free_gpus_of_a_node_are_chosen_by_rail() -> None:
    machines = cluster([8] * 2, 4, 8)
    machines.usable[1, :2] = False
    halves = replace(TP, groups=np.arange(8).reshape(1, 8))
    solution = solve(replace(machines, usable=machines.usable & (np.arange(8) != 7)), [halves], 8, tries=1)
    assert off_rail_us(machines, halves, solution.assignment) == 0


def test_nothing_is_turned_where_no_step_would_be_shorter() -> None:
    """Over the spine, without rails, and on rails already."""
    over_spine = placed(0, 1, 2, 3, 36, 37, 38, 39)
    assert on_rails(cluster([8] * 8, 4, 8), [TP], over_spine) is over_spine
    crossed = placed(0, 1, 2, 3, 12, 13, 14, 15)
    assert on_rails(cluster([8] * 8, 4), [TP], crossed) is crossed
    straight = placed(0, 1, 2, 3, 8, 9, 10, 11)
    assert on_rails(cluster([8] * 8, 4, 8), [TP], straight) is straight


@given(st.permutations(range(32)), st.sampled_from([2, 4, 8]), st.sampled_from([2, 4]))
def test_ranks_stay_in_their_nodes_or_a_step_becomes_shorter(slots: list[int], rails: int, leaf: int) -> None:
    machines = cluster([8] * 4, leaf, rails)
    start = placed(*slots[:24])
    demands = [
        Demand("tp", np.arange(24).reshape(6, 4), "all_reduce", 64e6, calls=100, keep_together=True),
        Demand("dp", np.arange(24).reshape(6, 4).T.copy(), "all_reduce", 1e9),
    ]
    assignment = on_rails(machines, demands, start)
    assert len(set(assignment.slot.tolist())) == 24
    before, after = (price_placement(machines, demands, assignment).step_us for assignment in (start, assignment))
    assert assignment is start or after < before


@given(st.permutations(range(32)), st.sampled_from([2, 4, 8]), st.sampled_from([1, 2]))
def test_ways_on_rails_are_counted_as_the_price_counts_them(slots: list[int], rails: int, rack: int) -> None:
    machines = cluster([8] * 4, 4, rails)
    racks = replace(machines, nvlink_domain=np.arange(4) // rack)
    start = placed(*slots[:6])
    spans = spans_of(racks, np.arange(6)[None, :], start)
    if spans.level.tolist() != [1] or np.unique(racks.nvlink_domain[racks.node_of(start.slot)]).size < 2:
        return
    work = _Turning(racks, [_Row(0, tuple(range(6)), 1, 6, 1.0)], start)
    assert work.lacks(0) == pytest.approx(6 - spans.on_rail[0])


# --- ranks, fragments, nodes and groups that change places


def step_us(machines: Cluster, demands: list[Demand], placed: Assignment) -> float:
    return price_placement(machines, demands, placed).step_us


def test_fragments_that_two_groups_left_in_each_others_nodes_come_back() -> None:
    machines, demands = cluster([8] * 4, 4), job(8, 1, 4)
    slot = np.arange(32)
    slot[[4, 5, 6, 7, 12, 13, 14, 15]] = slot[[12, 13, 14, 15, 4, 5, 6, 7]]
    assignment = improve(machines, demands, Assignment(slot))
    assert spans_of(machines, demands[0].groups, assignment).nodes.max() == 1


def test_whole_nodes_change_leaves() -> None:
    """Two pipelines of two nodes each, laid crosswise over two leaves."""
    machines, demands = cluster([8] * 4, 2), job(8, 2, 2)[:2]
    start = Assignment(np.arange(32))
    assert spans_of(machines, demands[1].groups, start).level.max() == 2
    assignment = improve(machines, demands, start)
    assert spans_of(machines, demands[1].groups, assignment).level.max() == 1


def test_fragments_take_free_gpus() -> None:
    machines, demands = cluster([8] * 5, 5), job(8, 1, 4)[:1]
    slot = np.arange(32)
    slot[:4] = np.arange(32, 36)
    assignment = improve(machines, demands, Assignment(slot))
    assert spans_of(machines, demands[0].groups, assignment).nodes.max() == 1


@settings(max_examples=12)
@given(st.permutations(range(40)), st.integers(0, 3), st.sampled_from([0, 8]))
def test_what_is_found_is_a_map_no_worse_and_the_same_again(slots: list[int], seed: int, rails: int) -> None:
    machines, demands = cluster([8, 8, 6, 8, 7, 8], 3, rails), job(4, 2, 3)
    usable = machines.free_slots()
    start = Assignment(usable[np.asarray(slots[:24])])
    assignment, again = (improve(machines, demands, start, seed=seed, tries=60) for _ in range(2))
    assert assignment.slot.tolist() == again.slot.tolist()
    assert len(set(assignment.slot.tolist())) == 24
    assert machines.usable.ravel()[assignment.slot].all()
    assert step_us(machines, demands, assignment) <= step_us(machines, demands, start) * (1 + 1e-3)


def test_a_node_holds_ranks_of_several_dimensions_where_that_is_cheapest() -> None:
    """Two stages of two replicas of tensor pairs: each replica group then leaves a node by two ways."""
    machines, demands = cluster([8] * 8, 4), job(2, 4, 8)
    assignment = pack(machines, demands, 64)
    replicas = spans_of(machines, demands[2].groups, assignment)
    assignments = [Assignment(np.arange(64))]
    assert replicas.least.min() >= 2
    assert step_us(machines, demands, assignment) < min(
        step_us(machines, demands, assignment) for assignment in assignments
    )


def test_layings_are_told_from_the_cheapest() -> None:
    machines, demands = cluster([8, 7, 8, 6, 8, 8], 3), job(4, 2, 4)
    prices = [step_us(machines, demands, laying) for laying in layings(machines, demands, 32)]
    assert prices == sorted(prices)
    assert prices[0] == pytest.approx(step_us(machines, demands, pack(machines, demands, 32)))


def test_two_dimensions_that_no_node_holds_together_share_it_in_pieces() -> None:
    """Tensor pairs and experts by eight: four pairs in a node, and so half of two groups of experts."""
    ranks = np.arange(4096).reshape(-1, 8, 2)
    demands = [
        Demand("ep", np.moveaxis(ranks, 1, 2).reshape(-1, 8), "all_to_all", 64e6, calls=40, keep_together=True),
        Demand("tp", ranks.reshape(-1, 2), "all_reduce", 64e6, calls=160, keep_together=True),
        Demand("dp", np.moveaxis(ranks, 0, 2).reshape(-1, 256), "all_reduce", 1e6),
    ]
    machines = cluster([8] * 512, 16)
    cost = price_placement(machines, demands, pack(machines, demands, 4096))
    experts, tensor = cost.demands[0].spans, cost.demands[1].spans
    assert tensor.nodes.max() == 1
    assert (experts.nodes.max(), experts.least.min(), experts.level.max()) == (2, 4, 1)


# --- ranks exchanged, and declared places against those that a log shows


def after(labels: list[int], pairs: list[tuple[int, int]]) -> list[int]:
    numbers = list(labels)
    for one, other in pairs:
        numbers[one], numbers[other] = numbers[other], numbers[one]
    return numbers


def runs(labels: list[int]) -> int:
    return 1 + int((np.diff(labels) != 0).sum()) if labels else 0


def test_what_lies_in_order_needs_no_exchange() -> None:
    assert exchanges([0, 0, 1, 1, 2]) == []
    assert exchanges([]) == []


def test_two_of_sixty_four_nodes_are_one_exchange() -> None:
    labels = np.arange(64) // 8
    labels[[3, 40]] = labels[[40, 3]]
    assert exchanges(labels) == [(3, 40)]


def test_three_in_a_circle_are_two_exchanges() -> None:
    labels = np.arange(30) // 10
    labels[[1, 11, 21]] = labels[[11, 21, 1]]
    assert len(exchanges(labels)) == 2


def test_an_order_that_is_another_one_altogether_is_no_exchange() -> None:
    assert exchanges(np.arange(512) % 8) == []


@given(st.lists(st.integers(0, 5), max_size=40))
def test_exchanges_leave_each_kind_side_by_side(labels: list[int]) -> None:
    numbers = after(labels, exchanges(labels))
    assert sorted(numbers) == sorted(labels)
    assert runs(numbers) == len(set(labels))


# --- a declared layout beside the one that ran: ranks by host and GPU, and the room that a hostfile declares


def on(hosts: str, gpus: list[int] | None = None, *, whole: bool = False) -> RankHosts:
    return ranks_on("hosts", hosts.split(), gpus, whole=whole)


@examples("declared", "ran", "wanted")
def test_what_is_declared_beside_what_ran(declared: list[Any], ran: list[Any], wanted: dict[str, Any]) -> None:
    """Hosts of the ranks in their order, perhaps with their GPUs; `whole` hosts are declared without numbers. Ranks
    that ran `elsewhere` have both hosts."""
    *parts, whole = declared if declared[-1] == "whole" else [*declared, ""]
    ranks = compare_layouts(on(*parts, whole=bool(whole)), on(*ran))
    shown = {
        "differs": ranks.differs, "difference": ranks.difference, "compared": ranks.compared,
        "elsewhere": [[rank.rank, rank.declared, rank.ran] for rank in ranks.elsewhere], "hosts": list(ranks.hosts),
        "undeclared": ranks.undeclared,
    }  # fmt: skip
    assert {name: shown[name] for name in wanted} == wanted


def test_no_ranks_are_no_difference() -> None:
    empty = RankHosts("hosts", (), np.zeros(0, np.int64), np.zeros(0, np.int64))
    assert not compare_layouts(on("a"), empty).differs
