"""Literals of formats: a text that a source recognises holds one of them, so that it is asked."""

import json
from pathlib import Path

import pytest

from tests.shown import ROOT
from topodiag.evidence import registry
from topodiag.evidence.intake.kind_of_file import FileKind
from topodiag.evidence.intake.survey import survey
from topodiag.evidence.interface import Blob, Source
from topodiag.evidence.kinds import Kind
from topodiag.evidence.registry import possible

WITH_HEADS = {
    kind
    for kind, source in registry.SOURCES.items()
    if "heads" in source
    and (source.keys() & {"looks", "shows"} or type(registry.source(kind)).recognises is not Source.recognises)
}
"""Sources that know their texts by themselves, too."""
FIELD = sorted((ROOT / "fixtures" / "field").glob("*.json"))


def texts(path: Path) -> list[str]:
    return [Blob("", given["text"].encode()).text for given in json.loads(path.read_text())["inputs"]]


@pytest.mark.parametrize("part", range(8))
def test_each_text_of_the_field_holds_a_literal_of_every_source_that_recognises_it(part: int) -> None:
    missed = [
        (path.stem, kind)
        for path in FIELD[part::8]
        for text in texts(path)
        for kind in WITH_HEADS - possible(text.encode())
        if (source := registry.source(kind)) is not None and source.recognises(text[: registry.HEAD_CHARS])
    ]
    assert missed == []


KEYS = {"looks", "shows",
    "reads", "topics", "trust", "a_piece", "quiet_is_news", "separate", "maker", "measured", "words", "heads", "front",
}  # fmt: skip


def test_each_source_says_what_it_reads() -> None:
    assert all(set(source) <= KEYS for source in registry.SOURCES.values())
    assert all(registry.source(kind) is not None for kind in registry.SOURCES)


def test_lines_like_those_of_a_source_of_fronts_say_nothing_in_the_middle_of_a_text() -> None:
    row = '{"component":"nccl","health":"Healthy"}\n'
    assert registry.recognise(row)
    talk = "a line of talk that says nothing\n" * 4000
    seen = FileKind((Kind.TEXT,))
    assert survey([(talk + row + talk).encode()], "x", seen) == seen


def test_a_text_without_any_literal_asks_for_no_source() -> None:
    assert possible(b"lorem ipsum\n" * 10) == frozenset()
