"""The facts of a log as tables: what extraction makes of a piece of a file, and what the job is rebuilt from.

Extraction is a pure function from the bytes of a shard (a piece of one file, cut at line ends) to a `Facts`. Facts of
shards are put together in any order and grouping, and `resolve.py` brings them to one normal form: the same for every
cut, worker count and order of files. The tables and their columns stand in facts.toml.

Rows say what one thread printed. Equal rows of one thread, in one context, are one row with a `count` and the first
place. The columns that all row tables share:

thread  index into `threads`
ctx     pointer of the communicator that the thread was busy with: the one named last by this thread (Init START or
        COMPLETE, `comm 0x.. rank`, an operation), up to and with this line; 0 if the shard does not say
gen     offset of the last Init START of that pointer in this process within the shard, -1 if the shard has none
        (pointers are used again)
offset  of the first line's first byte in the file, after decompression
line    of that line, from 1, within the shard; within the file after `resolve`
count   how many such lines

Unknown integers are -1 unless a column says otherwise, unknown texts are "".

Columns of 64-bit words hashed, ordered and grouped: how equal rows find each other without a loop in Python.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from topodiag.lazy import dataclass
from topodiag.words.own_data import own_data

Words = npt.NDArray[np.uint64]
Positions = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

ROOM = 42
"""Bits for an offset where it shares 64 bits with a thread or file: files below 4 TB, 2 million threads."""
_U = np.uint64
_SPREAD = tuple(_U(x) for x in (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0xD6E8FEB86659FD93))


def mix(rows: Words | Sequence[Words]) -> Words:
    """A 64-bit hash of each column of `rows`. Rows of zeros at the end do not change it."""
    value = np.zeros(len(rows[0]), dtype=np.uint64)
    for index in range(len(rows)):
        part = rows[index] >> _U(29)
        part ^= rows[index]
        part *= _U(_SPREAD[index % 4] + _U(2 * index))
        value += part
    value ^= value >> _U(32)
    value *= _SPREAD[1]
    value ^= value >> _U(29)
    value *= _SPREAD[0]
    return value


def sorted_order(keys: Words, bits: int) -> Positions:
    """The stable order of keys below 2**bits. To sort keys with their places in the low bits is much faster."""
    room = len(keys).bit_length()
    if bits + room > 64:
        return np.argsort(keys, kind="stable").astype(np.int64)
    packed = (keys << _U(room)) | np.arange(len(keys), dtype=np.uint64)
    packed.sort()
    packed &= _U((1 << room) - 1)
    return packed.view(np.int64)


def firsts(hashes: Words) -> Positions:
    """The first place of each hash; of hashes that differ in a few bits only, of one of them."""
    if not len(hashes):
        return np.zeros(0, dtype=np.int64)
    room = len(hashes).bit_length()
    packed = (hashes & ~_U((1 << room) - 1)) | np.arange(len(hashes), dtype=np.uint64)
    packed.sort()
    new = (packed[1:] ^ packed[:-1]) >> _U(room) != 0
    first: Words = packed[np.append(True, new)] & _U((1 << room) - 1)
    return first.view(np.int64)


def group(rows: Words | Sequence[Words]) -> tuple[Positions, Positions]:
    """Equal columns of `rows` together: an order of the columns that keeps equal ones as they came, and its starts."""
    size = len(rows[0]) if len(rows) else 0
    if not size:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    room = size.bit_length()
    hashes = mix(rows) >> _U(room)
    order = sorted_order(hashes, 64 - room)
    new = breaks(row.take(order) for row in rows)
    if (new & ~breaks([hashes.take(order)])).any():
        order = np.lexsort(tuple(rows)).astype(np.int64)  # two texts with one hash: practically never
        new = breaks(row.take(order) for row in rows)
    return order, np.flatnonzero(new)


def distinct(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The values, each once, in their order. `np.unique` loads numpy.ma for it, in 10 ms."""
    ordered = np.sort(values)
    return ordered[np.append(True, ordered[1:] != ordered[:-1])] if len(ordered) else ordered


def breaks(columns: Iterable[npt.NDArray[Any]]) -> Flags:
    """Where in these columns, of which there is at least one, another tuple begins."""
    differs = [np.append(np.ones(min(len(column), 1), np.bool_), column[1:] != column[:-1]) for column in columns]
    new: Flags = np.logical_or.reduce(differs)
    return new


def place_in(known: npt.NDArray[Any], values: npt.NDArray[Any]) -> Positions:
    """Place of each value among those known, which ascend; -1 where it is not among them."""
    if not known.size:
        return np.full(len(values), -1, np.int64)
    place = np.minimum(np.searchsorted(known, values), known.size - 1)
    return np.where(known[place] == values, place, -1)


class Marks:
    """Where something of a key (a thread, a GPU of a process) stands, by offset."""

    def __init__(self, key: Positions, offset: Positions) -> None:
        self.keys = distinct(key)
        self._order = np.lexsort((offset, key))
        self._at = (np.searchsorted(self.keys, key[self._order]) << ROOM) + offset[self._order]

    def last(self, key: npt.NDArray[Any], offset: Positions) -> Positions:
        """By row, the number of the last mark of its key up to an offset, -1 without."""
        return self._near(key, (offset, "right"), -1)

    def next(self, key: npt.NDArray[Any], offset: Positions) -> Positions:
        """By row, the number of the first mark of its key from an offset on, -1 without."""
        return self._near(key, (offset, "left"), 0)

    def _near(self, key: npt.NDArray[Any], at: tuple[Positions, Literal["left", "right"]], step: int) -> Positions:
        number, (offset, side) = place_in(self.keys, key), at
        place = np.searchsorted(self._at, (number << ROOM) + offset, side) + step
        good = (number >= 0) & (place >= 0) & (place < self._at.size)
        good[good] = self._at[place[good]] >> ROOM == number[good]
        marks = np.full(len(key), -1, np.int64)
        marks[good] = self._order[place[good]]
        return marks


