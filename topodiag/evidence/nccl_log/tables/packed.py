"""Tables of facts in few words: what waits for its merge in memory, on disk or on its way, in a third of the room.

Small numbers share a word of 64 bits, a column that never changes takes no room, and of one that changes seldom (the
communicator that a thread was busy with) each row holds which of its values it has.
"""

from __future__ import annotations

import mmap
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from topodiag.evidence.nccl_log.tables.facts import ROW_TABLES, SCHEMAS, Facts, alike, numbers, plain
from topodiag.lazy import dataclass

Column = npt.NDArray[Any]
Words = npt.NDArray[np.uint64]

LEAST_ROWS = 256
"""Tables of fewer rows are left as they are."""
_WORD_BITS = 64
_SELDOM = 8
"""A wide column whose value changes in one of so many rows at most is kept as its changes."""
_WIDE_BITS = 20
_ALL = (1 << _WORD_BITS) - 1


@dataclass(frozen=True, slots=True)
class _Place:
    """Where the words hold a column: `width` bits from `shift` on of this word, as what they are above `low`, or as
    index into `values`."""

    name: str
    width: int
    low: int
    values: Column | None
    word: int = 0
    shift: int = 0


@dataclass(frozen=True, slots=True)
class PackedTable:
    """Rows of one table by thread. `words` is one array for each word; `texts` are the words of language, by column."""

    name: str
    thread: npt.NDArray[np.int32]
    words: tuple[Words, ...]
    places: tuple[_Place, ...]
    texts: Mapping[str, pa.Array]

    @property
    def num_rows(self) -> int:
        return len(self.thread)

    @property
    def nbytes(self) -> int:
        own = self.thread.nbytes + sum(word.nbytes for word in self.words)
        own += sum(place.values.nbytes for place in self.places if place.values is not None)
        return own + sum(int(text.nbytes) for text in self.texts.values())

    def columns(self, rows: slice) -> dict[str, Column]:
        """The columns of these rows, each of the width that its table has."""
        made = room_for(self.name, len(self.thread[rows]))
        self.put(rows, made)
        return made

    def put(self, rows: slice, into: Mapping[str, Column]) -> None:
        """Writes the columns of these rows where they are wanted, as `room_for` makes them."""
        into["thread"][:] = self.thread[rows]
        words = [word[rows] for word in self.words]
        own = np.empty(len(into["thread"]), np.uint64)
        for place in self.places:
            column, low = into[place.name], np.uint64(place.low & _ALL)
            if place.width:
                value = words[place.word]
                if place.shift:
                    value = np.right_shift(value, np.uint64(place.shift), out=own)
                if place.width + place.shift < _WORD_BITS:
                    value = np.bitwise_and(value, np.uint64((1 << place.width) - 1), out=own)
                if place.values is not None:
                    np.take(place.values, value.view(np.int64), out=column, mode="clip")
                    continue
                if low:
                    value = np.add(value, low, out=own)
            else:
                value = np.full(1, low)
            column[:] = value.view(column.dtype) if column.itemsize == value.itemsize else value

    def arrays(self) -> list[pa.Table]:
        """What takes room, as tables: the words, then each column's texts."""
        named = {"thread": plain(self.thread, pa.int32())}
        named |= {f"word{number}": plain(word, pa.uint64()) for number, word in enumerate(self.words)}
        return [pa.table(named), *(pa.table({each: text}) for each, text in self.texts.items())]

    def on(self, arrays: Sequence[pa.Table]) -> PackedTable:
        """The same on other arrays that are equal to its own."""
        thread, *words = (numbers(column) for column in arrays[0].columns)
        texts = {each: one.column(0).chunk(0) for each, one in zip(self.texts, arrays[1:], strict=True)}
        return replace(self, thread=thread, words=tuple(words), texts=texts)

    def table(self) -> pa.Table:
        """The same unpacked."""
        columns = self.columns(slice(None))
        made = []
        for each in SCHEMAS[self.name]:
            if pa.types.is_dictionary(each.type):
                codes = plain(columns[each.name], each.type.index_type)
                made.append(pa.DictionaryArray.from_arrays(codes, self.texts[each.name]))
            else:
                made.append(plain(columns[each.name], each.type))
        return pa.Table.from_arrays(made, schema=SCHEMAS[self.name])


def room_for(name: str, rows: int) -> dict[str, Column]:
    """So many rows of this table, as numbers and codes of words, to be written."""
    return {column: np.empty(rows, kind) for column, kind in _widths(name).items()}


