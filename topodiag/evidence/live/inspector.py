"""NCCL's Inspector (a profiler plug-in, 2.28 and later): JSON lines, one for each collective of each rank.

    {"header":{"id":"0x7f8c496ae9f661","rank":2,"n_ranks":8,"nnodes":1},"metadata":{...,"dump_timestamp_us":1748030377,
     "hostname":"node1","pid":1966},"coll_perf":{"coll":"AllReduce","coll_sn":1407,"coll_msg_size_bytes":17179869184,
     "coll_exec_time_us":61974,"coll_timing_source":"kernel_gpu","coll_algobw_gbs":277.2,"coll_busbw_gbs":485.1}}

SOURCE: NCCL ext-profiler/inspector (2.28), plugins/profiler/inspector/inspector_json.cc (2.29 to 2.31). The version
of the format is `v4.0` in all of them although keys were added: what is there is taken by its key, and what is not
known is passed over. `coll_sn` counts by communicator and collective (src/plugin/profiler.cc, `seqNumber[func]`).

The records are aggregated while they are read (inspector_calls.py): a month of a large job has 10^8 of them.
A line that is broken costs itself.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace

import msgspec
import numpy as np
import numpy.typing as npt

from topodiag.evidence.heads import HEADS
from topodiag.evidence.live.inspector_calls import Calls, Records
from topodiag.evidence.live.inspector_metrics import InspectorMetrics
from topodiag.lazy import dataclass
from topodiag.model.inspector import Inspection, InspectorCommunicator, InspectorMember
from topodiag.model.provenance import MAX_QUOTE, Origin

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


BLOCK_BYTES = 4 << 20
MAX_LINE = 1 << 20
"""A verbose record of 64 channels has 20 KB."""
MAX_COMMUNICATORS = 200_000
MAX_RANKS = 1 << 24
MAX_NAME = 80
MAX_US = 1e12
US_OF_HOUR = 3_600_000_000


class _WholeHeader(_Header):
    n_ranks: int = 0
    nnodes: int = 0
    comm_name: str = ""


class _Writer(msgspec.Struct):
    hostname: str = ""
    pid: int = -1


class _First(msgspec.Struct):
    header: _WholeHeader
    metadata: _Writer = msgspec.field(default_factory=_Writer)


class _Rates(msgspec.Struct):
    coll_busbw_gbs: float = 0.0
    coll_exec_time_us: float = 0.0
    coll_msg_size_bytes: float = 0.0


class _Rated(msgspec.Struct):
    coll_perf: _Rates


_RATES = msgspec.json.Decoder(_Rated, strict=False)
_FIRSTS = msgspec.json.Decoder(_First, strict=False)


class InspectorReader:
    """Reads files one after the other, and holds what they say together."""

    def __init__(self) -> None:
        self._known: dict[str, InspectorCommunicator] = {}
        """By id, as the first record names it."""
        self._members: dict[str, dict[int, InspectorMember]] = defaultdict(dict)
        self._met_ranks: set[tuple[str, int]] = set()
        self._calls = Calls()
        self._metrics = InspectorMetrics()
        self._records = self._transfers = self._untimed = self._unread = 0

    def read(self, blocks: Iterable[bytes], source: str) -> int:
        """The records of one file, or the samples of one of metrics. Returns their number."""
        blocks = iter(blocks)
        first = next(blocks, b"")
        blocks = itertools.chain((first,), blocks)
        metrics = self._metrics
        is_answer = HEADS["inspector-query"].shows_in(first)
        if is_answer or HEADS["inspector-metrics"].shows_in(first):
            return metrics.read(blocks if is_answer else _whole_lines(blocks), source, is_answer=is_answer)
        before = self._records + self._transfers
        number = 1
        for block in _whole_lines(blocks):
            read = columns(block)
            self._unread += read.unread
            self._transfers += read.transferred
            for name, rank, line in read.transfers:
                if (name, rank) not in self._met_ranks:
                    self._met(block, line, source, number)
            self.take(read, block, source, number)
            number += block.count(b"\n")
        return self._records + self._transfers - before

    def take(self, read: Columns, block: bytes, source: str, number: int) -> None:
        """Take the records of a block of lines: one rank, communicator and collective after the other."""
        if not read.names:
            return
        order = np.argsort(read.who, kind="stable")
        ends = np.cumsum(np.bincount(read.who, minlength=len(read.names)))
        for (name, rank, collective, timed), rows in zip(read.names, np.split(order, ends[:-1]), strict=True):
            if (name, rank) not in self._met_ranks and not self._met(block, int(read.lines[rows[0]]), source, number):
                self._unread += len(rows)
                continue
            self._records += len(rows)
            valid = (read.time_us[rows] > 0) & (read.time_us[rows] < MAX_US) & (read.size[rows] > 0)
            rows = rows[valid & (read.number[rows] >= 0) & (read.number[rows] < 1 << 53)]
            if not timed.startswith(OF_GPU):
                self._untimed += len(rows)
            elif rows.size:
                hours = np.clip(read.stamp_us[rows] // US_OF_HOUR, 0, 1 << 30).astype(np.int32)
                self._calls.add(
                    self._known[name].hash,
                    collective[:MAX_NAME],
                    rank,
                    Records(read.number[rows], read.time_us[rows].astype(np.float32), read.size[rows], hours),
                    functools.partial(_factor, block, int(read.lines[rows[0]])),
                )

    def _met(self, block: bytes, at: int, source: str, number: int) -> bool:
        """Remember a rank by its first record; False where that does not say who it is."""
        line = block.split(b"\n", at + 1)[at]
        try:
            first = _FIRSTS.decode(line)
        except (msgspec.MsgspecError, ValueError, RecursionError):
            return False
        head = first.header
        value = _number(head.id)
        if value is None or not 0 <= head.rank < MAX_RANKS or len(self._known) >= MAX_COMMUNICATORS:
            return False
        name = "" if head.comm_name == "unknown" else head.comm_name[:MAX_NAME]
        self._known.setdefault(head.id, InspectorCommunicator(value, name, head.n_ranks, head.nnodes, {}))
        quote = line.decode("utf-8", "replace")[:MAX_QUOTE]
        host, pid = first.metadata.hostname[:255], first.metadata.pid
        self._members[head.id][head.rank] = InspectorMember(head.rank, host, pid, Origin(source, number + at, quote))
        self._met_ranks.add((head.id, head.rank))
        return True

    def found(self) -> Inspection:
        """All that was read, by communicator."""
        communicators = []
        for name, known in self._known.items():
            members = dict(sorted(self._members[name].items()))
            nnodes = known.nnodes if known.nnodes > 0 else len({member.host for member in members.values()})
            comm = replace(known, nranks=max(known.nranks, len(members)), nnodes=nnodes, members=members)
            communicators.append(self._calls.summed(comm, len(members)))
        metrics = self._metrics
        communicators += metrics.communicators()
        communicators.sort(key=lambda communicator: (-communicator.nranks, communicator.name, communicator.hash))
        return Inspection(
            tuple(communicators),
            self._records,
            self._transfers + metrics.transfers,
            self._untimed,
            self._unread + metrics.unread,
            self._calls.one_in,
            metrics.samples + metrics.rates,
            metrics.unclocked,
            metrics.others,
            metrics.of_other_jobs,
            metrics.full,
            rates=metrics.rates,
        )


def _factor(block: bytes, at: int) -> float:
    """Bus bandwidth over bytes and time of one record, which is the same for all of its collective; 0 unknown. Its size
    is that of one rank: for AllGather and ReduceScatter the Inspector counts as much of each (inspectorComputeOpBw)."""
    try:
        perf = _RATES.decode(block.split(b"\n", at + 1)[at]).coll_perf
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return 0.0
    if not 0 < perf.coll_msg_size_bytes < float("inf"):
        return 0.0
    factor = perf.coll_busbw_gbs * perf.coll_exec_time_us * 1e3 / perf.coll_msg_size_bytes
    return factor if 0 < factor < MAX_RANKS else 0.0


def _number(text: str) -> int | None:
    digits = text.removeprefix("0x").removeprefix("0X")
    return int(digits, 16) if re.fullmatch(r"[0-9A-Fa-f]{1,16}", digits) else None


def _whole_lines(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Blocks of whole lines, of some megabytes. What has no end for long is no line and passed over."""
    rest: list[bytes] = []
    size = 0
    for block in blocks:
        rest.append(block)
        size += len(block)
        if size < BLOCK_BYTES:
            continue
        whole = b"".join(rest)
        end = whole.rfind(b"\n") + 1
        if end:
            yield whole[:end]
        tail = whole[end:]
        rest, size = ([tail], len(tail)) if len(tail) <= MAX_LINE else ([], 0)
    last = b"".join(rest)
    if last:
        yield last
