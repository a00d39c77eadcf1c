"""PLC001 to PLC007 on layouts, also those that do not run yet."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tables import examples
from topodiag.app.case.cluster import ClusterOptions, open_cluster
from topodiag.checks import registry
from topodiag.checks.interface import PlacementCheck
from topodiag.checks.placement.layout_order import off_rail
from topodiag.checks.registry import Subject
from topodiag.checks.run import run
from topodiag.model.cluster import Assignment, Cluster, Demand, Ints
from topodiag.model.finding import Finding, Severity, Status
from topodiag.model.layout import Layout
from topodiag.placement.audit import Audit, audit
from topodiag.placement.groups import talk_of_groups, talk_of_layout
from topodiag.placement.rings import ring_crossings
from topodiag.placement.solve import solve

WARNED = (Severity.WARNING, Severity.ERROR)


def cluster(nodes: int, leaf: int = 0, over: float = 1.0, system: str = "dgx-h100") -> Cluster:
    return open_cluster(ClusterOptions(system=system, nodes=nodes, leaf=leaf, oversubscription=over))


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


def test_split_tensor_groups_are_named_with_their_nodes_and_their_cost() -> None:
    slot = block(32)
    slot[[0, 8]] = slot[[8, 0]]
    (finding,) = found(judged(cluster(4), Layout(tp=8, dp=4), slot), "PLC001")
    assert finding.severity is Severity.ERROR
    assert finding.message == "2 of 4 tp groups of 8 ranks span 2 NVLink domains"
    assert finding.where.nodes == ("node002", "node001")
    assert finding.where.ranks == tuple(range(16))
    assert finding.cost.share is not None
    assert finding.cost.share > 0.1
    assert "place solve" in finding.fix[0]


def test_groups_larger_than_a_domain_are_a_note_and_those_of_a_rack_are_none() -> None:
    (finding,) = found(judged(cluster(4), Layout(tp=16, dp=2), block(32)), "PLC001")
    assert finding.severity is Severity.INFO
    assert "fit into no NVLink domain: it has 8 GPUs" in finding.message
    assert not found(judged(cluster(18, system="gb200-nvl72"), Layout(tp=8, dp=9), block(72)), "PLC001")


def test_expert_groups_are_plc002_and_large_ones_are_by_design() -> None:
    dealt = block(32) % 4 * 8 + block(32) // 4
    verdict = judged(cluster(4), Layout(dp=32, ep=8), dealt)
    assert [finding.severity for finding in found(verdict, "PLC002")] == [Severity.WARNING]
    assert not found(verdict, "PLC001")
    assert not found(judged(cluster(4), Layout(dp=32, ep=32), block(32)), "PLC002")


def test_context_groups_that_only_fit_at_the_price_of_tensor_groups_are_no_error() -> None:
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


def test_stages_over_a_spine_that_costs_a_hop_are_left_alone() -> None:
    assert not found(judged(cluster(4, 2, 1.0), Layout(tp=8, dp=2, pp=2), block(32)), "PLC003")


def test_a_pipeline_that_pays_for_others_is_left_alone() -> None:
    """Replicas of one stage meet in the leaf instead, and that is cheaper here."""
    assert not found(judged(cluster(8, 4, 4.0), Layout(tp=8, dp=4, pp=2), block(64)), "PLC003")


def test_peers_on_other_rails() -> None:
    turned = block(32) // 8 * 8 + (block(32) + block(32) // 8 % 2) % 8
    (finding,) = found(judged(cluster(4), Layout(tp=8, dp=4), turned), "PLC004")
    assert finding.message.startswith("8 of 8 dp groups use different GPU positions")
    assert "node001: GPU 0; node002: GPU 1" in finding.observed
    flat = replace(cluster(4), rails=0)
    assert status(judged(flat, Layout(tp=8, dp=4), turned), "PLC004") is Status.NOT_APPLICABLE


def test_peers_on_other_rails_of_one_leaf_are_priced_over_the_spine() -> None:
    turned = block(32) // 8 * 8 + (block(32) + block(32) // 8 % 2) % 8
    (finding,) = found(judged(cluster(4, 4, 40.0), Layout(tp=8, dp=4), turned), "PLC004")
    assert finding.severity is Severity.WARNING
    assert finding.cost.share is not None
    assert finding.cost.share > 0.01


def test_peers_on_other_rails_that_cost_next_to_nothing_are_a_note() -> None:
    """One switch, or leaves that the groups span anyway."""
    turned = block(32) // 8 * 8 + (block(32) + block(32) // 8 % 2) % 8
    for fabric in (cluster(4), cluster(4, 2, 8.0)):
        (finding,) = found(judged(fabric, Layout(tp=8, dp=4), turned), "PLC004")
        assert finding.severity is Severity.INFO
    assert "nothing of a step" in finding.cost.text


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
    (finding,) = found(verdict, "PLC005")
    assert "free GPUs elsewhere have room for 6 groups" in finding.fix[0]


def test_a_size_that_divides_no_domain_is_told_to_be_the_cause() -> None:
    (finding,) = found(judged(cluster(2), Layout(tp=3, dp=5), block(15)), "PLC005")
    assert finding.fix == ("choose a size of tp that divides the 8 GPUs of a domain",)


def test_ranks_dealt_to_nodes_in_turn() -> None:
    verdict = judged(cluster(4), Layout(tp=8, dp=4), block(32) % 4 * 8 + block(32) // 4)
    (finding,) = found(verdict, "PLC006")
    assert finding.message == "consecutive ranks alternate between 4 nodes of 8 GPUs, which splits 4 groups"
    assert finding.where.nodes == ("node001", "node002", "node003", "node004")


def test_ranks_dealt_in_turn_split_nothing_where_no_group_belongs_together() -> None:
    assert not found(judged(cluster(4), Layout(dp=32), block(32) % 4 * 8 + block(32) // 4), "PLC006")


def test_rings_through_nodes_by_name_go_back_and_forth_between_racks() -> None:
    """One crossing into each rack would do; nodes that alternate between two racks cross four times each."""
    order = np.asarray([0, 4, 1, 5, 2, 6, 3, 7])
    alternating = order[block(64) // 8] * 8 + block(64) % 8
    (finding,) = found(judged(cluster(8, 4, 2.0), Layout(tp=8, dp=8), alternating), "PLC006")
    assert finding.message == "rings through the nodes in rank order cross between leaves 8 times, 2 would be enough"
    assert finding.severity is Severity.WARNING
    (note,) = found(judged(cluster(8, 4, 1.0), Layout(tp=8, dp=8), alternating), "PLC006")
    assert note.severity is Severity.INFO, "a spine as wide as the leaves carries it"


def test_two_nodes_of_sixty_four_out_of_order_are_named_with_their_ranks_and_the_exchange() -> None:
    order = block(64)
    order[[3, 40]] = order[[40, 3]]
    ranks = order[block(512) // 8] * 8 + block(512) % 8
    (finding,) = found(judged(cluster(64, 8, 2.0), Layout(tp=8, dp=64), ranks), "PLC006")
    assert finding.where.nodes == ("node041", "node004")
    assert finding.where.ranks == (*range(24, 32), *range(320, 328))
    assert finding.fix[0] == "exchange the ranks of node041 and node004: that mends it"


def test_two_ranks_on_each_others_nodes_are_named() -> None:
    ranks = block(512)
    ranks[[7, 200]] = ranks[[200, 7]]
    (finding,) = found(judged(cluster(64), Layout(tp=8, dp=64), ranks), "PLC006")
    assert finding.where.ranks == (7, 200)
    assert set(finding.where.nodes) == {"node001", "node026"}
    assert finding.fix[0] == "exchange 1 pair of ranks: 7 with 200"


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
    (finding,) = found(
        audit(fabric, talk_of_groups(fabric, (ring,), 4), Assignment(np.asarray([0, 8, 1, 9]))), "PLC007"
    )
    assert finding.message == "1 of 1 cp ring enters a node up to 2 times"
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
