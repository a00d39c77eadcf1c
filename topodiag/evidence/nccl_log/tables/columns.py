"""Columns of numbers that grow by some rows at a time: in memory, or in a file on disk once they are many.

The file is temporary and has no name: it is gone with the process, however it ends. `TMPDIR` says where it is.

Memory that is free inside the process, back to the system.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from typing import IO, Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from topodiag.model.errors import TopodiagError


def give_back() -> None:
    """Reading a large log leaves some 300 MB that nothing uses, in pieces between what is kept: the C library holds
    them until they are asked for. Does nothing where it is not glibc, which alone has malloc_trim(3)."""
    pa.default_memory_pool().release_unused()
    with suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)


SMALL_BYTES = 16 << 20
"""Columns up to this size together stay in memory."""

Array = npt.NDArray[Any]


class Columns:
    """Columns of these types, of at most `most` rows: the file has a place for each column of that length from the
    first, and what is not written of it takes no room on disk."""

    def __init__(self, kinds: Mapping[str, np.dtype[Any]], most: int) -> None:
        self._kinds, self._rows = kinds, 0
        self._parts: dict[str, list[Array]] = {name: [] for name in kinds}
        self._file: IO[bytes] | None = None
        self._starts: dict[str, int] = {}
        self._size = 0
        for name, kind in kinds.items():
            self._starts[name] = self._size
            self._size += -(-most * kind.itemsize // mmap.PAGESIZE) * mmap.PAGESIZE

    def __len__(self) -> int:
        return self._rows

    def add(self, rows: Mapping[str, Array]) -> None:
        """Some more rows of every column. Raises TopodiagError where the disk is full."""
        own = {name: rows[name].astype(kind, copy=False) for name, kind in self._kinds.items()}
        count = len(next(iter(own.values())))
        if self._file is None:
            for name, values in own.items():
                self._parts[name].append(values)
            self._rows += count
            if self._rows * sum(kind.itemsize for kind in self._kinds.values()) > SMALL_BYTES:
                self._spill()
        else:
            self._write(own, self._rows)
            self._rows += count

    def take(self) -> tuple[dict[str, Array], tuple[mmap.mmap, ...]]:
        """The columns, once, and the map of the file that holds them if one does."""
        if self._file is None:
            return {name: self._column(name) for name in self._kinds}, ()
        with self._file as file:
            mapped = mmap.mmap(file.fileno(), self._size, access=mmap.ACCESS_READ)
        return {
            name: np.frombuffer(mapped, kind, self._rows, self._starts[name]) for name, kind in self._kinds.items()
        }, (mapped,)

    def _column(self, name: str) -> Array:
        parts = self._parts.pop(name)
        return np.concatenate(parts) if parts else np.zeros(0, self._kinds[name])

    def _spill(self) -> None:
        early = {name: self._column(name) for name in self._kinds}
        try:
            file = tempfile.TemporaryFile(prefix="topodiag-", buffering=0)  # noqa: SIM115 - `take` closes it
            self._file = cast("IO[bytes]", file)
            os.ftruncate(self._file.fileno(), self._size)
        except OSError as error:
            if self._file is not None:
                self._file.close()
            raise disk_full("connections", error) from None
        self._write(early, 0)

    def _write(self, rows: Mapping[str, Array], first: int) -> None:
        if self._file is None:
            return
        try:
            for name, values in rows.items():
                left = np.ascontiguousarray(values).data.cast("B")
                at = self._starts[name] + first * values.itemsize
                while left:
                    done = os.pwrite(self._file.fileno(), left, at)
                    left, at = left[done:], at + done
        except OSError as error:
            self._file.close()
            raise disk_full("connections", error) from None


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
