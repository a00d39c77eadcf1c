"""`nvtop` becomes GPUs with their PCIe links."""

from __future__ import annotations

from tests.evidence.filled import node_of, recognises
from topodiag.checks.pcie.links import NarrowPcieLink, SlowPcieLink
from topodiag.model.finding import Status

LINE = " Device {} [NVIDIA A100-PCIE-40GB] PCIe GEN {}@{:2}x RX: 1.953 MiB/s TX: 976.6 KiB/s\n"
CLOCKS = " GPU 1410MHz MEM 1215MHz TEMP  45\u00b0C FAN N/A% POW 250 / 250 W\n"


def shown(*links: tuple[int, int]) -> str:
    """nvtop's lines for GPUs with links of these generations and widths."""
    return "".join(LINE.format(at, *link) + CLOCKS for at, link in enumerate(links))


def test_each_gpu_has_its_name_and_its_link() -> None:
    text = shown((4, 16), (1, 8))
    assert recognises("nvtop", text)
    node = node_of(text)
    assert [gpu.name.value for gpu in node.gpus] == ["NVIDIA A100-PCIE-40GB"] * 2
    assert sorted((each.gen.value, each.width.value) for each in node.pci.values()) == [(1, 8), (4, 16)]


def test_a_gpu_that_rests_its_link_is_well() -> None:
    node = node_of(shown((4, 16), (1, 16)))
    assert SlowPcieLink().judge(node).status is not Status.FINDING
    assert NarrowPcieLink().judge(node).status is not Status.FINDING


def test_one_gpu_with_fewer_lanes_than_its_siblings_is_told() -> None:
    [finding] = NarrowPcieLink().judge(node_of(shown((4, 16), (4, 16), (4, 8), (4, 16)))).findings
    assert "x8" in finding.message
