"""lspci -vv, whole and in fragments."""

import json
from pathlib import Path

import pytest

from tests.evidence.filled import read, recognises

CORPUS = Path(__file__).parents[4] / "shared" / "corpus"


def test_fragments_from_public_threads_are_read() -> None:
    if not CORPUS.is_dir():
        pytest.skip("the corpus is not here")
    text = (CORPUS / "links" / "017.txt").read_text()
    assert recognises("lspci", text)
    assert len(read("lspci", text)[1].records) == 2
    acs = json.loads((CORPUS / "cases" / "007.json").read_text())["inputs"][0]["text"]
    flags = [fact.value for fact in read("lspci", acs)[0].acs_lines]
    assert flags.count(1) == sum("SrcValid+" in line for line in acs.splitlines())
    assert flags.count(0) == sum("SrcValid-" in line for line in acs.splitlines())
