"""Warnings, unwinding and watchdogs: which kind of trouble a line speaks of, and what it names.

Its words are the entries of `events.toml`. And the events of a job in the order of time, and at their ranks.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from functools import lru_cache

from topodiag.evidence.nccl_log.grammar.ends import facts_of
from topodiag.evidence.nccl_log.grammar.job_lines import MET, TRIED, fault_of, refused_of, said_of
from topodiag.evidence.nccl_log.grammar.prefix import LAST_ERROR
from topodiag.evidence.nccl_log.rebuild.frame import Frame
from topodiag.evidence.nccl_log.tables.facts import Table
from topodiag.evidence.nccl_log.tables.resolve_rows import MOST_EVENTS, first_of_each, shapes_of
from topodiag.lazy import dataclass, regex
from topodiag.model.job import Event
from topodiag.words.own_data import own_data, patterns

FLUSHED = "5"

Trouble = tuple[str, bool, tuple[tuple[str, str], ...]]
"""Kind, whether the line follows from another by its nature, and what it names."""


@dataclass(frozen=True, slots=True)
class _Entry:
    """An entry of `events.toml`."""

    kind: str
    pattern: re.Pattern[str]
    follows: str = ""
    more: tuple[str, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)


_TABLES = own_data("evidence/nccl_log/rebuild/events")
_MORE, _KINDS, _LIKE = (patterns("evidence/nccl_log/rebuild/events", table) for table in ("more", "kinds", "words"))
_ENTRIES = {
    table: [_Entry(**{**row, "pattern": regex(row["pattern"])}) for row in _TABLES[table]]
    for table in ("by_anyone", "by_nccl")
}


@lru_cache(maxsize=65536)
def classify(level: str, text: str) -> Trouble:
    """What an event says. An application's line follows always: it repeats NCCL's own, which may be lost."""
    if level == "UNWIND":
        return "unwind", True, tuple(facts_of(text).items())
    kind, secondary, details = _classified(level, text)
    named = {**facts_of(text), **dict(details)}
    if "fault" not in named and (fault := fault_of(text)):
        named["fault"] = fault
    return kind, secondary, tuple(named.items())


def _classified(level: str, text: str) -> Trouble:
    refused = refused_of(text) if text.startswith("NET/OFI ") else {}
    if refused:
        return "connect", level == "APP", _nonempty(refused)
    trouble = _first(_ENTRIES["by_anyone"], level, text)
    if trouble is not None:
        return trouble
    of_application = level == "APP" and not LAST_ERROR.match(text)
    pair = said_of(text) if of_application and not _LIKE["gave_up"].search(text) else None
    if pair is not None:
        return pair[0], True, _nonempty(pair[1])
    if of_application:
        return ("watchdog" if "atchdog" in text else "other"), True, _nonempty(_more(text, "group", "qp"))
    trouble = _first(_ENTRIES["by_nccl"], level, text)
    if trouble is not None:
        return trouble
    kind = next((kind for kind, pattern in _KINDS.items() if pattern.search(text)), "other")
    return kind, level == "APP" or bool(_LIKE["cascade"].search(text)), _nonempty(_more(text, "peer", "qp"))


def _first(entries: Sequence[_Entry], level: str, text: str) -> Trouble | None:
    """What the first entry says that the line holds; None for a line that holds none."""
    for entry in entries:
        match = entry.pattern.search(text)
        if match is not None:
            named = {**entry.names, **match.groupdict(), **_more(text, *entry.more)}
            follows = entry.follows == "always" or (entry.follows == "application" and level == "APP")
            return entry.kind, follows or named.get("status") == FLUSHED, _nonempty(_spelt(named))
    return None


def _more(text: str, *names: str) -> dict[str, str | None]:
    matches = (_MORE[name].search(text) for name in names)
    return {name: value for match in matches if match is not None for name, value in match.groupdict().items()}


def _spelt(named: dict[str, str | None]) -> dict[str, str | None]:
    """What a line names, by the names that checks ask for: pairs of ranks and versions as one, a status by its name."""
    one, other = named.pop("rank", None), named.pop("other", None)
    if one and other:
        named["ranks"] = f"{one},{other}"
    versions = named.pop("version", None), named.pop("other_version", None)
    if all(versions):
        named["versions"] = ",".join(map(str, versions))
    if named.get("bus_id"):
        named["bus_id"] = bus_id_of(int(str(named["bus_id"]), 16))
    if status := named.get("status"):
        named["status"] = str(int(status))
        named["status_name"] = dict(enumerate(_TABLES["statuses"])).get(int(status), "")
    return named


def _nonempty(named: Mapping[str, str | None]) -> tuple[tuple[str, str], ...]:
    return tuple((name, value) for name, value in named.items() if value)


@lru_cache(maxsize=65536)
def bus_id_of(packed: int) -> str:
    """NCCL's packed bus id as sysfs writes it; "" when unknown."""
    if packed < 0:
        return ""
    return f"{packed >> 20:04x}:{(packed >> 12) & 0xFF:02x}:{(packed >> 4) & 0xFF:02x}.{packed & 0xF:x}"


def rank_of(label: str, text: str) -> int:
    """The rank that a launcher's label or torch's own head names, -1 without: torch's `[Rank 1]` may be that of a
    process group, so that the label decides where there is one."""
    labelled = _LIKE["label"].fullmatch(label)
    if labelled is not None:
        return int(labelled[1])
    match = _LIKE["rank"].search(text) if "atchdog" in text or "[R" in text or text.startswith("[rank") else None
    return int(match[1] or match[2]) if match is not None else -1


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
