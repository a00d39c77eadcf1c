"""Groups, orders and first places are those that plain Python finds."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from topodiag.evidence.nccl_log.tables.facts import Marks, firsts, group, sorted_order

_WORDS = st.lists(st.integers(0, 3) | st.integers(0, (1 << 64) - 1), max_size=40)


@given(_WORDS, st.integers(1, 3))
def test_groups_are_equal_columns_in_the_order_they_came(values: list[int], rows: int) -> None:
    columns = np.array([[value >> (7 * row) for value in values] for row in range(rows)], dtype=np.uint64)
    order, starts = group(columns)
    met: dict[tuple[int, ...], list[int]] = {}
    for at in range(len(values)):
        met.setdefault(tuple(int(row[at]) for row in columns), []).append(at)
    ends = [*starts.tolist()[1:], len(values)] if values else []
    got = [order[a:b].tolist() for a, b in zip(starts.tolist(), ends, strict=True)]
    assert sorted(got) == sorted(met.values())


@given(_WORDS)
def test_orders_are_stable_and_firsts_are_first(values: list[int]) -> None:
    words = np.array(values, dtype=np.uint64)
    by_value = sorted(range(len(values)), key=lambda at: values[at])
    assert sorted_order(words, 64).tolist() == by_value
    small = words & np.uint64(0xFFFF)
    assert sorted_order(small, 16).tolist() == sorted(range(len(values)), key=lambda at: values[at] & 0xFFFF)
    spread = words << np.uint64(32)
    first = firsts(spread)
    assert sorted(first.tolist()) == sorted(
        {int(value): at for at, value in reversed(list(enumerate(spread)))}.values()
    )


PLACES = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 12)), max_size=20)


@given(PLACES, PLACES)
def test_a_row_finds_its_neighbours_among_the_marks_of_its_key(
    places: list[tuple[int, int]], rows: list[tuple[int, int]]
) -> None:
    marks = Marks(*(np.array([place[i] for place in places], np.int64) for i in (0, 1)))
    keys, offsets = (np.array([row[i] for row in rows], np.int64) for i in (0, 1))
    before, after = [], []
    for key, offset in rows:
        own = sorted((at, number) for number, (each, at) in enumerate(places) if each == key)
        before.append(next((number for at, number in reversed(own) if at <= offset), -1))
        after.append(next((number for at, number in own if at >= offset), -1))
    assert marks.last(keys, offsets).tolist() == before
    assert marks.next(keys, offsets).tolist() == after
