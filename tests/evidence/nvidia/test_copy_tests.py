"""p2pBandwidthLatencyTest and nvbandwidth: GPUs by bus id, and who may reach whom."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

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


@given(st.binary())
def test_any_bytes_are_read_without_an_exception(data: bytes) -> None:
    CopyTests().parse(Blob("any.txt", SAMPLE.encode() + data))
