from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from topodiag.evidence.amd.gpu_json import AmdSmiJson
from topodiag.evidence.assemble import assemble
from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.interface import Blob
from topodiag.model.node import Node

GPU: dict[str, Any] = {
    "gpu": 0,
    "bus": {"bdf": "0000:05:00.0"},
    "asic": {"market_name": "AMD Instinct MI300X"},
    "pcie": {"width": 16, "speed": {"value": 32, "unit": "GT/s"}, "replay_count": 4},
    "ecc": {"total_uncorrectable_count": 3},
    "ecc_blocks": {
        "UMC": {"correctable_count": 5, "uncorrectable_count": 0},
        "GFX": {"correctable_count": 0, "uncorrectable_count": 1},
        "XGMI_WAFL": {"correctable_count": 41, "uncorrectable_count": 2},
    },
}


def node_of(document: object) -> Node:
    source, draft = AmdSmiJson(), NodeDraft()
    blob = Blob("metric.json", json.dumps(document).encode())
    assert source.recognises(blob.text)
    source.fill(blob, source.parse(blob), draft)
    return assemble(draft, "n")


def test_blocks_are_counted_as_memory_links_and_the_rest() -> None:
    for document in ({"gpu_data": [GPU]}, [GPU]):
        (gpu,) = node_of(document).gpus
        counts = {name: counter.latest.value for name, counter in gpu.counters.items()}
        assert counts["ecc_volatile_uncorrected"] == 0
        assert counts["xgmi_uncorrected"] == 2
        assert counts["ras_uncorrected"] == 1


def test_without_blocks_the_totals_count() -> None:
    (gpu,) = node_of([{name: value for name, value in GPU.items() if name != "ecc_blocks"}]).gpus
    assert gpu.counters["ecc_volatile_uncorrected"].latest.value == 3


def test_name_and_pcie_of_a_gpu() -> None:
    node = node_of([GPU])
    assert node.gpus[0].name.value == "AMD Instinct MI300X"
    device = node.pci["0000:05:00.0"]
    assert (device.gen.value, device.width.value) == (5, 16)


@given(st.recursive(st.none() | st.integers() | st.text(max_size=9), lambda x: st.lists(x) | st.dictionaries(st.sampled_from(["gpu", "ecc", "ecc_blocks", "UMC", "pcie", "speed", "bus", "bdf"]), x), max_leaves=20))  # fmt: skip  # noqa: E501
def test_no_document_makes_it_fail(document: object) -> None:
    source, draft = AmdSmiJson(), NodeDraft()
    blob = Blob("metric.json", json.dumps({"gpu_data": document}).encode())
    source.fill(blob, source.parse(blob), draft)
