"""The events of a job in the order of time, and at their ranks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from topodiag.evidence.nccl_log.grammar.job_lines import MET, TRIED
from topodiag.evidence.nccl_log.rebuild.frame import Frame
from topodiag.evidence.nccl_log.tables.facts import Table
from topodiag.evidence.nccl_log.tables.resolve_rows import MOST_EVENTS, first_of_each, shapes_of
from topodiag.model.job import Event


def few(rows: Table, order: Sequence[int], most: int = MOST_EVENTS) -> list[int]:
    """The rows that are kept, in the order given."""
    if len(order) <= most:
        return list(order)
    shapes = shapes_of((rows.word("level", row), rows.word("text", row)) for row in order)
    return [order[at] for at in first_of_each(shapes, most).tolist()]


_LAST_LINES = 3
"""A text ends with what stands in its last lines: a shell or a launcher may add one or two."""
_LAST_BYTES = 4096
"""The same for lines that are printed again and again, of which the last place is known in bytes: room for the
traceback of who stopped the job by hand."""


_MOST_OF_TRACEBACK = 60
"""Lines of a traceback, where other processes write between them."""


def in_time(events: list[Event]) -> list[Event]:
    """Events of level INFO carry no time by default: each takes the place of the event before it in its file."""
    timed = [event for event in events if event.level != "UNWIND"]
    if not timed or any(event.ts is None for event in timed):
        return events
    keys: list[float] = []
    before: dict[str, float] = {}
    for event in events:
        source, _ = _place(event)
        before[source] = event.ts if event.ts is not None else before.get(source, math.inf)
        keys.append(before[source])
    return [events[i] for i in sorted(range(len(events)), key=lambda i: keys[i])]


def ranked(event: Event, by_process: Mapping[tuple[str, int], Sequence[int]]) -> Event:
    """A process with one rank speaks for it."""
    if event.rank >= 0:
        return event
    ranks = by_process.get((event.host, event.pid), ())
    return replace(event, rank=ranks[0]) if len(ranks) == 1 else event


def uncaught(events: list[Event]) -> list[Event]:
    """The events without the exceptions of which Python itself says that the program goes on: the first one below each
    such sentence."""
    caught = set[int]()
    below = [(*_place(event), at) for at, event in enumerate(events) if event.details.get("how") == "exception"]
    for at, event in enumerate(events):
        if event.details.get("how") == "lived on":
            source, line = _place(event)
            near = [row for row in below if row[0] == source and 0 < row[1] - line <= _MOST_OF_TRACEBACK]
            caught |= {at, *(row[2] for row in sorted(near)[:1])}
    return [event for at, event in enumerate(events) if at not in caught]


def _place(event: Event) -> tuple[str, int]:
    return (event.origin.source, event.origin.line or 0) if event.origin is not None else ("", 0)


def ends_of(frame: Frame) -> dict[int, tuple[int, int]]:
    """By file, where it ends, in bytes, and how many lines it has."""
    ends: dict[int, tuple[int, int]] = {}
    for shard in frame.facts["shards"].rows():
        end, lines = ends.get(shard["file"], (0, 0))
        ends[shard["file"]] = max(end, shard["base"] + shard["size"]), lines + shard["lines"]
    return ends


def world_met(events: Sequence[Event]) -> int:
    """How many ranks the largest barrier at torch's store waits for, -1 without one."""
    sizes = (event.details.get("world") or event.details.get("all") or "-1" for event in events if event.kind == MET)
    return max(map(int, sizes), default=-1)


def marked(event: Event, offset: int, end: int, lines: int) -> Event:
    """The event, last seen at `offset`, with what it is of its file's end, which has so many bytes and lines: `last` of
    ranks that meet, or try to, and of an exception with nothing of the program behind it; `again` of an end that stood
    above as well, as of a job that was started again."""
    marks = dict(event.details)
    near = offset >= end - _LAST_BYTES
    if near and event.kind == "ended" and event.count > 1:
        marks["again"] = "1"
    if near and event.kind in (MET, TRIED):
        marks["last"] = "1"
    if event.details.get("how") == "exception" and _place(event)[1] > lines - _LAST_LINES:
        marks["last"] = "1"
    return replace(event, details=marks)
