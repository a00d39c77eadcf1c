"""`ibstat` and `ibv_devinfo`: texts of the corpus are recognised and read whole, with their facts."""

import ipaddress
import json
from pathlib import Path

import pytest

from tests.evidence.filled import draft_by, values
from topodiag.evidence import registry
from topodiag.evidence.draft import Entity, NodeDraft
from topodiag.evidence.interface import Blob
from topodiag.evidence.network.rdma_tools import Ibstat, IbvDevinfo

LINKS = Path(__file__).parents[4] / "shared" / "corpus" / "links"


def ibstat_of(text: str) -> NodeDraft:
    return draft_by(Ibstat(), Blob("ibstat.txt", text.encode()))


def value(entity: Entity, name: str) -> object:
    return entity.offers[name][0].value


@pytest.mark.skipif(not LINKS.is_dir(), reason="the corpus is not there")
def test_ibstat_of_the_corpus_is_recognised_and_read_whole() -> None:
    texts = {path.name: path.read_text() for path in sorted(LINKS.glob("*.txt"))}
    mine = {name: text for name, text in texts.items() if "; ibstat" in text or "); ibstat" in text}
    assert mine
    for name, text in texts.items():
        assert ("ibstat" in registry.recognise(text)) == (name in mine), name
    for name, text in mine.items():
        parsed = Ibstat().parse(Blob(name, text.encode()))
        assert parsed.unread_count == 0, name
        nics = list(ibstat_of(text).entities("nic"))
        assert len(nics) == text.count("CA '"), name
        assert all(value(nic.child("port", 1), "state") for nic in nics), name


CORPUS = Path(__file__).parents[4] / "shared" / "corpus"


def filled(text: str) -> NodeDraft:
    return draft_by(IbvDevinfo(), Blob("ibv.txt", text.encode()))


@pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus is not there")
def test_ibv_devinfo_of_the_corpus_is_recognised_and_read_whole() -> None:
    seen = 0
    for path in sorted((CORPUS / "links").glob("*.txt")):
        text = path.read_text()
        mine = "ibv_devinfo" in text.split("\n")[1]
        assert IbvDevinfo().recognises(text) == mine, path.name
        if mine:
            seen += 1
            parsed = IbvDevinfo().parse(Blob(path.name, text.encode()))
            assert (parsed.unread_count, bool(parsed.records)) == (0, True), path.name
    assert seen


@pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus is not there")
def test_facts_of_the_corpus_cases_are_recovered() -> None:
    checked = 0
    for path in sorted((CORPUS / "cases").glob("*.json")):
        case = json.loads(path.read_text())
        for text in (entry["text"] for entry in case["inputs"] if entry["kind"] == "ibv_devinfo"):
            nic = next(filled(text).entities("nic"), None)
            if nic is None:
                continue  # a table of GIDs that somebody cut out
            facts = values(next(iter(nic.children.values())))
            wanted = case["facts"]
            for name in wanted.keys() & {"active_mtu", "max_mtu", "link_layer"}:
                assert facts[name] == wanted[name], path.name
                checked += 1
            if "nic" in wanted:
                assert nic.keys["rdma"] == wanted["nic"], path.name
                checked += 1
            if "gids" in wanted:
                gids = facts["gids"]
                assert isinstance(gids, tuple)
                assert len(gids) == wanted["gids"], path.name
                v2 = {int(gid.split()[0]): gid.split()[1] for gid in gids if gid.endswith("RoCE v2")}
                local = [index for index, gid in v2.items() if ipaddress.IPv6Address(gid).is_link_local]
                assert local == wanted["bad"], path.name
                checked += 1
    assert checked
