"""The facts of a log as Arrow tables: what extraction makes of a piece of a file, and what the job is rebuilt from.

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
"""

from __future__ import annotations

import mmap
from array import array
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from itertools import accumulate
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from topodiag.lazy import dataclass
from topodiag.words.own_data import own_data

_I32, _BOOL = pa.int32(), pa.bool_()
_TYPES = {
    "int8": pa.int8(), "int32": _I32, "int64": pa.int64(), "uint64": pa.uint64(), "double": pa.float64(), "bool": _BOOL,
    "word": pa.dictionary(_I32, pa.string()),
}  # fmt: skip

FEW_WORDS = 1000
"""So many are taken and sorted in Python: pyarrow.compute takes 40 ms to load."""
FACTS_VERSION = 2
"""Written into saved facts; a file of another version is refused. 1 was one Parquet table."""

_TABLES = own_data("evidence/nccl_log/tables/facts")
_COLUMNS = _TABLES["others"] | {name: _TABLES["row"] | own for name, own in _TABLES["rows"].items()}
SCHEMAS: Mapping[str, pa.Schema] = {
    name: pa.schema([(column, _TYPES[kind]) for column, kind in columns.items()]) for name, columns in _COLUMNS.items()
}

TAIL = 16
"""Operations kept per communicator and thread for JOB006."""

BATCH_ROWS = 1 << 17
"""Rows of a table that are looked at, saved or read together: there may be millions."""

Keep = Callable[[str, pa.Schema, Iterator[pa.RecordBatch]], pa.Table]
"""Where a table's batches go, which share their words, and the table that they make."""

ROW_TABLES = tuple(_TABLES["rows"])
THREAD_TABLES = tuple(name for name, schema in SCHEMAS.items() if "thread" in schema.names)


@dataclass(frozen=True, slots=True)
class Facts:
    """One Arrow table per name of SCHEMAS, each with exactly that schema."""

    tables: Mapping[str, pa.Table]
    maps: tuple[mmap.mmap, ...] = ()
    """Files on disk that hold some of the tables (`stored`)."""

    def __getitem__(self, name: str) -> pa.Table:
        return self.tables[name]

    @property
    def nbytes(self) -> int:
        return sum(table.nbytes for table in self.tables.values())

    def rest(self) -> None:
        """Let go of the memory that looking at tables on disk has taken; they are read again where they are needed."""
        for mapped in self.maps:
            if hasattr(mapped, "madvise"):
                mapped.madvise(mmap.MADV_DONTNEED)


def table(name: str, columns: Mapping[str, Any] | None = None) -> pa.Table:
    """A table of this name from lists or arrays by column; empty without them."""
    schema = SCHEMAS[name]
    if columns is None or not len(columns[schema.names[0]]):
        return _EMPTY[name]
    return pa.table({field.name: _array(columns[field.name], field.type) for field in schema}, schema=schema)


def _array(values: Any, kind: pa.DataType) -> Any:
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values if values.type == kind else values.cast(kind)
    if pa.types.is_dictionary(kind):
        code = {word: number for number, word in enumerate(dict.fromkeys(values))}
        return pa.DictionaryArray.from_arrays(plain(np.array([code[word] for word in values]), _I32), strings(code))
    return plain(np.asarray(values, np.dtype(kind.to_pandas_dtype())), kind)


def strings(words: Collection[str]) -> pa.Array:
    """Texts as an array. From buffers: `pa.array` imports pandas where there is one, for 0.3 s and 40 MB. Raises
    OverflowError for more than 2 GiB."""
    encoded = [word.encode() for word in words]
    ends = list(accumulate(map(len, encoded), initial=0))
    buffers = [None, pa.py_buffer(array("i", ends)), pa.py_buffer(b"".join(encoded))]
    return pa.Array.from_buffers(pa.string(), len(words), buffers)


