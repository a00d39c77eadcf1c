"""NVL005: Fabric Manager, fabric registration, NVLink domains."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.checks import nodes
from tests.checks.nodes import only, read, status
from topodiag.checks.nvlink.fabric import FabricNotReady
from topodiag.evidence.host.kernel_log import KernelLog
from topodiag.evidence.interface import Blob
from topodiag.model.devices import GpuFabric, PciDevice
from topodiag.model.finding import Confidence, Severity
from topodiag.model.node import Node
from topodiag.model.provenance import Fact
from topodiag.model.topics import Topic


def judge(node: Node) -> Any:
    return FabricNotReady().judge(node, ())


def serviced(node: Node, word: str) -> Node:
    return nodes.with_os(node, services={"nvidia-fabricmanager": read(word, "systemctl")})


def waiting(node: Node, state: str = "in_progress") -> Node:
    return nodes.with_gpus(node, fabric=GpuFabric(state=read(state)))


@pytest.mark.parametrize("build", [nodes.hgx_h100, nodes.dgx_a100, nodes.gb200_tray])
def test_a_ready_fabric_is_clean(build: Any) -> None:
    assert status(judge(build())) == "clean"


@pytest.mark.parametrize("build", [nodes.dgx1_v100, nodes.l40s_box, nodes.t4_node])
def test_machines_without_nvswitches_are_not_judged(build: Any) -> None:
    assert status(judge(build())) == "not_applicable"


def test_one_gpu_needs_no_fabric() -> None:
    node = waiting(nodes.hgx_h100())
    one = replace(node, gpus=node.gpus[:1])
    assert status(judge(replace(one, told=frozenset({Topic.GPUS})))) == "not_applicable"
    assert status(judge(one)) == "finding"  # an excerpt shows one of several


def test_a_board_of_four_that_shows_no_switch_is_not_judged() -> None:
    node = nodes.dgx_a100()
    node = nodes.with_words(replace(node, gpus=node.gpus[:4]), lambda a, b: "NV4" if a[:3] == b[:3] == "GPU" else None)
    assert status(judge(serviced(node, "not-found"))) == "not_applicable"


def test_a_failed_fabric_manager_is_one_finding_with_the_gpus_that_wait() -> None:
    finding = only(judge(serviced(waiting(nodes.hgx_h100()), "failed")))
    assert finding.severity is Severity.ERROR
    assert len(finding.where.gpus) == 8
    assert any("570.86.15" in step for step in finding.fix)


def test_a_fabric_manager_that_died_later_is_a_warning() -> None:
    for word in ("failed", "inactive"):
        assert only(judge(serviced(nodes.hgx_h100(), word))).severity is Severity.WARNING


def test_an_inactive_fabric_manager_on_a100_is_a_warning_while_links_are_up_and_an_error_without() -> None:
    assert only(judge(serviced(nodes.dgx_a100(), "inactive"))).severity is Severity.WARNING
    dark = nodes.with_gpus(nodes.dgx_a100(), nvlinks=nodes.links(12, 25.0, tuple(range(12))))
    assert only(judge(serviced(dark, "inactive"))).severity is Severity.ERROR


def test_a_unit_that_systemd_does_not_know_is_silent_while_the_fabric_is_up() -> None:
    assert status(judge(serviced(nodes.hgx_h100(), "not-found"))) == "clean"
    assert status(judge(serviced(nodes.dgx_a100(), "not-found"))) == "clean"
    assert "not installed" in only(judge(serviced(waiting(nodes.hgx_h100()), "not-found"))).message


def test_in_a_container_the_service_is_no_evidence() -> None:
    node = nodes.with_os(serviced(nodes.hgx_h100(), "failed"), container=read("docker"))
    assert status(judge(node)) == "clean"


def test_in_a_guest_the_service_counts_only_where_switches_are_passed_through() -> None:
    node = nodes.with_os(serviced(nodes.hgx_h100(), "failed"), virtualization=read("kvm"))
    assert status(judge(node)) == "clean"
    switch = PciDevice("0000:f0:00.0", class_code=read(0x068000), vendor=read(0x10DE))
    assert status(judge(replace(node, pci={**node.pci, "0000:f0:00.0": switch}))) == "finding"


def test_on_a_rack_tray_the_service_runs_elsewhere() -> None:
    assert status(judge(serviced(nodes.gb200_tray(), "failed"))) == "clean"


def test_registration_minutes_after_boot_is_transient() -> None:
    finding = only(judge(nodes.with_os(waiting(nodes.hgx_h100()), uptime_s=read(180.0))))
    assert finding.severity is Severity.INFO
    assert "transient" in finding.message


def test_registration_that_hangs_is_an_error() -> None:
    finding = only(judge(waiting(nodes.hgx_h100())))
    assert finding.severity is Severity.ERROR
    assert finding.cost.gbs_lost == pytest.approx(370.8)


def test_registration_in_progress_with_unknown_uptime_is_a_warning() -> None:
    finding = only(judge(nodes.with_os(waiting(nodes.hgx_h100()), uptime_s=Fact())))
    assert (finding.severity, finding.confidence) == (Severity.WARNING, Confidence.MEDIUM)


def test_a_registration_that_ended_badly_is_an_error() -> None:
    finding = only(judge(nodes.with_fabric(nodes.hgx_h100(), 2, status=read("insufficient_resources"))))
    assert finding.where.gpus == ("GPU2",)
    assert "insufficient_resources" in finding.message


def test_unhealthy_and_degraded_fabric_is_an_error_and_limited_a_warning() -> None:
    node = nodes.hgx_h100()
    assert only(judge(nodes.with_fabric(node, 2, health=read("unhealthy")))).severity is Severity.ERROR
    assert only(judge(nodes.with_fabric(node, 2, bandwidth=read("degraded")))).severity is Severity.ERROR
    assert only(judge(nodes.with_fabric(node, 2, health=read("limited")))).severity is Severity.WARNING


def test_a_route_recovery_is_a_warning_because_it_passes() -> None:
    node = nodes.hgx_h100()
    assert only(judge(nodes.with_fabric(node, 2, problems=read("route recovery")))).severity is Severity.WARNING
    assert only(judge(nodes.with_fabric(node, 2, problems=read("route unhealthy")))).severity is Severity.ERROR


def test_a_gpu_outside_its_siblings_nvlink_domain_is_an_error() -> None:
    tray = nodes.gb200_tray()
    for changes in (
        {"cluster_uuid": read(nodes.ZERO_UUID)},
        {"cluster_uuid": read("00000000-0000-0000-0000-000000000001")},
        {"clique_id": read(4)},
    ):
        assert only(judge(nodes.with_fabric(tray, 1, **changes))).where.gpus == ("GPU1",)


def test_a_tray_outside_any_domain_is_silent() -> None:
    tray = nodes.gb200_tray()
    fabric = replace(tray.gpus[0].fabric, cluster_uuid=read(nodes.ZERO_UUID))
    assert status(judge(nodes.with_gpus(tray, fabric=fabric))) == "clean"


def test_a_failed_imex_service_is_a_warning_only_in_a_domain() -> None:
    tray = nodes.with_os(nodes.gb200_tray(), services={"nvidia-imex": read("failed")})
    assert only(judge(tray)).severity is Severity.WARNING
    inactive = nodes.with_os(tray, services={"nvidia-imex": read("inactive")})
    assert status(judge(inactive)) == "clean"


def test_no_evidence_is_unknown() -> None:
    node = nodes.with_gpus(nodes.dgx_a100(), fabric=GpuFabric(), nvlinks=())
    node = replace(nodes.with_os(node, services={}), smi_matrix={})
    assert status(judge(node)) == "unknown"


def test_fabric_information_of_some_gpus_only_is_unknown() -> None:
    assert status(judge(nodes.with_gpu(nodes.hgx_h100(), 4, fabric=GpuFabric()))) == "unknown"


def test_a_driver_that_waits_for_the_fabric_is_an_error() -> None:
    node = nodes.with_os(nodes.dgx_a100(), nvml_error=read("NotReady"))
    assert "NotReady" in only(judge(node)).message


REFUSED = "nvidia-nvswitch: Version mismatch, kernel version 450.80.02 user version 450.51.06"


def refused(node: Node) -> Node:
    return replace(node, events=tuple(KernelLog().parse(Blob("dmesg.txt", REFUSED.encode())).records))


def test_a_version_that_the_nvswitch_driver_refuses_is_an_error_by_itself() -> None:
    finding = only(judge(refused(Node(host="n1"))))
    assert finding.severity is Severity.ERROR
    assert "450.80.02" in finding.message
    assert "450.51.06" in finding.message
    assert any("of exactly version 450.80.02" in step for step in finding.fix)


def test_a_refusal_is_over_where_the_fabric_is_up_or_the_service_runs() -> None:
    assert status(judge(refused(nodes.hgx_h100()))) == "clean"
    assert status(judge(serviced(refused(Node(host="n1")), "active"))) == "not_applicable"


def test_two_cards_with_a_bridge_need_no_fabric_manager() -> None:
    pair = nodes.hgx_h100()
    cards = tuple(replace(gpu, name=Fact(), fabric=GpuFabric(), nvlinks=()) for gpu in pair.gpus[:2])
    node = nodes.with_words(replace(pair, gpus=cards, pci={}), lambda a, b: "NV4" if a[:3] == b[:3] == "GPU" else None)
    assert status(judge(serviced(node, "failed"))) == "not_applicable"


def test_a_manager_that_failed_beside_one_gpu_that_waits_is_an_error() -> None:
    node = waiting(nodes.hgx_h100())
    assert only(judge(serviced(replace(node, gpus=node.gpus[:1]), "failed"))).severity is Severity.ERROR
