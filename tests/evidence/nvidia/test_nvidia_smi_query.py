"""`nvidia-smi --query-gpu` tables: whatever the columns, they say what the full report says."""

from __future__ import annotations

import pytest

from tests.evidence.filled import node_of
from tests.tables import examples
from topodiag.checks.pcie.links import NarrowPcieLink, SlowPcieLink
from topodiag.evidence.interface import Blob
from topodiag.evidence.nvidia.nvidia_smi_query import NvidiaSmiQuery
from topodiag.model.node import Node

COMMAND = "$ nvidia-smi --query-gpu=index,pcie.link.width.current,pcie.link.width.max,utilization.gpu --format=csv"
HEADER = "index, pcie.link.width.current, pcie.link.width.max, utilization.gpu [%]"


def node(text: str) -> Node:
    return node_of(text)


def test_columns_are_found_by_their_header_in_any_order() -> None:
    machine = node("pcie.link.width.current, index, name, pci.bus_id\n8, 2, NVIDIA H100 80GB HBM3, 00000000:75:00.0\n")
    assert (machine.gpus[0].index, machine.gpus[0].bus_id) == (2, "0000:75:00.0")
    assert machine.pci["0000:75:00.0"].width.value == 8


def test_without_a_header_the_echoed_command_names_the_columns() -> None:
    machine = node(f"{COMMAND},noheader,nounits\n0, 16, 16, 97\n1, 8, 16, 98\n")
    assert [gpu.utilization.value for gpu in machine.gpus] == [97, 98]


def test_a_gpu_without_a_bus_id_has_its_pcie_link_all_the_same() -> None:
    machine = node(f"{HEADER}\n0, 16, 16, 97 %\n1, 8, 16, 98 %\n2, 16, 16, 97 %\n")
    function = machine.pci_of(machine.gpus[1])
    assert function is not None
    assert (function.width.value, function.max_width.value) == (8, 16)
    findings = NarrowPcieLink().judge(machine).findings
    assert [finding.where.gpus for finding in findings] == [("GPU1",)]


def test_the_link_of_a_gpu_by_number_is_that_of_its_bus_id_once_this_is_known() -> None:
    machine = node(f"{HEADER}\n0, 8, 16, 97 %\n\nindex, pci.bus_id\n0, 00000000:1B:00.0\n")
    assert list(machine.pci) == ["0000:1b:00.0"]
    assert machine.pci["0000:1b:00.0"].width.value == 8


def test_gen1_of_a_gpu_at_rest_is_no_fault() -> None:
    header = "index, pcie.link.gen.current, pcie.link.gen.max, utilization.gpu [%]"
    assert not SlowPcieLink().judge(node(f"{header}\n0, 1, 4, 0 %\n1, 1, 4, 0 %\n")).findings


@pytest.mark.parametrize("name", ["clocks_event_reasons", "clocks_throttle_reasons"])
def test_clock_reasons_are_read_as_a_mask_and_one_by_one(name: str) -> None:
    assert node(f"index, {name}.active\n0, 0x0000000000000048\n").gpus[0].throttle.value == (
        "hw_slowdown", "hw_thermal_slowdown",
    )  # fmt: skip
    assert node(f"index, {name}.hw_slowdown, {name}.gpu_idle\n0, Active, Not Active\n").gpus[0].throttle.value == (
        "hw_slowdown",
    )


def test_counters_recovery_and_fabric_are_those_of_the_full_report() -> None:
    gpu = node(
        "index, ecc.errors.uncorrected.volatile.total, remapped_rows.pending, gpu_recovery_action, fabric.state,"
        " fabric.status\n3, 2, Yes, Reset, Completed, Success\n"
    ).gpus[0]
    assert gpu.counters["ecc_volatile_uncorrected"].first.value == 2
    assert gpu.counters["remapped_pending"].first.value == 1
    assert (gpu.recovery_action.value, gpu.fabric.state.value, gpu.fabric.status.value) == (
        "reset", "completed", "success",
    )  # fmt: skip


def test_a_cell_without_a_reading_is_unknown() -> None:
    gpu = node("index, utilization.gpu [%], pstate\n0, [N/A], [Not Supported]\n").gpus[0]
    assert not gpu.utilization.known
    assert not gpu.pstate.known


@examples("text")
def test_other_tables_with_commas_are_not_recognised(text: str) -> None:
    assert not NvidiaSmiQuery().recognises(text)


def test_text_round_the_table_is_left_alone() -> None:
    text = f"user@n1:~{COMMAND}\n{HEADER}\n0, 16, 16, 97 %\nuser@n1:~$ echo 1, 2, 3, 4\n1, 2, 3, 4\n"
    assert NvidiaSmiQuery().recognises(text)
    assert len(NvidiaSmiQuery().parse(Blob("a", text.encode())).records) == 1
