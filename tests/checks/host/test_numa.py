"""NUM001 and NUM002: NICs on another socket, processes bound to another socket."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.checks import nodes
from tests.checks.nodes import only, read, status
from topodiag.checks.host.numa import GpuNicOnDifferentSockets
from topodiag.checks.host.process_cores import ProcessAwayFromGpu
from topodiag.model.devices import NicRole
from topodiag.model.finding import Severity
from topodiag.model.node import Node
from topodiag.model.provenance import Fact
from topodiag.model.system import Process
from topodiag.model.topics import Topic


def placed(node: Node) -> Any:
    return GpuNicOnDifferentSockets().judge(node, ())


def bound(node: Node, *processes: Process) -> Any:
    return ProcessAwayFromGpu().judge(replace(node, processes=processes), ())


def process(gpu: int, cpus: str, pid: int = 4711) -> Process:
    return Process(pid, (gpu,), cpus_allowed=read(cpus, f"proc-{pid}"))


def crossed(node: Node) -> Node:
    """The box with one GPU and one NIC left, on different sockets: what a badly placed pod sees."""
    return replace(node, gpus=node.gpus[:1], nics=node.nics[1:])


@pytest.mark.parametrize("build", nodes.HEALTHY)
def test_healthy_machines_have_no_finding(build: Any) -> None:
    assert status(placed(build())) in ("clean", "not_applicable")


# --- NUM001 ---------------------------------------------------------------------------------------------------


def test_a_gpu_whose_only_nic_is_on_the_other_socket_is_a_warning_with_the_price_of_the_crossing() -> None:
    finding = only(placed(crossed(nodes.l40s_box())))
    assert finding.severity is Severity.WARNING
    assert (finding.where.gpus, finding.where.nics) == (("GPU0",), ("mlx5_1",))
    assert finding.cost.gbs_lost == pytest.approx(25 - 16)
    assert "16 GB/s" in finding.cost.text


def test_numa_nodes_of_one_socket_are_near_whatever_the_matrix_calls_them() -> None:
    node = nodes.with_words(nodes.dgx_a100(), lambda a, b: "SYS" if "mlx5" in a + b else None)
    assert status(placed(node)) == "clean"


def test_one_nic_for_two_sockets_is_information_on_pcie_machines() -> None:
    node = nodes.l40s_box()
    finding = only(placed(replace(node, nics=node.nics[:1])))
    assert finding.severity is Severity.INFO
    assert finding.where.gpus == ("GPU2", "GPU3")


def test_a_socket_without_nics_is_covered_by_nvlink() -> None:
    node = nodes.hgx_h100()
    assert status(placed(replace(node, nics=node.nics[:4]))) == "clean"


def test_storage_nics_do_not_count() -> None:
    node = nodes.l40s_box()
    storage = replace(node.nics[0], role=NicRole.STORAGE)
    finding = only(placed(replace(node, nics=(storage, node.nics[1]))))
    assert finding.where.nics == ("mlx5_1",)


def test_one_socket_is_not_judged() -> None:
    assert (
        status(placed(replace(nodes.l40s_box(), numa=nodes.sockets("0-31", "32-63", per_socket=2)))) == "not_applicable"
    )


def test_grace_is_not_judged() -> None:
    assert status(placed(nodes.gb200_tray())) == "not_applicable"


def test_a_virtual_tree_is_unknown() -> None:
    assert status(placed(nodes.flat_vm())) == "unknown"


def test_more_numa_nodes_than_sockets_can_be_told_of_are_unknown() -> None:
    node = nodes.bare_matrix(nodes.dgx_a100())
    node = nodes.with_words(node, lambda a, b: "SYS" if "mlx5" in a + b else None)
    assert status(placed(node)) == "unknown"


def test_the_matrix_alone_tells_of_two_numa_nodes() -> None:
    node = nodes.bare_matrix(nodes.l40s_box())
    assert status(placed(node)) == "clean"
    assert only(placed(replace(node, nics=node.nics[:1]))).where.gpus == ("GPU2", "GPU3")


def test_numa_minus_one_on_bare_metal_is_a_warning() -> None:
    node = nodes.with_gpu(nodes.l40s_box(), 2, numa=read(-1))
    finding = only(placed(node))
    assert finding.severity is Severity.WARNING
    assert finding.where.gpus == ("GPU2",)


def test_numa_minus_one_in_a_guest_is_left_to_the_virtual_tree() -> None:
    node = nodes.with_gpu(nodes.l40s_box(), 2, numa=read(-1))
    assert status(placed(nodes.with_os(node, virtualization=read("kvm")))) == "clean"


# --- NUM002 ---------------------------------------------------------------------------------------------------


def test_a_process_on_the_other_socket_is_a_warning() -> None:
    finding = only(bound(nodes.l40s_box(), process(0, "32-63")))
    assert finding.where.gpus == ("GPU0",)
    assert "0-31" in finding.expected
    assert "--cpunodebind=0" in finding.fix[0]


def test_several_such_processes_fold_into_one_finding() -> None:
    finding = only(bound(nodes.l40s_box(), process(0, "32-63", 1), process(1, "40-47", 2)))
    assert finding.message == "2 processes of GPU0-1 may run only on cores of another socket"


def test_mostly_elsewhere_counts_and_half_does_not() -> None:
    assert status(bound(nodes.l40s_box(), process(0, "28-63"))) == "finding"
    assert status(bound(nodes.l40s_box(), process(0, "16-47"))) == "clean"


def test_a_process_that_may_use_all_cores_is_silent() -> None:
    assert status(bound(nodes.l40s_box(), process(0, "0-63"))) == "clean"


def test_another_numa_node_of_the_same_socket_is_silent() -> None:
    node = nodes.dgx_a100()
    assert status(bound(node, process(0, "0-15"))) == "clean"
    assert status(bound(node, process(0, "64-79"))) == "finding"


def test_a_process_with_several_gpus_is_not_judged() -> None:
    many = Process(1, (0, 3), cpus_allowed=read("0-7"))
    node = replace(nodes.l40s_box(), told=frozenset({Topic.PROCESSES}))
    assert status(bound(node, many)) == "not_applicable"
    assert status(bound(node)) == "not_applicable"


def test_processes_that_nobody_looked_for_are_unknown() -> None:
    assert status(bound(nodes.l40s_box())) == "unknown"


def test_one_numa_node_is_not_judged() -> None:
    assert status(bound(nodes.t4_node(), process(0, "0-3"))) == "not_applicable"


def test_unknown_cores_are_unknown() -> None:
    node = nodes.l40s_box()
    assert status(bound(node, Process(1, (0,)))) == "unknown"
    assert status(bound(node, process(0, "garbage"))) == "unknown"
    nowhere = replace(nodes.with_gpus(node, cpu_affinity=read(""), numa=Fact()), numa=(), pci={}, cpu=replace(node.cpu))
    assert status(bound(nowhere, process(0, "0-3"))) == "unknown"


def test_a_nic_without_a_numa_node_is_where_the_gpu_beside_it_is() -> None:
    node = nodes.bare_matrix(nodes.hgx_h100())
    node = replace(node, nics=tuple(nic for nic in node.nics if nic.name in ("mlx5_0", "mlx5_4")))
    node = nodes.with_words(node, lambda a, b: "SYS" if "mlx5" in a + b and a[-1] != b[-1] else None)
    assert status(placed(node)) == "clean"


def test_one_grace_gpu_makes_the_machine_a_grace_machine() -> None:
    tray = nodes.with_gpu(nodes.bare_matrix(nodes.gb200_tray()), 0, memory_numa=read(2))
    assert status(placed(tray)) == "not_applicable"
