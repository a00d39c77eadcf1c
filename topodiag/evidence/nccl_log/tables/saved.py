"""Facts kept as one Parquet file, and read again in bounded memory: what is large of them waits on disk, mapped.

All tables stand below each other, the columns of the others null; a row group holds rows of one table. Batches of one
table share their words (`stored`), and those are known only when all of them were met: the columns of words are read
twice, first for the words, then as codes into them.

Tables of facts on disk, mapped into memory, so that a log of any size fits.

Files are temporary and have no name any more once they are open: they are gone with the process, however it ends.
`TMPDIR` says where they are.
"""

from __future__ import annotations

import mmap
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field
from itertools import chain
from typing import IO, Any, BinaryIO, cast

import numpy as np
import pyarrow as pa

from topodiag.evidence.nccl_log.tables.columns import disk_full, give_back
from topodiag.evidence.nccl_log.tables.facts import (
    BATCH_ROWS,
    FACTS_VERSION,
    ROW_TABLES,
    SCHEMAS,
    THREAD_TABLES,
    Facts,
    SourceFile,
    in_memory,
    numbers,
    plain,
    strings,
    table,
    used,
)
from topodiag.lazy import dataclass
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
_JOIN_WORDS = 1 << 16
"""Words that are collected before doubles among them are looked for, at least."""
_HINT = "give it the logs, or a file that `topodiag logs --save` wrote"

Spelt = Callable[[str], str]
_TEXTS = {
    name: tuple(name.name for name in schema if pa.types.is_dictionary(name.type)) for name, schema in SCHEMAS.items()
}


def save(stream: BinaryIO, facts: Facts, files: Sequence[SourceFile], spelt: Spelt | None = None) -> None:
    """Keep resolved facts as one Parquet file: all tables below each other, the columns of the others null. `spelt`
    says how a word is written, as it stands where it is None."""
    import json  # noqa: PLC0415 - only for saving and loading

    import pyarrow.parquet as pq  # noqa: PLC0415

    listed = [[file.path, file.size, file.sha256, file.note] for file in files]
    note = json.dumps({"version": FACTS_VERSION, "files": listed})
    named = [schema.append(pa.field("table", pa.string())) for schema in SCHEMAS.values()]
    schema = pa.unify_schemas(named).with_metadata({b"topodiag": note.encode()})
    worded = [name.name for name in schema if not pa.types.is_primitive(name.type)]  # of numbers they take more room
    none = {name.name: pa.nulls(BATCH_ROWS, name.type) for name in schema}
    how = {"compression": "zstd", "use_dictionary": worded, "write_statistics": ["table"]}
    with pq.ParquetWriter(stream, schema, **how) as writer:
        for name in SCHEMAS:
            for first in range(0, facts[name].num_rows, BATCH_ROWS):
                rows = facts[name].slice(first, BATCH_ROWS)
                columns = {name: nulls.slice(0, rows.num_rows) for name, nulls in none.items()}
                columns |= {name: _own_words(rows.column(name), spelt) for name in rows.schema.names}
                columns["table"] = pa.array([name] * rows.num_rows, pa.string())
                writer.write_table(pa.table(columns, schema))
                facts.rest()


def _own_words(column: pa.ChunkedArray, spelt: Spelt | None) -> pa.ChunkedArray:
    """The column without words that none of its rows has: those of all other batches."""
    if not pa.types.is_dictionary(column.type):
        return column
    chunks = []
    for chunk in column.chunks:
        codes, words = used(numbers(chunk), chunk.dictionary)
        if spelt is not None:
            words = pa.array([word and spelt(word) for word in words.to_pylist()], words.type)
        chunks.append(pa.DictionaryArray.from_arrays(plain(codes, pa.int32()), words))
    return pa.chunked_array(chunks, column.type)


def load(path: str, shown: str = "") -> tuple[Facts, tuple[SourceFile, ...]]:
    """Facts as `save` wrote them; `shown` is the file's name in errors where it is not its path. Raises InputError
    for anything else, TopodiagError where the disk is full."""
    import json  # noqa: PLC0415

    import pyarrow.parquet as pq  # noqa: PLC0415

    name = shown or path
    with _reading(name), pq.ParquetFile(pa.OSFile(os.fsencode(path))) as file:
        note = json.loads((file.schema_arrow.metadata or {}).get(b"topodiag", b"null"))
        if not isinstance(note, dict) or note.get("version") != FACTS_VERSION:
            raise InputError(name, "holds no facts of a log, or those of another version of topodiag", hint=_HINT)
        files = tuple(SourceFile(str(p), int(s), str(h), str(n)) for p, s, h, n in note["files"])
        saved = _Saved(name, file, len(files))
        store = Store() if saved.size > MOST_BYTES else None
        tables = {schema: saved.table(schema, store if schema in ROW_TABLES else None) for schema in SCHEMAS}
    if store is None:
        return Facts(tables), files
    give_back()
    return Facts(tables, store.maps), files


@contextmanager
def _reading(path: str) -> Iterator[None]:
    """Tells what is wrong with a file as InputError."""
    try:
        yield
    except (OSError, pa.ArrowException) as error:
        why = (str(error).splitlines() or [""])[0]
        raise InputError(path, f"is no Parquet file that can be read: {why}", hint=_HINT) from None
    except (LookupError, TypeError, ValueError) as error:
        raise InputError(path, f"is damaged: {error}", hint=_HINT) from None


