"""What each source says happened, and when by its own clock: the raw events of the timeline."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

from topodiag.lazy import dataclass, regex
from topodiag.model.clock_text import EPOCH_S, booted, captured, is_wall, stamp
from topodiag.model.events import Event
from topodiag.model.node import Node
from topodiag.model.provenance import Origin
from topodiag.model.result import Case, Identity
from topodiag.words.units import in_s

if TYPE_CHECKING:
    from topodiag.model.job import Communicator, FlightRecord, Job
    from topodiag.model.job import Event as JobEvent
    from topodiag.model.ras import RasAnswer
    from topodiag.model.step_pace import Pace

KERNEL, LOG, CAPTURE, FLIGHT, RAS = "kernel log", "NCCL log", "bundle", "flight recorder", "NCCL RAS"
_ZONED = regex(r"\d\d:\d\d:\d\d(?:[.,]\d{1,9})?\s?(?:Z|[+-]\d\d:?\d\d)(?![\d:])")
_MOST_TEXT = 160
_MOST_COMMUNICATORS = 16
"""Communicators whose init is told, the largest ones: a job has thousands, and their init is one time."""
_NO_MOMENT = ("iommu", "link-set", "pcie-bandwidth")
"""Kinds of events of a node that are no moment: how the machine is set up, and what others say without a time."""
_DRIFT = 50e-6
"""Seconds that a kernel's monotonic clock drifts from the wall in each second: crystals are good to some 50 ppm."""


@dataclass(frozen=True, slots=True)
class ClockedEvent:
    """One event by the clock of its source on its host. `time` is seconds of the epoch as that clock shows them, None
    without one; `utc` whether its zone is known, so that it is UTC. `same` is equal for two prints of one event."""

    source: str
    host: str
    what: str
    time: float | None
    utc: bool = False
    rank: int = -1
    stamp: str = ""
    within_s: float = 0.0
    origin: Origin | None = None
    count: int = 1
    same: str = ""


def said_by(case: Case, identity: Identity) -> list[ClockedEvent]:
    """All that the case tells of times, host by host as the case calls them. Never raises."""
    of_nodes = (_of_node(node, identity.name(node.host)) for node in case.nodes)
    return list(chain(*of_nodes, *(_of_job(job, identity) for job in case.jobs)))


# --- captures and kernel logs -------------------------------------------------------------------------------------


def _of_node(node: Node, host: str) -> Iterator[ClockedEvent]:
    taken, start = captured(node), booted(node)
    if taken is not None:
        when, what = node.time, "the node is captured"
        yield ClockedEvent(CAPTURE, host, what, taken, True, stamp=when.get(""), within_s=1.0, origin=when.origin)
    if start is not None:
        yield ClockedEvent(CAPTURE, host, "the node boots", start, True, within_s=1.0, origin=node.os.uptime_s.origin)
    names = {nic.bus_id: nic.name for nic in node.nics if nic.bus_id}
    for event in node.events:
        if event.kind not in _NO_MOMENT:
            yield _kernel(event, host, start, names.get(event.bus_id or "", ""))


def _kernel(event: Event, host: str, start: float | None, nic: str) -> ClockedEvent:
    """A message of the kernel: by the wall, or by seconds since boot, which a capture ties to the wall."""
    same = f"gpu {event.bus_id}" if event.kind in ("xid", "gpu-lost") and event.bus_id else f"port {nic}" if nic else ""
    shown = event.time_s
    message = ClockedEvent(KERNEL, host, event.text[:_MOST_TEXT], None, origin=event.origin)
    if shown is None:
        return message
    if shown >= EPOCH_S:
        zoned = _ZONED.search(event.origin.text[:80]) is not None
        return replace(message, time=shown, utc=zoned, stamp=stamp(shown), within_s=1.0, same=same)
    message = replace(message, stamp=f"{in_s(shown)} after boot")
    if start is None:
        return message
    # Its clock is the capture's: counted from its boot, which is UTC.
    within_s = 1.0 + shown * _DRIFT
    return replace(message, source=CAPTURE, time=start + shown, utc=True, within_s=within_s, same=same)


# --- jobs ---------------------------------------------------------------------------------------------------------


def _of_job(job: Job, identity: Identity) -> Iterator[ClockedEvent]:
    for communicator in sorted(job.communicators, key=lambda communicator: -communicator.nranks)[:_MOST_COMMUNICATORS]:
        yield from _init(job, communicator, identity)
    for event in job.events:
        if event.level != "UNWIND":
            yield _event(job, event, identity)
    for record in job.flight:
        yield from _flight(job, record, identity)
    for answer in job.ras:
        yield from _ras(answer, identity)
    for pace in job.paces[:1]:
        yield from _steps(job, pace, identity)


