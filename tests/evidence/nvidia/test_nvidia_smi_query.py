"""`nvidia-smi --query-gpu` tables: whatever the columns, they say what the full report says."""

from __future__ import annotations

from typing import Any

import pytest

from tests.evidence.filled import node_of
from tests.tables import examples, parts
from topodiag.checks.pcie.links import NarrowPcieLink, SlowPcieLink
from topodiag.evidence.interface import Blob
from topodiag.evidence.nvidia.nvidia_smi_query import NvidiaSmiQuery
from topodiag.model.node import Node

COMMAND = "$ nvidia-smi --query-gpu=index,pcie.link.width.current,pcie.link.width.max,utilization.gpu --format=csv"
HEADER = "index, pcie.link.width.current, pcie.link.width.max, utilization.gpu [%]"


def node(text: str) -> Node:
    return node_of(text)


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


@examples("text", "shown")
def test_a_table_of_a_query_gives_a_node(text: str, shown: dict[str, Any]) -> None:
    assert parts(node(text), shown) == shown


@examples("text")
def test_other_tables_with_commas_are_not_recognised(text: str) -> None:
    assert not NvidiaSmiQuery().recognises(text)


def test_text_round_the_table_is_left_alone() -> None:
    text = f"user@n1:~{COMMAND}\n{HEADER}\n0, 16, 16, 97 %\nuser@n1:~$ echo 1, 2, 3, 4\n1, 2, 3, 4\n"
    assert NvidiaSmiQuery().recognises(text)
    assert len(NvidiaSmiQuery().parse(Blob("a", text.encode())).records) == 1
