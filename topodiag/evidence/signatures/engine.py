"""The engine: one pass over the bytes finds all literals, and each line that holds one is confirmed by its entry.

It yields events and progress, and judges nothing. Memory is bounded by the number of different events, time by the
number of lines that hold a literal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, lru_cache
from math import isnan, nan

from topodiag.evidence.signatures import entry as catalogue
from topodiag.evidence.signatures.entry import Signature, compiled
from topodiag.evidence.signatures.literals import MAX_LINE, Finder, Window, lines_with, owned_lines, windows
from topodiag.evidence.signatures.wrappers import Unwrapped, members, unwrap, unwrapped, without_clock
from topodiag.lazy import dataclass
from topodiag.model.events import Event, Progress, Scope, Value
from topodiag.model.provenance import MAX_QUOTE, Origin

MOST_OF_ONE = 200
"""Different events of one entry that are kept of a text, the first ones; those that follow are dropped."""
MOST_LOOKED_AT = 10_000
"""Events of one entry that differ or are dropped, after which its lines are no longer read: what was kept of it is then
counted up to there."""
MAX_TEXT = 300
"""Characters of the sentence that an event keeps."""
Place = tuple[int, str]
"""Number and text of a line."""
FAMILIES_OF_LINES = ("benchmark", "collective", "harmless", "job", "launcher", "process")
"""Families all of whose entries are about ranks and jobs: readers of lines ask for them, and no text of a node."""
_FAMILIES_OF_JOBS = ("collective", "framework", "job", "launcher", "process")
"""Families that a line of a job's output is asked for."""
OF_JOBS = frozenset({Scope.RANK, Scope.JOB, Scope.COMMUNICATOR})


@dataclass(frozen=True, slots=True)
class LineMatch:
    """What an entry reads out of a line."""

    entry: Signature
    line: Unwrapped
    text: str
    fields: Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class Refused:
    """Why an entry whose literal is in a line does not take it."""

    entry: Signature
    why: str


@dataclass(frozen=True, slots=True)
class Sentences:
    """The sentences of one text; `breaks` are the ends of its lines."""

    events: tuple[Event, ...] = ()
    progress: tuple[Progress, ...] = ()
    breaks: int = 0


def read(blocks: Iterable[bytes], name: str, command: str = "", *families: str) -> Sentences:
    """The sentences of a text whose bytes these are, those of some families or of all. Never raises for content."""
    return read_windows(windows(blocks), name, command, *families)


def read_windows(windows: Iterable[Window], name: str, command: str = "", *families: str) -> Sentences:
    """The same of a text that is in windows already."""
    reading = _Reading(name, command, families)
    breaks = 0
    for window in windows:
        reading.take(window)
        breaks = window.line_of(len(window.data)) - 1
    return reading.result(breaks)


@cache
def families_of_nodes() -> tuple[str, ...]:
    """All families but what advances in a text (a training prints little else), the kernel's messages, which have a
    reader, and those of ranks and jobs, which are asked for by the line."""
    others = ("kernel", "progress", *FAMILIES_OF_LINES)
    return tuple(family for family in catalogue.families() if family not in others)


def verdicts(line: str) -> list[LineMatch | Refused]:
    """What each entry whose literal is in this one line makes of it, those that take it first."""
    candidates, _ = _candidates(_met(line))
    bare = unwrap(line)
    answers = [_answer(entry, bare, line, [bare.text], 0) for entry in candidates]
    return sorted(answers, key=lambda answer: isinstance(answer, Refused))


