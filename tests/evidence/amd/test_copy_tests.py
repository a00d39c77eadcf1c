from __future__ import annotations

from tests.evidence.filled import node_by
from tests.tables import texts
from topodiag.evidence.amd.copy_tests import AmdCopyTests
from topodiag.evidence.interface import Blob
from topodiag.model.node import Node

TEXTS = texts(__file__)
P2P = TEXTS["p2p"]
ALL_TO_ALL = TEXTS["all_to_all"]
ROCM = TEXTS["rocm"]


def node_of(text: str) -> Node:
    return node_by(AmdCopyTests(), Blob("tb.txt", text.encode()))


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
