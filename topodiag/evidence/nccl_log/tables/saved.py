"""Facts kept as a file, and read again in bounded memory: what is large of them waits on disk, mapped.

A line that says what the file is, a line of JSON with the files that were read, and each table as a stream of Arrow's
IPC format, whose batches share their words.

Tables of facts on disk are mapped into memory, so that a log of any size fits. Those files are temporary and have no
name any more once they are open: they are gone with the process, however it ends. `TMPDIR` says where they are.
"""

from __future__ import annotations

import json
import mmap
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import IO, BinaryIO, cast

import pyarrow as pa

from topodiag.evidence.marks import FACTS_MARK
from topodiag.evidence.nccl_log.tables.columns import disk_full, give_back
from topodiag.evidence.nccl_log.tables.facts import (
    BATCH_ROWS,
    FACTS_VERSION,
    ROW_TABLES,
    SCHEMAS,
    Facts,
    SourceFile,
    alike,
    in_memory,
    numbers,
    plain,
    strings,
)
from topodiag.evidence.nccl_log.tables.resolve_parts import sorted_once
from topodiag.model.errors import InputError

SMALL_BYTES = 1 << 14
"""A table up to this size stays in memory: thousands of facts may wait on disk."""


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


MOST_BYTES = 96 << 20
"""Facts up to this size are loaded into memory."""
_MOST_NOTE = 1 << 28
"""Bytes of the line that names the files: a hundred each, of a million."""
_BEGIN = FACTS_MARK + b"%d\n" % FACTS_VERSION
_HINT = "give it the logs, or a file that `topodiag logs --save` wrote"

Spelt = Callable[[str], str]


def save(stream: BinaryIO, facts: Facts, files: Sequence[SourceFile], spelt: Spelt | None = None) -> None:
    """Keep resolved facts. `spelt` says how a word is written, as it stands where it is None."""
    note = {"files": [[file.path, file.size, file.sha256, file.note] for file in files], "bytes": facts.nbytes}
    stream.write(_BEGIN + json.dumps(note).encode() + b"\n")
    how = pa.ipc.IpcWriteOptions(compression="zstd")
    for name, schema in SCHEMAS.items():
        rows = alike(facts[name])
        with pa.ipc.new_stream(stream, schema, options=how) as writer:
            for batch in (rows if spelt is None else _spelt(rows, spelt)).to_batches(max_chunksize=BATCH_ROWS):
                writer.write_batch(batch)
                facts.rest()


def _spelt(rows: pa.Table, spelt: Spelt) -> pa.Table:
    """The rows with their words as they are to be written. Words that become equal are one."""
    columns = []
    for column in rows.columns:
        if pa.types.is_dictionary(column.type) and column.num_chunks:
            words, codes = sorted_once(strings([spelt(word) for word in column.chunk(0).dictionary.to_pylist()]))
            chunks = [
                pa.DictionaryArray.from_arrays(plain(codes[numbers(chunk)], pa.int32()), words)
                for chunk in column.chunks
            ]
            column = pa.chunked_array(chunks, column.type)
        columns.append(column)
    return pa.table(columns, schema=rows.schema)


def load(path: str, shown: str = "") -> tuple[Facts, tuple[SourceFile, ...]]:
    """Facts as `save` wrote them; `shown` is the file's name in errors where it is not its path. Raises InputError
    for anything else, TopodiagError where the disk is full."""
    name = shown or path
    with _reading(name), open(path, "rb") as file:
        if file.readline(len(_BEGIN)) != _BEGIN:
            raise InputError(name, "holds no facts of a log, or those of another version of topodiag", hint=_HINT)
        note = json.loads(file.readline(_MOST_NOTE))
        files = tuple(SourceFile(str(p), int(s), str(h), str(n)) for p, s, h, n in note["files"])
        store = Store() if note["bytes"] > MOST_BYTES else None
        tables: dict[str, pa.Table] = {}
        for table, schema in SCHEMAS.items():
            limits = {"file": len(files)}
            if "threads" in tables:
                limits["thread"] = tables["threads"].num_rows
            keep = in_memory if store is None or table not in ROW_TABLES else store.keep
            tables[table] = keep(table, schema, _batches(name, file, schema, limits))
    if store is None:
        return Facts(tables), files
    give_back()
    return Facts(tables, store.maps), files


@contextmanager
def _reading(path: str) -> Iterator[None]:
    """Tells what is wrong with a file as InputError."""
    try:
        yield
    except (OSError, MemoryError, pa.ArrowException, LookupError, TypeError, ValueError) as error:
        why = (str(error).splitlines() or [""])[0]
        raise InputError(path, f"is damaged: {why}", hint=_HINT) from None


def _batches(path: str, file: BinaryIO, schema: pa.Schema, limits: Mapping[str, int]) -> Iterator[pa.RecordBatch]:
    """The batches of a table; `limits` are above all numbers of some columns."""
    with _reading(path):  # not around who takes the batches: what writes them down has errors of its own
        reader = pa.ipc.open_stream(file)
        if reader.schema != schema:
            raise ValueError("a table has other columns")
    while True:
        with _reading(path):
            batch = next(reader, None)
            if batch is None:
                return
            _check(batch, limits)
        yield batch


def _check(batch: pa.RecordBatch, limits: Mapping[str, int]) -> None:
    """Raises ValueError for rows that no facts have."""
    batch.validate(full=True)
    if any(column.null_count for column in batch.columns):
        raise ValueError("values are missing")
    for name in limits.keys() & set(batch.schema.names) if batch.num_rows else ():
        values = numbers(batch.column(name))
        if values.min() < 0 or values.max() >= limits[name]:
            raise ValueError(f"rows of a {name} that it does not hold")