def confirm(entry: Signature, line: Unwrapped, lines: Sequence[str], at: int) -> LineMatch | Refused:
    """Whether an entry takes a line: `lines` are the ones around, without wrappers, and `lines[at]` is the line."""
    text = line.text
    match = entry.pattern.search(text)
    if match is None and entry.wraps > 1:
        text = " ".join(part.strip() for part in lines[at : at + entry.wraps])
        match = entry.pattern.search(text)
    if match is None:
        return Refused(entry, "the pattern does not fit")
    if entry.unless and (other := compiled(entry.unless).search(text)) is not None:
        return Refused(entry, f"`unless` fits: {other[0]!r}")
    if line.time_s < entry.settles_s:
        return Refused(entry, "the kernel was booting")
    if why := catalogue.silenced(entry, text, *match.span()):
        return Refused(entry, why)
    if (near := entry.near) is not None:
        around = "\n".join(lines[max(0, at - near.before) : at + near.after + 1])
        if compiled(near.match).search(around) is None:
            return Refused(entry, "`near` fits none of the lines around")
    named = match.groupdict()
    fields = catalogue.typed({**named, "bus_id": named.get("bus_id") or line.bus_id} if line.bus_id else named)
    if catalogue.counts_none(fields):
        return Refused(entry, "it counts none")
    shown = text if match.end() <= MAX_TEXT else text[match.start() :]
    return LineMatch(entry, line, " ".join(shown.split())[:MAX_TEXT], fields)


def _answer(entry: Signature, line: Unwrapped, raw: str, lines: Sequence[str], at: int) -> LineMatch | Refused:
    """The same of a line as it was printed (`raw`). Of an object the message was read; the sentence may stand in
    another member, or a text inside one."""
    refused = confirm(entry, line, lines, at)
    if isinstance(refused, LineMatch) or raw.lstrip()[:1] != "{":
        return refused
    for part in (*members(raw), replace(line, text=raw.replace("\\", ""))):
        answer = confirm(entry, part, [part.text], 0)
        if isinstance(answer, LineMatch):
            return answer
    return refused


@cache
def finder_of(*names: str) -> Finder:
    """Of the literals of these families, of all without names."""
    return Finder(catalogue.literals_of(*names))


@lru_cache(1024)
def _candidates(numbers: frozenset[int], names: tuple[str, ...] = ()) -> tuple[list[Signature], bool]:
    """The entries that these literals may begin, those with the longest literal first; whether all of them count."""
    longest: dict[tuple[str, int], int] = {}
    for number in numbers:
        literal, places = catalogue.places_of(*names)[number]
        for place in places:
            entry = catalogue.family(place[0])[place[1]]
            if literal in entry.literals:
                longest[place] = max(len(literal), longest.get(place, 0))
    entries = [catalogue.family(name)[place] for name, place in sorted(longest, key=lambda key: (-longest[key], key))]
    return entries, bool(entries) and all(entry.counts for entry in entries)


@lru_cache(1024)
def _answers(
    raw: str, lines: tuple[str, ...], after: int, numbers: frozenset[int], families: tuple[str, ...]
) -> list[LineMatch]:
    """What the entries take whose literals were found in a line, of which `after` lines follow among `lines`."""
    line, answers = unwrapped(raw), list[LineMatch]()
    for entry in _candidates(numbers, families)[0]:
        if entry.also or all(answer.entry.also for answer in answers):
            answer = _answer(entry, line, raw, lines, len(lines) - 1 - after)
            if isinstance(answer, LineMatch):
                answers.append(answer)
    return answers


@dataclass(slots=True)
class _Count:
    """Progress of one kind while it is read."""

    first: Place
    last: Place
    number: int = 0
    first_s: float = nan
    last_s: float = nan
    gap_s: float = nan

    def progress(self, kind: str, host: str, rank: int, origin: Callable[[Place], Origin]) -> Progress:
        first, last = origin(self.first), origin(self.last)
        return Progress(kind, self.number, first, last, self.first_s, self.last_s, self.gap_s, host, rank)

    def add(self, place: Place, time_s: float) -> None:
        self.number += 1
        self.last = place
        if isnan(time_s):
            return
        gap = time_s - self.last_s
        if gap >= 0:
            self.gap_s = gap if isnan(self.gap_s) else max(self.gap_s, gap)
        self.first_s = time_s if isnan(self.first_s) else self.first_s
        self.last_s = time_s


Key = tuple[str, str, int, tuple[tuple[str, Value], ...]]


