"""DCGM's sentences on clocks and memory, alone, in a log and in a table."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.evidence.filled import node_of, recognises
from topodiag.checks.gpu.clocks import ClocksHeldDown
from topodiag.checks.gpu.tests import SlowGpuInTest
from topodiag.evidence.interface import Blob
from topodiag.evidence.nvidia.dcgm import Dcgm
from topodiag.model.finding import Status

LINE = "Detected a WARNING in health system Thermal: 'Detected clocks event due to thermal violation in GPU 2. Verify"
TABLE = """\
|    -> Errors              |                                                          |
|       -> Thermal system   | Warning                                                  |
|                           | Detected clock throttling due to thermal violation in    |
|                           | GPU 3. Verify that the cooling is functional.            |
"""


@pytest.mark.parametrize(("text", "gpu"), [(LINE, "GPU2"), (TABLE, "GPU3")])
def test_a_thermal_violation_is_a_clock_held_down(text: str, gpu: str) -> None:
    (finding,) = ClocksHeldDown().judge(node_of(text)).findings
    assert finding.where.gpus == (gpu,)


DIAG_3 = """\
| PCIe                      | Fail - GPUs: 3, 5                              |
| Warning                   | Bandwidth of GPU 3 in direction d2h of 6.21 di |
|                           | not exceed                                     |
"""
DIAG_4 = """\
| pcie                      | Fail                                           |
|                           | GPU0: Pass                                     |
|                           | GPU2: Fail                                     |
| Warning: GPU2             | GPU 2 is running at PCI link width 8X, which   |
|                           | is below the minimum allowed link generation   |
"""


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


@pytest.mark.parametrize(
    "text",
    [
        "| Denylist                  | Fail - GPU: 3 |",
        "GPU 0's NvLink link 0 is currently down Check DCGM and system logs for errors.",
        "GPU_UUID:GPU-bb3e IMEX daemon status is -3 (not READY)",
        "| Overall Health            | Healthy |",
    ],
)
def test_what_need_not_be_a_fault_is_not_taken_for_one(text: str) -> None:
    assert not recognises("dcgm", text)


@pytest.mark.parametrize(
    "text",
    [
        "GPU 3 Thermal violations totaling 0.0 seconds started at 30.0 seconds into the test",
        "GPU 0 Power violations totaling 0 seconds started at 2.0 seconds into the test",
        "There were thermal violations totaling 0.0 seconds for GPU 1.",
    ],
)
def test_a_violation_of_no_time_is_read_and_accuses_nobody(text: str) -> None:
    assert recognises("dcgm", text)
    assert ClocksHeldDown().judge(node_of(text)).status is not Status.FINDING


@pytest.mark.parametrize(
    ("text", "index"),
    [
        ("GPU 3 Thermal violations totaling 0.4 seconds started at 30.0 seconds into the test", 3),
        ("There were thermal violations totaling 12.4 seconds for GPU 1.", 1),
        ("GPU 2 Thermal violations totaling 10.0 seconds started at 30.0 seconds into the test", 2),
    ],
)
def test_a_violation_with_time_is_a_clock_held_down(text: str, index: int) -> None:
    [gpu] = node_of(text).gpus
    assert (gpu.index, gpu.throttle.value) == (index, ("hw_thermal_slowdown",))


@given(st.binary())
def test_any_bytes_are_read_without_an_exception(data: bytes) -> None:
    Dcgm().parse(Blob("any.txt", data))
