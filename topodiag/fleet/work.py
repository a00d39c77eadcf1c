"""What a worker does: spans of files in, facts and measures out. The same in process, in a pool and on a cluster."""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field, replace
from typing import BinaryIO, NamedTuple

import numpy as np

from topodiag.evidence.nccl_log.fast.scan import extract_several
from topodiag.evidence.nccl_log.input.streams import Reading, Span, TextPiece, pieces, text_of
from topodiag.evidence.nccl_log.tables.facts import BATCH_ROWS, Facts, empty
from topodiag.evidence.nccl_log.tables.resolve import merge_facts, resolve
from topodiag.evidence.nccl_log.tables.saved import Store, on_disk, reuse
from topodiag.lazy import dataclass

HASHED_BYTES = 64 << 20
"""Files up to this size, unpacked, are named by their sha256; of larger ones it would cost a second reading."""
GONE = "cannot be opened"
GROUP = 64
"""Facts joined at once: enough that joining is cheap, few enough that they fit beside each other."""
YOUNG_BYTES = 48 << 20
"""Facts that are joined before there are GROUP of them: those of 150 MB of connections. With half as many, what is read
of such a log is joined twice, in 4 % of the time that reading takes."""
MOST_BYTES = 96 << 20
"""Facts that stay in memory while logs are read; more of them wait on disk."""
JOINED_BYTES = 256 << 20
"""Facts that stay in memory in the end, as those of 1 GB of connections; more of them go to disk."""
SHARED = 0.4
"""Facts are joined before the end where this share of one of them stands in the next one too."""
_LINE_BYTES = 64 << 10
"""Bytes read behind a span, in which its last line mostly ends."""
TOGETHER_BYTES = 4 << 20
"""Text of pieces that are extracted together: to begin and end takes as long as some 500 KB of records."""
Task = tuple[Span, ...]
_ASK = 4
"""How many times it is not tried again after it was not worth it."""


_COUNTS = ("size", "lines", "records", "understood", "app")
"""What of measures is added up."""


@dataclass(frozen=True, slots=True)
class Measure:
    """What was seen of one file, or of a part of it. `size` is that of the unpacked text, bytes, `sha256` its sum, ""
    where it was not taken. `app` counts lines of applications that are evidence too."""

    file: int
    size: int = 0
    lines: int = 0
    records: int = 0
    understood: int = 0
    app: int = 0
    sha256: str = ""
    notes: tuple[str, ...] = ()

    def __add__(self, other: Measure) -> Measure:
        sums = {name: getattr(self, name) + getattr(other, name) for name in _COUNTS}
        return replace(self, **sums, sha256=self.sha256 or other.sha256, notes=(*self.notes, *other.notes))


@dataclass(frozen=True, slots=True)
class Part:
    """Facts of some spans, with the measures of their files."""

    facts: Facts
    measures: tuple[Measure, ...] = ()
    normal: bool = False
    """The facts are in normal form: to bring them there again costs as much and changes nothing."""

    def resolved(self) -> Part:
        """The same in normal form."""
        return self if self.normal else replace(self, facts=resolve(self.facts), normal=True)


class Read(NamedTuple):
    """A piece of a file."""

    file: int
    piece: TextPiece


