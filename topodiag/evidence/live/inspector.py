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

import itertools
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace

import msgspec
import numpy as np
import numpy.typing as npt

from topodiag.evidence.live.inspector_calls import Calls, Records
from topodiag.evidence.live.inspector_metrics import MAX_US, InspectorMetrics
from topodiag.evidence.nccl_log.grammar.numbers import u64_hex
from topodiag.evidence.registry import HEADS
from topodiag.evidence.signatures.literals import parts_of_lines
from topodiag.model.inspector import Inspection, InspectorCommunicator, InspectorMember
from topodiag.model.provenance import MAX_QUOTE, Origin

OF_GPU = ("kernel", "gpu")
"""How sources of time begin that are of the kernel; others hold the time in the queue of the stream as well."""


class _Header(msgspec.Struct, gc=False):
    id: str = ""
    rank: int = -1
    n_ranks: int = 0
    nnodes: int = 0
    comm_name: str = ""


class _Writer(msgspec.Struct, gc=False):
    dump_timestamp_us: float = 0
    hostname: str = ""
    pid: int = -1


class Perf(msgspec.Struct, gc=False):
    """A collective of one rank."""

    coll: str = ""
    coll_sn: float = -1
    coll_msg_size_bytes: float = -1
    coll_exec_time_us: float = 0
    coll_timing_source: str = ""
    coll_busbw_gbs: float = 0.0


class _Record(msgspec.Struct, gc=False):
    header: _Header
    metadata: _Writer = msgspec.field(default_factory=_Writer)
    coll_perf: Perf | None = None
    p2p_perf: Perf | None = None


RECORDS = msgspec.json.Decoder(_Record, strict=False)


BLOCK_BYTES = 4 << 20
MAX_LINE = 1 << 20
"""A verbose record of 64 channels has 20 KB."""
MAX_COMMUNICATORS = 200_000
MAX_RANKS = 1 << 24
MAX_NAME = 80
US_OF_HOUR = 3_600_000_000


class InspectorReader:
    """Reads files one after the other, and holds what they say together."""

    def __init__(self) -> None:
        self._known: dict[str, InspectorCommunicator] = {}
        """By id, as the first record names it."""
        self._members: dict[str, dict[int, InspectorMember]] = defaultdict(dict)
        self._calls = Calls()
        self._metrics = InspectorMetrics()
        self._records = self._transfers = self._untimed = self._unread = 0

    def read(self, blocks: Iterable[bytes], source: str) -> int:
        """The records of one file, or the samples of one of metrics. Returns their number."""
        blocks = iter(blocks)
        begin = next(blocks, b"")
        blocks = itertools.chain((begin,), blocks)
        metrics = self._metrics
        is_answer = HEADS["inspector-query"].shows_in(begin)
        if not is_answer:
            blocks = parts_of_lines(blocks, MAX_LINE, BLOCK_BYTES)
        if is_answer or HEADS["inspector-metrics"].shows_in(begin):
            return metrics.read(blocks, source, is_answer=is_answer)
        before = self._records + self._transfers
        number = 1
        for block in blocks:
            self._read_block(block, source, number)
            number += block.count(b"\n")
        return self._records + self._transfers - before

    def _read_block(self, block: bytes, source: str, number: int) -> None:
        """The records of a block of whole lines that begins on this line."""
        series: dict[tuple[str, int, str, str], tuple[_Header, Perf, list[tuple[float, float, float, float]]]] = {}
        for at, line in enumerate(block.split(b"\n"), number):
            if not line.strip():
                continue
            try:
                record = RECORDS.decode(line)
            except (msgspec.MsgspecError, ValueError, RecursionError):
                self._unread += 1
                continue
            head, perf = record.header, record.coll_perf
            if perf is not None:
                key = head.id, head.rank, perf.coll, perf.coll_timing_source
                if key not in series:
                    series[key] = head, perf, []
                    self.meet(record, source, at, line)
                stamp = record.metadata.dump_timestamp_us
                series[key][2].append((perf.coll_sn, perf.coll_msg_size_bytes, perf.coll_exec_time_us, stamp))
            elif record.p2p_perf is not None:
                self._transfers += 1
                self.meet(record, source, at, line)
            else:
                self._unread += 1
        for head, perf, rows in series.values():
            if head.rank in self._members.get(head.id, ()):
                self.take(head, perf, np.array(rows, np.float64))
            else:
                self._unread += len(rows)

    def take(self, head: _Header, perf: Perf, rows: npt.NDArray[np.float64]) -> None:
        """Take the calls of one rank, communicator and collective, whose first record is `perf`."""
        self._records += len(rows)
        # Doubles hold sequence numbers and microseconds since the epoch (2^51) to the unit.
        numbers, sizes, _, stamps = np.clip(rows, -1, 2.0**62).astype(np.int64).T
        time_us = rows[:, 2]
        valid = (time_us > 0) & (time_us < MAX_US) & (sizes > 0) & (numbers >= 0) & (numbers < 1 << 53)
        if not perf.coll_timing_source.startswith(OF_GPU):
            self._untimed += int(valid.sum())
        elif valid.any():
            hours = np.clip(stamps[valid] // US_OF_HOUR, 0, 1 << 30).astype(np.int32)
            own = Records(numbers[valid], time_us[valid].astype(np.float32), sizes[valid], hours)
            self._calls.add(self._known[head.id].hash, perf.coll[:MAX_NAME], head.rank, own, _factor(perf))

    def meet(self, record: _Record, source: str, number: int, line: bytes) -> None:
        """Remember a rank by its first record, where that says who it is."""
        head = record.header
        if head.rank in self._members.get(head.id, ()):
            return
        value = u64_hex(head.id)
        if not value or not 0 <= head.rank < MAX_RANKS or len(self._known) >= MAX_COMMUNICATORS:
            return
        name = "" if head.comm_name == "unknown" else head.comm_name[:MAX_NAME]
        self._known.setdefault(head.id, InspectorCommunicator(value, name, head.n_ranks, head.nnodes, {}))
        origin = Origin(source, number, line.decode("utf-8", "replace")[:MAX_QUOTE])
        host, pid = record.metadata.hostname[:255], record.metadata.pid
        self._members[head.id][head.rank] = InspectorMember(head.rank, host, pid, origin)

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
            self._transfers + metrics.most("transfers"),
            self._untimed,
            self._unread + metrics.unread,
            self._calls.one_in,
            metrics.samples + metrics.rates,
            metrics.most("unclocked"),
            metrics.others,
            metrics.of_other_jobs,
            metrics.full,
            rates=metrics.rates,
        )


def _factor(perf: Perf) -> float:
    """Bus bandwidth over bytes and time of one record, which is the same for all of its collective; 0 unknown. Its size
    is that of one rank: for AllGather and ReduceScatter the Inspector counts as much of each (inspectorComputeOpBw)."""
    if not 0 < perf.coll_msg_size_bytes < float("inf"):
        return 0.0
    factor = perf.coll_busbw_gbs * perf.coll_exec_time_us * 1e3 / perf.coll_msg_size_bytes
    return factor if 0 < factor < MAX_RANKS else 0.0
