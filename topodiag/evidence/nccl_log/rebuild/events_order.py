"""The events of a job in the order of time, and at their ranks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from topodiag.model.job import Event


def in_time(events: list[Event]) -> list[Event]:
    """Events of level INFO carry no time by default: each takes the place of the event before it in its file."""
    timed = [event for event in events if event.level != "UNWIND"]
    if not timed or any(event.ts is None for event in timed):
        return events
    keys: list[float] = []
    before: dict[str, float] = {}
    for event in events:
        source = event.origin.source if event.origin is not None else ""
        before[source] = event.ts if event.ts is not None else before.get(source, math.inf)
        keys.append(before[source])
    return [events[i] for i in sorted(range(len(events)), key=lambda i: keys[i])]


def ranked(event: Event, by_process: Mapping[tuple[str, int], Sequence[int]]) -> Event:
    """A process with one rank speaks for it."""
    if event.rank >= 0:
        return event
    ranks = by_process.get((event.host, event.pid), ())
    return replace(event, rank=ranks[0]) if len(ranks) == 1 else event
