"""Columns share words that are equal, and ordered, as their tuples are."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from topodiag.evidence.nccl_log.tables.resolve_rows import packed

NUMBERS = st.integers(-(1 << 63), (1 << 63) - 1) | st.integers(-2, 9)


@given(st.lists(st.tuples(*[NUMBERS] * 4), min_size=1, max_size=20))
def test_words_are_equal_and_ordered_as_the_tuples_that_they_stand_for(rows: list[tuple[int, ...]]) -> None:
    words = packed([np.array([row[at] for row in rows], dtype=np.int64) for at in range(4)])
    tuples = [tuple(int(word[at]) for word in words) for at in range(len(rows))]
    assert sorted(range(len(rows)), key=tuples.__getitem__) == sorted(range(len(rows)), key=rows.__getitem__)
    assert len(set(tuples)) == len(set(rows))
