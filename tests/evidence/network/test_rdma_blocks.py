"""Which RDMA devices there are: `ibstat`, `ibv_devinfo`, `rdma link show` and `ibdev2netdev` are read whole."""

import ipaddress
import json
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.evidence.filled import draft_by, values
from topodiag.evidence import registry
from topodiag.evidence.draft import Entity, NodeDraft
from topodiag.evidence.interface import Blob
from topodiag.evidence.network.rdma_tools import Ibdev2netdev, Ibstat, IbvDevinfo, RdmaLink
from topodiag.words.unfilled import is_unfilled

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


# --- `ibdev2netdev`: which interface belongs to which RDMA port -----------------------------------------------


@pytest.mark.parametrize("piece", [" port 1", "(", "mlx5_0 ", " ", "=="])
def test_a_line_of_one_piece_repeated_is_left(piece: str) -> None:
    text = (piece * 4000)[:4000] + "\n"
    assert Ibdev2netdev().parse(Blob("x", (text * 20).encode())).records == []


# --- `rdma link show`: InfiniBand, RoCE, old and new releases ---------------------------------------------------

INFINIBAND = (
    "link mlx5_0/1 subnet_prefix fe80:0000:0000:0000 lid 418 sm_lid 1 lmc 0 state ACTIVE physical_state LINK_UP \n"
)


def linked(text: str) -> NodeDraft:
    return draft_by(RdmaLink(), Blob("rdma.txt", text.encode()))


def facts(text: str, device: str, number: int = 1) -> dict[str, object]:
    entity: Entity = linked(text).nic(rdma=device).child("port", number)
    return {name: offers[0].value for name, offers in entity.offers.items()}


def test_counters_tell_no_state() -> None:
    text = "link mlx5_0/1 rx_write_requests 12 out_of_sequence 41002 local_ack_timeout_err 7\n"
    assert not RdmaLink().told(RdmaLink().parse(Blob("rdma.txt", text.encode())))


@given(st.text(st.characters(exclude_categories=["Cc", "Cs", "Z"]), min_size=1, max_size=20))
def test_a_bad_value_loses_only_that_value(junk: str) -> None:
    assume(not is_unfilled(junk))  # a line with a place like %s is a program's text
    document = facts(INFINIBAND.replace("lid 418", f"lid {junk}", 1), "mlx5_0")
    assert (document["state"], document["sm_lid"]) == ("ACTIVE", 1)
