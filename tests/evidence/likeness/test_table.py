"""The table of words by cause: its file, and what it says of a text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topodiag.checks.registry import ids
from topodiag.evidence.likeness.table import HARMLESS, ORDINARY, Table, Word, parsed, table, tokens, written

SMALL = Table(
    ("AAA001", HARMLESS),
    (-0.5, -0.4),
    {"down": Word(2.0, ((0, 1.0), (1, -0.5))), "well": Word(1.0, ((1, 1.0),)), "on": Word(1.0, ())},
)

numbers = st.integers(-500, 500).map(lambda each: each / 100)
weights = st.lists(st.tuples(st.integers(0, 2), numbers), max_size=3, unique_by=lambda each: each[0]).map(tuple)
tables = st.builds(
    Table,
    st.just(("AAA001", "BBB001", HARMLESS)),
    st.tuples(numbers, numbers, numbers),
    st.dictionaries(st.from_regex(r"[a-z]{1,8}", fullmatch=True), st.builds(Word, numbers, weights), max_size=8),
)


def test_a_word_speaks_for_its_class_by_its_share_of_the_text() -> None:
    scores = SMALL.scores(["down", "unknown"])
    assert scores == pytest.approx({"AAA001": 0.5, HARMLESS: -0.9})
    assert SMALL.scores(["down", "well"])["AAA001"] < scores["AAA001"]


def test_shares_of_known_words_have_the_length_of_one() -> None:
    shares = SMALL.weighed(["down", "down", "on", "unknown"])
    assert set(shares) == {"down", "on"}
    assert sum(each * each for each in shares.values()) == pytest.approx(1)


def test_a_text_without_a_known_word_is_like_nothing() -> None:
    assert SMALL.scores(["unknown"]) == {}
    assert SMALL.scores([]) == {}


@given(tables)
def test_a_table_is_read_as_it_was_written(made: Table) -> None:
    assert parsed(["# a comment", *written(made)]) == made


@given(st.text())
def test_any_text_has_a_score_for_each_class_or_none(text: str) -> None:
    scores = table().scores(tokens(text))
    assert set(scores) in (set(), set(table().classes))


def test_the_classes_are_checks_of_the_catalogue() -> None:
    assert set(table().classes) - {HARMLESS, ORDINARY} <= set(ids())
    assert {HARMLESS, ORDINARY} <= set(table().classes)
