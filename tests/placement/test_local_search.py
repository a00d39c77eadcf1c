"""Ranks, fragments, nodes and groups that change places."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.placement.small_jobs import cluster, job
from topodiag.model.cluster import Assignment, Cluster, Demand
from topodiag.placement.local_search import improve
from topodiag.placement.pack import layings, pack
from topodiag.placement.price import price_placement, spans_of


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
