"""What `nvidia-smi topo -p2p` says: which peer-to-peer ways the driver allows between two GPUs."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.evidence.filled import draft_by, text_of
from topodiag.evidence.interface import Blob, Item
from topodiag.evidence.nvidia.nvidia_smi_topo import NvidiaSmiTopo, capabilities

CORPUS = Path(__file__).resolve().parents[4] / "shared" / "corpus"
TEXT = text_of("nvidia-smi-topo", "P2P")


def offered(text: str, argv: str = "") -> dict[tuple[str, int, int], str]:
    item = Item("p", "nvidia-smi-p2p", "p2p.txt", argv=tuple(argv.split())) if argv else None
    draft = draft_by(NvidiaSmiTopo(), Blob("p2p.txt", text.encode(), item))
    return {
        (pair.table, int(pair.a.keys["index"]), int(pair.b.keys["index"])): pair.offer.value for pair in draft.pairs
    }


@pytest.mark.parametrize("text", ["topo -m", "topo -p2p x", "topo -p2p", "-p2p readonly", ""])
def test_other_options_name_nothing(text: str) -> None:
    assert capabilities(text) == ()


@given(st.integers(0, len(TEXT)))
def test_a_text_cut_anywhere_gives_no_other_words(cut: int) -> None:
    whole = offered(TEXT, "x -p2p r")
    assert {
        key: word for key, word in offered(TEXT[:cut], "x -p2p r").items() if key[0] == "p2p:read"
    }.keys() <= whole.keys()


@pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus is not beside this checkout")
def test_the_published_case_is_recovered() -> None:
    case = json.loads((CORPUS / "cases" / "247.json").read_text())
    text = next(given["text"] for given in case["inputs"] if given["kind"] == "topo_p2p")
    assert set(offered(text).values()) == {case["facts"]["p2p"]}
    assert NvidiaSmiTopo().recognises((CORPUS / "topo_m" / "020.txt").read_text())
