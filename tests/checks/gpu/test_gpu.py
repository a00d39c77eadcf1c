"""GPU001 to GPU006 from one text alone, or one test: what the kernel log, nvidia-smi, lspci or DCGM says of a GPU."""

from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from tests.checks import nodes
from tests.checks.nodes import only, read, status
from tests.checks.wanted import expect
from tests.evidence.filled import node_of
from tests.pasted import said
from topodiag.checks.gpu.lost import GpuLost
from topodiag.checks.gpu.repair import GpuRecovery
from topodiag.checks.gpu.slow import SlowGpuInTest
from topodiag.checks.gpu.xid import XidInLog, amd_troubles
from topodiag.checks.host.settings import HostSettings
from topodiag.model.devices import Gpu
from topodiag.model.finding import Outcome, Severity, Status
from topodiag.model.node import Node
from topodiag.model.provenance import Fact


def only_finding(outcome: Outcome) -> tuple[Severity, str]:
    assert outcome.status is Status.FINDING, outcome.why
    (finding,) = outcome.findings
    return finding.severity, finding.message


def test_a_gpu_that_asks_for_a_reset_is_not_called_lost() -> None:
    node = node_of("Unable to determine the device handle for GPU4: 00000000:9D:00.0: GPU requires reset\n")
    assert GpuLost().judge(node).status is not Status.FINDING
    assert only_finding(GpuRecovery().judge(node))[0] is Severity.ERROR


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


# --- GPU003 and HST003 on the journal of a machine whose only GPU is AMD's


TIMEOUT = "[drm:amdgpu_job_timedout [amdgpu]] *ERROR* ring comp_1.1.0 timeout, signaled seq=41, emitted seq=43"
RESET = "amdgpu 0000:4a:00.0: amdgpu: GPU reset begin!"
OTHER = "amdgpu 0000:5b:00.0: amdgpu: GPU reset begin!"
TRANSLATES = ("iommu: Default domain type: Translated", "pci 0000:00:00.0: Adding to iommu group 0")


def journal(*messages: str) -> Node:
    lines = "".join(f"Mar 04 05:06:07 tin-4 kernel: {message}\n" for message in messages)
    return node_of(lines)


def test_a_timeout_is_of_the_gpu_that_is_reset_next() -> None:
    (fault,) = amd_troubles(XidInLog(), journal(TIMEOUT, RESET))
    assert fault.message == "The GPU at 0000:4a:00.0: a queue of the GPU timed out at Mar 04 05:06:07"
    assert [origin.line for origin in fault.evidence] == [1, 2]


def test_a_timeout_after_a_reset_is_of_a_gpu_that_nobody_names() -> None:
    assert [fault.where.gpus for fault in amd_troubles(XidInLog(), journal(RESET, TIMEOUT))] == [("0000:4a:00.0",), ()]


@pytest.mark.parametrize(("more", "found"), [((RESET,), False), ((RESET, OTHER), True)])
def test_an_iommu_that_translates_slows_no_gpu_without_a_peer(more: tuple[str, ...], found: bool) -> None:
    findings = HostSettings().judge(journal(*TRANSLATES, *more), ()).findings
    assert any("IOMMU translates" in finding.message for finding in findings) is found


def test_an_iommu_that_translates_slows_one_gpu_with_an_rdma_nic() -> None:
    node = replace(journal(*TRANSLATES, RESET), nics=(nodes.nic(0, 0),))
    assert any("IOMMU translates" in finding.message for finding in HostSettings().judge(node, ()).findings)


# --- a driver's load clears no GPU


LOAD = "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  570.86.15  Mon Jan  6 12:10:04 UTC 2025"


def boot(*later: str) -> str:
    """A whole log of the first 30 seconds, and what stands below."""
    lines = [f"[{at / 10:12.6f}] pnp 00:{at}: probed" for at in range(235)]
    lines += [f"[   23.500000] {LOAD}", *(f"[{at / 10:12.6f}] usb 1-{at}: probed" for at in range(236, 300)), *later]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    ("later", "wanted"),
    [
        ((), "unknown"),
        (("[  310.000000] usb 1-4: new device",), "unknown"),
        (("[ 9310.000000] usb 1-4: new device",), "clean"),
        (("[   31.000000] NVRM: Persistence mode is deprecated and will be removed",), "clean"),
    ],
    ids=["the load alone", "some minutes", "hours", "another line of the driver"],
)
def test_a_log_clears_gpus_that_goes_on_below_the_load_of_the_driver(later: tuple[str, ...], wanted: str) -> None:
    node = node_of(boot(*later))
    assert [status(check().judge(node)) for check in (GpuLost, XidInLog)] == [wanted, wanted]


