from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.evidence.filled import node_by
from tests.tables import examples, texts
from topodiag.evidence.amd.links import AmdLinks, XgmiStatus
from topodiag.evidence.assemble import assemble
from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.interface import Blob
from topodiag.model.node import Node

TEXTS = texts(__file__)
TEXT = TEXTS["text"]


def node_of(letter: str) -> Node:
    return node_by(XgmiStatus(), Blob("xgmi.txt", TEXT.format(letter).encode()))


def test_the_table_of_links_counts_and_not_that_of_ports() -> None:
    assert node_of("U").smi_matrix["GPU0", "GPU1"].value == "XGMI"
    assert node_of("D").smi_matrix["GPU0", "GPU1"].value == "XGMI down"
    assert node_of("X").smi_matrix["GPU1", "GPU0"].value == "XGMI disabled"


def test_a_virtual_function_says_nothing_of_links() -> None:
    node = node_of("N/A")
    assert node.smi_matrix == {}
    assert node.gpus[0].nvlink_note.value == "not supported"


METRICS = TEXTS["metrics"]


def rates_of(data: bytes) -> list[float | None]:
    source, draft, blob = XgmiStatus(), NodeDraft(), Blob("xgmi", data)
    assert source.recognises(blob.text)
    assert not AmdLinks().recognises(blob.text)
    source.read(blob, draft)
    return [gpu.xgmi_gbs.value for gpu in assemble(draft, "n").gpus]


@examples("lane", "link", "gbs")
def test_the_lower_of_both_rates_is_that_of_a_link(lane: str, link: str, gbs: float) -> None:
    assert rates_of(METRICS.format(lane, link).encode()) == [gbs]


def of_gpu(number: int, lane: object, link: object) -> dict[str, object]:
    links = [{"gpu": peer, "bdf": f"0000:0{peer}:00.0", "read": "N/A"} for peer in (0, 1)]
    metrics = {"bit_rate": lane, "max_bandwidth": link, "link_type": "XGMI", "links": links}
    return {"gpu": number, "bdf": f"0000:0{number}:00.0", "link_metrics": metrics}


@pytest.mark.parametrize("key", ["", "xgmi_metric"], ids=["bare", "below a key"])
def test_the_json_has_the_rates_as_texts_or_with_a_unit_apart(key: str) -> None:
    gpus = [of_gpu(0, {"value": 32, "unit": "Gb/s"}, {"value": 512, "unit": "Gb/s"}), of_gpu(1, "16 Gb/s", "256 Gb/s")]
    assert rates_of(json.dumps({key: gpus} if key else gpus).encode()) == [64.0, 32.0]
    unread = [of_gpu(0, {"value": "N/A", "unit": "Gb/s"}, "N/A"), of_gpu(1, 0, None)]
    assert rates_of(json.dumps(unread).encode()) == []


@given(st.recursive(st.none() | st.integers() | st.text(max_size=9), lambda x: st.lists(x) | st.dictionaries(st.sampled_from(["gpu", "bdf", "link_metrics", "bit_rate", "value", "unit"]), x), max_leaves=20))  # fmt: skip  # noqa: E501
def test_no_document_makes_it_fail(document: object) -> None:
    source, draft = XgmiStatus(), NodeDraft()
    blob = Blob("xgmi.json", json.dumps({"xgmi_metric": document}).encode())
    source.read(blob, draft)


def test_bus_ids_without_their_domain_are_read() -> None:
    source, draft = XgmiStatus(), NodeDraft()
    text = "LINK METRIC TABLE:\n       bdf          bit_rate max_bandwidth link_type 05:00.0\n"
    blob = Blob("xgmi.txt", f"{text}GPU0   05:00.0      32 Gb/s  512 Gb/s      XGMI\n".encode())
    source.read(blob, draft)
    [gpu] = assemble(draft, "n").gpus
    assert (gpu.bus_id, gpu.xgmi_gbs.value) == ("0000:05:00.0", 64.0)
