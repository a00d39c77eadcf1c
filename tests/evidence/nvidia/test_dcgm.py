"""DCGM's sentences on clocks and memory, alone, in a log and in a table."""

from __future__ import annotations

import pytest

from tests.evidence.filled import node_of, recognises
from tests.tables import examples, texts
from topodiag.checks.gpu.clocks import ClocksHeldDown
from topodiag.checks.gpu.tests import SlowGpuInTest
from topodiag.model.finding import Status

LINE = "Detected a WARNING in health system Thermal: 'Detected clocks event due to thermal violation in GPU 2. Verify"
TEXTS = texts(__file__)
TABLE = TEXTS["table"]


@pytest.mark.parametrize(("text", "gpu"), [(LINE, "GPU2"), (TABLE, "GPU3")])
def test_a_thermal_violation_is_a_clock_held_down(text: str, gpu: str) -> None:
    (finding,) = ClocksHeldDown().judge(node_of(text)).findings
    assert finding.where.gpus == (gpu,)


DIAG_3 = TEXTS["diag_3"]
DIAG_4 = TEXTS["diag_4"]


@pytest.mark.parametrize(("text", "gpus"), [(DIAG_3, [3, 5]), (DIAG_4, [2])])
def test_gpus_whose_tests_failed_are_named(text: str, gpus: list[int]) -> None:
    assert recognises("dcgm", text)
    node = node_of(text)
    assert [gpu.index for gpu in node.gpus if gpu.failed_tests.known] == gpus


def test_tests_that_all_gpus_passed_clear_them() -> None:
    node = node_of(
        "| Diagnostic                | Result                                         |\n"
        "| Denylist                  | Pass                                           |\n"
        "| PCIe                      | Pass - All                                     |\n"
        "| GPU Memory                | Skip - All                                     |\n"
    )
    assert node.passed_tests.value == ("PCIe",)
    assert SlowGpuInTest().judge(node).status is Status.CLEAN


@examples("text")
def test_what_need_not_be_a_fault_is_not_taken_for_one(text: str) -> None:
    assert not recognises("dcgm", text)


@examples("text")
def test_a_violation_of_no_time_is_read_and_accuses_nobody(text: str) -> None:
    assert recognises("dcgm", text)
    assert ClocksHeldDown().judge(node_of(text)).status is not Status.FINDING


@examples("text", "index")
def test_a_violation_with_time_is_a_clock_held_down(text: str, index: int) -> None:
    [gpu] = node_of(text).gpus
    assert (gpu.index, gpu.throttle.value) == (index, ("hw_thermal_slowdown",))
