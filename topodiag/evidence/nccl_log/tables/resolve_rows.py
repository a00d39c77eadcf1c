"""Rows of one table in columns, grouped and ordered: the arithmetic of `resolve`.

Columns keep the width that their table has: a log of gigabytes has millions of rows of connections.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from topodiag.evidence.nccl_log.tables import facts as fact_tables
from topodiag.evidence.nccl_log.tables.facts import ROOM, SCHEMAS, TAIL, WORDED, Column, Table, breaks
from topodiag.lazy import regex
from topodiag.model.connections import unique_rows

Ints = npt.NDArray[np.int64]
Columns = dict[str, Column]

MOST_EXACT_OPS = 64
"""Distinct operations of one thread in one communicator that keep their exact size."""

_WORD_BITS = 64
_OWNER = ("thread", "ctx", "gen", "~run")
_OF_THE_LAST = ("last", "last_ts", "last_offset")
_OF_LINES = frozenset({"offset", "line", "count", "~base", "channels", "ts", *_OF_THE_LAST})
"""Columns that say which lines a row stands for: equal rows may differ in them."""


def packed(columns: Sequence[Column]) -> list[npt.NDArray[np.uint64]]:
    """Words whose tuples are equal, and ordered, as those of the columns: small numbers share a word, and a column
    that says nothing takes no room. Floats count by their bits: one NaN equals another."""
    words: list[npt.NDArray[np.uint64]] = []
    room = 0
    for column in columns:
        values = column.view(np.int64) if column.dtype.kind == "f" else column
        low = int(values.min())
        width = (int(values.max()) - low).bit_length()
        if not width:
            continue
        wide = values.astype(np.uint64 if values.dtype.kind == "u" else np.int64, copy=False).view(np.uint64)
        rest = wide - np.uint64(low & ((1 << _WORD_BITS) - 1))
        if width <= room:
            words[-1] <<= np.uint64(width)
            words[-1] |= rest
            room -= width
        else:
            words.append(rest)
            room = _WORD_BITS - width
    return words


def placed(columns: Mapping[str, Column]) -> Ints:
    """Thread and offset in one number that orders rows by their place."""
    return (columns["thread"].astype(np.int64) << ROOM) + columns["offset"]


def _by_place(columns: Columns, names: Sequence[str]) -> Ints | None:
    """The order of the rows by place, None where they are in it; rows of one place (a line may make several) by the
    columns named."""
    key = placed(columns)
    if (key[1:] > key[:-1]).all():
        return None
    least = int(key.min())
    order = fact_tables.sorted_order((key - least).view(np.uint64), (int(key.max()) - least).bit_length())
    there = key[order]
    if (there[1:] == there[:-1]).any():
        order = np.lexsort((*reversed(packed([columns[name] for name in names])), key))
    return order


def _keys(name: str, columns: Mapping[str, Column]) -> list[str]:
    example = {"text"} if name == "unread" else set[str]()
    return [column for column in columns if column not in _OF_LINES | example]


def grouped(name: str, columns: Columns) -> Columns:
    """Equal rows of one thread and context as one row, operations by rounded sizes where there are many; in order of
    thread and offset, with the columns of the table."""
    if name == "op":
        columns = merged(name, columns, list(columns))
        _bucket(columns)
    return merged(name, columns, list(SCHEMAS[name]))


def merged(name: str, columns: Columns, wanted: Sequence[str]) -> Columns:
    """Equal rows of one thread and context as one row, in order of thread and offset, with the wanted columns."""
    size = len(columns["offset"])
    if not size:
        return columns
    keys = _keys(name, columns)
    order = _by_place(columns, keys)
    rows, number = _several([columns[key] for key in keys], order, size)
    if not len(rows):
        return columns if order is None else {name: columns[name].take(order) for name in wanted}
    starts = np.flatnonzero(breaks([number]))
    first = rows[starts]
    table = dict(columns)
    table["count"] = _onto(columns["count"], first, np.add.reduceat(columns["count"][rows], starts))
    if "channels" in columns:
        mask = columns["channels"]
        table["channels"] = _onto(mask, first, np.bitwise_or.reduceat(mask[rows], starts))
    if "last_offset" in columns:
        late = rows[np.lexsort((columns["last_offset"][rows], number))]
        ends = np.append(starts[1:], len(rows)) - 1
        for column in columns.keys() & set(_OF_THE_LAST):
            table[column] = _onto(columns[column], first, columns[column][late[ends]])
    kept = np.ones(size, bool)
    kept[rows] = False
    kept[first] = True
    last = np.flatnonzero(kept) if order is None else order[kept[order]]
    return {name: table[name].take(last) for name in wanted}


def _several(columns: Sequence[Column], order: Ints | None, size: int) -> tuple[Ints, Ints]:
    """Those rows whose tuple others have too, equal ones together and in this order, and numbers that tell the tuples
    apart."""
    words = packed(columns) or [np.zeros(size, np.uint64)]
    slots = (fact_tables.mix(words) >> np.uint64(_WORD_BITS - 2 - size.bit_length())).view(np.int64)
    shared = np.bincount(slots).take(slots) > 1  # a row that is alone in its slot has no equal
    order = np.flatnonzero(shared) if order is None else order[shared[order]]
    rows, starts = fact_tables.group([word.take(order) for word in words])
    counts = np.diff(starts, append=len(order))
    several = np.repeat(counts > 1, counts)
    return order[rows[several]], np.repeat(np.arange(len(starts)), counts)[several]


def _onto(column: Column, rows: Ints, values: Column) -> Column:
    """The column with these values at these rows."""
    copy = column.copy()
    copy[rows] = values
    return copy


def owners(columns: Mapping[str, Column]) -> Ints:
    """By row, a number for its thread and context."""
    return unique_rows([columns[name] for name in _OWNER])[1]


def _bucket(columns: Columns) -> None:
    """Sizes rounded down to powers of two where one thread and communicator has too many different operations.

    Rounded sizes are kept as their negative, so that a merge knows that this communicator was rounded before.
    """
    size = len(columns["offset"])
    if not size:
        return
    owner = owners(columns)
    elements = columns["elements"].copy()
    rounded = np.bincount(owner, elements < 0) > 0
    many = (np.bincount(owner) > MOST_EXACT_OPS) | rounded
    chosen = many[owner] & (elements > 0)
    exponent = np.frexp(elements[chosen].astype(np.float64))[1] - 1
    elements[chosen] = -(np.int64(1) << exponent.astype(np.int64))
    columns["elements"] = elements


def cut_tails(columns: Columns) -> Columns:
    """The last TAIL operations of each thread and context."""
    size = len(columns["offset"])
    if not size:
        return columns
    owner = owners(columns)
    order = np.lexsort((-columns["offset"], owner))
    starts = np.flatnonzero(breaks([owner[order]]))
    place = np.arange(size) - np.repeat(starts, np.diff(np.r_[starts, size]))
    kept = order[place < TAIL]
    kept = kept[np.argsort(placed(columns)[kept], kind="stable")]
    return {name: values[kept] for name, values in columns.items()}


def last_contexts(columns: Columns) -> Columns:
    """Of each thread in each run, the context that was set last."""
    order = np.lexsort((columns["offset"], columns["~run"], columns["thread"]))
    last = np.roll(breaks(columns[name][order] for name in ("thread", "~run")), -1)  # before another begins
    return {name: values[order[last]] for name, values in columns.items()}


def join_prints(columns: Columns, words: Sequence[str]) -> tuple[Columns, Sequence[str]]:
    """Texts that a shard's edge cut joined again, and the words with them."""
    size = len(columns["offset"])
    if not size:
        return columns, words
    owner = owners(columns)
    order = np.lexsort((columns["offset"], owner))
    starts = np.flatnonzero(breaks([owner[order]]))
    table = {name: values[order[starts]] for name, values in columns.items()}
    table["count"] = np.add.reduceat(columns["count"][order], starts)
    text, pieces = table["text"], columns["text"][order].tolist()
    codes: dict[str, int] = {}
    for i, (start, end) in enumerate(pairwise([*starts.tolist(), size])):
        if end - start > 1:
            joined = "\n".join([words[piece] for piece in pieces[start:end]])
            text[i] = len(words) + codes.setdefault(joined, len(codes))
    rank = np.lexsort((table["ctx"], placed(table)))
    return {name: values[rank] for name, values in table.items()}, [*words, *codes]


