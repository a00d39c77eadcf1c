"""PLC001 to PLC007 on layouts, also those that do not run yet, and on rings of a job."""

from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.checks import jobs
from tests.checks.wanted import Wanted, expect, shown
from tests.tables import examples
from topodiag.app.case.placement import PlaceOptions, open_cluster
from topodiag.checks import registry
from topodiag.checks.interface import PlacementCheck
from topodiag.checks.placement.job_rings import RingReturns
from topodiag.checks.placement.layout_order import off_rail
from topodiag.checks.registry import Subject
from topodiag.checks.run import run
from topodiag.model.cluster import Assignment, Cluster, Demand, Ints
from topodiag.model.finding import Finding, Outcome, Severity, Status
from topodiag.model.job import Job
from topodiag.model.layout import Layout
from topodiag.placement.audit import Audit, audit
from topodiag.placement.groups import talk_of_groups, talk_of_layout
from topodiag.placement.rings import ring_crossings
from topodiag.placement.solve import solve

WARNED = (Severity.WARNING, Severity.ERROR)


def cluster(nodes: int, leaf: int = 0, over: float = 1.0, system: str = "dgx-h100") -> Cluster:
    return open_cluster(PlaceOptions(system=system, nodes=nodes, leaf=leaf, oversubscription=over))


def judged(fabric: Cluster, layout: Layout, slot: Ints | list[int]) -> Audit:
    slots = np.asarray(slot, np.int64)
    return audit(fabric, talk_of_layout(fabric, layout, slots.size), Assignment(slots))


def found(report: Audit, check: str) -> list[Finding]:
    return [
        finding for outcome in run(Subject.LAYOUT, [report]) if outcome.check == check for finding in outcome.findings
    ]


def warned(report: Audit) -> set[str]:
    outcomes = run(Subject.LAYOUT, [report])
    return {finding.id for outcome in outcomes for finding in outcome.findings if finding.severity in WARNED}


def status(report: Audit, check: str) -> Status:
    return next(outcome.status for outcome in run(Subject.LAYOUT, [report]) if outcome.check == check)


def block(ranks: int) -> Ints:
    return np.arange(ranks, dtype=np.int64)


def test_every_id_of_the_family_judges_layouts() -> None:
    ids = {
        id_name
        for id_name in registry.ids()
        for cls in registry.check_classes(id_name)
        if issubclass(cls, PlacementCheck)
    }
    assert ids == {f"PLC00{number}" for number in range(1, 8)}


@examples("nodes", "leaf", "layout")
def test_ranks_in_blocks_on_whole_nodes_are_left_alone(nodes: int, leaf: int, layout: Layout) -> None:
    assert warned(judged(cluster(nodes, leaf, 2.0), layout, block(8 * nodes))) == set()


def exchanged(ranks: int, one: int, other: int) -> Ints:
    """Ranks in blocks, but for two that were exchanged."""
    slot = block(ranks)
    slot[[one, other]] = slot[[other, one]]
    return slot


