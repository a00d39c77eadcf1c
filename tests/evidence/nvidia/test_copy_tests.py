"""p2pBandwidthLatencyTest and nvbandwidth: GPUs by bus id, and who may reach whom."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.evidence.filled import node_of
from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.interface import Blob
from topodiag.evidence.nvidia.copy_tests import CopyTests

SAMPLE = """\
[P2P (Peer-to-Peer) GPU Bandwidth Latency Test]
Device: 0, NVIDIA H100 80GB HBM3, pciBusID: 18, pciDeviceID: 0, pciDomainID:0
Device: 1, NVIDIA H100 80GB HBM3, pciBusID: 2a, pciDeviceID: 0, pciDomainID:0
Device=0 CAN Access Peer Device=1
Device=1 CANNOT Access Peer Device=0
"""
NVBANDWIDTH = "nvbandwidth Version: v0.8\nDevice 0: NVIDIA RTX A6000 (00000000:01:00)\nDevice 1: NVIDIA RTX A6000\n"


def filled(text: str) -> NodeDraft:
    draft, blob = NodeDraft(), Blob("test.txt", text.encode())
    assert CopyTests().recognises(text)
    CopyTests().fill(blob, CopyTests().parse(blob), draft)
    return draft


def test_devices_are_known_by_their_bus_id_not_by_cudas_number() -> None:
    gpus = list(filled(SAMPLE).entities("gpu"))
    assert [(each.keys, each.offers["name"][0].value) for each in gpus] == [
        ({"bus_id": "0000:18:00.0"}, "NVIDIA H100 80GB HBM3"),
        ({"bus_id": "0000:2a:00.0"}, "NVIDIA H100 80GB HBM3"),
    ]
    assert [each.keys for each in filled(NVBANDWIDTH).entities("gpu")] == [{"bus_id": "0000:01:00.0"}]


def test_access_is_offered_where_it_is_given_since_a_refusal_has_no_reason_here() -> None:
    assert [(pair.table, pair.offer.value) for pair in filled(SAMPLE).pairs] == [("p2p:read", "OK")]


TABLE = """\
Running host_to_device_memcpy_ce.
memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)
           0         1
 0     55.31     13.71

SUM host_to_device_memcpy_ce 69.02

Running device_to_device_memcpy_read_ce.
memcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)
           0         1
 0       N/A    387.35
 1     25.11       N/A

Running device_to_device_memcpy_write_ce.
memcpy CE GPU(row) <- GPU(column) bandwidth (GB/s)
           0         1
 0       N/A      1.00
 1      1.00       N/A
"""
MATRICES = """\
Unidirectional P2P=Disabled Bandwidth Matrix (GB/s)
   D\\D     0      1
     0 1305.42   9.82
     1   9.80 1311.02
Unidirectional P2P=Enabled Bandwidth (P2P Writes) Matrix (GB/s)
   D\\D     0      1
     0 1305.42 376.10
     1 377.20 1311.02
Bidirectional P2P=Enabled Bandwidth Matrix (GB/s)
   D\\D     0      1
     0 1305.42 740.10
     1 741.20 1311.02
P2P=Enabled Latency (P2P Writes) Matrix (us)
   GPU     0      1
     0   2.13   2.20
     1   2.20   2.13
"""


def test_the_first_table_of_copies_in_one_direction_counts() -> None:
    node = node_of(TABLE)
    assert {pair: fact.value for pair, fact in node.copies.items()} == {
        ("GPU0", "GPU1"): 387.35,
        ("GPU1", "GPU0"): 25.11,
    }
    assert [gpu.host_copy_gbs.value for gpu in node.gpus] == [55.31, 13.71]
    pairs = node_of(MATRICES).copies
    assert {pair: fact.value for pair, fact in pairs.items()} == {("GPU0", "GPU1"): 376.1, ("GPU1", "GPU0"): 377.2}


def test_a_device_without_a_bus_id_beside_named_ones_is_no_gpu() -> None:
    node = node_of("Device 0: NVIDIA H100 (00000000:1b:00)\n" + TABLE)
    assert not node.copies
    assert len(node.gpus) < 2


@given(st.binary())
def test_any_bytes_are_read_without_an_exception(data: bytes) -> None:
    CopyTests().parse(Blob("any.txt", SAMPLE.encode() + data))
