"""Tables of facts on disk, mapped into memory, so that a log of any size fits.

Files are temporary and have no name any more once they are open: they are gone with the process, however it ends.
`TMPDIR` says where they are.
"""

from __future__ import annotations

import mmap
import tempfile
from collections.abc import Iterator
from itertools import chain
from typing import IO, cast

import pyarrow as pa

from topodiag.evidence.nccl_log.facts import SCHEMAS, Facts
from topodiag.model.errors import TopodiagError

SMALL_BYTES = 1 << 18
"""A table up to this size stays in memory."""


class Store:
    """Takes tables, and knows the maps of those on disk. One for each `Facts`."""

    def __init__(self) -> None:
        self._maps: list[mmap.mmap] = []

    @property
    def maps(self) -> tuple[mmap.mmap, ...]:
        return tuple(self._maps)

    def keep(self, _name: str, schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> pa.Table:
        """The batches, which share their words, as one table. Raises TopodiagError where the disk is full."""
        early: list[pa.RecordBatch] = []
        size = 0
        for batch in batches:
            early.append(batch)
            size += batch.nbytes
            if size > SMALL_BYTES:
                break
        else:
            return pa.Table.from_batches(early, schema)
        try:
            with tempfile.TemporaryFile(prefix="topodiag-") as file:
                return self._mapped(cast("IO[bytes]", file), schema, chain(early, batches))
        except OSError as error:
            raise TopodiagError(
                f"{tempfile.gettempdir()}: the facts of these logs do not fit: {error.strerror or error}",
                hint="set TMPDIR to a folder with room for a fourth of the logs' size",
            ) from None

    def _mapped(self, file: IO[bytes], schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> pa.Table:
        with pa.ipc.new_file(file, schema) as writer:
            for batch in batches:
                writer.write_batch(batch)
        file.flush()
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self._maps.append(mapped)
        return pa.ipc.open_file(pa.py_buffer(mapped)).read_all()


def stored(facts: Facts) -> Facts:
    """The same facts, large tables on disk."""
    store = Store()
    tables = {name: store.keep(name, SCHEMAS[name], iter(facts[name].to_batches())) for name in SCHEMAS}
    return Facts(tables, store.maps)
