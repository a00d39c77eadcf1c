"""NVL001, NVL002 and NVL004: missing links, slow links, pairs without NVLink."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.checks import nodes
from tests.checks.nodes import only, read, status
from topodiag.checks.nvlink.links import FewerNvlinks
from topodiag.checks.nvlink.pairs import PairWithoutNvlink
from topodiag.checks.nvlink.rate import SlowNvlinks
from topodiag.model.devices import GpuFabric, NvLink
from topodiag.model.finding import Confidence, Severity, Status
from topodiag.model.node import Node
from topodiag.model.provenance import Fact


def fewer(node: Node) -> Any:
    return FewerNvlinks().judge(node, ())


def slow(node: Node) -> Any:
    return SlowNvlinks().judge(node, ())


def pairs(node: Node) -> Any:
    return PairWithoutNvlink().judge(node, ())


def h100_pcie(active: tuple[int, ...]) -> Node:
    """Cards with bridge connectors, so many links up on each."""
    cards = [
        nodes.gpu(at, "NVIDIA H100 NVL", 90, 0, nvlinks=nodes.links(18, 26.562, tuple(range(count, 18))))
        for at, count in enumerate(active)
    ]
    return Node("nvl-01", os=nodes.hgx_h100().os, gpus=tuple(cards))


@pytest.mark.parametrize("check", [FewerNvlinks, SlowNvlinks, PairWithoutNvlink])
@pytest.mark.parametrize("build", nodes.HEALTHY)
def test_healthy_machines_have_no_finding(check: Any, build: Any) -> None:
    assert status(check().judge(build(), ())) in ("clean", "not_applicable")


# --- NVL001 ---------------------------------------------------------------------------------------------------


def test_a_gpu_with_inactive_links_is_found_with_what_it_costs() -> None:
    finding = only(fewer(nodes.with_gpu(nodes.hgx_h100(), 3, nvlinks=nodes.links(18, 26.562, (2, 3)))))
    assert finding.message == "GPU3 has 16 of 18 NVLinks active"
    assert finding.severity is Severity.ERROR
    assert "18 links x 20.6 GB/s = 370.8 GB/s" in finding.expected
    assert finding.cost.gbs_lost == pytest.approx(2 * 20.6)
    assert finding.where.links == ("GPU3 link 2", "GPU3 link 3")
    assert finding.evidence[0].text == "inactive"


def test_links_that_are_missing_from_the_text_count_as_inactive() -> None:
    finding = only(fewer(nodes.with_gpu(nodes.hgx_h100(), 0, nvlinks=nodes.links(17, 26.562))))
    assert finding.message == "GPU0 has 17 of 18 NVLinks active"
    assert finding.where.links == ()


@pytest.mark.parametrize("shown", [1, 5, 17])
def test_a_list_of_links_that_was_cut_off_accuses_nobody(shown: int) -> None:
    last = len(nodes.hgx_h100().gpus) - 1
    cut = nodes.with_gpu(nodes.hgx_h100(), last, nvlinks=nodes.links(shown, 26.562))
    assert fewer(cut).status is Status.UNKNOWN
    alike = nodes.with_gpus(nodes.hgx_h100(), nvlinks=nodes.links(shown, 26.562))
    assert fewer(alike).status is Status.UNKNOWN


def test_an_inactive_link_of_a_list_that_was_cut_off_is_told_alone() -> None:
    finding = only(fewer(nodes.with_gpus(nodes.hgx_h100(), nvlinks=nodes.links(5, 26.562, (3,)))))
    assert finding.message.startswith("GPU0-7 have 17 of 18 NVLinks active")


def test_equal_losses_of_several_gpus_are_one_finding() -> None:
    node = nodes.hgx_h100()
    for index in (1, 2):
        node = nodes.with_gpu(node, index, nvlinks=nodes.links(18, 26.562, (0,)))
    assert only(fewer(node)).where.gpus == ("GPU1", "GPU2")


def test_all_gpus_short_alike_points_at_a_switch_and_is_a_warning() -> None:
    finding = only(fewer(nodes.with_gpus(nodes.dgx_a100(), nvlinks=nodes.links(12, 25.0, (0, 1)))))
    assert "NVSwitch" in finding.message
    assert finding.severity is Severity.WARNING


def test_the_sentence_all_links_inactive_is_no_link() -> None:
    node = nodes.with_gpus(nodes.dgx_a100(), nvlinks=(), nvlink_note=read("all links are inactive"))
    finding = only(fewer(node))
    assert finding.message == "GPU0-7 have no active NVLink"
    assert any("nvidia-fabricmanager" in step for step in finding.fix)


def test_a_sleeping_link_is_up_and_a_disabled_one_is_not() -> None:
    asleep = tuple(replace(link, state=read("sleep")) for link in nodes.links(18, 26.562))
    assert status(fewer(nodes.with_gpu(nodes.hgx_h100(), 0, nvlinks=asleep))) == "clean"
    disabled = (*nodes.links(17, 26.562), nodes.link(17, "disabled"))
    assert "17 of 18" in only(fewer(nodes.with_gpu(nodes.hgx_h100(), 0, nvlinks=disabled))).message


def test_a_matrix_alone_shows_a_gpu_with_fewer_links_at_medium_confidence() -> None:
    node = nodes.with_words(nodes.hgx_h100(), lambda a, b: "NV12" if "GPU3" in (a, b) and "mlx5" not in a + b else None)
    finding = only(fewer(nodes.with_gpus(node, nvlinks=())))
    assert finding.message == "GPU3 has 12 of 18 NVLinks active"
    assert finding.confidence is Confidence.MEDIUM


def test_a_matrix_without_product_names_is_judged_by_siblings() -> None:
    node = nodes.with_words(nodes.hgx_h100(), lambda a, b: "NV12" if "GPU3" in (a, b) and "mlx5" not in a + b else None)
    finding = only(fewer(nodes.bare_matrix(node)))
    assert finding.where.gpus == ("GPU3",)
    assert finding.severity is Severity.WARNING


def test_a_board_that_joins_four_gpus_directly_is_complete_at_nv4() -> None:
    node = nodes.dgx_a100()
    node = replace(node, gpus=tuple(replace(gpu, nvlinks=()) for gpu in node.gpus[:4]))
    node = nodes.with_words(node, lambda a, b: "NV4" if a.startswith("GPU") and b.startswith("GPU") else None)
    assert status(fewer(node)) == "clean"


def test_two_gpus_of_such_a_board_are_no_finding() -> None:
    node = nodes.dgx_a100()
    node = replace(node, gpus=tuple(replace(gpu, nvlinks=()) for gpu in node.gpus[:2]))
    node = nodes.with_words(node, lambda a, b: "NV4" if a.startswith("GPU") and b.startswith("GPU") else None)
    assert status(fewer(node)) == "unknown"


def test_the_mesh_row_adds_up_to_the_links_of_the_product() -> None:
    node = nodes.with_gpus(nodes.dgx1_v100(), nvlinks=())
    assert status(fewer(node)) == "clean"
    lost = nodes.with_words(node, lambda a, b: "NV1" if {a, b} == {"GPU0", "GPU3"} else None)
    assert only(fewer(lost)).where.gpus == ("GPU0", "GPU3")


def test_cards_with_bridges_are_silent_when_all_have_the_same_links() -> None:
    assert status(fewer(h100_pcie((12, 12)))) == "clean"
    assert status(fewer(h100_pcie((12, 12, 12, 0)))) == "clean"


def test_a_bridged_card_with_fewer_links_than_most_siblings_is_a_warning() -> None:
    finding = only(fewer(h100_pcie((12, 12, 12, 8))))
    assert finding.severity is Severity.WARNING
    assert finding.where.gpus == ("GPU3",)


def test_nvl_cards_without_a_link_beside_a_bridged_pair_are_a_warning() -> None:
    finding = only(fewer(h100_pcie((0, 0, 12, 12))))
    assert (finding.severity, finding.confidence) == (Severity.WARNING, Confidence.MEDIUM)
    assert finding.where.gpus == ("GPU0", "GPU1")
    assert "bridges" in finding.fix[0]


@pytest.mark.parametrize("active", [(0, 0, 0, 0), (0, 12, 12), (0, 0, 0, 0, 12, 12), (12, 12, 12, 12)])
def test_nvl_cards_are_not_blamed_where_bridges_may_never_have_been_fitted(active: tuple[int, ...]) -> None:
    assert status(fewer(h100_pcie(active))) == "clean"


def test_other_cards_beside_a_bridged_pair_need_no_bridge() -> None:
    node = h100_pcie((0, 0, 12, 12))
    node = replace(node, gpus=tuple(replace(gpu, name=read("NVIDIA H100 PCIe")) for gpu in node.gpus))
    assert status(fewer(node)) == "clean"


def test_part_of_a_mesh_in_a_guest_is_silent() -> None:
    node = nodes.with_os(nodes.dgx1_v100(), virtualization=read("kvm"))
    node = replace(node, gpus=tuple(replace(g, nvlinks=nodes.links(6, 25.781, (4, 5))) for g in node.gpus[:4]))
    assert status(fewer(node)) == "clean"


def test_one_v100_alone_with_links_down_is_found_at_medium_confidence() -> None:
    card = nodes.gpu(3, "Tesla V100-SXM2-32GB", 70, 0, nvlinks=nodes.links(6, 25.781, (3, 5)))
    finding = only(fewer(Node("n", gpus=(card,))))
    assert finding.where.links == ("GPU3 link 3", "GPU3 link 5")
    assert finding.confidence is Confidence.MEDIUM


def two_v100(down: tuple[int, ...], of_first: tuple[int, ...] = (), **os: object) -> Node:
    cards = [
        nodes.gpu(at, "Tesla V100-SXM2-32GB", 70, 0, nvlinks=nodes.links(6, 25.781, lost))
        for at, lost in ((2, of_first), (3, down))
    ]
    return nodes.with_os(Node("n", gpus=tuple(cards)), **os)


def test_a_sibling_with_all_links_shows_that_the_board_uses_them() -> None:
    finding = only(fewer(two_v100((3, 5))))
    assert finding.where.links == ("GPU3 link 3", "GPU3 link 5")


def test_siblings_short_in_different_ways_and_those_of_a_guest_accuse_nobody() -> None:
    assert status(fewer(two_v100((3, 5), of_first=(0,)))) == "unknown"
    assert status(fewer(two_v100((3, 5), virtualization=read("kvm")))) == "clean"


def test_mig_reads_links_as_down_and_is_not_judged() -> None:
    node = nodes.with_gpus(nodes.hgx_h100(), mig=read(True), nvlinks=nodes.links(18, 26.562, tuple(range(18))))
    for check in (fewer, slow, pairs):
        assert status(check(node)) == "not_applicable"


def test_one_gpu_without_links_up_has_no_peer() -> None:
    node = nodes.hgx_h100()
    machine = replace(node, gpus=(replace(node.gpus[0], nvlinks=nodes.links(18, 26.562, tuple(range(18)))),))
    assert status(fewer(machine)) == "not_applicable"


def test_within_minutes_of_boot_links_that_are_down_are_unknown() -> None:
    node = nodes.with_gpus(nodes.dgx_a100(), nvlinks=nodes.links(12, 25.0, tuple(range(12))))
    assert status(fewer(nodes.with_os(node, uptime_s=read(120.0)))) == "unknown"
    assert status(fewer(nodes.with_os(node, uptime_s=read(3600.0)))) == "finding"


def test_a_completed_fabric_does_not_end_the_training_of_links() -> None:
    node = nodes.with_os(nodes.hgx_h100(), uptime_s=read(120.0))
    assert status(fewer(nodes.with_gpu(node, 0, nvlinks=nodes.links(18, 26.562, (4,))))) == "unknown"


def test_no_link_evidence_is_unknown() -> None:
    node = replace(nodes.with_gpus(nodes.hgx_h100(), nvlinks=()), smi_matrix={})
    assert status(fewer(node)) == "unknown"
    assert status(slow(node)) == "unknown"


def test_gpus_of_which_nothing_was_seen_are_named_together_with_the_reason() -> None:
    node = replace(nodes.with_gpus(nodes.hgx_h100(), nvlinks=(), mig=Fact()), smi_matrix={})
    assert fewer(node).why == "GPU0-7: neither its links nor an NVLink count in `topo -m` were seen"


def test_links_whose_state_was_not_read_are_unknown_not_down() -> None:
    silent = (*nodes.links(17, 26.562), NvLink(17))
    assert status(fewer(nodes.with_gpu(nodes.hgx_h100(), 5, nvlinks=silent))) == "unknown"


def test_a_lost_gpu_is_unknown() -> None:
    assert status(fewer(nodes.with_gpu(nodes.hgx_h100(), 5, lost=read("GPU is lost"), nvlinks=()))) == "unknown"


def test_an_unknown_product_is_compared_with_its_siblings() -> None:
    node = nodes.with_gpus(nodes.hgx_h100(), name=read("NVIDIA X900"))
    assert status(fewer(node)) == "clean"
    finding = only(fewer(nodes.with_gpu(node, 2, nvlinks=nodes.links(18, 26.562, (0,)))))
    assert finding.severity is Severity.WARNING
    assert "7 of 8 peers" in finding.expected


# --- NVL002 ---------------------------------------------------------------------------------------------------


def test_a_slow_link_is_found_beside_the_datasheet() -> None:
    links = (*nodes.links(17, 26.562), nodes.link(17, rate=19.0))
    finding = only(slow(nodes.with_gpu(nodes.hgx_h100(), 6, nvlinks=links)))
    assert finding.where.links == ("GPU6 link 17",)
    assert finding.severity is Severity.ERROR
    assert finding.cost.share == pytest.approx(1 - 19 / 26.562)


def test_a_link_a_little_below_its_siblings_is_a_warning() -> None:
    links = (*nodes.links(17, 26.562), nodes.link(17, rate=25.5))
    assert only(slow(nodes.with_gpu(nodes.hgx_h100(), 6, nvlinks=links))).severity is Severity.WARNING


@pytest.mark.parametrize("rate", [25.0, 25.781, 24.2])
def test_rounding_that_all_links_share_is_silent(rate: float) -> None:
    assert status(slow(nodes.with_gpus(nodes.dgx_a100(), nvlinks=nodes.links(12, rate)))) == "clean"


def test_only_links_that_are_up_are_judged_for_speed() -> None:
    links = (*nodes.links(17, 26.562), NvLink(17, state=read("inactive"), line_gbs=read(1.0)))
    assert status(slow(nodes.with_gpu(nodes.hgx_h100(), 6, nvlinks=links))) == "clean"


# --- NVL004 ---------------------------------------------------------------------------------------------------


def cut(node: Node, label: str) -> Node:
    """The node with one GPU's NVLink words gone."""
    return nodes.with_words(node, lambda a, b: "SYS" if label in (a, b) and a[:3] == b[:3] == "GPU" else None)


