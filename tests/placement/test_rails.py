"""Which GPU of its node each rank takes."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.placement.small_jobs import cluster, placed
from topodiag.model.cluster import Demand
from topodiag.placement.price import off_rail_us, price_placement, spans_of
from topodiag.placement.rails import _Row, _Turning, on_rails
from topodiag.placement.solve import solve

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