def _steps(job: Job, pace: Pace, identity: Identity) -> Iterator[ClockedEvent]:
    """When its steps became slower or faster."""
    from topodiag.model.step_pace import says_change  # noqa: PLC0415 - numpy, which only jobs need

    change = pace.change
    if change is None or change[1].time is None:
        return
    rank = job.by_rank.get(pace.series.rank)
    host = pace.series.host or (rank.host if rank is not None else "")
    began = change[1]
    origin = next((step.origin for step in pace.series.steps if step.number == began.first), None)
    yield ClockedEvent(LOG, identity.name(host), says_change(pace, timed=False), began.time, rank=pace.series.rank,
               stamp=stamp(began.time or 0.0), within_s=1.0, origin=origin)  # fmt: skip


def _init(job: Job, communicator: Communicator, identity: Identity) -> Iterator[ClockedEvent]:
    """The end of init by each host's clock, one moment a host."""
    if len(communicator.completed_ts) != len(communicator.ranks):
        return
    last: dict[str, float] = {}
    for world, time in zip(communicator.ranks.tolist(), communicator.completed_ts.tolist(), strict=True):
        rank = job.by_rank.get(int(world))
        if rank is not None and rank.host and math.isfinite(time):
            last[rank.host] = max(time, last.get(rank.host, time))
    for host, time in last.items():
        where, what = identity.name(host), f"init of {communicator.label} is complete ({communicator.nranks} ranks)"
        yield ClockedEvent(LOG, where, what, time, stamp=stamp(time), within_s=1.0, origin=communicator.origin)


def _event(job: Job, event: JobEvent, identity: Identity) -> ClockedEvent:
    """A line that tells of something wrong. A watchdog tells how long it waited: its time is the start of the wait."""
    host, bus = event.host, event.details.get("bus_id", "")
    rank = job.by_rank.get(event.rank)
    if rank is not None:
        host, bus = host or rank.host, bus or rank.bus_id
    time = event.ts if is_wall(event.ts) else None
    what, shown, within = event.text[:_MOST_TEXT] or event.kind, stamp(time) if time is not None else "", 0.0
    waited = waited_s(event)
    if waited is not None:
        time = None if time is None else time - waited
        what, within = _wait_words(event, waited), 1.0
    zoned = event.origin is not None and _ZONED.search(event.origin.text[:80]) is not None
    same, where = _common_key(event, bus), identity.name(host)
    return ClockedEvent(LOG, where, what, time, zoned, event.rank, shown, within, event.origin, event.count, same)


def waited_s(event: JobEvent) -> float | None:
    """How long a watchdog's line says that an operation ran."""
    ran = event.details.get("ran_ms", "")
    return int(ran) / 1000 if event.kind == "watchdog" and ran.isdecimal() and len(ran) < 13 else None


def _wait_words(event: JobEvent, waited: float) -> str:
    seq = event.details.get("seq", "")
    operation = " ".join(part for part in (event.details.get("op", ""), f"number {seq}" if seq else "") if part)
    return f"waits in {operation or 'a collective'}, until the watchdog gives up after {in_s(waited)}"


def _common_key(event: JobEvent, bus: str) -> str:
    """What a line has in common with other prints of the same event: the operation, the GPU or the port."""
    seq, port = event.details.get("seq", ""), event.details.get("hca", "")
    if seq and waited_s(event) is not None:
        return f"wait {event.rank} {seq}"
    if event.kind == "cuda" and bus:
        return f"gpu {bus}"
    return f"port {port.partition(':')[0]}" if event.kind in ("port", "ib async") and port else ""


def _flight(job: Job, record: FlightRecord, identity: Identity) -> Iterator[ClockedEvent]:
    """What a rank enqueued and did not complete: the first such entry of each process group."""
    rank = job.by_rank.get(record.rank)
    host = identity.name(rank.host) if rank is not None else ""
    seen: set[str] = set()
    for number, (group, seq, operation, state) in enumerate(record.entries):
        if state == "completed" or group in seen:
            continue
        seen.add(group)
        time = record.created_s[number] if number < len(record.created_s) else math.nan
        known = time if is_wall(time) else None
        what = f"enqueues {operation} number {seq} of {record.descriptions.get(group, group)}, which does not complete"
        yield ClockedEvent(FLIGHT, host, what[:_MOST_TEXT], known, True, record.rank, stamp(known) if known else "",
                   origin=record.origin, same=f"wait {record.rank} {seq}")  # fmt: skip


def _ras(answer: RasAnswer, identity: Identity) -> Iterator[ClockedEvent]:
    for event in answer.events:
        process = event.process
        host = identity.name(process.host) if process is not None else ""
        named = f" (pid {process.pid})" if process is not None else ""
        shown = stamp(event.time) if event.time is not None else ""
        yield ClockedEvent(RAS, host, f"{event.what}{named}", event.time, stamp=shown, origin=event.origin)
