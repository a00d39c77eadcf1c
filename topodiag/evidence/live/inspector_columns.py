"""Records of NCCL's Inspector as columns: fast where a block of lines has one layout, line by line where it has not.

The Inspector prints its keys in one order and no blanks, so that a block of lines is a table whose delimiter is the
comma and whose cells are `"coll_sn":1407`. That is only taken where each cell of each column that is needed begins with
the key of the first line; a name with a comma, a verbose record, a cut line: then each line is read as JSON.
"""

from __future__ import annotations

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from topodiag.lazy import dataclass, regex

OF_GPU = ("kernel", "gpu")
"""How sources of time begin that are of the kernel; others hold the time in the queue of the stream as well."""
_KEYS = (
    "id", "rank", "dump_timestamp_us", "coll", "coll_sn", "coll_msg_size_bytes", "coll_exec_time_us",
    "coll_timing_source",
)  # fmt: skip
_TEXTS = frozenset({"id", "rank", "coll", "coll_timing_source"})
_FEW = frozenset({*_TEXTS, "coll_msg_size_bytes"})
"""Columns of few different values."""
_KEY = regex(rb'(?:\{?"\w{1,40}":\{|\{)?"(\w{1,40})":(")?')
_MAX_FIELDS = 100
_SMALL = 1 << 19
"""Bytes of a block below which its lines are read sooner than its table is set up."""

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Columns:
    """The records of one block that are of collectives. `who` numbers (id, rank, collective, source of time) in
    `names`; `lines` is the line of each in the block."""

    names: tuple[tuple[str, int, str, str], ...]
    who: Ints
    number: Ints
    size: Ints
    time_us: npt.NDArray[np.float64]
    stamp_us: Ints
    lines: Ints
    transfers: tuple[tuple[str, int, int], ...] = ()
    """(id, rank, line) of the first record of a send or receive of each rank."""
    transferred: int = 0
    unread: int = 0


def columns(block: bytes) -> Columns:
    """The records of a block of whole lines."""
    fast = _as_table(block) if len(block) >= _SMALL else None
    return fast if fast is not None else _as_lines(block)


def _as_table(block: bytes) -> Columns | None:
    line = block[: block.find(b"\n") + 1].rstrip()
    fields = line.split(b",")
    if not line.startswith(b'{"header":{') or len(fields) > _MAX_FIELDS or b'"coll_perf":{' not in line:
        return None
    at: dict[str, tuple[int, bytes, bytes]] = {}
    for number, cell in enumerate(fields):
        key = _KEY.match(cell)
        if key is not None and key[1].decode() in _KEYS:
            end = cell[len(cell.rstrip(b"}")) :] if number + 1 < len(fields) else b""
            at[key[1].decode()] = (number, key[0], (key[2] or b"") + end)
    if len(at) < len(_KEYS):
        return None
    few = pa.dictionary(pa.int32(), pa.string())
    types = {str(number): few if key in _FEW else pa.string() for key, (number, _, _) in at.items()}
    try:
        table = csv.read_csv(
            pa.BufferReader(block),
            read_options=csv.ReadOptions(column_names=[str(n) for n in range(len(fields))], use_threads=False),
            parse_options=csv.ParseOptions(quote_char=False, ignore_empty_lines=False),
            convert_options=csv.ConvertOptions(
                include_columns=list(types), column_types=types, strings_can_be_null=False
            ),
        )
        read = {key: _cells(table.column(str(number)).combine_chunks(), *cut) for key, (number, *cut) in at.items()}
    except (pa.ArrowInvalid, pa.ArrowTypeError, ValueError, _UnlikeError):
        return None
    return _numbered(
        [read[key] for key in ("id", "rank", "coll", "coll_timing_source")],
        [read[key] for key in ("coll_sn", "coll_msg_size_bytes", "coll_exec_time_us", "dump_timestamp_us")],
    )


class _UnlikeError(Exception):
    """A cell of a column has another key than that of the first line."""