def sorted_words(name: str, tables: Sequence[Table]) -> tuple[dict[str, list[str]], list[dict[str, Column]]]:
    """The words of each column over all tables, sorted, and by table and column the new code of each old one."""
    codes: list[dict[str, Column]] = [{} for _ in tables]
    words: dict[str, list[str]] = {}
    for column in WORDED[name]:
        words[column] = sorted(set[str]().union(*(table.words[column] for table in tables)))
        place = {word: number for number, word in enumerate(words[column])}
        for recoded, table in zip(codes, tables, strict=True):
            recoded[column] = np.array([place[word] for word in table.words[column]], np.int32)
    return words, codes


MOST_EVENTS = 1 << 15
"""Different events that a case keeps: 100 MB, 3 KB each as a value. A job of 1,024 ranks that dies has some 20 for each
of them. Two that differ in their numbers alone are of one shape: of each shape the first ones are kept, so that a line
that stands there once is never lost to one that stands there a million times."""
_HEAD = 120
"""Characters of a text that make its shape."""
_DIGITS = regex(r"\d+")


def shapes_of(pairs: Iterable[tuple[str, str]]) -> Ints:
    """A number for the shape of each event, by its level and text."""
    return np.array([hash((level, _DIGITS.sub("#", text[:_HEAD]))) for level, text in pairs], np.int64)


def first_of_each(shapes: Ints, most: int = MOST_EVENTS, more: int = 0) -> Ints:
    """Places, ascending, of those events that are kept. With `more` 1 one more of each shape stays: what is left out of
    a part of the events is then what is left out of all of them."""
    _, group, sizes = np.unique(shapes, return_inverse=True, return_counts=True)
    by_group = np.argsort(group, kind="stable")
    place = np.empty(len(shapes), np.int64)  # in its group
    place[by_group] = np.arange(len(shapes)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    kept: Ints = np.flatnonzero(place < _of_each(sizes.tolist(), most) + more)[: most * (1 + more)]
    return kept


def _of_each(sizes: Sequence[int], most: int) -> int:
    """How many of each shape there is room for: what small shapes leave goes to the large ones."""
    left = most
    for at, size in enumerate(sorted(sizes)):
        share = left // (len(sizes) - at)
        if size > share:
            return max(share, 1)
        left -= size
    return most