class _Saved:
    """A file of facts: where the rows of each table are, and its words."""

    def __init__(self, path: str, file: Any, files: int) -> None:
        import pyarrow.compute as pc  # noqa: PLC0415

        self._path, self._file, self._files = path, file, files
        self._groups: dict[str, list[tuple[int, bool]]] = {name: [] for name in SCHEMAS}
        """Row groups that hold rows of this table, and whether no others."""
        self._rows = dict.fromkeys(SCHEMAS, 0)
        words = {name: {text: _Words() for text in texts} for name, texts in _TEXTS.items()}
        for group in range(file.num_row_groups):
            held = pc.value_counts(file.read_row_group(group, ["table"]).column("table")).to_pylist()
            for part in held:
                name = part["values"]
                self._groups[name].append((group, len(held) == 1))
                self._rows[name] += part["counts"]
                for text, column in self._read(name, (group, len(held) == 1), _TEXTS[name]).items():
                    words[name][text].add(column)
        self._words = {name: {text: words.all() for text, words in texts.items()} for name, texts in words.items()}

    @property
    def size(self) -> int:
        """What the tables take, in bytes."""
        rows = sum(self._rows[name] * sum(schema.type.bit_width for schema in SCHEMAS[name]) // 8 for name in SCHEMAS)
        return int(rows + sum(text.nbytes for texts in self._words.values() for text in texts.values()))

    def table(self, name: str, store: Store | None) -> pa.Table:
        if not self._rows[name]:
            return table(name)
        return (in_memory if store is None else store.keep)(name, SCHEMAS[name], self._batches(name))

    def _batches(self, name: str) -> Iterator[pa.RecordBatch]:
        for place in self._groups[name]:
            with _reading(self._path):  # not around all of it: what writes the batches down has errors of its own
                batch = self._batch(name, self._read(name, place, SCHEMAS[name].names))
            yield batch

    def _read(self, name: str, place: tuple[int, bool], columns: Sequence[str]) -> Mapping[str, pa.ChunkedArray]:
        """Some columns of a table's rows in one row group. Only those are read."""
        import pyarrow.compute as pc  # noqa: PLC0415

        group, single = place
        if not columns:
            return {}
        wanted = list(columns) if single else [*columns, "table"]
        rows = self._file.read_row_group(group, wanted)
        if not single:
            rows = rows.filter(pc.equal(rows.column("table"), name))
        return {column: rows.column(column).cast(SCHEMAS[name].field(column).type) for column in columns}

    def _batch(self, name: str, columns: Mapping[str, pa.ChunkedArray]) -> pa.RecordBatch:
        if any(column.null_count for column in columns.values()):
            raise InputError(self._path, "is damaged: values are missing", hint=_HINT)
        if name in THREAD_TABLES and _outside(columns["thread"], self._rows["threads"]):
            raise InputError(self._path, "is damaged: rows of threads that it does not hold", hint=_HINT)
        if name == "threads" and _outside(columns["file"], self._files):
            raise InputError(self._path, "is damaged: threads of files that it does not name", hint=_HINT)
        arrays = []
        for column_name, column in columns.items():
            if column_name in self._words[name]:
                arrays.append(_recoded(column, self._words[name][column_name]))
            else:
                arrays.append(column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks))
        return pa.RecordBatch.from_arrays(arrays, schema=SCHEMAS[name])


@dataclass(slots=True)
class _Words:
    """The words of one column, collected from its row groups."""

    _known: pa.Array = field(default_factory=lambda: strings([]))
    _more: list[pa.Array] = field(default_factory=list)
    _waiting: int = 0

    def add(self, column: pa.ChunkedArray) -> None:
        for chunk in column.chunks:
            words = chunk.unique().dictionary_decode().drop_null()
            self._more.append(words)
            self._waiting += len(words)
        if self._waiting > max(_JOIN_WORDS, len(self._known)):
            self._join()

    def _join(self) -> None:
        self._known = pa.concat_arrays([self._known, *self._more]).unique()
        self._more, self._waiting = [], 0

    def all(self) -> pa.Array:
        """All of them, in their order."""
        import pyarrow.compute as pc  # noqa: PLC0415

        self._join()
        return self._known.take(pc.sort_indices(self._known))


def _recoded(column: pa.ChunkedArray, words: pa.Array) -> pa.DictionaryArray:
    """The column as codes into these words."""
    import pyarrow.compute as pc  # noqa: PLC0415

    columns = []
    for chunk in column.chunks:
        code_of = numbers(pc.index_in(chunk.dictionary, words).fill_null(-1))
        columns.append(code_of[numbers(chunk)])
    codes = np.concatenate(columns)
    if (codes < 0).any():
        raise ValueError("words are missing")
    return pa.DictionaryArray.from_arrays(plain(codes, pa.int32()), words)


def _outside(column: pa.ChunkedArray, size: int) -> bool:
    import pyarrow.compute as pc  # noqa: PLC0415

    span = pc.min_max(column).as_py()
    return bool(span["min"] < 0 or span["max"] >= size)
