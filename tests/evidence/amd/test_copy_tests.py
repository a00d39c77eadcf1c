from __future__ import annotations

from topodiag.evidence.amd.copy_tests import AmdCopyTests
from topodiag.evidence.assemble import assemble
from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.interface import Blob
from topodiag.model.node import Node

P2P = """TransferBench v1.62.00
Unidirectional copy peak bandwidth GB/s [Local read / Remote write] (GPU-Executor: GFX)
 SRC+EXE\\DST    CPU 00       GPU 00   GPU 01
  CPU 00  ->      88.20        44.87    45.08
  GPU 00  ->      54.32      2954.73    48.38
  GPU 01  ->      54.33        31.20  3048.35
Bidirectional copy peak bandwidth GB/s [Local read / Remote write] (GPU-Executor: GFX)
 SRC\\DST    GPU 00   GPU 01
  GPU 00  ->      N/A    90.00
"""
ALL_TO_ALL = """TransferBench v1.62.00
SRC\\DST  GPU 00     GPU 01        STotal      Actual
GPU 00         N/A     47.318     330.545     328.021
GPU 01      46.786        N/A     329.304     327.504
RTotal    330.531    330.395    2640.128
"""
ROCM = """RocmBandwidthTest Version: 2.6.0
Device: 0,  AMD EPYC 7313P 16-Core Processor
Device: 1,  AMD Instinct MI210,  GPU-3b1f60d2a7c95e41,  27:0.0
Device: 2,  AMD Instinct MI210,  GPU-90c4d17e5aa2380f,  2a:0.0
Inter-Device Numa Distance
D/D       0         1         2
1         20        0         15
2         20        15        0
Unidirectional copy peak bandwidth GB/s
D/D       0         1         2
1         26.1      N/A       46.2
"""


def node_of(text: str) -> Node:
    source, draft = AmdCopyTests(), NodeDraft()
    blob = Blob("tb.txt", text.encode())
    assert source.recognises(text)
    source.fill(blob, source.parse(blob), draft)
    return assemble(draft, "n")


def copies(node: Node) -> dict[tuple[str, str], float | None]:
    return {pair: fact.value for pair, fact in node.copies.items()}


def test_copies_between_gpus_in_one_direction_count() -> None:
    assert copies(node_of(P2P)) == {("GPU0", "GPU1"): 48.38, ("GPU1", "GPU0"): 31.2}


def test_totals_of_all_to_all_are_no_pair() -> None:
    assert copies(node_of(ALL_TO_ALL)) == {("GPU0", "GPU1"): 47.318, ("GPU1", "GPU0"): 46.786}


def test_rocm_bandwidth_test_numbers_cpus_too() -> None:
    node = node_of(ROCM)
    assert [(gpu.bus_id, gpu.name.value) for gpu in node.gpus] == [
        ("0000:27:00.0", "AMD Instinct MI210"),
        ("0000:2a:00.0", "AMD Instinct MI210"),
    ]
    assert node.smi_matrix["GPU0", "GPU1"].value == "XGMI"
    assert copies(node)["GPU0", "GPU1"] == 46.2
