"""GPU001 to GPU005 from one text alone: what the kernel log, nvidia-smi or lspci says of a GPU is judged."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.evidence.filled import node_of
from tests.tables import examples, texts
from topodiag.checks.gpu.clocks import ClocksHeldDown
from topodiag.checks.gpu.lost import GpuLost
from topodiag.checks.gpu.memory import GpuMemory
from topodiag.checks.gpu.recovery import GpuRecovery
from topodiag.checks.gpu.xid import XidInLog
from topodiag.model.devices import Gpu
from topodiag.model.finding import Outcome, Severity, Status
from topodiag.model.provenance import Fact

OFF = "NVRM: Xid (PCI:0000:9d:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
FORMS = (
    f"[1814102.950000] {OFF}\n",
    f"[Sun Nov 22 07:14:51 2026] {OFF}\n",
    f"Nov 22 07:14:51 gpu-h07 kernel: {OFF}\n",
    f"2026-11-22T07:14:51.123456+00:00 gpu-h07 kernel: {OFF}\n",
    f"[1814102.950000] gpu-h07 kernel: {OFF}\n",
    f"kern  :warn  : [1814102.950000] {OFF}\n",
    f"user@gpu-h07:~$ sudo dmesg | grep -i xid\n[1814102.950000] {OFF}\n",
    f"{OFF}\n",
    "[  12.5] NVRM: GPU at PCI:0000:9d:00: GPU-9ce2cee2-06b7-913a-30df-7ac03521f910\n"
    "[  12.6] NVRM: GPU 0000:9d:00.0: GPU has fallen off the bus.\n",
    "NVRM: Xid (0000:9d:00): 79, GPU has fallen off the bus.\n",
)


def only(outcome: Outcome) -> tuple[Severity, str]:
    assert outcome.status is Status.FINDING, outcome.why
    (finding,) = outcome.findings
    return finding.severity, finding.message


@pytest.mark.parametrize("text", FORMS)
def test_a_gpu_that_fell_off_the_bus_is_an_error_in_every_form_of_the_kernel_log(text: str) -> None:
    severity, message = only(GpuLost().judge(node_of(text)))
    assert severity is Severity.ERROR
    assert message.startswith("The GPU at 0000:9d:00.0 is lost")


@examples("text")
def test_the_words_of_nvidia_smi_and_lspci_show_a_lost_gpu(text: str) -> None:
    severity, message = only(GpuLost().judge(node_of(text)))
    assert severity is Severity.ERROR
    assert "0000:9d:00.0" in message


def test_a_gpu_that_asks_for_a_reset_is_not_called_lost() -> None:
    node = node_of("Unable to determine the device handle for GPU4: 00000000:9D:00.0: GPU requires reset\n")
    assert GpuLost().judge(node).status is not Status.FINDING
    assert only(GpuRecovery().judge(node))[0] is Severity.ERROR


REFUSES = (
    "Assertion failed: Reset required [NV_ERR_RESET_REQUIRED] (0x00000062) returned from status @ kernel_channel.c:2827"
)


def test_a_driver_that_says_what_each_gpu_asks_for_is_newer_than_its_log() -> None:
    log = f"[412207.118834] NVRM: nvAssertOkFailedNoLog: {REFUSES}\n"
    node = node_of(log)
    gpu = Gpu(0, "0000:1b:00.0", recovery_action=Fact("none", None))
    assert GpuRecovery().judge(replace(node, gpus=(gpu,))).status is Status.CLEAN


@examples("line", "severity")
def test_memory_errors_of_the_kernel_log_are_judged(line: str, severity: Severity) -> None:
    node = node_of(f"[  100.000001] NVRM: Xid (PCI:0000:1b:00): {line}\n")
    assert only(GpuMemory().judge(node))[0] is severity


@examples("line", "severity", "word")
def test_every_other_xid_is_said_with_what_it_means(line: str, severity: Severity, word: str) -> None:
    pair = only(XidInLog().judge(node_of(f"[  100.000001] NVRM: Xid (PCI:0000:1b:00): {line}\n")))
    assert pair[0] is severity
    assert word in pair[1]


def test_the_same_program_error_on_all_gpus_stays_the_programs() -> None:
    lines = "".join(
        f"[{at}.000001] NVRM: Xid (PCI:0000:{bus}:00): 13, pid={at}, name=python3, Graphics SM Warp Exception\n"
        for bus in ("1b", "43")
        for at in (100, 900, 9000)
    )
    assert {finding.severity for finding in XidInLog().judge(node_of(lines)).findings} == {Severity.INFO}


TEXTS = texts(__file__)
QUERY = TEXTS["query"]
HEALTHY = {
    "idle": "Not Active", "slow": "Not Active", "hot": "Not Active", "busy": 98, "lost": 0, "exceeded": "No",
    "pending": "No", "failed": "No", "clock": 1935, "action": "None",
}  # fmt: skip


def query(**changed: object) -> str:
    return QUERY.format(**(HEALTHY | changed))


def test_a_healthy_query_alone_is_clean_by_every_check_of_the_family() -> None:
    node = node_of(query())
    for check in (GpuLost(), GpuMemory(), ClocksHeldDown(), GpuRecovery()):
        assert check.judge(node).status is Status.CLEAN, check.id


def test_nvidia_smi_q_alone_shows_memory_faults() -> None:
    assert only(GpuMemory().judge(node_of(query(lost=2))))[0] is Severity.ERROR
    assert only(GpuMemory().judge(node_of(query(exceeded="Yes"))))[0] is Severity.ERROR
    assert only(GpuMemory().judge(node_of(query(failed="Yes"))))[0] is Severity.ERROR
    assert only(GpuMemory().judge(node_of(query(pending="Yes"))))[0] is Severity.WARNING


def test_nvidia_smi_q_alone_shows_clocks_and_recovery() -> None:
    assert only(ClocksHeldDown().judge(node_of(query(slow="Active", hot="Active"))))[0] is Severity.ERROR
    assert only(ClocksHeldDown().judge(node_of(query(clock=345))))[0] is Severity.WARNING
    assert only(GpuRecovery().judge(node_of(query(action="Drain and Reset"))))[0] is Severity.ERROR


def test_an_idle_gpu_clocks_low_by_design() -> None:
    idle = query(idle="Active", busy=0, clock=345, slow="Active")
    assert ClocksHeldDown().judge(node_of(idle)).status is Status.CLEAN


def test_a_lost_gpu_keeps_its_index_by_bus_id_and_not_by_position() -> None:
    """nvidia-smi -q leaves the lost GPU out; the GPU behind it must not slip into its place."""
    text = (
        "Unable to determine the device handle for GPU1: 00000000:43:00.0: GPU is lost.\n"
        "Attached GPUs                             : 3\n"
        "GPU 00000000:1B:00.0\n    Product Name                          : NVIDIA H100 80GB HBM3\n"
        "GPU 00000000:52:00.0\n    Product Name                          : NVIDIA H100 80GB HBM3\n"
    )
    node = node_of(text)
    lost = [(gpu.index, gpu.bus_id) for gpu in node.gpus if gpu.lost.known]
    assert lost == [(1, "0000:43:00.0")]
    assert (1, "0000:52:00.0") not in [(gpu.index, gpu.bus_id) for gpu in node.gpus]


def test_sections_that_grep_left_are_of_one_gpu_each() -> None:
    section = "    Fabric\n        State           : Completed\n        Status          : {}\n"
    node = node_of("$ nvidia-smi -q | grep -A 2 Fabric\n" + section.format("Success") + section.format("Failure"))
    assert [(gpu.index, gpu.fabric.status.value) for gpu in node.gpus] == [(0, "success"), (1, "Failure")]


def busy(bus: str, clock: int, cap: str) -> str:
    return (
        f"GPU 00000000:{bus}:00.0\n    Product Name                          : Tesla V100-SXM2-16GB\n"
        f"    Clocks Throttle Reasons\n        Idle                              : Not Active\n"
        f"        SW Power Cap                      : {cap}\n        HW Slowdown                       : Not Active\n"
        f"    Utilization\n        Gpu                               : 100 %\n"
        f"    Clocks\n        SM                                : {clock} MHz\n"
        f"    Max Clocks\n        SM                                : 1530 MHz\n"
    )


def smi_q(*gpus: str) -> str:
    return "==============NVSMI LOG==============\n\nAttached GPUs : 4\n" + "".join(gpus)


def test_a_power_limit_that_slows_one_gpu_of_several_is_a_warning() -> None:
    free = [busy(bus, 1507, "Not Active") for bus in ("1A", "1C", "1E")]
    severity, message = only(ClocksHeldDown().judge(node_of(smi_q(*free, busy("3D", 952, "Active")))))
    assert severity is Severity.WARNING
    assert "its power limit holds it at 952 MHz, and its peers run at 1507 MHz or more without one" in message


@examples("gpus")
def test_a_power_limit_that_is_the_sites_choice_or_costs_little_is_silent(gpus: list[tuple[str, int, str]]) -> None:
    assert not ClocksHeldDown().judge(node_of(smi_q(*(busy(*gpu) for gpu in gpus)))).findings
