"""Columns of 64-bit words hashed, ordered and grouped: how equal rows find each other without a loop in Python."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

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
