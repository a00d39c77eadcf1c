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

from topodiag.lazy import dataclass, regex
from topodiag.model.diagnostics import Diagnosis
from topodiag.model.provenance import MAX_QUOTE, Origin
from topodiag.model.step_waits import StepWaits

MAX_BYTES = 64 << 20
MAX_LINES = 100_000
MAX_LINE = 4000

_LINE = regex(r"NCCL DIAG \[(OK|INFO)\] {1,3}(?:(S?Xid)(?= [0-9])|([^:]{1,60}):) (.{1,3000})")
_HEAD = regex(r"(\S{1,255}):([0-9]{1,10})\Z")
_COMM = regex(r"(?:across ([0-9]{1,9}) ranks\)? )?in comm 0x([0-9a-fA-F]{1,16})")
_RANKS = regex(r"rank\(s\) \{([0-9, ]{1,2000})")
_RANK = regex(r"\b(?:(?:srcRank|dstRank|rank)=|rank (?=[0-9]{1,9} \([^()]{1,255}\): ))([0-9]{1,9})(?![0-9])")


def read_diagnostics(text: str, source: str) -> tuple[Diagnosis, ...]:
    """The lines with a tag, in their order. A line of values has the communicator of the line above it."""
    diagnosis: list[Diagnosis] = []
    comm, size = 0, -1
    for number, line in enumerate(text.split("\n"), 1):
        if "NCCL DIAG" not in line or len(diagnosis) >= MAX_LINES:
            continue
        match = _LINE.search(line[:MAX_LINE])
        if match is None:
            comm, size = (0, -1) if "===" in line else (comm, size)
            continue
        tag, event, named_subject, value = match.groups()
        subject = event or named_subject
        head = _HEAD.match((line[: match.start()].split() or [""])[-1])
        host, pid = head.groups() if head is not None else ("", "")
        named = _COMM.search(value)
        if named is not None:
            comm, size = int(named[2], 16), int(named[1]) if named[1] else -1
        listed = _RANKS.search(value)
        ranks = listed[1].replace(" ", "").split(",") if listed is not None else _RANK.findall(value)
        diagnosis.append(
            Diagnosis(
                tag == "OK",
                subject,
                value.rstrip(),
                comm,
                size,
                tuple(dict.fromkeys(int(rank) for rank in ranks if rank and len(rank) < 10)),
                host,
                int(pid) if pid else -1,
                Origin(source, number, line.strip()[:MAX_QUOTE]),
            )
        )
    return tuple(diagnosis)


TRACE_MAX_BYTES = 256 << 20
TRACE_MAX_LINE = 2000
MAX_OPEN = 100_000
MAX_RANKS = 10_000

STATES = ("SendGpuWait", "SendPeerWait", "SendWait", "RecvWait", "RecvFlushWait", "RecvGpuWait")
_EVENT = regex(
    r'\{"name": "([^"]{1,80})", "cat": "(\w{1,20})", "ph": "([be])", "id": ([0-9]{1,18}), "pid": ([0-9]{1,10}),'
    r' "tid": [0-9]{1,10}, "ts": (-?[0-9]{1,18}(?:\.[0-9]{1,9})?)'
)
_OWNER = regex(r'"CommHash": ([0-9]{1,20}), "Rank": ([0-9]{1,9})(?![0-9])')
_PEER = regex(r'"Peer": ([0-9]{1,9})(?![0-9])')


@dataclass(slots=True)
class _Sums:
    pid: int
    origin: Origin
    us: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    peers: dict[int, float] = field(default_factory=lambda: defaultdict(float))


class _Waits:
    """Waits that have begun, and whose they are: the rank of the last collective, and the last peer."""

    def __init__(self) -> None:
        self.owner: _Sums | None = None
        self.peer = -1
        self._begun: dict[tuple[str, str], float] = {}

    def begin(self, name: str, ident: str, us: float) -> None:
        if len(self._begun) < MAX_OPEN:
            self._begun[name, ident] = us

    def end(self, name: str, ident: str, us: float) -> None:
        start = self._begun.pop((name, ident), None)
        if start is None or self.owner is None or us <= start:
            return
        self.owner.us[name] += us - start
        if name == "SendPeerWait" and self.peer >= 0:
            self.owner.peers[self.peer] += us - start


def read_trace(text: str, source: str) -> tuple[StepWaits, ...]:
    """The waits of each rank that the trace has collectives or transfers of."""
    by_key: dict[tuple[int, int], _Sums] = {}
    waits = _Waits()
    for number, whole in enumerate(text.split("\n"), 1):
        line = whole[:TRACE_MAX_LINE]
        match = _EVENT.match(line)
        if match is None:
            continue
        name, category, phase, ident, pid, ts = match.groups()
        if category in ("COLL", "P2P") and phase == "b":
            named = _OWNER.search(line)
            if named is not None and len(by_key) < MAX_RANKS:
                key = (int(named[1]), int(named[2]))
                waits.owner = by_key.setdefault(key, _Sums(int(pid), Origin(source, number, line.strip()[:MAX_QUOTE])))
        elif category == "PROXY" and phase == "b":
            at = _PEER.search(line)
            waits.peer = int(at[1]) if at is not None else -1
        elif category == "NET" and name in STATES and phase == "b":
            waits.begin(name, ident, float(ts))
        elif category == "NET" and name in STATES:
            waits.end(name, ident, float(ts))
    return tuple(
        StepWaits(comm, rank, sums.pid, dict(sums.us), dict(sums.peers), sums.origin)
        for (comm, rank), sums in by_key.items()
        if sums.us
    )
