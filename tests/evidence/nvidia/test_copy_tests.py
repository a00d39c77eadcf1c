"""p2pBandwidthLatencyTest and nvbandwidth: GPUs by bus id, and who may reach whom."""

from __future__ import annotations

from tests.evidence.filled import node_of
from tests.tables import texts
from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.interface import Blob
from topodiag.evidence.nvidia.copy_tests import CopyTests

TEXTS = texts(__file__)
SAMPLE = TEXTS["sample"]
NVBANDWIDTH = "nvbandwidth Version: v0.8\nDevice 0: NVIDIA RTX A6000 (00000000:01:00)\nDevice 1: NVIDIA RTX A6000\n"


def filled(text: str) -> NodeDraft:
    draft, blob = NodeDraft(), Blob("test.txt", text.encode())
    assert CopyTests().recognises(text)
    CopyTests().read(blob, draft)
    return draft


def test_devices_are_known_by_their_bus_id_not_by_cudas_number() -> None:
    gpus = list(filled(SAMPLE).entities("gpu"))
    assert [(gpu.keys, gpu.offers["name"][0].value) for gpu in gpus] == [
        ({"bus_id": "0000:18:00.0"}, "NVIDIA H100 80GB HBM3"),
        ({"bus_id": "0000:2a:00.0"}, "NVIDIA H100 80GB HBM3"),
    ]
    assert [entity.keys for entity in filled(NVBANDWIDTH).entities("gpu")] == [{"bus_id": "0000:01:00.0"}]


def test_access_is_offered_where_it_is_given_since_a_refusal_has_no_reason_here() -> None:
    assert [(pair.table, pair.offer.value) for pair in filled(SAMPLE).pairs] == [("p2p:read", "OK")]


TABLE = TEXTS["table"]
MATRICES = TEXTS["matrices"]


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
