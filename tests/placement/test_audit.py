"""A layout judged: what is split is found and priced, what cannot be better is left alone."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tables import examples
from topodiag.app.case.placement import PlaceOptions, open_cluster
from topodiag.cost.step import Work
from topodiag.model.cluster import Assignment, Cluster, Demand, Ints, Level
from topodiag.model.layout import Layout
from topodiag.placement.audit import Audit, AuditError, audit, whole_us
from topodiag.placement.groups import Talk, talk_of_groups, talk_of_layout
from topodiag.placement.price import price_demand


def cluster(nodes: int, leaf: int = 0, over: float = 1.0, system: str = "dgx-h100", nics: int = 8) -> Cluster:
    given_nics = (nics, 400.0) if system == "dgx-h100" else None
    return open_cluster(PlaceOptions(system=system, nodes=nodes, leaf=leaf, oversubscription=over, nics=given_nics))


def judged(fabric: Cluster, layout: Layout, slot: Ints, work: Work | None = None) -> Audit:
    return audit(fabric, talk_of_layout(fabric, layout, slot.size, work), Assignment(slot))


def block(ranks: int) -> Ints:
    return np.arange(ranks, dtype=np.int64)


def over_two_nodes(ranks: int) -> Ints:
    """Tensor groups of eight, each with four ranks on one node and four on the next."""
    rank = block(ranks)
    group, member = rank // 8, rank % 8
    return (2 * (group // 2) + member // 4) * 8 + (group % 2) * 4 + member % 4


# --- the worked examples ------------------------------------------------------------------------------------


def test_256_gpus_with_every_tensor_group_over_two_nodes_lose_about_30_percent() -> None:
    """On four 400 Gb/s NICs, where compute reaches half of the peak, by rings; by NVLSTree somewhat less."""
    work = Work(70e9, 80, 8192, 4096, 1, 128, 989.0, reached=0.5)
    few_nics = cluster(32, nics=4)
    verdict = judged(replace(few_nics, switch=False), Layout(tp=8, pp=4, dp=8), over_two_nodes(256), work)
    switched = judged(few_nics, Layout(tp=8, pp=4, dp=8), over_two_nodes(256), work)
    assert 0.2 < switched.gain < verdict.gain
    tensor = verdict.dimensions[0]
    assert (tensor.dimension, tensor.split.tolist()) == ("tp", list(range(32)))
    assert verdict.gain == pytest.approx(0.30, abs=0.05)
    assert (verdict.worst.dimension, len(verdict.worst.nodes)) == ("tp", 2)
    assert not verdict.hardly_matters


def test_the_signature_of_split_tensor_groups_is_an_order_of_magnitude_on_few_nics() -> None:
    verdict = judged(cluster(32, system="p4d.24xlarge"), Layout(tp=8, pp=4, dp=8), over_two_nodes(256))
    tensor = verdict.dimensions[0]
    assert 6 < tensor.step_us / tensor.best_us < 13


def test_64_gpus_8x2x4_have_nothing_to_regain_and_a_split_tensor_group_is_what_would_hurt_most() -> None:
    verdict = judged(cluster(8), Layout(tp=8, pp=2, dp=4), block(64))
    assert verdict.gain == 0
    assert verdict.worst is None
    assert (verdict.could.dimension, verdict.could.group) == ("tp", 0)
    assert verdict.could.lost_us > 0.2 * verdict.step_us


def test_64_gpus_with_one_exchange_have_that_group_named() -> None:
    slot = block(64)
    slot[[19, 42]] = slot[[42, 19]]
    verdict = judged(cluster(8), Layout(tp=8, pp=2, dp=4), slot)
    tensor = verdict.dimensions[0]
    assert tensor.split.tolist() == [2, 5]
    assert (verdict.worst.dimension, verdict.worst.ranks) == ("tp", tuple(range(16, 24)))
    assert verdict.worst.nodes == ("node003", "node006")


def test_four_gpus_in_twos_hold_no_tensor_group_of_four() -> None:
    two = cluster(2)
    usable = np.zeros((2, 8), bool)
    usable[:, :2] = True
    verdict = judged(replace(two, usable=usable), Layout(tp=4), np.asarray([0, 1, 8, 9]))
    tensor = verdict.dimensions[0]
    assert verdict.gain == 0
    assert not tensor.split.size, "no order of ranks mends it"
    assert tensor.step_us > 2 * sum(whole_us(two, cost.demand) for cost in tensor.now)
    assert not verdict.hardly_matters


def test_reducing_by_rack_first_beats_one_ring_over_the_spine() -> None:
    """Two phases, in the racks and then between one rank of each, against all at once, four times oversubscribed."""
    numbers = np.arange(16)
    levels = (Level("rack", numbers // 4, 3.0, 50.0), Level("spine", np.zeros(16, np.int64), 3.3, 12.5))
    racks = Cluster(tuple(f"n{n}" for n in numbers), np.ones((16, 1), bool), numbers, levels, 1.0, 50.0)
    size = 2.0**30
    inside = Demand("rack", numbers.reshape(4, 4), "all_reduce", size)
    between = Demand("leaders", numbers.reshape(4, 4).T, "all_reduce", size / 4)
    flat = Demand("all", numbers[None, :], "all_reduce", size)
    place = Assignment(numbers)
    phases = price_demand(racks, inside, place).step_us + price_demand(racks, between, place).step_us
    assert phases < price_demand(racks, flat, place).step_us / 1.5


def test_stage_k_of_a_replica_on_node_k_stays_in_its_leaf() -> None:
    """tp 8, pp 4, dp 2 over two leaves of four nodes: replicas on nodes 0-3 and 4-7."""
    verdict = judged(cluster(8, leaf=4), Layout(tp=8, pp=4, dp=2, order="tp-pp-dp"), block(64))
    levels = {
        dimension.dimension: {verdict.level_name(level) for level in dimension.levels.tolist()}
        for dimension in verdict.dimensions
    }
    assert levels == {"tp": {"node"}, "pp": {"leaf"}, "dp": {"spine"}}
    assert verdict.gain < 0.001


def test_a_layout_as_good_as_the_map_loses_nothing_in_any_dimension() -> None:
    """What the map would give to pipelines it would take from gradients: no dimension is called misplaced."""
    verdict = judged(cluster(8, leaf=4, over=4.0), Layout(tp=8, dp=4, pp=2), block(64))
    assert verdict.gain == 0
    assert verdict.worst is None
    assert [verdict.lost(dimension) for dimension in verdict.dimensions] == [0, 0, 0]


# --- what holds for every layout ----------------------------------------------------------------------------


@settings(max_examples=8)
@given(st.permutations(range(32)))
def test_no_layout_gains_less_than_nothing_and_the_map_compared_with_uses_the_same_slots(order: list[int]) -> None:
    verdict = judged(cluster(4, leaf=2, over=2.0), Layout(tp=4, pp=2, dp=4), np.asarray(order))
    assert verdict.gain >= 0
    assert sorted(verdict.best.slot.tolist()) == list(range(32))
    assert all(dimension.step_us >= dimension.bound_us * (1 - 1e-9) for dimension in verdict.dimensions)


@settings(max_examples=8)
@given(st.permutations(range(4)), st.permutations(range(32)))
def test_relabelling_nodes_changes_no_cost(nodes: list[int], order: list[int]) -> None:
    one = cluster(4, leaf=2, over=2.0)
    talk = talk_of_layout(one, Layout(tp=4, pp=2, dp=4), 32)
    slot, index = np.asarray(order), np.asarray(nodes)  # node k is called index[k]
    back = np.argsort(index)
    levels = tuple(replace(level, group=level.group[back]) for level in one.levels)
    other = replace(one, levels=levels, nvlink_domain=one.nvlink_domain[back])
    first = audit(one, talk, Assignment(slot))
    second = audit(other, talk, Assignment(index[slot // 8] * 8 + slot % 8))
    assert second.waited_us == pytest.approx(first.waited_us)


def test_one_node_has_no_placement_to_get_wrong() -> None:
    assert "one node" in judged(cluster(1), Layout(tp=4), np.asarray([3, 1, 0, 2])).hardly_matters


def test_a_job_that_computes_much_more_than_it_says_is_told_so() -> None:
    work = Work(70e9, 80, 8192, 4096, 1, 1024, 989.0, reached=0.01, zero=1)
    verdict = judged(cluster(2), Layout(tp=2, dp=8), block(16), work)
    assert "compute carries it" in verdict.hardly_matters


def test_a_layout_without_known_compute_is_judged_by_communication_alone() -> None:
    report = audit(cluster(2), talk_of_groups(cluster(2), (Demand("a", np.asarray([[0, 1]]), bytes=1e6),), 2),
                 Assignment(np.asarray([0, 8])))  # fmt: skip
    assert report.talk.base_us is None
    assert report.step_us == report.waited_us > 0


@examples("slot", "words")
def test_a_layout_that_is_none_is_one_clear_line(slot: list[int], words: str) -> None:
    one = cluster(1)
    usable = one.usable.copy()
    usable[0, 7] = False
    talk = Talk(3, (Demand("tp", np.asarray([[0, 1, 2]]), bytes=1e6),))
    with pytest.raises(AuditError, match=words):
        audit(replace(one, usable=usable), talk, Assignment(np.asarray(slot, np.int64)))
