"""TOP003: PCI trees that a hypervisor made up."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.checks import nodes
from tests.checks.nodes import only, read, status
from topodiag.checks.topo.virtual_pci import VirtualPciTree
from topodiag.model.finding import Confidence, Severity
from topodiag.model.node import Node
from topodiag.model.provenance import Fact, Origin
from topodiag.model.system import Process, Setting


def judge(node: Node) -> Any:
    return VirtualPciTree().judge(node, ())


@pytest.mark.parametrize("build", nodes.HEALTHY)
def test_bare_metal_is_not_judged(build: Any) -> None:
    assert status(judge(build())) == "not_applicable"


def test_a_flattened_guest_is_found_with_what_nccl_will_assume() -> None:
    finding = only(judge(nodes.flat_vm()))
    assert finding.severity is Severity.WARNING
    assert "12 GB/s (Gen3 x16)" in finding.cost.text
    assert finding.cost.gbs_lost == pytest.approx(48 - 12)
    assert "NUMA node -1 on 16 of 16" in finding.observed
    assert "NCCL_TOPO_FILE" in finding.fix[0]


def test_an_sxm_guest_whose_matrix_is_all_far_is_found_without_a_tree() -> None:
    node = replace(nodes.flat_vm(), pci={})
    assert only(judge(node)).confidence is Confidence.HIGH


def test_the_same_matrix_without_word_of_a_hypervisor_is_medium() -> None:
    node = nodes.with_os(replace(nodes.flat_vm(), pci={}), virtualization=Fact())
    assert only(judge(node)).confidence is Confidence.MEDIUM


def test_a_guest_with_its_switches_is_clean() -> None:
    assert status(judge(nodes.with_os(nodes.hgx_h100(), virtualization=read("kvm")))) == "clean"


def test_a_topology_file_is_the_remedy() -> None:
    setting = Setting("NCCL_TOPO_FILE", "/opt/topo.xml", "/etc/nccl.conf", Origin("nccl.conf", 1))
    assert status(judge(replace(nodes.flat_vm(), settings=(setting,)))) == "clean"
    process = Process(7, (0,), nccl_env=read({"NCCL_TOPO_FILE": "/x.xml"}))
    assert status(judge(replace(nodes.flat_vm(), processes=(process,)))) == "clean"
    daemon = nodes.with_os(nodes.flat_vm(), services={"nvidia-topologyd": read("active")})
    assert status(judge(daemon)) == "clean"


def test_efa_brings_its_own_topology() -> None:
    node = nodes.flat_vm()
    node = replace(node, nics=tuple(replace(nic, driver=read("efa")) for nic in node.nics))
    assert status(judge(node)) == "clean"


def test_one_gpu_without_nics_has_nothing_to_be_joined_to() -> None:
    assert status(judge(nodes.with_os(nodes.t4_node(), virtualization=read("kvm")))) == "not_applicable"


def test_without_word_of_a_hypervisor_and_without_a_tree_it_is_unknown() -> None:
    assert status(judge(nodes.bare_matrix(nodes.hgx_h100()))) == "unknown"
    assert status(judge(nodes.bare_matrix(nodes.gb200_tray()))) == "unknown"


def test_a_guest_of_which_nothing_was_seen_is_unknown() -> None:
    node = replace(
        nodes.flat_vm(), pci={}, paths={}, smi_matrix={}, gpus=nodes.hgx_h100().gpus, nics=nodes.hgx_h100().nics
    )
    assert status(judge(node)) == "unknown"