@dataclass(slots=True)
class Tree:
    """A reduction in memory that grows with what is different in the facts, not with how many parts are added.

    Parts are merged GROUP at a time, or when they hold YOUNG_BYTES. What stays large after that, or would, is left
    alone until the end, and goes to disk where there is more of it than MOST_BYTES.
    """

    measures: dict[int, Measure] = field(default_factory=dict)
    young: list[Part] = field(default_factory=list)
    old: list[Part] = field(default_factory=list)
    on_disk: list[Part] = field(default_factory=list)
    young_bytes: int = 0
    old_bytes: int = 0
    rest: int = 0

    def add(self, part: Part) -> None:
        for measure in part.measures:
            known = self.measures.get(measure.file)
            self.measures[measure.file] = measure if known is None else known + measure
        if not any(len(part.facts[name]) for name in ("shards", "threads")):
            return
        self.young.append(replace(part, measures=()))
        self.young_bytes += part.facts.nbytes
        if len(self.young) >= GROUP or self.young_bytes >= YOUNG_BYTES:
            self._settle()

    def _settle(self) -> None:
        if len(self.young) >= GROUP or self._shrinks():
            merged = _merged(self.young)
            self.young, self.young_bytes = [merged], merged.facts.nbytes
            if self.young_bytes < YOUNG_BYTES // 2:
                return
        self.old += self.young
        self.old_bytes += self.young_bytes
        self.young, self.young_bytes = [], 0
        if self.old_bytes > MOST_BYTES:
            self.on_disk += [replace(part, facts=on_disk(part.facts)) for part in self.old]
            self.old, self.old_bytes = [], 0

    def _shrinks(self) -> bool:
        """Whether joining the young ones would make them less, as two of them tell. Logs of one kind go on for long."""
        if self.rest:
            self.rest -= 1
            return False
        sizes = [part.facts.nbytes for part in self.young[-2:]]
        joined = _merged(self.young[-2:])
        saved = sum(sizes) - joined.facts.nbytes
        self.young_bytes -= saved
        self.young[-2:] = [joined]
        if saved >= SHARED * min(sizes):
            return True
        self.rest = _ASK
        return False

    def result(self, threads: int = 1) -> Part | None:
        """All that was added, or None without anything. Empties the tree. `threads` join what has been left alone."""
        parts = [*self.on_disk, *self.old, *self.young]
        much = sum(part.facts.nbytes for part in parts) > JOINED_BYTES
        for held in (self.on_disk, self.old, self.young):
            held.clear()
        measures = tuple(self.measures[file] for file in sorted(self.measures))
        if not parts:
            return Part(empty(), measures) if measures else None
        return replace(_merged(parts, Store() if much else None, threads), measures=measures)


def _merged(parts: list[Part], store: Store | None = None, threads: int = 1) -> Part:
    """One part of several, which are let go on the way."""
    if len(parts) == 1 and store is None:
        return parts[0]
    facts = [part.facts for part in parts]
    parts.clear()
    return Part(merge_facts(facts, store, threads=threads), normal=True)


def run_task(task: Iterable[Span], chunk: int, on_raw: Callable[[int], None] | None = None) -> Part:
    """Read and extract the spans of one task, as one part that may be sent. A file that has gone costs that file."""
    tree = Tree()
    for part in parts_of(task, chunk, on_raw):
        tree.add(part)
    result = (tree.result() or Part(empty())).resolved()
    return replace(result, facts=replace(result.facts, maps=()))  # a map belongs to its process


def parts_of(task: Iterable[Span], chunk: int, on_raw: Callable[[int], None] | None = None) -> Iterator[Part]:
    """The same piece by piece, for a tree of this process."""
    return extracted(read for span in task for read in reads_of(span, chunk, on_raw))


def extracted(reads: Iterable[Part | Read]) -> Iterator[Part]:
    """The parts of what was read; pieces of small files are extracted together."""
    reuse()
    waiting: list[Read] = []
    for read in reads:
        if isinstance(read, Part):
            yield read
            continue
        waiting.append(read)
        if sum(len(row.piece.data) for row in waiting) >= TOGETHER_BYTES:
            yield extract_pieces(waiting)
            waiting = []
    if waiting:
        yield extract_pieces(waiting)


