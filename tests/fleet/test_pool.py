"""What the pool hands out: all of the text, once."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from topodiag.evidence.nccl_log.streams import Span
from topodiag.fleet import pool


@given(st.lists(st.integers(0, 9_000), max_size=12), st.integers(2, 4), st.integers(1, 3000))
@settings(max_examples=60, deadline=None)
def test_the_last_tasks_are_cut_finer_and_none_is_lost(sizes: list[int], workers: int, least: int) -> None:
    tasks = [(Span(number, f"{number}.log", 100, 100 + size),) for number, size in enumerate(sizes) if size]
    packed = (Span(98, "a.gz", 0, 9_000, ("gzip",)),)
    several = (Span(99, "a.log", 0, 5), Span(100, "b.log", 0, 9_000))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pool, "_LEAST_BYTES", least)
        got = list(pool._finer([*tasks, packed, several], workers))
    assert got[-2:] == [packed, several]
    whole = {span.file: [span.start, span.end] for (span,) in tasks}
    for (span,) in got[:-2]:
        assert span.start == whole[span.file][0]
        whole[span.file][0] = span.end
        assert span.end > span.start
    assert all(start == end for start, end in whole.values())
    assert all(len([one for (one,) in got[:-2] if one.file == number]) <= pool._FINE for number in whole)
