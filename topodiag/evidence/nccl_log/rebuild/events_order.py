"""The events of a job in the order of time, and at their ranks.

Which of the events of a log are kept where it tells of more than any job has.

An event takes 3 KB as a value. Two that differ in their numbers alone are of one shape: of each shape the first ones
are kept, so that a line that stands there once is never lost to one that stands there a million times.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from topodiag.evidence.nccl_log.grammar.job_lines import TRIED
from topodiag.evidence.nccl_log.grammar.job_sentences import MET
from topodiag.evidence.nccl_log.rebuild.frame import Frame, Rows
from topodiag.lazy import regex
from topodiag.model.job import Event

MOST_EVENTS = 1 << 15
"""Different events that a case keeps: 100 MB. A job of 1,024 ranks that dies has some 20 for each of them."""
_HEAD = 120
"""Characters of a text that make its shape."""
_DIGITS = regex(r"\d+")


def few(rows: Rows, order: Sequence[int], most: int = MOST_EVENTS) -> list[int]:
    """The rows that are kept, in the order given."""
    if len(order) <= most:
        return list(order)
    said = [(rows.word("level", row), rows.word("text", row)) for row in order]
    return [order[at] for at in first_of_each(said, most)]


def first_of_each(said: Sequence[tuple[str, str]], most: int = MOST_EVENTS, more: int = 0) -> list[int]:
    """Places, ascending, of those events that are kept by their level and text. With `more` 1 one more of each shape
    stays: what is left out of a part of the events is then what is left out of all of them."""
    shapes = np.fromiter((hash((level, _DIGITS.sub("#", text[:_HEAD]))) for level, text in said), np.int64, len(said))
    _, group, sizes = np.unique(shapes, return_inverse=True, return_counts=True)
    by_group = np.argsort(group, kind="stable")
    place = np.empty(len(said), np.int64)  # in its group
    place[by_group] = np.arange(len(said)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    kept: list[int] = np.flatnonzero(place < _of_each(sizes.tolist(), most) + more)[: most * (1 + more)].tolist()
    return kept


def _of_each(sizes: Sequence[int], most: int) -> int:
    """How many of each shape there is room for: what small shapes leave goes to the large ones."""
    left = most
    for at, size in enumerate(sorted(sizes)):
        share = left // (len(sizes) - at)
        if size > share:
            return max(share, 1)
        left -= size
    return most


_LAST_LINES = 3
"""A text ends with what stands in its last lines: a shell or a launcher may add one or two."""
_LAST_BYTES = 4096
"""The same for lines that are printed again and again, of which the last place is known in bytes: room for the
traceback of who stopped the job by hand."""


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


def with_last(events: list[Event], frame: Frame) -> list[Event]:
    """The events, those of exceptions with which a text ends marked as `last`: nothing of the program follows."""
    if not any(event.details.get("how") == "exception" for event in events):
        return events
    lines: dict[str, int] = {}
    for shard in frame.facts["shards"].select(["file", "lines"]).to_pylist():
        if 0 <= shard["file"] < len(frame.files):
            name = frame.files[shard["file"]]
            lines[name] = lines.get(name, 0) + shard["lines"]
    return [_marked(event, lines) for event in events]


def _marked(event: Event, lines: Mapping[str, int]) -> Event:
    at = event.origin
    if event.details.get("how") != "exception" or at is None or at.line is None:
        return event
    ends = at.line > lines.get(at.source, 1 << 62) - _LAST_LINES
    return replace(event, details={**event.details, "last": "1"}) if ends else event


def ends_of(frame: Frame) -> dict[int, int]:
    """By file, where it ends, in bytes."""
    ends: dict[int, int] = {}
    for shard in frame.facts["shards"].select(["file", "base", "size"]).to_pylist():
        ends[shard["file"]] = max(ends.get(shard["file"], 0), shard["base"] + shard["size"])
    return ends


def world_met(events: Sequence[Event]) -> int:
    """How many ranks the largest barrier at torch's store waits for, -1 without one."""
    sizes = (event.details.get("world") or event.details.get("all") or "-1" for event in events if event.kind == MET)
    return max(map(int, sizes), default=-1)


def is_last(kind: str, offset: int, end: int) -> bool:
    """Whether a line of ranks that meet, or try to, last seen at `offset`, is what a file ends with."""
    return kind in (MET, TRIED) and offset >= end - _LAST_BYTES