def plain(values: npt.NDArray[Any], kind: pa.DataType) -> pa.Array:
    """Numbers as an array of this type, without a copy where the width is right."""
    if pa.types.is_boolean(kind):
        bits = np.packbits(values.astype(bool), bitorder="little")
        return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(bits)])
    width = np.dtype(kind.to_pandas_dtype())
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(np.ascontiguousarray(values, width))])


def numbers(column: pa.Array | pa.ChunkedArray) -> npt.NDArray[Any]:
    """Values of a column without nulls, or its codes of words; one chunk is not copied. `to_numpy` imports pandas."""
    if isinstance(column, pa.ChunkedArray):
        chunks = [numbers(chunk) for chunk in column.chunks]
        return chunks[0] if len(chunks) == 1 else np.concatenate(chunks or [numbers(_array([], column.type))])
    if pa.types.is_dictionary(column.type):
        return numbers(column.indices)
    first, last = column.offset, column.offset + len(column)
    buffer = column.buffers()[1]
    if pa.types.is_boolean(column.type):
        bits = np.frombuffer(buffer or b"", np.uint8)
        return np.unpackbits(bits, count=last, bitorder="little")[first:].view(bool)
    return np.frombuffer(buffer or b"", column.type.to_pandas_dtype())[first:last]


_EMPTY = {
    name: pa.table({field.name: _array([], field.type) for field in schema}, schema=schema)
    for name, schema in SCHEMAS.items()
}


def used(codes: npt.NDArray[Any], words: pa.Array) -> tuple[npt.NDArray[Any], pa.Array]:
    """Codes of words, and the words, without those that no code names."""
    there = np.zeros(len(words), bool)
    there[codes] = True
    if there.all():
        return codes, words
    left = (
        strings([word for word, named in zip(words.to_pylist(), there.tolist(), strict=True) if named])
        if len(words) <= FEW_WORDS
        else words.take(plain(np.flatnonzero(there), pa.int64()))
    )
    return (np.cumsum(there, dtype=np.int32) - 1)[codes], left


def alike(rows: pa.Table) -> pa.Table:
    """The table with one set of words for all chunks."""
    return rows.unify_dictionaries() if rows.column(0).num_chunks > 1 else rows


def in_memory(_name: str, schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> pa.Table:
    return pa.Table.from_batches(list(batches), schema)


def empty() -> Facts:
    return Facts({name: table(name) for name in SCHEMAS})


def without_files(facts: Facts, dropped: frozenset[int], keep: Keep | None = None) -> Facts:
    """The facts without those of some files; threads are renumbered, files are not. `maps` stay those of before."""
    dropped_files = list(dropped)
    held = ~np.isin(numbers(facts["threads"].column("file")), dropped_files)
    number = np.cumsum(held, dtype=np.int32) - 1
    shards = ~np.isin(numbers(facts["shards"].column("file")), dropped_files)
    kept = {
        "threads": facts["threads"].filter(plain(held, _BOOL)),
        "shards": facts["shards"].filter(plain(shards, _BOOL)),
    }
    for name in THREAD_TABLES:
        kept[name] = (keep or in_memory)(name, SCHEMAS[name], _of_threads(facts, name, held, number))
    return replace(facts, tables={name: kept[name] for name in SCHEMAS})


def _of_threads(
    facts: Facts, name: str, held: npt.NDArray[np.bool_], number: npt.NDArray[np.int32]
) -> Iterator[pa.RecordBatch]:
    """The rows of these threads, which get new numbers, some at a time."""
    rows = alike(facts[name])
    at = rows.schema.get_field_index("thread")
    for batch in rows.to_batches(max_chunksize=BATCH_ROWS):
        threads = numbers(batch.column(at))
        chosen = held[threads]
        moved = plain(number[threads[chosen]], _I32)
        yield batch.filter(plain(chosen, _BOOL)).set_column(at, rows.schema.field(at), moved)
        facts.rest()


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One log file: `file` of the tables is its index. `size` after decompression; sha256 "" when not taken."""

    path: str
    size: int = 0
    sha256: str = ""
    note: str = ""
