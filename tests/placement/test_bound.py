"""What no placement can beat."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.placement.small_jobs import cluster, job
from topodiag.model.cluster import Assignment, Cluster, Demand
from topodiag.placement.bound import step_bound_us
from topodiag.placement.price import price_placement
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