class _Reading:
    """What was met so far of one text."""

    def __init__(self, name: str, command: str, families: tuple[str, ...] = ()) -> None:
        self.name, self.command, self.families = name, command, families
        self.events: dict[Key, tuple[Signature, Event]] = {}
        self.of_entry: dict[str, int] = {}
        self.progress: dict[tuple[str, str, int], _Count] = {}
        self.seen: set[int] = set()
        self.ends: set[str] = set()
        """Literals of lines that end an event which was kept."""

    def take(self, window: Window) -> None:
        """All sentences that the window owns."""
        data = window.data
        for begin, end, numbers in owned_lines(finder_of(*self.families).hits(data), window):
            number = window.line_of(begin)
            self.seen |= numbers
            raw = data[begin:end].decode("utf-8", "replace")
            candidates, counts = _candidates(numbers, self.families)
            if counts:
                self._advance(candidates, raw, number)
            elif self.events or candidates:
                self._line(data, (begin, end), (number, raw), numbers, candidates)

    def _line(
        self, data: bytes, span: tuple[int, int], place: Place, numbers: frozenset[int], candidates: Sequence[Signature]
    ) -> None:
        if self.ends:
            self._end(numbers, place[1])
        if all(self.of_entry.get(entry.id, 0) >= MOST_LOOKED_AT for entry in candidates):
            return
        before, after = map(max, zip(*map(_reach, candidates), strict=True))
        for answer in _answers(place[1], tuple(_around(data, *span, before, after)), after, numbers, self.families):
            self._add(answer, place)

    def _advance(self, candidates: Sequence[Signature], raw: str, number: int) -> None:
        """A line that counts, once for each kind, and says nothing else."""
        counted: set[str] = set()
        for entry in candidates:
            match = entry.pattern.search(raw) if entry.says not in counted else None
            if match is not None:
                counted.add(entry.says)
                # What stands in front is unwrapped once for all lines that differ in their clock only.
                before, time_s = without_clock(raw[: match.start()][:MAX_TEXT])
                owner = unwrapped(f"{before}.")
                self._count(entry, owner.host, owner.rank, (number, raw), time_s)

    def _count(self, entry: Signature, host: str, rank: int, place: Place, time_s: float) -> None:
        key = (entry.says, host, rank)
        count = self.progress.get(key) or self.progress.setdefault(key, _Count(place, place))
        count.add(place, time_s)

    def _origin(self, place: Place) -> Origin:
        return Origin(self.name, place[0], place[1].strip()[:MAX_QUOTE], self.command)

    def _add(self, taken: LineMatch, place: Place) -> None:
        entry, line = taken.entry, taken.line
        host = str(taken.fields.get("host", line.host))
        rank = int(taken.fields.get("rank", line.rank))
        if entry.counts:
            return self._count(entry, host, rank, place, line.time_s)
        key = (entry.id, host, rank, tuple(sorted(taken.fields.items())))
        if key in self.events:
            event = self.events[key][1]
            self.events[key] = (entry, replace(event, count=event.count + 1))
            return
        number = self.of_entry[entry.id] = self.of_entry.get(entry.id, 0) + 1
        if number <= MOST_OF_ONE:
            event = Event(
                entry.says, entry.id, taken.text, self._origin(place), taken.fields, entry.scope, entry.trust, host,
                rank, line.pid, None if isnan(line.time_s) else line.time_s,
            )  # fmt: skip
            self.events[key] = (entry, event)
            if entry.over is not None:
                self.ends.add(entry.over.literal)

    def _end(self, numbers: Iterable[int], raw: str) -> None:
        """Drops the events that this line says are over."""
        present = {catalogue.places_of(*self.families)[literal][0] for literal in numbers}
        if self.ends.isdisjoint(present):
            return
        line = unwrapped(raw)
        for key, (entry, event) in list(self.events.items()):
            if entry.over is None or entry.over.literal not in present:
                continue
            match = compiled(entry.over.match).search(line.text)
            if match is not None and _agree(event.fields, catalogue.typed(match.groupdict())):
                del self.events[key]

    def result(self, breaks: int) -> Sentences:
        events = tuple(event for entry, event in self.events.values() if self._holds(entry))
        progress = tuple(
            count.progress(kind, host, rank, self._origin) for (kind, host, rank), count in self.progress.items()
        )
        return Sentences(tuple(sorted(events, key=lambda event: event.origin.line or 0)), progress, breaks)

    def _holds(self, entry: Signature) -> bool:
        """Whether the whole text has what the entry wants of it."""
        seen = {catalogue.places_of(*self.families)[number][0] for number in self.seen}
        return (not entry.needs or not seen.isdisjoint(entry.needs)) and seen.isdisjoint(entry.excludes)


