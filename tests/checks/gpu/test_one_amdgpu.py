"""GPU003 and HST003 on the journal of a machine whose only GPU is AMD's."""

from dataclasses import replace

import pytest

from tests.checks import nodes
from topodiag.checks.gpu.xid import XidInLog, amd_troubles
from topodiag.checks.host.settings import HostSettings
from topodiag.evidence.intake.bundle import Evidence
from topodiag.evidence.intake.reader import read_node
from topodiag.evidence.interface import Blob
from topodiag.model.node import Node

TIMEOUT = "[drm:amdgpu_job_timedout [amdgpu]] *ERROR* ring comp_1.1.0 timeout, signaled seq=41, emitted seq=43"
RESET = "amdgpu 0000:4a:00.0: amdgpu: GPU reset begin!"
OTHER = "amdgpu 0000:5b:00.0: amdgpu: GPU reset begin!"
TRANSLATES = ("iommu: Default domain type: Translated", "pci 0000:00:00.0: Adding to iommu group 0")


def journal(*messages: str) -> Node:
    lines = "".join(f"Mar 04 05:06:07 tin-4 kernel: {message}\n" for message in messages)
    return read_node(Evidence("tin-4", blobs=[Blob("journal.txt", lines.encode())])).node


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