Column = npt.NDArray[Any]

_WORD = "word"
_CODES = np.dtype(np.int32)

FACTS_VERSION = 4
"""Written into saved facts; a file of another version is refused. 1 was one Parquet table, 2 were streams of Arrow, 3
had a digest of operations."""

_TABLES = own_data("evidence/nccl_log/tables/facts")
_COLUMNS: Mapping[str, Mapping[str, str]] = _TABLES["others"] | {
    name: _TABLES["row"] | own for name, own in _TABLES["rows"].items()
}
SCHEMAS: Mapping[str, Mapping[str, np.dtype[Any]]] = {
    name: {column: _CODES if kind == _WORD else np.dtype(kind) for column, kind in columns.items()}
    for name, columns in _COLUMNS.items()
}
"""By table and column the type of its numbers, or of its codes of words."""
WORDED: Mapping[str, tuple[str, ...]] = {
    name: tuple(column for column, kind in columns.items() if kind == _WORD) for name, columns in _COLUMNS.items()
}
"""The columns of each table that hold codes of words."""

TAIL = 16
"""Operations kept per communicator and thread for JOB006."""

BATCH_ROWS = 1 << 17
"""Rows of a table that are looked at, saved or read together: there may be millions."""

ROW_TABLES = tuple(_TABLES["rows"])
THREAD_TABLES = tuple(name for name, schema in SCHEMAS.items() if "thread" in schema)


@dataclass(frozen=True, slots=True)
class Table:
    """Columns of one length; of a column that holds codes, the words."""

    columns: Mapping[str, Column]
    words: Mapping[str, Sequence[str]]

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def __getitem__(self, name: str) -> Column:
        return self.columns[name]

    @property
    def nbytes(self) -> int:
        return sum(column.nbytes for column in self.columns.values()) + sum(
            len(word) for words in self.words.values() for word in words
        )

    def values(self, name: str) -> list[Any]:
        """A column as Python has it, codes as their words."""
        values = self.columns[name].tolist()
        words = self.words.get(name)
        return values if words is None else [words[code] for code in values]

    def word(self, name: str, row: int) -> str:
        """The word in one cell of a column that holds codes."""
        return self.words[name][int(self.columns[name][row])]

    def is_word(self, name: str, *wanted: str) -> Column:
        """Which rows hold one of these words in a column that holds codes."""
        return np.array([word in wanted for word in self.words[name]], bool)[self.columns[name]]

    def rows(self) -> list[dict[str, Any]]:
        """All rows with all columns, of a table that has few of them."""
        columns = (self.values(name) for name in self.columns)
        return [dict(zip(self.columns, row, strict=True)) for row in zip(*columns, strict=True)]

    def part(self, rows: slice | Column) -> Table:
        """Some of the rows, with all words."""
        return Table({name: column[rows] for name, column in self.columns.items()}, self.words)

    def batches(self, most: int) -> Iterator[Table]:
        """The rows in their order, up to so many at a time."""
        for first in range(0, len(self), most):
            yield self.part(slice(first, first + most))

    def changed(self, **columns: Column) -> Table:
        """The table with these columns in the place of its own."""
        return Table({**self.columns, **columns}, self.words)


@dataclass(frozen=True, slots=True)
class Facts:
    """One table per name of SCHEMAS, each with exactly those columns."""

    tables: Mapping[str, Table]
    maps: tuple[mmap.mmap, ...] = ()
    """Files on disk that hold some of the tables (`saved.Store`)."""

    def __getitem__(self, name: str) -> Table:
        return self.tables[name]

    @property
    def nbytes(self) -> int:
        return sum(table.nbytes for table in self.tables.values())

    def rest(self) -> None:
        """Let go of the memory that looking at tables on disk has taken; they are read again where they are needed."""
        for mapped in self.maps:
            if hasattr(mapped, "madvise"):
                mapped.madvise(mmap.MADV_DONTNEED)


def table(name: str, columns: Mapping[str, Any] | None = None) -> Table:
    """A table of this name from lists or arrays by column, words as they are; empty without them."""
    words: dict[str, list[str]] = {}
    numbers: dict[str, Column] = {}
    for column, kind in SCHEMAS[name].items():
        values = columns[column] if columns is not None else ()
        if column in WORDED[name]:
            code = {word: number for number, word in enumerate(dict.fromkeys(values))}
            words[column], values = list(code), [code[word] for word in values]
        numbers[column] = np.asarray(values, kind)
    return Table(numbers, words)


def used(codes: Column, words: Sequence[str]) -> tuple[Column, Sequence[str]]:
    """Codes of words, and the words, without those that no code names."""
    there = np.zeros(len(words), bool)
    there[codes] = True
    if there.all():
        return codes, words
    return (np.cumsum(there, dtype=_CODES) - 1)[codes], [words[at] for at in np.flatnonzero(there).tolist()]


def empty() -> Facts:
    return Facts({name: table(name) for name in SCHEMAS})


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One log file: `file` of the tables is its index. `size` after decompression; sha256 "" when not taken."""

    path: str
    size: int = 0
    sha256: str = ""
    note: str = ""