def _cells(column: pa.Array, head: bytes, tail: bytes) -> pa.Array:
    """The values of a column without their key, as texts or dictionaries of texts."""
    if pa.types.is_dictionary(column.type):
        return pa.DictionaryArray.from_arrays(column.indices, _cells(column.dictionary, head, tail))
    key, end = head.decode(), tail.decode()
    if not pc.all(pc.starts_with(column, key)).as_py() or (end and not pc.all(pc.ends_with(column, end)).as_py()):
        raise _UnlikeError
    return pc.utf8_slice_codeunits(column, len(key), -len(end) if end else None)


def _numbers(column: pa.Array) -> npt.NDArray[np.float64]:
    if pa.types.is_dictionary(column.type):
        return np.asarray(_numbers(column.dictionary)[column.indices.to_numpy()])
    return np.asarray(pc.cast(column, pa.float64()).to_numpy(zero_copy_only=False))


def _numbered(texts: list[pa.Array], values: list[pa.Array]) -> Columns | None:
    who = np.zeros(len(texts[0]), np.int64)
    for column in texts:
        who = who * len(column.dictionary) + column.indices.to_numpy()
    codes, first, who = np.unique(who, return_index=True, return_inverse=True)
    names = []
    try:
        for row in first.tolist():
            comm, rank, collective, source = (column[row].as_py() for column in texts)
            names.append((comm, int(rank), collective, source))
        number, size, time_us, stamp = (_numbers(column) for column in values)
    except (ValueError, pa.ArrowInvalid):
        return None
    if not codes.size or not all(np.isfinite(column).all() for column in (number, size, time_us, stamp)):
        return None
    return Columns(
        tuple(names), who, _ints(number), _ints(size), time_us, _ints(stamp), np.arange(len(who), dtype=np.int64)
    )


def _ints(values: npt.NDArray[np.float64]) -> Ints:
    """Doubles hold sequence numbers and microseconds since the epoch (2^51) to the unit."""
    return np.clip(values, -1, 2.0**62).astype(np.int64)


# --- line by line ---------------------------------------------------------------------------------------------------


class _Header(msgspec.Struct, gc=False):
    id: str = ""
    rank: int = -1


class _Stamp(msgspec.Struct, gc=False):
    dump_timestamp_us: float = 0


class _Perf(msgspec.Struct, gc=False):
    coll: str = ""
    coll_sn: float = -1
    coll_msg_size_bytes: float = -1
    coll_exec_time_us: float = 0
    coll_timing_source: str = ""


class _Transfer(msgspec.Struct, gc=False):
    p2p: str = ""


class _Record(msgspec.Struct, gc=False):
    header: _Header
    metadata: _Stamp = msgspec.field(default_factory=_Stamp)
    coll_perf: _Perf | None = None
    p2p_perf: _Transfer | None = None


_RECORDS = msgspec.json.Decoder(_Record, strict=False)


def _as_lines(block: bytes) -> Columns:
    names: dict[tuple[str, int, str, str], int] = {}
    transfers: dict[tuple[str, int], int] = {}
    rows: list[tuple[int, float, float, float, float, int]] = []
    transferred = unread = 0
    for line, text in enumerate(block.split(b"\n")):
        if not text.strip():
            continue
        try:
            record = _RECORDS.decode(text)
        except (msgspec.MsgspecError, ValueError, RecursionError):
            unread += 1
            continue
        head, perf = record.header, record.coll_perf
        if perf is not None:
            who = names.setdefault((head.id, head.rank, perf.coll, perf.coll_timing_source), len(names))
            stamp = record.metadata.dump_timestamp_us
            rows.append((who, perf.coll_sn, perf.coll_msg_size_bytes, perf.coll_exec_time_us, stamp, line))
        elif record.p2p_perf is not None:
            transferred += 1
            transfers.setdefault((head.id, head.rank), line)
        else:
            unread += 1
    lines = np.array(rows, np.float64).reshape(-1, 6)
    return Columns(
        tuple(names),
        lines[:, 0].astype(np.int64),
        _ints(lines[:, 1]),
        _ints(lines[:, 2]),
        lines[:, 3],
        _ints(lines[:, 4]),
        lines[:, 5].astype(np.int64),
        tuple((*key, line) for key, line in transfers.items()),
        transferred,
        unread,
    )
