"""GDR001 and GDR002: the parts that GPUDirect RDMA needs, and its distance."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.checks import nodes
from tests.checks.nodes import only, read, status
from topodiag.checks.gpudirect.node import GdrModuleMissing, GdrTooFar
from topodiag.model.devices import NicRole
from topodiag.model.finding import Confidence, Severity
from topodiag.model.node import Node
from topodiag.model.provenance import Fact, Origin
from topodiag.model.system import Setting


def module(node: Node) -> Any:
    return GdrModuleMissing().judge(node, ())


def far(node: Node) -> Any:
    return GdrTooFar().judge(node, ())


def without_module(node: Node, **changes: Any) -> Node:
    """Neither a peer memory module nor, with closed kernel modules, DMA-BUF."""
    facts: dict[str, Any] = {
        "peermem": read(False), "modules": read(frozenset({"nvidia"})), "driver_open": read(False)
    }  # fmt: skip
    return nodes.with_os(node, **{**facts, **changes})


@pytest.mark.parametrize("check", [GdrModuleMissing, GdrTooFar])
@pytest.mark.parametrize("build", nodes.HEALTHY)
def test_healthy_machines_have_no_finding(check: Any, build: Any) -> None:
    assert status(check().judge(build(), ())) in ("clean", "not_applicable")


# --- GDR001 ---------------------------------------------------------------------------------------------------


def test_no_module_and_no_dmabuf_is_one_finding_for_all_gpus() -> None:
    finding = only(module(without_module(nodes.hgx_h100())))
    assert finding.severity is Severity.ERROR
    assert len(finding.where.gpus) == 8
    assert finding.cost.gbs_lost == pytest.approx(50 - 48 / 2)
    assert any("modprobe nvidia-peermem" in step for step in finding.fix)


def test_dmabuf_replaces_the_module() -> None:
    outcome = module(without_module(nodes.hgx_h100(), driver_open=read(True)))
    assert status(outcome) == "clean"
    assert "DMA-BUF" in outcome.why


@pytest.mark.parametrize(
    "lacking", [{"kernel": read("4.18.0-553.el8")}, {"driver_version": read("510.47.03")}, {"driver_open": read(False)}]
)
def test_dmabuf_needs_kernel_driver_and_open_modules(lacking: dict[str, Any]) -> None:
    node = without_module(nodes.hgx_h100(), **{"driver_open": read(True), **lacking})
    assert status(module(node)) == "finding"


def test_the_older_module_counts() -> None:
    node = without_module(nodes.hgx_h100(), modules=read(frozenset({"nv_peer_mem"})))
    assert status(module(node)) == "clean"


def test_modules_that_were_not_seen_are_unknown() -> None:
    assert status(module(without_module(nodes.hgx_h100(), peermem=Fact(), modules=Fact()))) == "unknown"


def test_a_kernel_module_of_unknown_kind_is_unknown() -> None:
    assert status(module(without_module(nodes.hgx_h100(), driver_open=Fact()))) == "unknown"


def test_efa_has_its_own_way() -> None:
    node = without_module(nodes.hgx_h100())
    node = replace(node, nics=tuple(replace(nic, driver=read("efa")) for nic in node.nics))
    assert status(module(node)) == "not_applicable"


def test_without_a_compute_nic_that_is_up_there_is_no_question() -> None:
    node = without_module(nodes.hgx_h100())
    storage = replace(node, nics=tuple(replace(nic, role=NicRole.STORAGE) for nic in node.nics))
    down = tuple(replace(nic, ports=(replace(nic.ports[0], state=read("DOWN")),)) for nic in node.nics)
    for other in (storage, replace(node, nics=down), replace(node, nics=())):
        assert status(module(other)) == "not_applicable"
        assert status(far(other)) == "not_applicable"


def test_geforce_cannot_do_it() -> None:
    node = nodes.with_gpus(without_module(nodes.l40s_box()), name=read("NVIDIA GeForce RTX 4090"))
    assert status(module(node)) == "not_applicable"
    assert status(far(node)) == "not_applicable"


def test_where_no_nic_is_near_it_is_only_information() -> None:
    node = nodes.with_words(without_module(nodes.l40s_box()), lambda a, b: "PHB" if "mlx5" in a + b else None)
    assert only(module(node)).severity is Severity.INFO


def test_in_a_guest_with_invented_distances_confidence_is_medium() -> None:
    finding = only(module(without_module(nodes.flat_vm())))
    assert (finding.severity, finding.confidence) == (Severity.ERROR, Confidence.MEDIUM)


# --- GDR002 ---------------------------------------------------------------------------------------------------


def apart(node: Node, label: str, text: str) -> Node:
    """The node with one GPU so far from every NIC."""
    return nodes.with_words(node, lambda a, b: text if label in (a, b) and "mlx5" in a + b else None)


def test_a_pcie_gpu_beyond_the_host_bridge_is_a_warning() -> None:
    finding = only(far(apart(nodes.l40s_box(), "GPU1", "PHB")))
    assert finding.severity is Severity.WARNING
    assert finding.where.gpus == ("GPU1",)
    assert "PXB" in finding.expected


def test_gpus_at_the_same_distance_fold_into_one_finding() -> None:
    node = nodes.with_words(nodes.l40s_box(), lambda a, b: "NODE" if "mlx5" in a + b else None)
    assert only(far(node)).where.gpus == ("GPU0", "GPU1", "GPU2", "GPU3")


def test_nvlink_to_a_gpu_with_a_near_nic_covers() -> None:
    outcome = far(apart(nodes.hgx_h100(), "GPU3", "SYS"))
    assert status(outcome) == "clean"
    assert "PXN" in outcome.why


def test_an_nvswitch_machine_without_any_near_nic_is_found() -> None:
    node = nodes.with_words(nodes.hgx_h100(), lambda a, b: "NODE" if "mlx5" in a + b else None)
    assert len(only(far(node)).where.gpus) == 8


def test_grace_is_far_by_design() -> None:
    assert status(far(nodes.gb200_tray())) == "not_applicable"


def test_a_level_that_allows_the_distance_is_the_sites_choice() -> None:
    node = apart(nodes.l40s_box(), "GPU1", "PHB")
    for level, expected in (("PHB", "clean"), ("SYS", "clean"), ("3", "clean"), ("PIX", "finding"), ("x", "finding")):
        setting = Setting("NCCL_NET_GDR_LEVEL", level, "environment", Origin("env", 1))
        assert status(far(replace(node, settings=(setting,)))) == expected


def test_distances_of_a_virtual_tree_are_unknown() -> None:
    assert status(far(nodes.flat_vm())) == "unknown"


def test_no_distance_is_unknown() -> None:
    assert status(far(replace(nodes.l40s_box(), paths={}, smi_matrix={}))) == "unknown"


def test_distances_of_some_gpus_only_are_unknown() -> None:
    node = apart(nodes.l40s_box(), "GPU1", "")
    kept = {pair: path for pair, path in node.paths.items() if "GPU1" not in pair}
    assert status(far(replace(node, paths=kept))) == "unknown"


def test_an_unknown_product_is_only_judged_beside_siblings_that_are_near() -> None:
    bare = nodes.bare_matrix(nodes.l40s_box())
    assert only(far(apart(bare, "GPU1", "PHB"))).confidence is Confidence.MEDIUM
    assert status(far(nodes.with_words(bare, lambda a, b: "PHB" if "mlx5" in a + b else None))) == "unknown"


def test_a_mesh_reaches_a_near_nic_over_other_gpus() -> None:
    node = nodes.dgx1_v100()
    assert status(far(replace(node, nics=node.nics[:1]))) == "clean"
