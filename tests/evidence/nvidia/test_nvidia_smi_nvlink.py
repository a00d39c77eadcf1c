"""What `nvidia-smi nvlink` says of each link, whichever option was asked for."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.evidence.filled import draft_by, text_of, value
from topodiag.evidence.draft import Entity, NodeDraft
from topodiag.evidence.interface import Blob
from topodiag.evidence.nvidia.nvidia_smi_links import NvidiaSmiNvlink
from topodiag.evidence.nvidia.nvidia_words import distinct, distinct_uuids

CORPUS = Path(__file__).resolve().parents[4] / "shared" / "corpus"
needs_corpus = pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus is not beside this checkout")

UUIDS = ["GPU-11111111-2222-3333-4444-555555555555", "GPU-11111111-2222-3333-4444-666666666666"]
HEADER = text_of("nvidia-smi-nvlink", "HEAD")


def fill(text: str) -> NodeDraft:
    return draft_by(NvidiaSmiNvlink(), Blob("nvlink.txt", text.encode()))


def link(draft: NodeDraft, gpu: int, number: int) -> Entity:
    return draft.gpu(index=gpu).child("nvlink", number)


def test_what_masks_and_repetitions_leave_of_ids_is_distinct() -> None:
    assert distinct_uuids([(0, "GPU-redacted"), (1, UUIDS[0]), (2, UUIDS[1].upper())]) == {
        1: UUIDS[0],
        2: UUIDS[1].upper(),
    }
    assert distinct([(0, "0000:1b:00.0"), (1, "0000:1B:00.0"), (2, "0000:2b:00.0")]) == {2: "0000:2b:00.0"}


@given(st.text(max_size=60))
def test_any_words_behind_a_link_leave_the_other_links_alone(words: str) -> None:
    text = HEADER + " Link 0: " + "".join(words.splitlines()) + "\n Link 1: 25 GB/s\n"
    assert value(link(fill(text), 0, 1), "line_gbs") == 25.0


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