def test_a_gpu_that_reaches_its_peers_over_pcie_is_one_finding() -> None:
    finding = only(pairs(cut(nodes.hgx_h100(), "GPU3")))
    assert finding.message == "GPU3 reaches its 7 peers without NVLink"
    assert finding.where.gpus == ("GPU3",)
    assert finding.severity is Severity.ERROR
    assert finding.cost.gbs_lost == pytest.approx(370.8 - 48)


def test_one_pair_is_named() -> None:
    node = nodes.with_words(nodes.hgx_h100(), lambda a, b: "PHB" if {a, b} == {"GPU2", "GPU5"} else None)
    assert only(pairs(node)).message == "GPU2 and GPU5 talk without NVLink"


def test_no_pair_at_all_is_one_finding() -> None:
    node = nodes.with_words(nodes.hgx_h100(), lambda a, b: "NODE" if a[:3] == b[:3] == "GPU" else None)
    assert only(pairs(node)).message == "no pair of the 8 GPUs talks over NVLink"


def test_a_refused_status_counts_although_the_matrix_says_nvlink() -> None:
    node = nodes.hgx_h100()
    table = {**node.p2p["nvlink"], ("GPU0", "GPU1"): read("DR")}
    finding = only(pairs(replace(node, p2p={"nvlink": table})))
    assert finding.message == "GPU0 and GPU1 talk without NVLink"
    assert any("RegistryDwords" in step for step in finding.fix)


