"""`NCCL DIAG` lines, on the standard output of rank 0 or as the answer of `ncclras -D`.

    node042:12345 NCCL DIAG [OK]   GPU inventory: 8x NVIDIA H100 per node consistent across 8 ranks in comm 0x1234
    node042:12345 NCCL DIAG [INFO] NCCL environment: NCCL_BUFFSIZE=8388608 on rank(s) {8,9,10,11}

    node042:12345 NCCL DIAG [INFO] Xid 79 detected 1 time on host node043. For the recommended response, see ..
    node042:12345 NCCL DIAG [INFO] net bw: tx rank 2 (node043): 204.6 Gbit/s, >30% off median 391.8 Gbit/s in comm 0x12

SOURCE: NCCL 2.31 and 2.32 src/ras/diagnostics*.cc, src/diagnostics/*.cc; RCCL's port says HIP for CUDA and XGMI for
NVLink.

The Chrome trace of NCCL's example profiler plug-in: what each step of a transfer waited for, summed by rank.

    {"name": "RecvWait", "cat": "NET", "ph": "b", "id": 7, "pid": 4711, "tid": 1, "ts": 35.8, "args": {"Step": 0}},
    {"name": "RecvWait", "cat": "NET", "ph": "e", "id": 7, "pid": 4711, "tid": 1, "ts": 98.2},

Events stand behind the collective that they are of, which names communicator (as a decimal) and rank. The file may lack
its end. SOURCE: NCCL ext-profiler/example (2.23 to 2.28), plugins/profiler/example/print_event.cc (2.29 and later).
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import field

import msgspec

from topodiag.lazy import dataclass
from topodiag.model.diagnostics import Diagnosis, StepWaits
from topodiag.model.provenance import MAX_QUOTE, Origin
from topodiag.words.own_data import patterns

MAX_BYTES = 64 << 20
MAX_LINES = 100_000
MAX_LINE = 4000

_LIKE = patterns("evidence/live/lines", "diagnostics")


def read_diagnostics(text: str, source: str) -> tuple[Diagnosis, ...]:
    """The lines with a tag, in their order. A line of values has the communicator of the line above it."""
    diagnosis: list[Diagnosis] = []
    comm, size = 0, -1
    for number, line in enumerate(text.split("\n"), 1):
        if "NCCL DIAG" not in line or len(diagnosis) >= MAX_LINES:
            continue
        match = _LIKE["line"].search(line[:MAX_LINE])
        if match is None:
            comm, size = (0, -1) if "===" in line else (comm, size)
            continue
        tag, event, named_subject, value = match.groups()
        subject = event or named_subject
        named = _LIKE["comm"].search(value)
        if named is not None:
            comm, size = int(named[2], 16), int(named[1]) if named[1] else -1
        listed = value.partition("rank(s) {")[2].partition("}")[0]
        ranks = listed.replace(" ", "").split(",") if listed else _LIKE["rank"].findall(value)
        diagnosis.append(
            Diagnosis(
                tag == "OK",
                subject,
                value.rstrip(),
                comm,
                size,
                tuple(dict.fromkeys(int(rank) for rank in ranks if rank.isdecimal() and len(rank) < 10)),
                Origin(source, number, line.strip()[:MAX_QUOTE]),
            )
        )
    return tuple(diagnosis)


TRACE_MAX_BYTES = 256 << 20
TRACE_MAX_LINE = 2000
MAX_OPEN = 100_000
MAX_RANKS = 10_000

STATES = ("SendGpuWait", "SendPeerWait", "SendWait", "RecvWait", "RecvFlushWait", "RecvGpuWait")


class _Args(msgspec.Struct, rename={"comm": "CommHash", "rank": "Rank", "peer": "Peer"}):
    comm: int = -1
    rank: int = -1
    peer: int = -1


class _Event(msgspec.Struct):
    name: str
    cat: str
    ph: str
    id: int
    ts: float
    args: _Args = msgspec.field(default_factory=_Args)


_EVENTS = msgspec.json.Decoder(_Event)


@dataclass(slots=True)
class _Sums:
    origin: Origin
    us: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    peers: dict[int, float] = field(default_factory=lambda: defaultdict(float))

    def add(self, name: str, waited_us: float, peer: int) -> None:
        if waited_us > 0:
            self.us[name] += waited_us
            if name == "SendPeerWait" and peer >= 0:
                self.peers[peer] += waited_us


def _event(line: str) -> _Event | None:
    try:
        return _EVENTS.decode(line.encode()) if line.startswith('{"name"') else None
    except (msgspec.MsgspecError, ValueError):
        return None


def read_trace(text: str, source: str) -> tuple[StepWaits, ...]:
    """The waits of each rank that the trace has collectives or transfers of."""
    by_key: dict[tuple[int, int], _Sums] = {}
    begun: dict[tuple[str, int], float] = {}
    owner: _Sums | None = None
    peer = -1
    for number, whole in enumerate(text.split("\n"), 1):
        event = _event(whole[:TRACE_MAX_LINE].strip(", \r"))
        if event is None:
            continue
        args, begins = event.args, event.ph == "b"
        if event.cat in ("COLL", "P2P") and begins and args.rank >= 0 and len(by_key) < MAX_RANKS:
            owner = _Sums(Origin(source, number, whole.strip()[:MAX_QUOTE]))
            owner = by_key.setdefault((args.comm, args.rank), owner)
        elif event.cat == "PROXY" and begins:
            peer = args.peer
        elif event.cat == "NET" and event.name in STATES and begins and len(begun) < MAX_OPEN:
            begun[event.name, event.id] = event.ts
        elif event.cat == "NET" and event.name in STATES and not begins and owner is not None:
            owner.add(event.name, event.ts - begun.pop((event.name, event.id), event.ts), peer)
    return tuple(
        StepWaits(comm, rank, dict(sums.us), dict(sums.peers), sums.origin)
        for (comm, rank), sums in by_key.items()
        if sums.us
    )
