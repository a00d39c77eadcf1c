from __future__ import annotations

import json

from tests.evidence.filled import node_by
from tests.tables import examples, texts
from topodiag.evidence.amd.links import AmdLinks, pair_word
from topodiag.evidence.interface import Blob
from topodiag.model.node import Node

TEXTS = texts(__file__)
TABLES = TEXTS["tables"]
OF_AMD_SMI = TEXTS["of_amd_smi"]
LISTED = json.dumps(
    [
        {"gpu": 0, "bdf": "0000:05:00.0", "links": [{"gpu": 1, "link_type": "XGMI", "num_hops": 1, "weight": 15}]},
        {"gpu": 1, "bdf": "0000:26:00.0", "links": [{"gpu": 1, "link_type": "SELF"}, {"gpu": 0, "link_type": "PCIE"}]},
    ]
)
KEYS = json.dumps(
    {
        "system": {
            "(Topology) Hops between DRM devices 0 and 1": "1",
            "(Topology) Weight between DRM devices 0 and 1": "15",
            "(Topology) Link type between DRM devices 0 and 1": "XGMI",
            "(Topology) Hops between DRM devices 0 and 2": "1",
            "(Topology) Weight between DRM devices 0 and 2": "30",
            "(Topology) Link type between DRM devices 0 and 2": "XGMI",
        }
    }
)


def node_of(text: str) -> Node:
    return node_by(AmdLinks(), Blob("showtopo.txt", text.encode()))


def words(node: Node) -> dict[tuple[str, str], str | None]:
    return {pair: fact.value for pair, fact in node.smi_matrix.items()}


def test_tables_of_rocm_smi_tell_pairs_and_numa_nodes() -> None:
    node = node_of(TABLES)
    assert words(node)["GPU0", "GPU1"] == "XGMI"
    assert words(node)["GPU0", "GPU2"] == "PCIE"
    assert words(node)["GPU1", "GPU2"] == "XGMI over 2 hops"
    assert [gpu.numa.value for gpu in node.gpus] == [0, None, 1]


def test_tables_of_amd_smi_tell_pairs_by_bus_id_and_distances_by_weight() -> None:
    node = node_of(OF_AMD_SMI)
    assert [gpu.bus_id for gpu in node.gpus] == ["0000:05:00.0", "0000:26:00.0", "0000:46:00.0"]
    assert words(node)["GPU0", "GPU1"] == "XGMI"
    assert words(node)["GPU2", "GPU0"] == "XGMI over 2 hops"
    assert words(node)["GPU1", "GPU2"] == "PCIE"


def test_the_list_of_amd_smi_tells_pairs_and_bus_ids() -> None:
    node = node_of(LISTED)
    assert words(node) == {("GPU0", "GPU1"): "XGMI", ("GPU1", "GPU0"): "PCIE"}
    assert [gpu.bus_id for gpu in node.gpus] == ["0000:05:00.0", "0000:26:00.0"]


def test_keys_of_rocm_smi_in_json() -> None:
    table = words(node_of(KEYS))
    assert (table["GPU0", "GPU1"], table["GPU2", "GPU0"]) == ("XGMI", "XGMI over 2 hops")


@examples("kind", "hops", "word")
def test_what_a_pair_is_called(kind: str, hops: int, word: str) -> None:
    assert pair_word(kind, hops) == word
