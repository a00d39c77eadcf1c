"""Tables that grow by some rows at a time: in memory, or in files on disk once they are large.

Those files are mapped into memory, so that a log of any size fits. They are temporary and have no name: they are gone
with the process, however it ends. `TMPDIR` says where they are.

Memory that is free inside the process, back to the system.
"""

from __future__ import annotations

import ctypes
import mmap
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import closing, suppress
from itertools import accumulate
from typing import IO, Any

import numpy as np

from topodiag.evidence.nccl_log.tables.facts import BATCH_ROWS, SCHEMAS, Column, Facts, Table, table
from topodiag.model.errors import TopodiagError


def give_back() -> None:
    """Reading a large log leaves some 300 MB that nothing uses, in pieces between what is kept: the C library holds
    them until they are asked for. Does nothing where it is not glibc, which alone has malloc_trim(3)."""
    with suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)


SMALL_BYTES = 16 << 20
"""Columns of connections up to this size together stay in memory."""
SMALL_TABLE = 1 << 14
"""A table of facts up to this size stays in memory: thousands of facts may wait on disk."""
_ALIGNED = 64
"""Bytes that the place of a column in its file is a multiple of."""


class Columns:
    """Columns of these types, of at most so many rows. They go to one file once they take more than `small` bytes, one
    behind the other: of what is not written there the disk holds nothing."""

    def __init__(self, kinds: Mapping[str, np.dtype[Any]], most: int, small: int, what: str = "facts") -> None:
        self._kinds, self._small, self._what = kinds, small, what
        self._width = sum(kind.itemsize for kind in kinds.values())
        sizes = [-(-most * kind.itemsize // _ALIGNED) * _ALIGNED for kind in kinds.values()]
        self._starts = dict(zip(kinds, accumulate(sizes, initial=0), strict=False))
        self._size = sum(sizes)
        self._held: list[dict[str, Column]] = []
        self._file: IO[bytes] | None = None
        self._rows = self._written = 0

    def __len__(self) -> int:
        return self._rows

    def add(self, rows: Mapping[str, Column]) -> None:
        """Some more rows of every column. Raises TopodiagError where the disk is full."""
        self._held.append({name: np.ascontiguousarray(rows[name], kind) for name, kind in self._kinds.items()})
        self._rows += len(next(iter(rows.values())))
        if self._file is not None or self._rows * self._width > self._small:
            try:
                self._write()
            except OSError as error:
                self.close()
                raise disk_full(self._what, error) from None

    def close(self) -> None:
        """Gives up what no one has taken."""
        if self._file is not None:
            self._file.close()

    def _write(self) -> None:
        """What is held, to the file."""
        if self._file is None:
            self._file = tempfile.TemporaryFile(prefix="topodiag-")  # noqa: SIM115 - see `take`
            self._file.truncate(self._size)
        for part in self._held:
            for name, column in part.items():
                self._file.seek(self._starts[name] + self._written * column.itemsize)
                self._file.write(column.data)
            self._written += len(column)
        self._file.flush()
        self._held.clear()

    def take(self) -> tuple[dict[str, Column], tuple[mmap.mmap, ...]]:
        """The columns, once, and the map of the file that holds them if they are large."""
        if self._file is None:
            held = self._held
            return {
                name: np.concatenate([part.pop(name) for part in held]) if held else np.zeros(0, kind)
                for name, kind in self._kinds.items()
            }, ()
        with self._file as file:
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        return {
            name: np.frombuffer(mapped, kind, self._rows, self._starts[name]) for name, kind in self._kinds.items()
        }, (mapped,)


class Store:
    """Takes tables, and knows the maps of those on disk. One for each `Facts`."""

    def __init__(self, small: int | None = None) -> None:
        self.maps: tuple[mmap.mmap, ...] = ()
        self._small = SMALL_TABLE if small is None else small

    def keep(self, name: str, most: int, parts: Iterator[Table]) -> Table:
        """The parts, which share their words, as one table. Raises TopodiagError where the disk is full."""
        words = table(name).words
        with closing(Columns(SCHEMAS[name], most, self._small)) as columns:
            for part in parts:
                columns.add(part.columns)
                words = part.words
            taken, maps = columns.take()
        self.maps += maps
        return Table(taken, words)


def in_memory(name: str, most: int, parts: Iterator[Table]) -> Table:
    """The parts as one table, which no file holds."""
    return Store(sys.maxsize).keep(name, most, parts)


def on_disk(facts: Facts) -> Facts:
    """The same facts, what is large of them on disk. Raises TopodiagError where it is full."""
    if facts.maps:
        return facts
    store = Store()
    tables = {name: store.keep(name, len(rows), rows.batches(BATCH_ROWS)) for name, rows in facts.tables.items()}
    return Facts(tables, store.maps)


def narrowest(low: int, high: int) -> np.dtype[Any]:
    """The smallest signed type for numbers between these."""
    for kind in (np.int8, np.int16, np.int32):
        if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max:
            return np.dtype(kind)
    return np.dtype(np.int64)


def disk_full(what: str, error: OSError) -> TopodiagError:
    """What does not fit into `TMPDIR`. Connections take a twelfth of the logs' size there, facts a third, and a merge
    of facts holds both its ends."""
    return TopodiagError(
        f"{tempfile.gettempdir()}: the {what} of these logs do not fit: {error.strerror or error}",
        hint="set TMPDIR to a folder with room for half of the logs' size",
    )
