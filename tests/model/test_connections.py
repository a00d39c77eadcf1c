"""Connections are looked at in batches: of any size, they say the same."""

from collections import Counter
from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from topodiag.model.connections import COLUMNS, Connections, distinct, no_connections, packed

VIAS = ("P2P/CUMEM", "NET/IB/GDRDMA", "SHM/direct/direct")
ROWS = st.lists(st.tuples(st.integers(-1, 3), st.integers(-1, 3), st.integers(0, 2), st.integers(0, 2),
                          st.integers(1, 9)), max_size=40)  # fmt: skip
WIDE = st.integers(-(1 << 63), (1 << 63) - 1)


def connections(rows: list[tuple[int, int, int, int, int]]) -> Connections:
    """From (host, peer host, via, direction, lines)."""
    host, peer_host, via, direction, count = (np.array([row[i] for row in rows], np.int8) for i in range(5))
    made = replace(no_connections(), **{name: np.arange(len(rows)).astype(np.int16) for name in COLUMNS})
    return replace(
        made, host=host, peer_host=peer_host, via=via, direction=direction, count=count, vias=VIAS, hosts=tuple("abcd")
    )


@given(ROWS, st.integers(1, 50))
def test_batches_of_any_size_are_all_entries_in_their_order(
    rows: list[tuple[int, int, int, int, int]], size: int
) -> None:
    made = connections(rows)
    batches = list(made.batches(size))
    assert [batch.first for batch in batches] == list(range(0, len(rows), size))
    for name in COLUMNS:
        assert [value for batch in batches for value in getattr(batch, name).tolist()] == getattr(made, name).tolist()


@given(ROWS)
def test_flows_count_what_hosts_say_to_each_other(rows: list[tuple[int, int, int, int, int]]) -> None:
    entries, lines, first = Counter[tuple[int, ...]](), Counter[tuple[int, ...]](), dict[tuple[int, ...], int]()
    for number, (*key, count) in enumerate(rows):
        entries[tuple(key)] += 1
        lines[tuple(key)] += count
        first.setdefault(tuple(key), number)
    flows = connections(rows).flows
    columns = (flows.host, flows.peer_host, flows.via, flows.direction, flows.entries, flows.lines, flows.first)
    pairs = list(zip(*(column.tolist() for column in columns), strict=True))
    assert pairs == [(*key, entries[key], lines[key], first[key]) for key in first]


@given(st.lists(st.tuples(st.integers(-1, 2), WIDE | st.integers(0, 3), WIDE | st.integers(0, 3))))
def test_distinct_rows_are_those_that_are_first_of_their_kind(rows: list[tuple[int, int, int]]) -> None:
    columns = [np.array([row[i] for row in rows], np.int64) for i in range(3)]
    first, counts = distinct(*columns)
    places: dict[tuple[int, int, int], int] = {}
    for place, row in enumerate(rows):
        places.setdefault(row, place)
    assert first.tolist() == list(places.values())
    assert counts.tolist() == [Counter(rows)[row] for row in places]


@given(st.lists(st.tuples(WIDE | st.integers(-2, 3), WIDE | st.integers(0, 3), st.integers(0, 2)), min_size=1))
def test_packed_numbers_are_ordered_as_the_rows_are(rows: list[tuple[int, int, int]]) -> None:
    key, size = packed([np.array([row[i] for row in rows], np.int64) for i in range(3)])
    assert [rows[at] for at in np.argsort(key, kind="stable").tolist()] == sorted(rows)
    assert int(key.max()) < size


def test_narrow_columns_do_not_overflow() -> None:
    host = np.array([127, 127, -128], np.int8)
    assert [column.tolist() for column in distinct(host, host)] == [[0, 2], [2, 1]]


def test_no_connections_have_no_flows_and_no_batches() -> None:
    assert len(no_connections().flows.host) == 0
    assert list(no_connections().batches()) == []
