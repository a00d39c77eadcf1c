"""Tables of facts on disk, mapped into memory, so that a log of any size fits.

Files are temporary and have no name any more once they are open: they are gone with the process, however it ends.
`TMPDIR` says where they are.
"""

from __future__ import annotations

import mmap
import tempfile
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import IO, cast

import pyarrow as pa

from topodiag.evidence.nccl_log.tables.columns import disk_full
from topodiag.evidence.nccl_log.tables.facts import SCHEMAS, Facts
from topodiag.evidence.nccl_log.tables.packed import AnyFacts, AnyTable, Packed, PackedTable, pack

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
            with tempfile.TemporaryFile(prefix="topodiag-", buffering=0) as file:
                return self._mapped(cast("IO[bytes]", file), schema, chain(early, batches))
        except OSError as error:
            raise disk_full("facts", error) from None

    def _mapped(self, file: IO[bytes], schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> pa.Table:
        with pa.ipc.new_file(file, schema) as writer:
            for batch in batches:
                writer.write_batch(batch)
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self._maps.append(mapped)
        return pa.ipc.open_file(pa.py_buffer(mapped)).read_all()


def on_disk(facts: Facts) -> Facts:
    """The same facts, what is large of them on disk. Raises TopodiagError where it is full."""
    if facts.maps:
        return facts
    store = Store()
    tables = {
        name: store.keep(name, rows.schema, iter(rows.unify_dictionaries().to_batches()))
        for name, rows in facts.tables.items()
    }
    return Facts(tables, store.maps)


def stored(parts: Sequence[AnyFacts]) -> list[Packed]:
    """The same facts packed, and what is large of them in one file on disk. Raises TopodiagError where it is full."""
    packed = [pack(part) for part in parts]
    spans: list[dict[str, list[tuple[int, int]]]] = []
    try:
        with tempfile.TemporaryFile(prefix="topodiag-", buffering=0) as raw:
            file = cast("IO[bytes]", raw)
            for part in packed:
                large = (name for name in SCHEMAS if part[name].nbytes > SMALL_BYTES // 16)
                spans.append({name: [_written(file, each) for each in _arrays(part[name])] for name in large})
            file.write(b"\0")  # nothing cannot be mapped
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except OSError as error:
        raise disk_full("facts", error) from None
    whole = pa.py_buffer(mapped)
    kept = []
    for part, written in zip(packed, spans, strict=True):
        tables = dict(part.tables)
        for name, places in written.items():
            arrays = [pa.ipc.open_stream(whole.slice(start, end - start)).read_all() for start, end in places]
            own = tables[name]
            tables[name] = own.on(arrays) if isinstance(own, PackedTable) else arrays[0]
        kept.append(Packed(tables, (*part.maps, mapped), part.nbytes))
    return kept


def _arrays(table: AnyTable) -> list[pa.Table]:
    return table.arrays() if isinstance(table, PackedTable) else [table.unify_dictionaries()]


def _written(file: IO[bytes], table: pa.Table) -> tuple[int, int]:
    """Where in the file the table is now."""
    start = file.tell()
    with pa.ipc.new_stream(file, table.schema) as writer:
        writer.write_table(table)
    return start, file.tell()
