"""lspci -vv, whole and in fragments."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.evidence.filled import read, recognises, text_of

CORPUS = Path(__file__).parents[4] / "shared" / "corpus"
WHOLE = text_of("lspci", "WHOLE")


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


@given(st.text(max_size=120), st.integers(0, len(WHOLE)))
def test_any_text_in_the_middle_is_survived(noise: str, at: int) -> None:
    read("lspci", (WHOLE[:at] + noise + WHOLE[at:]).encode("utf-8", "replace"))


@given(st.permutations(WHOLE.splitlines()))
def test_any_order_of_lines_is_survived(lines: list[str]) -> None:
    draft, _ = read("lspci", "\n".join(lines))
    assert {entity.keys["bus_id"] for entity in draft.entities("pci")} <= {"0000:15:01.0", "0000:16:00.0"}
