"""What `nvidia-smi topo -p2p` says: which peer-to-peer ways the driver allows between two GPUs."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.evidence.filled import draft_by
from topodiag.evidence.interface import Blob, Item
from topodiag.evidence.nvidia.nvidia_smi_topo import NvidiaSmiTopo, capabilities

CORPUS = Path(__file__).resolve().parents[4] / "shared" / "corpus"
TEXT = (
    " \t\x1b[4mGPU0\tGPU1\tGPU2\x1b[0m\n GPU0\tX\tOK\tCNS\n GPU1\tOK\tX\tGNS\n GPU2\tCNS\tGNS\tX\n"
    "\nLegend:\n\n  X    = Self\n"
)


def offered(text: str, argv: str = "") -> dict[tuple[str, int, int], str]:
    item = Item("p", "nvidia-smi-p2p", "p2p.txt", argv=tuple(argv.split())) if argv else None
    draft = draft_by(NvidiaSmiTopo(), Blob("p2p.txt", text.encode(), item))
    return {
        (pair.table, int(pair.a.keys["index"]), int(pair.b.keys["index"])): pair.offer.value for pair in draft.pairs
    }


@pytest.mark.parametrize(
    ("option", "table"),
    [("r", "read"), ("w", "write"), ("n", "nvlink"), ("a", "atomics"), ("p", "prop")],
)
def test_the_command_names_the_capability(option: str, table: str) -> None:
    assert offered(TEXT, f"nvidia-smi topo -p2p {option}")[f"p2p:{table}", 0, 2] == "CNS"


def test_a_command_in_the_text_names_it_too() -> None:
    assert offered("user@host:~$ nvidia-smi topo -p2p n\n" + TEXT)["p2p:nvlink", 1, 2] == "GNS"


def test_without_a_command_the_capability_is_unknown() -> None:
    assert {table for table, _, _ in offered(TEXT)} == {"p2p:unknown"}


def test_every_word_is_kept_as_it_stands() -> None:
    words = ["OK", "CNS", "GNS", "TNS", "NS", "DR", "U"]
    labels = [f"GPU{n}" for n in range(8)]
    text = " ".join(labels) + "\nGPU0 X " + " ".join(words) + "\n"
    assert [offered(text, "x topo -p2p r")["p2p:read", 0, n] for n in range(1, 8)] == words


def test_a_table_for_two_capabilities_vouches_for_both_only_where_all_is_well() -> None:
    table = offered(TEXT, "nvidia-smi topo -p2p rw")
    assert table["p2p:read", 0, 1] == table["p2p:write", 0, 1] == "OK"
    assert ("p2p:read", 0, 2) not in table
    assert table["p2p:unknown", 0, 2] == "CNS"


@pytest.mark.parametrize("text", ["topo -m", "topo -p2p x", "topo -p2p", "-p2p readonly", ""])
def test_other_options_name_nothing(text: str) -> None:
    assert capabilities(text) == ()


def test_an_impossible_cell_costs_only_itself() -> None:
    table = offered(TEXT.replace("CNS\n", "MAYBE\n"), "x -p2p r")
    assert ("p2p:read", 0, 2) not in table
    assert len(table) == 5


def test_a_paste_of_both_commands_gives_both_tables() -> None:
    text = "$ nvidia-smi topo -m\n\tGPU0\tGPU1\nGPU0\t X \tPIX\nGPU1\tPIX\t X \n$ nvidia-smi topo -p2p r\n" + TEXT
    table = offered(text)
    assert table["smi", 0, 1] == "PIX"
    assert table["p2p:read", 0, 1] == "OK"


def test_it_recognises_its_own() -> None:
    assert NvidiaSmiTopo().recognises(TEXT)


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
