"""Columns of numbers that grow by some rows at a time: in memory, or in files on disk once they are many.

Files are temporary and have no name: they are gone with the process, however it ends. `TMPDIR` says where they are.

Memory that is free inside the process, back to the system.
"""

from __future__ import annotations

import ctypes
import mmap
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

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
    """Columns of these types. Each is one file."""

    def __init__(self, kinds: Mapping[str, np.dtype[Any]]) -> None:
        self._kinds, self._rows = kinds, 0
        self._is_large = False
        self._files = {name: tempfile.SpooledTemporaryFile(prefix="topodiag-") for name in kinds}  # noqa: SIM115 - see `take`

    def __len__(self) -> int:
        return self._rows

    def add(self, rows: Mapping[str, Array]) -> None:
        """Some more rows of every column. Raises TopodiagError where the disk is full."""
        try:
            for name, kind in self._kinds.items():
                self._files[name].write(np.ascontiguousarray(rows[name], kind).data)
            self._rows += len(rows[name])
            if self._rows * sum(kind.itemsize for kind in self._kinds.values()) > SMALL_BYTES:
                self._is_large = True
                for file in self._files.values():
                    file.rollover()
        except OSError as error:
            for file in self._files.values():
                file.close()
            raise disk_full("connections", error) from None

    def take(self) -> tuple[dict[str, Array], tuple[mmap.mmap, ...]]:
        """The columns, once, and the maps of the files that hold them if they are large."""
        columns: dict[str, Array] = {}
        maps: list[mmap.mmap] = []
        for name, file in self._files.items():
            with file:
                file.seek(0)
                if self._is_large:
                    maps.append(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
                columns[name] = np.frombuffer(maps[-1] if self._is_large else file.read(), self._kinds[name])
        return columns, tuple(maps)


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