def reads_of(span: Span, chunk: int, on_raw: Callable[[int], None] | None = None) -> Iterator[Part | Read]:
    """The pieces of a span, to be extracted, and what was measured in reading them."""
    try:
        stream = open(span.path, "rb")  # noqa: SIM115 - closed below, the error is told apart from those of reading
    except OSError as error:
        note = f"{GONE}: {error.strerror or error}"
        yield Part(empty(), (Measure(span.file, notes=(note,)),))
        return
    with stream:
        if span.coding:
            yield from read_stream(span.file, stream, span.coding, chunk, on_raw)
            return
        base = _first_line(stream, span)
        if base < 0:
            if on_raw is not None:
                on_raw(span.end - span.start)
            return
        reading = Reading()
        digest = _digest(span, stream)
        # A span is one piece, with the end of its last line, and no byte more: to cut it off would copy the piece.
        next_line = _first_line(stream, replace(span, start=span.end, end=span.end + _LINE_BYTES))
        room = (next_line if next_line >= 0 else span.end + _LINE_BYTES) - base
        stream.seek(base)
        for piece in pieces(text_of(stream, (), reading, room), room, base, span.end):
            if on_raw is not None:
                on_raw(len(piece.data))
            yield Read(span.file, piece)
        yield Part(empty(), (Measure(span.file, sha256=digest, notes=tuple(reading.notes)),))


def _first_line(stream: io.BufferedReader, span: Span) -> int:
    """Offset of the first line that begins in the span, -1 if none does."""
    if not span.start:
        return 0
    begin = stream.seek(span.start - 1)
    line = stream.readline(span.end - begin)
    begin += len(line)
    return begin if line.endswith(b"\n") and begin < span.end else -1


def _digest(span: Span, stream: io.BufferedReader) -> str:
    """Of the whole file, taken by whoever has its beginning, so that it does not depend on how the file was cut."""
    if span.start or not span.summed or os.fstat(stream.fileno()).st_size > HASHED_BYTES:
        return ""
    try:
        return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError:
        return ""


def read_stream(
    file: int, stream: BinaryIO, coding: tuple[str, ...], chunk: int, on_raw: Callable[[int], None] | None = None
) -> Iterator[Part | Read]:
    """A stream from its first byte to its last, with its sha256 where it is no longer than HASHED_BYTES."""
    reading = Reading(on_raw=on_raw)
    taken, digest = 0, hashlib.sha256()
    for piece in pieces(text_of(stream, coding, reading), chunk):
        taken += len(piece.data)
        if taken <= HASHED_BYTES:
            digest.update(piece.data)
        yield Read(file, piece)
    sha256 = digest.hexdigest() if taken <= HASHED_BYTES else ""
    yield Part(empty(), (Measure(file, sha256=sha256, notes=tuple(reading.notes)),))


def extract_pieces(read: Sequence[Read]) -> Part:
    """Facts of several pieces, in the order of their files and places, and a measure of each. They are brought to their
    normal form with those of other parts: to do so before as well costs as much again."""
    facts = extract_several([(piece.data, file, piece.base) for file, piece in read])
    # A line that was cut is one line, whatever number of pieces the extractor saw.
    lines = facts["shards"]["lines"] - np.array([piece.cut for _, piece in read])
    shards = facts["shards"].changed(lines=lines)
    counts = zip(*(shards.values(name) for name in ("lines", "records", "understood")), strict=True)
    measures = [Measure(file, len(piece.data), *counted) for counted, (file, piece) in zip(counts, read, strict=True)]
    return Part(replace(facts, tables={**facts.tables, "shards": shards}), (*measures, *told_by_applications(facts)))


def told_by_applications(facts: Facts) -> Iterator[Measure]:
    """By file, lines of applications that are evidence."""
    file_of, words = facts["threads"]["file"], facts["event"].words["level"]
    is_application = np.array([level == "APP" for level in words], bool)
    for batch in facts["event"].batches(BATCH_ROWS):
        files = file_of[batch["thread"][is_application[batch["level"]]]]
        yield from (Measure(file, app=lines) for file, lines in enumerate(np.bincount(files).tolist()) if lines)
        facts.rest()
