"""The facts of a log as Arrow tables: what extraction makes of a piece of a file, and what the job is rebuilt from.

Extraction is a pure function from the bytes of a shard (a piece of one file, cut at line ends) to a `Facts`. Facts of
shards are concatenated in any order and grouping (`concat`), then `resolve.py` brings them to one normal form: the
same for every cut, worker count and order of files.

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

_I8, _I16, _I32, _I64, _U64, _F64, _BOOL = (
    pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint64(), pa.float64(), pa.bool_()
)  # fmt: skip
_WORD = pa.dictionary(pa.int32(), pa.string())

FEW_WORDS = 1000
"""So many are taken and sorted in Python: pyarrow.compute takes 40 ms to load."""
FACTS_VERSION = 1
"""Written into saved facts; a file of another version is refused."""

_ROW = {"thread": _I32, "ctx": _U64, "gen": _I64, "offset": _I64, "line": _I32, "count": _I64}


def _row(**columns: pa.DataType) -> pa.Schema:
    return pa.schema({**_ROW, **columns})


SCHEMAS: Mapping[str, pa.Schema] = {
    # One row per shard. `records` are NCCL's own records, `understood` those that made a fact or are known noise.
    "shards": pa.schema({
        "file": _I32, "base": _I64, "size": _I64, "lines": _I64, "records": _I64, "understood": _I64,
    }),
    # Who printed. Lines that no record's head names belong to the thread with host "" and pid, tid, dev -1.
    "threads": pa.schema({"file": _I32, "host": _WORD, "pid": _I64, "tid": _I64, "dev": _I64}),
    # The context of each thread at the end of the shard (`offset`: the line that set it).
    "contexts": pa.schema({"thread": _I32, "offset": _I64, "ctx": _U64, "gen": _I64}),
    # Life of communicators. event: start, complete, member (`comm .. rank .. nRanks .. nNodes`), destroy, abort,
    # revoke. comm_id and parent are 0 when not printed. bus_id is NCCL's packed form. ts: seconds since the epoch as
    # if the log's zone were UTC, NaN without a timestamp.
    "init": _row(
        event=_WORD, func=_WORD, rank=_I32, nranks=_I32, cuda_dev=_I32, nvml_dev=_I32, bus_id=_I64, comm_id=_U64,
        parent=_U64, split=_I32, color=_I64, key=_I64, nodes=_I32, local_ranks=_I32, local_rank=_I32, mnnvl=_I8,
        ts=_F64,
    ),
    # Seconds of each phase of an init, NaN where that version prints none.
    "timing": _row(
        func=_WORD, rank=_I32, nranks=_I32, total=_F64, kernels=_F64, alloc=_F64, bootstrap=_F64, allgathers=_F64,
        topo=_F64, graphs=_F64, connections=_F64, rest=_F64,
    ),
    # Connections. channels: bit c for channel c (c < 64, above that bit 63). conn: 0 collectives, 1 send/recv, -1 not
    # printed. direction: 0 not printed, 1 [send], 2 [receive]. via: without device and proxy, as `P2P/CUMEM/read`,
    # `SHM/direct/direct`, `NET/IB/GDRDMA/Shared`, `NET/AWS Libfabric/GDRDMA`, `COLLNET/SHARP`. In brackets: the device
    # index, or the packed bus id before 2.18 (`dev`, `peer_dev`; -1 none).
    "conn": _row(
        rank=_I32, dev=_I64, peer=_I32, peer_dev=_I64, channels=_U64, conn=_I8, direction=_I8, via=_WORD,
        net_dev=_I32, proxy=_I32,
    ),
    # `Ring 00 : prev -> rank -> next` (2.10+).
    "ring": _row(prev=_I32, rank=_I32, next=_I32, channels=_U64),
    # `Trees [c] d0/d1/d2->rank->up` and `Tree c : up -> rank -> d0/d1/d2`; `second` is 1 for the down tree of 2.5-2.7.
    "tree": _row(up=_I32, rank=_I32, d0=_I32, d1=_I32, d2=_I32, channels=_U64, second=_I8),
    # `Channel 00/16 : 0 1 2 ...`: the ring as the communicator's rank 0 prints it. cut: the line does not hold all.
    "order": _row(channel=_I32, nchannels=_I32, ranks=_WORD, cut=_BOOL),
    # `16 coll channels, ...`
    "channels": _row(coll=_I32, collnet=_I32, nvls=_I32, p2p=_I32, per_peer=_I32),
    # Rows of the system print, the paths, the graphs and the tuning table, in the order of the thread, one text per
    # (thread, ctx, gen): rows joined by newlines. A text cut by a shard's edge is joined again in `resolve`.
    "print": _row(text=_WORD),
    # Operations. dtype, redop, root as printed (root is the peer of Send and Recv). elements is exact up to 64 distinct
    # rows per (thread, ctx, gen), above that rounded down to a power of two; in the facts of a shard the rounded are
    # negated, so that `resolve` knows to round the rest too. first/last: opCount, -1 for Send and Recv.
    # digest: sum over the rows' lines of a 64-bit hash of (opCount, func, elements, dtype, redop, root), wrapping.
    "op": _row(
        func=_WORD, elements=_I64, dtype=_I32, redop=_I32, root=_I32, nranks=_I32, first=_I64, last=_I64,
        last_offset=_I64, digest=_U64,
    ),
    # The last operations of each (thread, ctx, gen), at most TAIL, for who is behind.
    "tail": _row(func=_WORD, elements=_I64, dtype=_I32, redop=_I32, root=_I32, op_count=_I64),
    # `AllReduce: 1048576 Bytes -> Algo RING proto SIMPLE channel{Lo..Hi}={0..15}`; algo and proto in upper case names
    # whatever the version prints; lo, hi -1 where not printed; func "" before 2.23.
    "choice": _row(func=_WORD, bytes=_I64, algo=_WORD, proto=_WORD, lo=_I32, hi=_I32),
    # Everything else that is known: `kind` is one of grammar/texts.toml, `text` the message.
    "text": _row(kind=_WORD, text=_WORD),
    # Warnings, unwinding (`file:line -> code`) and what applications print beside (torch's watchdog): level WARN,
    # UNWIND or APP. place: `transport/net_ib.cc:2459`. label: what a launcher put in front, a rank where it is one.
    "event": _row(
        level=_WORD, place=_WORD, label=_WORD, text=_WORD, ts=_F64, last_ts=_F64, last_offset=_I64,
    ),
    # Records that nothing understood, by shape (numbers and pointers replaced), with one example.
    "unread": _row(shape=_WORD, text=_WORD),
}  # fmt: skip

TAIL = 16
"""Operations kept per communicator and thread for JOB006."""

BATCH_ROWS = 1 << 17
"""Rows of a table that are looked at, saved or read together: there may be millions."""

Keep = Callable[[str, pa.Schema, Iterator[pa.RecordBatch]], pa.Table]
"""Where a table's batches go, which share their words, and the table that they make."""

ROW_TABLES = tuple(name for name, schema in SCHEMAS.items() if "count" in schema.names)
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
        return chunks[0] if len(chunks) == 1 else np.concatenate(chunks or [numbers(_no_values(column.type))])
    if pa.types.is_dictionary(column.type):
        return numbers(column.indices)
    first, last = column.offset, column.offset + len(column)
    buffer = column.buffers()[1]
    if pa.types.is_boolean(column.type):
        bits = np.frombuffer(buffer or b"", np.uint8)
        return np.unpackbits(bits, count=last, bitorder="little")[first:].view(bool)
    return np.frombuffer(buffer or b"", column.type.to_pandas_dtype())[first:last]


def _no_values(kind: pa.DataType) -> pa.Array:
    return _array([], kind)


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
