"""Events: what a program, an agent or a person reports in one sentence, one type for all of them; and progress, the
proof of life between them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import field
from enum import StrEnum
from math import nan

from topodiag.lazy import dataclass
from topodiag.model.provenance import Origin
from topodiag.words.own_data import patterns

Value = str | int | float


class Trust(StrEnum):
    """Who speaks: the program that met the fault, an agent or scheduler that looked, or a person."""

    PROGRAM = "program"
    AGENT = "agent"
    PERSON = "person"


class Scope(StrEnum):
    """What an event is about."""

    NODE = "node"
    DEVICE = "device"
    RANK = "rank"
    JOB = "job"
    COMMUNICATOR = "communicator"


REMARK = "host.remark"
"""What a tool says that is wrong with a part and no check judges."""
OUT_OF_SERVICE = "host.out_of_service"
"""A scheduler or a health check holds a node out of service and names no part that a check judges."""
SCHEDULED = "host.scheduled"
"""How a scheduler lists a node: no report of a fault, with `state`, `gres` and `reason`."""
NODE_DOWN = "job.node_down"
"""A node of a job that its scheduler lists as down."""

NO_FIELDS: Mapping[str, Value] = {}


@dataclass(frozen=True, slots=True)
class Event:
    """One sentence of a text, as an entry of the catalogue understands it.

    `kind` is the name that checks ask for (`gpudirect.module_missing`); `signature` the id of the entry. `fields` hold
    what the sentence names, by the fixed names of `evidence/signatures/entry.py`. `host`, `rank` and `pid` are those
    that the launcher or the logger put before the line; "" and -1 where they say nothing. `time_s` is seconds since the
    epoch, or since boot for the kernel's own stamp; None where the line has none. `count` says how often the same
    sentence with the same fields stands in the text.

    Kinds of the kernel's messages: xid, sxid, gpu-lost (fallen off the bus, without an Xid), gpu-init (the driver
    could not start a GPU), gpu-reset (it refuses work on a GPU until a reset), gsp (the processor of a GPU does not
    answer its driver), aer, mlx5, link, link-set (somebody takes a link down or pulls a device, or a driver or the
    machine starts), nvrm, pcie-bandwidth, iommu (how it is set up), iommu-fault (an access that it refused), cpu (the
    processor, its memory, or the kernel itself), storage (a server or disk that does not answer, or does again),
    hung-task, amdgpu (its driver meets trouble with a GPU), amdgpu-error (another line that it calls an error). Of
    them an agent tells what it remembers, and nothing of what came before (the last Xid of a GPU).
    """

    kind: str
    signature: str
    text: str
    origin: Origin
    fields: Mapping[str, Value] = field(default_factory=lambda: NO_FIELDS)
    scope: Scope = Scope.NODE
    trust: Trust = Trust.PROGRAM
    host: str = ""
    rank: int = -1
    pid: int = -1
    time_s: float | None = None
    count: int = 1
    date: str = ""
    """Month, day and clock as syslog writes them, without a year: `Nov 5 12:43:10`; a time of ISO 8601 with the offset
    of its zone from UTC; "" where the line has neither."""

    @property
    def bus_id(self) -> str | None:
        """The device that the sentence is about."""
        named = self.fields.get("bus_id")
        return str(named) if named else None

    @property
    def code(self) -> int | None:
        """The number of an Xid or SXid."""
        number = self.fields.get("code")
        return int(number) if number is not None else None


LEAST_PROGRESS = 3
"""Lines of progress that prove that a job works: one or two may come out of a buffer."""
MOST_BUFFERED = 200
"""Lines that a program's buffer still held when it ended: they stand below the traceback, which has no buffer."""


@dataclass(frozen=True, slots=True)
class Progress:
    """Lines of one kind of one text: steps of a training, throughput of a server, requests served, sizes finished by a
    benchmark, collectives finished.

    `kind` names what advances (`progress.step`), `number` how many such lines there are, `first` and `last` where they
    stand. Times are seconds since the epoch, NaN where the lines have none; `longest_gap_s` is the longest time between
    two neighbours, NaN with fewer than two times. `host` and `rank` are those before the lines, "" and -1 without.
    """

    kind: str
    number: int
    first: Origin
    last: Origin
    first_s: float = nan
    last_s: float = nan
    longest_gap_s: float = nan
    host: str = ""
    rank: int = -1


PROGRESS_WORDS = {
    "progress.request": "requests served",
    "progress.throughput": "lines of throughput",
    "progress.step": "lines of steps",
    "progress.size": "sizes measured",
}
_CLOCK = patterns("model/lines", "lines")["clock"]


def says_work(progress: Sequence[Progress]) -> str:
    """`1,200 requests served, last seen at work at 12:06:30`: what texts show of work done, by its most telling
    kind of lines; "" where there are too few to prove any."""
    numbers = Counter[str]()
    for counted in progress:
        numbers[PROGRESS_WORDS.get(counted.kind, "lines of progress")] += counted.number
    if numbers.total() < LEAST_PROGRESS:
        return ""
    what = min(numbers, key=[*PROGRESS_WORDS.values(), "lines of progress"].index)
    ordered = sorted(progress, key=lambda counted: (max(0.0, counted.last_s), counted.last.line or 0), reverse=True)
    clock = next(filter(None, (_CLOCK.search(counted.last.text) for counted in ordered)), None)
    last = f"at {clock[1]}" if clock else f"on line {ordered[0].last.line or 0:,}"
    return f"{numbers[what]:,} {what}, last seen at work {last}"
