"""Records of NCCL's Inspector as columns, from a block of JSON lines: one that is broken costs itself."""

from __future__ import annotations

import msgspec
import numpy as np
import numpy.typing as npt

from topodiag.lazy import dataclass

OF_GPU = ("kernel", "gpu")
"""How sources of time begin that are of the kernel; others hold the time in the queue of the stream as well."""
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


def _ints(values: npt.NDArray[np.float64]) -> Ints:
    """Doubles hold sequence numbers and microseconds since the epoch (2^51) to the unit."""
    return np.clip(values, -1, 2.0**62).astype(np.int64)


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


def columns(block: bytes) -> Columns:
    """The records of a block of whole lines."""
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