def _reach(entry: Signature) -> tuple[int, int]:
    """Lines before and behind that an entry asks for."""
    near = entry.near
    return (near.before if near else 0), max(near.after if near else 0, entry.wraps - 1)


def _around(data: bytes, begin: int, end: int, before: int, after: int) -> list[str]:
    """The line with those around it, without wrappers; those behind are as many as asked, empty at the end."""
    start = begin
    for _ in range(before):
        if start == 0:
            break
        start = data.rfind(b"\n", max(0, start - 1 - MAX_LINE), start - 1) + 1
    above = data[start:begin].split(b"\n")[:-1] if start < begin else []
    below: list[bytes] = []
    at = end
    for _ in range(after):
        stop = data.find(b"\n", at + 1, at + 1 + MAX_LINE)
        stop = stop if stop >= 0 else min(len(data), at + 1 + MAX_LINE)
        below.append(data[at + 1 : stop])
        at = stop
    return [unwrapped(raw.decode("utf-8", "replace")).text for raw in (*above, data[begin:end], *below)]


def lines_of(name: str, data: bytes) -> Iterator[tuple[int, bytes, tuple[Signature, ...]]]:
    """The lines of a text that hold a literal of a family, by their numbers from 1, each with the entries that may take
    it in the order of the catalogue."""
    for number, begin, end, numbers in lines_with(finder_of(name), data):
        yield number, data[begin:end], catalogue.in_order(numbers, name)


def _agree(first: Mapping[str, Value], second: Mapping[str, Value]) -> bool:
    return all(first[name] == second[name] for name in first.keys() & second.keys())


@lru_cache(4096)
def first_of(entries: tuple[Signature, ...], sentence: str) -> LineMatch | None:
    """The first of these entries that takes a sentence as it stands. Devices say the same again and again."""
    return next(_taking(entries, sentence), None)


def first_in(name: str, sentence: str) -> LineMatch | None:
    """The first entry of a family that takes a sentence as it stands."""
    entries = catalogue.in_order(_met(sentence, name), name)
    return first_of(entries, sentence) if entries else None


@lru_cache(4096)
def of_job(text: str) -> tuple[LineMatch, ...]:
    """All entries about ranks and jobs that take a line of a job's output as it stands, in the order of the catalogue:
    an entry stands before others that its words fit as well."""
    entries = catalogue.in_order(_met(text, *_FAMILIES_OF_JOBS), *_FAMILIES_OF_JOBS)
    return tuple(_taking((entry for entry in entries if entry.scope in OF_JOBS), text))


def events_of_job(text: str, kind: str) -> Iterator[tuple[str, LineMatch]]:
    """What stands behind the kind in the events of a line of a job's output (`memory` of `ended.memory`), with what the
    entry reads, in the order of the catalogue."""
    for taken in of_job(text):
        first, _, rest = taken.entry.says.partition(".")
        if first == kind:
            yield rest, taken


def _met(text: str, *names: str) -> frozenset[int]:
    """The numbers of the literals of these families that a line holds."""
    return frozenset(number for _, number in finder_of(*names).hits(text.encode("utf-8", "replace")))


def _taking(entries: Iterable[Signature], sentence: str) -> Iterator[LineMatch]:
    """What those of the entries read that take a sentence as it stands."""
    bare = Unwrapped(sentence)
    answers = (confirm(entry, bare, [sentence], 0) for entry in entries)
    return (answer for answer in answers if isinstance(answer, LineMatch))
