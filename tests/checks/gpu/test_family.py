"""GPU001 to GPU005 from one text alone: what the kernel log, nvidia-smi or lspci says of a GPU is judged."""

from dataclasses import replace

from tests.evidence.filled import node_of
from topodiag.checks.gpu.lost import GpuLost
from topodiag.checks.gpu.recovery import GpuRecovery
from topodiag.model.devices import Gpu
from topodiag.model.finding import Outcome, Severity, Status
from topodiag.model.provenance import Fact


def only(outcome: Outcome) -> tuple[Severity, str]:
    assert outcome.status is Status.FINDING, outcome.why
    (finding,) = outcome.findings
    return finding.severity, finding.message


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
