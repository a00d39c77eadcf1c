"""What `nvidia-smi nvlink` says of each link, whichever option was asked for."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.evidence.filled import draft_by, text_of
from topodiag.evidence.draft import Entity, NodeDraft
from topodiag.evidence.interface import Blob, Item
from topodiag.evidence.nvidia.nvidia_smi_nvlink import NvidiaSmiNvlink
from topodiag.evidence.nvidia.nvidia_words import distinct_bus_ids, distinct_uuids

CORPUS = Path(__file__).resolve().parents[4] / "shared" / "corpus"
needs_corpus = pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus is not beside this checkout")

UUIDS = ["GPU-11111111-2222-3333-4444-555555555555", "GPU-11111111-2222-3333-4444-666666666666"]
HEADERS = [f"GPU {n}: NVIDIA H100 80GB HBM3 (UUID: {uuid})\n" for n, uuid in enumerate(UUIDS)]
STATUS = text_of("nvidia-smi-nvlink", "STATUS")


def fill(text: str, argv: str = "", sample: int = 0) -> NodeDraft:
    item = Item("n", "nvidia-smi-nvlink", "nvlink.txt", argv=tuple(argv.split()), sample=sample) if argv else None
    return draft_by(NvidiaSmiNvlink(), Blob("nvlink.txt", text.encode(), item))


def link(draft: NodeDraft, gpu: int, number: int) -> Entity:
    return draft.gpu(index=gpu).child("nvlink", number)


def value(entity: Entity, name: str) -> Any:
    return next((offer.value for offer in entity.offers.get(name, ()) if offer.value is not None), None)


def counts(entity: Entity) -> dict[str, Any]:
    return {name: offers[0].value for name, offers in entity.counters.items()}


def test_a_name_with_brackets_is_kept_whole() -> None:
    gpu = fill(f"GPU 0: NVIDIA Graphics (Engineering) (UUID: {UUIDS[0]})\n Link 0: 25 GB/s\n").gpu(index=0)
    assert (value(gpu, "name"), gpu.keys.get("uuid")) == ("NVIDIA Graphics (Engineering)", UUIDS[0])


@pytest.mark.parametrize("spelling", ["inactive", "inActive"])
def test_the_sentence_for_all_links_down_becomes_a_note(spelling: str) -> None:
    text = HEADERS[0] + f"NVML: Unable to retrieve NVLink information as all links are {spelling}\n"
    draft = fill(text)
    assert value(draft.gpu(index=0), "nvlink_note") == "all links are inactive"
    assert NvidiaSmiNvlink().recognises(text)


@pytest.mark.parametrize("cell", ["N/A", "-", "[Not Supported]", "Unknown Error"])
def test_a_counter_without_a_reading_is_not_zero(cell: str) -> None:
    draft = fill(HEADERS[0] + f"\t Link 0: Replay Errors: {cell}\n\t Link 0: CRC Errors: 0\n")
    assert counts(link(draft, 0, 0)) == {"crc": 0}


def test_capabilities_are_no_counters() -> None:
    text = HEADERS[0] + "\t Link 0, P2P is supported: true\n\t Link 0, P2P atomics supported: false\n"
    text += "\t Link 0, Link is supported: false\n\t Link 1, P2P is supported: false\n"
    draft = fill(text)
    assert not counts(link(draft, 0, 0))
    assert not counts(link(draft, 0, 1))


def test_the_far_end_is_a_device_or_a_switch_out_of_sight() -> None:
    text = HEADERS[0] + "\t Link 0: Remote Device 00000000:41:00.0: Link 7\n"
    text += "\t Link 1: Remote Device FFFFFFFF:FF:FF.0: Link 0\n\t Link 2: 00000000:8A:00.0\n"
    draft = fill(text)
    assert value(link(draft, 0, 0), "remote_bus_id") == "0000:41:00.0"
    assert value(link(draft, 0, 1), "remote_type") == "switch"
    assert value(link(draft, 0, 2), "remote_bus_id") == "0000:8a:00.0"


def test_without_a_header_the_command_names_the_gpu() -> None:
    text = "\t Link 0: 26.562 GB/s\n"
    assert value(link(fill(text, "nvidia-smi nvlink -s -i 3"), 3, 0), "state") == "active"
    assert not list(fill(text).entities("gpu"))


def test_one_made_up_uuid_for_all_merges_no_gpus() -> None:
    draft = fill(STATUS.replace(UUIDS[1], UUIDS[0]))
    assert [gpu.keys for gpu in draft.entities("gpu")] == [{"index": 0}, {"index": 1}]
    assert distinct_uuids([(0, "GPU-redacted"), (1, UUIDS[0]), (2, UUIDS[1].upper())]) == {
        1: UUIDS[0],
        2: UUIDS[1].upper(),
    }
    assert distinct_bus_ids([(0, "0000:1b:00.0"), (1, "0000:1B:00.0"), (2, "0000:2b:00.0")]) == {2: "0000:2b:00.0"}


@pytest.mark.parametrize(
    "bad", ["Link 0: lots GB/s", "Link 0: <???>", "Link 99999: 25 GB/s", "Link 0: Replay Errors: many", "noise"]
)
def test_a_bad_line_costs_only_itself(bad: str) -> None:
    text = HEADERS[0] + f"\t {bad}\n\t Link 1: 25 GB/s\n"
    assert value(link(fill(text), 0, 1), "state") == "active"
    parsed = NvidiaSmiNvlink().parse(Blob("x", text.encode()))
    assert [left.line for left in parsed.unread] == [2]


@pytest.mark.parametrize("text", ["", "GPU 0: NVIDIA A100 (UUID: GPU-x)\n", "lspci: Link 0\n", "{}", "\tGPU0\tGPU1\n"])
def test_other_texts_are_not_recognised(text: str) -> None:
    assert not NvidiaSmiNvlink().recognises(text)


@given(st.text(max_size=60))
def test_any_words_behind_a_link_leave_the_other_links_alone(words: str) -> None:
    text = HEADERS[0] + " Link 0: " + "".join(words.splitlines()) + "\n Link 1: 25 GB/s\n"
    assert value(link(fill(text), 0, 1), "line_gbs") == 25.0


@given(st.lists(st.sampled_from(STATUS.splitlines()), max_size=10), st.integers(0, 60))
def test_lines_in_any_order_are_survived(lines: list[str], cut: int) -> None:
    draft = fill("\n".join(lines)[cut:])
    assert {gpu.keys["index"] for gpu in draft.entities("gpu")} <= {0, 1}


@needs_corpus
def test_published_texts_are_recognised_and_read_without_a_rest() -> None:
    source = NvidiaSmiNvlink()
    number = 0
    for path in sorted((CORPUS / "links").glob("*.txt")):
        blob = Blob(path.name, path.read_bytes())
        is_nvlink = "nvlink" in "".join(blob.text.splitlines()[:2])
        assert source.recognises(blob.text) is is_nvlink, path.name
        if is_nvlink:
            assert source.parse(blob).unread == [], path.name
            number += 1
    assert number >= 8


@needs_corpus
@pytest.mark.parametrize(("number", "gpu"), [("022", 3), ("027", 0)])
def test_the_facts_of_published_cases_are_recovered(number: str, gpu: int) -> None:
    case = json.loads((CORPUS / "cases" / f"{number}.json").read_text())
    facts = case["facts"]
    draft = fill(next(given["text"] for given in case["inputs"] if given["kind"] == "nvlink"))
    children = draft.gpu(index=gpu).children
    down = [number for (_, number), child in children.items() if value(child, "state") == "inactive"]
    assert len(children) == facts["links"]
    assert down == facts["inactive"]
    assert facts.get("gpu_model") in (None, value(draft.gpu(index=gpu), "name"))
    rates = {value(child, "line_gbs") for child in children.values()} - {None}
    assert rates == {facts.get("speed_GBps", 26.562)}