def nodes_exchanged(nodes: int, one: int, other: int) -> Ints:
    return exchanged(nodes, one, other)[block(8 * nodes) // 8] * 8 + block(8 * nodes) % 8


def dealt(ranks: int) -> Ints:
    """Ranks dealt to four nodes in turn."""
    return block(ranks) % 4 * 8 + block(ranks) // 4


def turned(ranks: int) -> Ints:
    """The GPUs of every second node taken from the second one on."""
    return block(ranks) // 8 * 8 + (block(ranks) + block(ranks) // 8 % 2) % 8


def alternating(ranks: int) -> Ints:
    """Nodes of two racks in turn."""
    return np.asarray([0, 4, 1, 5, 2, 6, 3, 7])[block(ranks) // 8] * 8 + block(ranks) % 8


ORDERS: dict[str, Any] = {
    order.__name__: order for order in (block, exchanged, nodes_exchanged, dealt, turned, alternating)
}


@examples("fabric", "layout", "order", "check", "wanted")
def test_what_a_layout_costs(
    fabric: tuple[int, int, float], layout: Layout, order: list[Any], check: str, wanted: Wanted
) -> None:
    """On a cluster of so many nodes, nodes below a leaf, and oversubscription."""
    findings = found(judged(cluster(*fabric), layout, ORDERS[order[0]](*order[1:])), check)
    outcome = Outcome(check, Status.FINDING if findings else Status.CLEAN, findings=tuple(findings))
    assert shown(outcome, wanted) == wanted


def test_groups_of_a_rack_are_none_and_context_groups_are_no_error() -> None:
    assert not found(judged(cluster(18, system="gb200-nvl72"), Layout(tp=8, dp=9), block(72)), "PLC001")
    # They only fit at the price of tensor groups.
    verdict = judged(cluster(4), Layout(tp=8, cp=2, dp=2), block(32))
    assert all(finding.severity < Severity.ERROR for finding in found(verdict, "PLC001"))


def test_stages_over_the_spine_that_could_share_a_leaf() -> None:
    """Two replicas of two stages, each stage a node, each replica on one node of each leaf although a leaf has two."""
    fabric = cluster(4, 2, 4.0)
    tensor = Demand("tp", block(32).reshape(4, 8), "all_reduce", 64e6, 10_000, keep_together=True)
    first, second = np.stack([block(8), block(8) + 8], axis=1), np.stack([block(8) + 16, block(8) + 24], axis=1)
    pipeline = Demand("pp", np.concatenate([first, second]), "send_recv", 64e6, 320)
    ndarray = np.concatenate([block(8), block(8) + 16, block(8) + 8, block(8) + 24])
    talk = talk_of_groups(fabric, (tensor, pipeline), 32)
    (finding,) = found(audit(fabric, talk, Assignment(ndarray)), "PLC003")
    assert finding.message == "16 of 16 pairs of neighbouring stages meet at the spine, 0 would be enough"
    assert finding.severity is Severity.WARNING
    assert not found(audit(fabric, talk, Assignment(block(32))), "PLC003")


def test_a_flat_fabric_has_no_rails() -> None:
    flat = replace(cluster(4), rails=0)
    assert status(judged(flat, Layout(tp=8, dp=4), turned(32)), "PLC004") is Status.NOT_APPLICABLE


def test_peers_on_other_rails_of_one_leaf_are_priced_over_the_spine() -> None:
    turned = block(32) // 8 * 8 + (block(32) + block(32) // 8 % 2) % 8
    finding = expect(found(judged(cluster(4, 4, 40.0), Layout(tp=8, dp=4), turned), "PLC004"), severity="WARNING")
    assert finding.cost.share > 0.01


def test_rails_are_compared_as_sets_on_each_node() -> None:
    fabric = cluster(2)
    groups = np.asarray([[0, 1, 2, 3], [4, 5, 6, 7]])
    slot = np.asarray([0, 1, 9, 8, 2, 3, 10, 12])
    assert off_rail(fabric, groups, Assignment(slot)).tolist() == [False, True]


def test_fragments_hold_no_group_although_there_are_gpus_enough() -> None:
    """Two nodes with four free GPUs between them in twos; a job wants four with tensor parallelism."""
    usable = np.zeros((2, 8), bool)
    usable[:, :2] = True
    verdict = judged(replace(cluster(2), usable=usable), Layout(tp=4), [0, 1, 8, 9])
    (finding,) = found(verdict, "PLC005")
    assert finding.message == "1 tp group of 4 cannot be packed: the GPUs leave room for 0 of 1"
    assert "2 domains with 2" in finding.observed
    assert not any("free GPUs elsewhere" in text for text in finding.fix)
    assert not found(verdict, "PLC001"), "no order of ranks mends it"


def test_free_nodes_elsewhere_are_the_remedy_of_fragments() -> None:
    verdict = judged(cluster(3), Layout(tp=4), [0, 1, 8, 9])
    expect(found(verdict, "PLC005"), first_step="*free GPUs elsewhere have room for 6 groups*")


@examples("nodes", "leaf", "over", "layout")
def test_the_map_of_the_solver_is_never_told_to_take_the_map_of_the_solver(
    nodes: int, leaf: int, over: float, layout: Layout
) -> None:
    """Stages of a pipeline that use every second node make the order of all ranks go round the leaves twice. No ring
    goes through all ranks, so that harms nothing."""
    fabric = cluster(nodes, leaf, over)
    ranks = layout.tp * layout.cp * layout.pp * layout.dp
    talk = talk_of_layout(fabric, layout, ranks)
    solved = solve(fabric, talk.demands, ranks).assignment
    assert not found(audit(fabric, talk, solved), "PLC006")


def test_rings_of_several_groups_are_judged_one_by_one() -> None:
    """Two groups of four nodes, node by node in turn: each alone crosses once into each leaf and back."""
    fabric = cluster(8, 4, 2.0)
    groups = np.asarray([[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]])
    nodes = np.asarray([0, 2, 4, 6, 1, 5, 3, 7, 0, 0, 1, 2])
    crossings, leaves = ring_crossings(fabric, groups, Assignment(nodes * 8 + np.asarray([0] * 8 + [1, 2, 1, 1])))
    assert crossings.tolist() == [2, 4, 0]
    assert leaves.tolist() == [2, 2, 0]


def test_ring_attention_that_changes_the_node_at_each_step() -> None:
    fabric = cluster(2)
    ring = Demand("cp", block(4)[None, :], "send_recv", 64e6, 32, keep_together=True)
    outcome = found(audit(fabric, talk_of_groups(fabric, (ring,), 4), Assignment(np.asarray([0, 8, 1, 9]))), "PLC007")
    expect(outcome, message="1 of 1 cp ring enters a node up to 2 times")
    assert not found(audit(fabric, talk_of_groups(fabric, (ring,), 4), Assignment(np.asarray([0, 1, 8, 9]))), "PLC007")


@settings(max_examples=8)
@given(
    st.permutations(range(32)),
    st.sampled_from((Layout(tp=4, pp=2, dp=4), Layout(tp=2, cp=4, dp=4, ep=4), Layout(dp=32))),
)
def test_no_layout_makes_a_check_fail_and_findings_are_complete(order: list[int], layout: Layout) -> None:
    for outcome in run(Subject.LAYOUT, [judged(cluster(4, 2, 2.0), layout, order)]):
        assert outcome.status is not Status.UNKNOWN, outcome.why
        for finding in outcome.findings:
            assert all((finding.observed, finding.expected, finding.fix, finding.where.nodes))


# --- PLC007 of a job: the way of rings through nodes


def with_ring(*ring: int, nodes: int = 2, hosts: int = 2, gpus: int = 4) -> Job:
    return jobs.job(hosts, gpus, world=lambda communicator: replace(communicator, rings={0: ring}, nodes=nodes))


@examples("ring", "nodes", "wanted")
def test_rings_that_come_back_to_a_node(ring: list[int], nodes: int, wanted: Wanted) -> None:
    assert shown(RingReturns().judge(with_ring(*ring, nodes=nodes)), wanted) == wanted


def test_without_rings_the_answer_is_unknown_and_names_the_subsystem() -> None:
    expect(RingReturns().judge(jobs.job()), status="unknown", why="*GRAPH*")