def test_a_log_of_dates_without_a_year_goes_on_as_well() -> None:
    lines = [f"Mar 04 05:{at // 60:02}:{at % 60:02} tin-4 kernel: pnp 00:{at}: probed" for at in range(240)]
    lines[100] = f"Mar 04 05:01:40 tin-4 kernel: {LOAD}"
    assert status(XidInLog().judge(node_of("\n".join(lines) + "\n"))) == "unknown"
    lines.append("Mar 04 09:00:00 tin-4 kernel: usb 1-4: new device")
    assert status(XidInLog().judge(node_of("\n".join(lines) + "\n"))) == "clean"


def test_where_no_gpu_was_read_none_is_ruled_out(tmp_path: Path) -> None:
    verdict = said(tmp_path, boot("[ 9310.000000] usb 1-4: new device"))["verdict"]
    assert (verdict["state"], verdict["ruled_out"]) == ("unknown", [])


# --- GPU006: copies that are far slower with one GPU than among the others, and tests that a GPU failed


def judged(node: Node) -> Any:
    return SlowGpuInTest().judge(node)


def copied(gbs: dict[int, float], usual: float = 387.0, count: int = 8) -> Node:
    """A node whose pairs copy at the usual pace, those with a GPU of `gbs` at that."""
    node = nodes.hgx_h100()
    node = replace(node, gpus=node.gpus[:count])
    pairs = permutations(range(count), 2)
    table = {(f"GPU{a}", f"GPU{b}"): read(min(gbs.get(a, usual), gbs.get(b, usual))) for a, b in pairs}
    return replace(node, copies=table)


def from_host(*gbs: float) -> Node:
    node = nodes.hgx_h100()
    return replace(
        node, gpus=tuple(replace(gpu, host_copy_gbs=read(each)) for gpu, each in zip(node.gpus, gbs, strict=False))
    )


def test_one_gpu_that_is_slow_with_all_others_is_an_error() -> None:
    finding = only(judged(copied({3: 25.1})))
    assert finding.message == "GPU3: copies with every other GPU at 25.1 GB/s and less, 387 among the rest"
    assert (finding.severity, finding.where.gpus) == (Severity.ERROR, ("GPU3",))
    assert finding.cost.share == pytest.approx(1 - 25.1 / 387)


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        (copied({}), "clean"),
        (copied({3: 300.0}), "clean"),  # within what boards differ by
        (copied({1: 25.0, 2: 25.0, 5: 25.0}), "unknown"),  # a machine of two kinds of places
        (copied({3: 5.0}, usual=22.0), "unknown"),  # over PCIe the place decides
        (copied({1: 25.0}, count=3), "unknown"),
        (from_host(55.3, 55.2), "unknown"),
        (from_host(*[55.3] * 8), "clean"),
        (from_host(*[55.3] * 4, *[37.0] * 4), "clean"),  # the other socket's memory
    ],
)
def test_what_the_place_of_a_gpu_explains_is_no_fault(node: Node, expected: str) -> None:
    assert status(judged(node)) == expected


def test_one_gpu_with_slow_copies_from_the_host_is_named() -> None:
    finding = only(judged(from_host(55.3, 55.3, 13.7, 55.3, 55.3, 55.3, 55.3, 55.3)))
    assert finding.message == "GPU2: copies from the host at 13.7 GB/s, 55.3 on its peers"


def test_a_failed_test_that_names_no_gpu_is_of_the_node() -> None:
    node = replace(nodes.hgx_h100(), failed_tests=read(("the test Inforom failed",)))
    [finding] = SlowGpuInTest().judge(node).findings
    assert (finding.message, finding.where.gpus) == ("DCGM: the test Inforom failed (no GPU is named)", ())


def test_a_failed_test_of_dcgm_is_a_warning_with_its_words() -> None:
    node = nodes.with_gpu(nodes.hgx_h100(), 5, failed_tests=read(("the test PCIe failed",)))
    expect(judged(node), severity="WARNING", message="GPU5: DCGM: the test PCIe failed")