def test_a_gpu_without_links_is_left_to_the_check_that_names_the_cause() -> None:
    node = nodes.with_gpu(cut(nodes.hgx_h100(), "GPU3"), 3, nvlinks=nodes.links(18, 26.562, tuple(range(18))))
    outcome = pairs(node)
    assert status(outcome) == "clean"
    assert "NVL001" in outcome.why


def test_a_fabric_that_is_not_ready_is_left_to_its_check() -> None:
    node = nodes.with_gpu(cut(nodes.hgx_h100(), "GPU3"), 3, fabric=GpuFabric(state=read("in_progress")))
    outcome = pairs(node)
    assert status(outcome) == "clean"
    assert "NVL005" in outcome.why


def test_an_unknown_product_is_judged_when_the_others_are_all_joined() -> None:
    finding = only(pairs(nodes.bare_matrix(cut(nodes.hgx_h100(), "GPU3"))))
    assert finding.where.gpus == ("GPU3",)
    assert finding.confidence is Confidence.MEDIUM


def test_more_links_than_a_gpu_has_tell_of_a_switch_that_joins_all_pairs() -> None:
    node = nodes.with_words(nodes.hgx_h100(), lambda a, b: "SYS" if {a, b} == {"GPU2", "GPU3"} else None)
    finding = only(pairs(nodes.bare_matrix(node)))
    assert finding.message == "GPU2 and GPU3 talk without NVLink"
    assert finding.confidence is Confidence.MEDIUM


