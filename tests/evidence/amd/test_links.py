from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from tests.tables import examples
from topodiag.evidence.amd.links import AmdLinks, pair_word
from topodiag.evidence.assemble import assemble
from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.interface import Blob
from topodiag.model.node import Node

TABLES = """
================================ Hops between two GPUs ==================================
       GPU0         GPU1         GPU2
GPU0   0            1            3
GPU1   1            0            2
GPU2   3            2            0

=============================== Link Type between two GPUs ===============================
       GPU0         GPU1         GPU2
GPU0   0            XGMI         PCIE
GPU1   XGMI         0            XGMI
GPU2   PCIE         XGMI         0

======================================= Numa Nodes =======================================
GPU[0]\t\t: (Topology) Numa Node: 0
GPU[2]\t\t: (Topology) Numa Node: 1
================================== End of ROCm SMI Log ===================================
"""
OF_AMD_SMI = """
WEIGHT TABLE:
             0000:05:00.0 0000:26:00.0 0000:46:00.0
0000:05:00.0 0            15           30
0000:26:00.0 15           0            72
0000:46:00.0 30           72           0

HOPS TABLE:
             0000:05:00.0 0000:26:00.0 0000:46:00.0
0000:05:00.0 0            1            1
0000:26:00.0 1            0            3
0000:46:00.0 1            3            0

LINK TYPE TABLE:
             0000:05:00.0 0000:26:00.0 0000:46:00.0
0000:05:00.0 SELF         XGMI         XGMI
0000:26:00.0 XGMI         SELF         PCIE
0000:46:00.0 XGMI         PCIE         SELF

NUMA BW TABLE:
             0000:05:00.0 0000:26:00.0 0000:46:00.0
0000:05:00.0 N/A          64000-64000  N/A
"""
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
    source, draft = AmdLinks(), NodeDraft()
    blob = Blob("showtopo.txt", text.encode())
    assert source.recognises(text)
    source.fill(blob, source.parse(blob), draft)
    return assemble(draft, "n")


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
    told = words(node_of(KEYS))
    assert (told["GPU0", "GPU1"], told["GPU2", "GPU0"]) == ("XGMI", "XGMI over 2 hops")


@examples("kind", "hops", "word")
def test_what_a_pair_is_called(kind: str, hops: int, word: str) -> None:
    assert pair_word(kind, hops) == word


@given(st.binary(max_size=400))
def test_no_bytes_make_it_fail(data: bytes) -> None:
    source, draft = AmdLinks(), NodeDraft()
    for blob in (Blob("x", data), Blob("x", TABLES.encode()[: len(data)] + data), Blob("x", b"[" + data)):
        source.fill(blob, source.parse(blob), draft)
