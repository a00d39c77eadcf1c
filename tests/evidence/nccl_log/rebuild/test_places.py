"""What stands last before a line, or first behind it, of the same thread."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from topodiag.evidence.nccl_log.rebuild.places import _Marks

PLACES = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 12)), max_size=20)


@given(PLACES, PLACES)
def test_a_row_finds_its_neighbours_among_the_marks_of_its_key(
    marks: list[tuple[int, int]], rows: list[tuple[int, int]]
) -> None:
    members = list(range(100, 100 + len(marks)))
    found = _Marks(
        *(np.array(numbers, np.int64) for numbers in ([m[0] for m in marks], [m[1] for m in marks], members))
    )
    keys, offsets = (np.array([row[i] for row in rows], np.int64) for i in (0, 1))
    before, after = [], []
    for key, offset in rows:
        own = sorted((at, member) for (each, at), member in zip(marks, members, strict=True) if each == key)
        before.append(next((member for at, member in reversed(own) if at <= offset), -1))
        after.append(next((member for at, member in own if at >= offset), -1))
    assert found.last_until(keys, offsets).tolist() == before
    assert found.next_from(keys, offsets).tolist() == after