def test_a_mesh_is_held_to_its_own_pattern() -> None:
    assert status(pairs(nodes.dgx1_v100())) == "clean"
    assert status(pairs(nodes.bare_matrix(nodes.dgx1_v100()))) == "clean"
    node = nodes.with_words(nodes.dgx1_v100(), lambda a, b: "PHB" if {a, b} == {"GPU1", "GPU3"} else None)
    finding = only(pairs(node))
    assert finding.message == "GPU1 and GPU3 talk without NVLink"
    assert finding.severity is Severity.WARNING


def test_bridges_join_only_some_pairs() -> None:
    assert status(pairs(h100_pcie((12, 12)))) == "not_applicable"


def test_a_guest_without_nvlink_is_a_warning_for_the_host() -> None:
    node = nodes.with_words(nodes.flat_vm(), lambda a, b: "PHB" if a[:3] == b[:3] == "GPU" else None)
    assert only(pairs(node)).severity is Severity.WARNING


def test_no_matrix_and_no_status_is_unknown() -> None:
    assert status(pairs(replace(nodes.hgx_h100(), smi_matrix={}, p2p={}))) == "unknown"
    cells = {pair: fact for pair, fact in nodes.hgx_h100().smi_matrix.items() if set(pair) != {"GPU0", "GPU1"}}
    assert status(pairs(replace(nodes.hgx_h100(), smi_matrix=cells, p2p={}))) == "unknown"


def test_a_word_that_is_no_word_is_no_evidence() -> None:
    node = replace(nodes.with_words(nodes.hgx_h100(), lambda a, b: None), p2p={})
    cells = {pair: Fact("???", fact.origin) if "GPU0" in pair else fact for pair, fact in node.smi_matrix.items()}
    assert status(pairs(replace(node, smi_matrix=cells))) == "unknown"