_WIDTHS: dict[str, dict[str, np.dtype[Any]]] = {}


def _widths(name: str) -> dict[str, np.dtype[Any]]:
    """By column the type of its numbers, or of its codes of words."""
    if name not in _WIDTHS:
        kinds = {each.name: each.type for each in SCHEMAS[name]}
        _WIDTHS[name] = {
            column: np.dtype((kind.index_type if pa.types.is_dictionary(kind) else kind).to_pandas_dtype())
            for column, kind in kinds.items()
        }
    return _WIDTHS[name]


AnyTable: TypeAlias = pa.Table | PackedTable


def columns_of(name: str, table: AnyTable) -> tuple[dict[str, Column], dict[str, pa.Array]]:
    """The columns of a table with rows as numbers, and by column the words that they are codes of."""
    if isinstance(table, PackedTable):
        return table.columns(slice(None)), dict(table.texts)
    table = alike(table)
    schema = SCHEMAS[name]
    texts = {
        each.name: table.column(at).chunk(0).dictionary
        for at, each in enumerate(schema)
        if pa.types.is_dictionary(each.type)
    }
    return {each.name: numbers(table.column(at)) for at, each in enumerate(schema)}, texts


@dataclass(frozen=True, slots=True)
class Packed:
    """Facts, some of whose tables are packed; `maps` as of Facts."""

    tables: Mapping[str, AnyTable]
    maps: tuple[mmap.mmap, ...] = ()
    nbytes: int = 0

    def __getitem__(self, name: str) -> AnyTable:
        return self.tables[name]


AnyFacts: TypeAlias = Facts | Packed


def pack(facts: AnyFacts) -> Packed:
    """The facts with each table packed that is large and in the order of its threads, as `extract` and `resolve` leave
    them."""
    tables = {name: _pack(name, facts[name]) if name in ROW_TABLES else facts[name] for name in SCHEMAS}
    return Packed(tables, facts.maps, sum(int(each.nbytes) for each in tables.values()))


def unpacked_bytes(facts: AnyFacts) -> int:
    """What the facts take as plain tables, words of language aside."""
    return sum(
        each.num_rows * sum(kind.itemsize for kind in _widths(name).values())
        if isinstance(each, PackedTable)
        else int(each.nbytes)
        for name, each in facts.tables.items()
    )


def _pack(name: str, table: AnyTable) -> AnyTable:
    if isinstance(table, PackedTable) or table.num_rows < LEAST_ROWS:
        return table
    columns, texts = columns_of(name, table)
    thread = columns.pop("thread")
    if (thread[1:] < thread[:-1]).any():
        return table
    words, places = _together([_place(each, values) for each, values in columns.items()])
    return PackedTable(name, np.ascontiguousarray(thread), tuple(words), tuple(places), texts)


def _together(parts: Sequence[tuple[_Place, Words]]) -> tuple[list[Words], list[_Place]]:
    """The columns in as few words as the widest first makes them, and where each is."""
    words: list[Words] = []
    taken: list[int] = []
    places: list[_Place] = []
    for place, rest in sorted(parts, key=lambda part: -part[0].width):
        if not place.width:
            places.append(place)
            continue
        at = next((n for n, bits in enumerate(taken) if bits + place.width <= _WORD_BITS), len(words))
        if at == len(words):
            words.append(rest)
            taken.append(0)
        else:
            words[at] |= rest << np.uint64(taken[at])
        places.append(replace(place, word=at, shift=taken[at]))
        taken[at] += place.width
    return words, places


def _place(name: str, values: Column) -> tuple[_Place, Words]:
    """How a column is held, and what the words say of it."""
    given = values.view(np.int64) if values.dtype.kind == "f" else values
    if values.dtype.kind == "b":
        given = values.view(np.uint8)
    low, high = int(given.min()), int(given.max())
    width = (high - low).bit_length()
    if width > _WIDE_BITS:
        changes = given[1:] != given[:-1]
        count = int(np.count_nonzero(changes)) + 1
        if count.bit_length() < width and count * _SELDOM <= len(given):
            which = np.zeros(len(given), np.uint64)
            np.cumsum(changes, dtype=np.uint64, out=which[1:])
            return _Place(name, (count - 1).bit_length(), 0, values[np.append(0, np.flatnonzero(changes) + 1)]), which
    wide = given.astype(np.uint64 if given.dtype.kind == "u" else np.int64).view(np.uint64)
    if low:
        wide -= np.uint64(low & _ALL)
    return _Place(name, width, low, None), wide
