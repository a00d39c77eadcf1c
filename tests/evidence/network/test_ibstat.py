"""`ibstat`: what is read of its two forms, and what its failures cost."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.evidence.filled import draft_by, text_of
from topodiag.evidence import registry
from topodiag.evidence.draft import Entity, NodeDraft
from topodiag.evidence.interface import Blob
from topodiag.evidence.network.rdma_blocks import Ibstat

CORPUS = Path(__file__).parents[4] / "shared" / "corpus" / "links"

TWO_DEVICES = text_of("ibstat", "TWO_DEVICES")


def filled(text: str) -> NodeDraft:
    return draft_by(Ibstat(), Blob("ibstat.txt", text.encode()))


def value(entity: Entity, name: str) -> object:
    return entity.offers[name][0].value


def port(text: str, device: str = "mlx5_0", number: int = 1) -> Entity:
    return filled(text).nic(rdma=device).child("port", number)


@pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus is not there")
def test_ibstat_of_the_corpus_is_recognised_and_read_whole() -> None:
    texts = {path.name: path.read_text() for path in sorted(CORPUS.glob("*.txt"))}
    mine = {name: text for name, text in texts.items() if "; ibstat" in text or "); ibstat" in text}
    assert mine
    for name, text in texts.items():
        assert ("ibstat" in registry.recognise(text)) == (name in mine), name
    for name, text in mine.items():
        parsed = Ibstat().parse(Blob(name, text.encode()))
        assert parsed.unread_count == 0, name
        nics = list(filled(text).entities("nic"))
        assert len(nics) == text.count("CA '"), name
        assert all(value(nic.child("port", 1), "state") for nic in nics), name


@given(st.lists(st.sampled_from(TWO_DEVICES.splitlines(keepends=True)), max_size=60), st.integers(0, 60))
def test_lines_in_any_order_or_cut_off_are_read_without_an_exception(lines: list[str], cut: int) -> None:
    text = "".join(lines)
    draft = filled(text[: max(0, len(text) - cut)])
    assert len(list(draft.entities("nic"))) <= 2


@given(st.text(st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"]), max_size=40))
def test_a_bad_value_loses_only_that_value(junk: str) -> None:
    entity = port(TWO_DEVICES.replace("Base lid: 418", f"Base lid: {junk}", 1))
    assert (value(entity, "state"), value(entity, "sm_lid"), value(entity, "rate_gbps")) == ("ACTIVE", 1, 400.0)
