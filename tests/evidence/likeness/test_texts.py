"""Which texts are asked what they are like, and what is said of them."""

from __future__ import annotations

import io
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from topodiag.evidence.intake.gather import gather
from topodiag.evidence.interface import Blob
from topodiag.evidence.likeness.table import table
from topodiag.evidence.likeness.texts import MOST_BYTES, MOST_TEXTS, likeness_of, short_texts
from topodiag.model.provenance import MAX_QUOTE

AGENT = """compute domain of job 4711: 7 of 8 nodes joined
nvidia-imex-ctl: node tray-7 UNAVAILABLE, connection from tray-3 lost
compute domain not ready, pods stay in ContainerCreating
"""
LICENCE = """Permission is hereby granted, free of charge, to any person obtaining a copy of this software and
associated documentation files, to deal in the Software without restriction, including without limitation the rights
to use, copy, modify, merge, publish and distribute copies of the Software, and to permit persons to do so.
"""


def texts(folder: Path, *given: str) -> tuple[Blob, ...]:
    for at, text in enumerate(given):
        (folder / f"{at}.txt").write_text(text)
    return short_texts(gather([str(folder)]))[0]


def test_the_first_cause_has_its_words_and_the_lines_that_hold_them(tmp_path: Path) -> None:
    made = likeness_of(texts(tmp_path, AGENT))
    assert made is not None
    first = made.causes[0]
    assert (first.check, made.harmless) == ("NVL005", False)
    assert "imex" in first.words
    assert 2 in [line.line for line in first.lines]
    assert [each.score for each in made.causes] == sorted((each.score for each in made.causes), reverse=True)


def test_few_words_say_nothing(tmp_path: Path) -> None:
    assert likeness_of(texts(tmp_path, "nvidia-imex: node lost\n")) is None


def test_a_text_that_is_like_no_text_of_a_cluster_says_nothing(tmp_path: Path) -> None:
    assert likeness_of(texts(tmp_path, LICENCE)) is None


def test_long_texts_and_many_are_not_asked(tmp_path: Path) -> None:
    assert texts(tmp_path, AGENT + "x\n" * MOST_BYTES) == ()
    (tmp_path / "many").mkdir()
    assert texts(tmp_path / "many", *[AGENT] * (MOST_TEXTS + 1)) == ()


def test_standard_input_is_put_back() -> None:
    held = AGENT.encode()
    made, intake = short_texts(gather(["-"], stdin=io.BytesIO(held)))
    assert [each.data for each in made] == [held]
    assert intake.stdin is not None
    assert intake.stdin.read() == held


def test_standard_input_that_is_long_is_put_back_whole() -> None:
    held = AGENT.encode() * 2000
    made, intake = short_texts(gather(["-"], stdin=io.BytesIO(held)))
    assert made == ()
    assert intake.stdin is not None
    assert intake.stdin.read() == held


@given(st.lists(st.sampled_from(sorted(table().words)), min_size=12, max_size=200), st.text())
def test_each_line_that_is_cited_stands_in_the_text(words: list[str], other: str) -> None:
    text = Blob("a.txt", "\n".join([" ".join(words), other, words[0]]).encode("utf-8", "replace"))
    made = likeness_of((text,))
    lines = [line.strip()[:MAX_QUOTE] for line in text.text.splitlines()]
    for cause in made.causes if made is not None else ():
        assert all(line.line is not None and lines[line.line - 1] == line.text for line in cause.lines)
        assert all(word in table().words for word in cause.words)
