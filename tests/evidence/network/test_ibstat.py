"""`ibstat`: what is read of its two forms, and what its failures cost."""

from pathlib import Path

import pytest

from tests.evidence.filled import draft_by
from topodiag.evidence import registry
from topodiag.evidence.draft import Entity, NodeDraft
from topodiag.evidence.interface import Blob
from topodiag.evidence.network.rdma_blocks import Ibstat

CORPUS = Path(__file__).parents[4] / "shared" / "corpus" / "links"


def filled(text: str) -> NodeDraft:
    return draft_by(Ibstat(), Blob("ibstat.txt", text.encode()))


def value(entity: Entity, name: str) -> object:
    return entity.offers[name][0].value


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
