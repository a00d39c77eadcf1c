"""What a worker does: spans of files in, facts and measures out. The same in process, in a pool and on a cluster."""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import BinaryIO

import pyarrow as pa

from topodiag.evidence.nccl_log.facts import SCHEMAS, Facts, concat, empty
from topodiag.evidence.nccl_log.resolve import resolve
from topodiag.evidence.nccl_log.scan import extract
from topodiag.evidence.nccl_log.sources import Span
from topodiag.evidence.nccl_log.streams import Piece, Reading, pieces, text_of

HASHED_BYTES = 64 << 20
"""Files up to this size, unpacked, are named by their sha256; of larger ones it would cost a second reading."""
GONE = "cannot be opened"
GROUP = 8
"""Facts joined at once: enough that joining is cheap, few enough that they fit beside each other."""


@dataclass(frozen=True, slots=True)
class Measure:
    """What was seen of one file, or of a part of it. Sizes in bytes: `raw` as it lies, `size` unpacked.

    `sha256` of the unpacked text, "" where it was not taken. `app` counts lines of applications that are evidence too.
    """

    file: int
    raw: int = 0
    size: int = 0
    lines: int = 0
    records: int = 0
    understood: int = 0
    app: int = 0
    sha256: str = ""
    notes: tuple[str, ...] = ()

    def __add__(self, other: Measure) -> Measure:
        return Measure(
            self.file,
            self.raw + other.raw,
            self.size + other.size,
            self.lines + other.lines,
            self.records + other.records,
            self.understood + other.understood,
            self.app + other.app,
            self.sha256 or other.sha256,
            (*self.notes, *other.notes),
        )


@dataclass(frozen=True, slots=True)
class Part:
    """Facts of some spans, with the measures of their files."""

    facts: Facts
    measures: tuple[Measure, ...] = ()
    normal: bool = False
    """The facts are in normal form: to bring them there again costs as much and changes nothing."""


def merge(parts: Sequence[Part]) -> Part:
    """Several parts as one, compacted. May be applied anywhere in a tree."""
    if len(parts) == 1:
        return parts[0]
    facts = resolve(concat(part.facts for part in parts))
    measures: dict[int, Measure] = {}
    for part in parts:
        for measure in part.measures:
            known = measures.get(measure.file)
            measures[measure.file] = measure if known is None else known + measure
    return Part(facts, tuple(measures[file] for file in sorted(measures)), normal=True)


@dataclass(slots=True)
class Tree:
    """A reduction that holds at most GROUP - 1 parts of each level, however many are added."""

    levels: list[list[Part]] = field(default_factory=list)

    def add(self, part: Part) -> None:
        level = 0
        while True:
            if level == len(self.levels):
                self.levels.append([])
            self.levels[level].append(part)
            if len(self.levels[level]) < GROUP:
                return
            part = merge(self.levels[level])
            self.levels[level] = []
            level += 1

    def result(self) -> Part | None:
        rest = [part for level in self.levels for part in level]
        return merge(rest) if rest else None


def run_task(task: Iterable[Span], chunk: int, on_raw: Callable[[int], None] | None = None) -> Part:
    """Read and extract the spans of one task. A file that has gone costs that file."""
    tree = Tree()
    for span in task:
        for part in _span(span, chunk, on_raw):
            tree.add(part)
    return tree.result() or Part(empty())


def _span(span: Span, chunk: int, on_raw: Callable[[int], None] | None) -> Iterator[Part]:
    try:
        stream = open(span.path, "rb")  # noqa: SIM115 - closed below, the error is told apart from those of reading
    except OSError as error:
        note = f"{GONE}: {error.strerror or error}"
        yield Part(empty(), (Measure(span.file, span.end - span.start, notes=(note,)),))
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
        stream.seek(base)
        for piece in pieces(text_of(stream, (), reading), chunk, base, span.end):
            if on_raw is not None:
                on_raw(len(piece.data))
            yield extract_piece(span.file, piece, len(piece.data))
        yield Part(empty(), (Measure(span.file, sha256=digest, notes=tuple(reading.notes)),))


def _first_line(stream: io.BufferedReader, span: Span) -> int:
    """Offset of the first line that begins in the span, -1 if none does."""
    if not span.start:
        return 0
    at = span.start - 1
    stream.seek(at)
    while at < span.end:
        block = stream.read(min(1 << 16, span.end - at))
        if not block:
            return -1
        found = block.find(b"\n")
        if found >= 0:
            begin = at + found + 1
            return begin if begin < span.end else -1
        at += len(block)
    return -1


def _digest(span: Span, stream: io.BufferedReader) -> str:
    """Of the whole file, taken by whoever has its beginning, so that it does not depend on how the file was cut."""
    if span.start or os.fstat(stream.fileno()).st_size > HASHED_BYTES:
        return ""
    try:
        return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError:
        return ""


def read_stream(
    file: int, stream: BinaryIO, coding: tuple[str, ...], chunk: int, on_raw: Callable[[int], None] | None = None
) -> Iterator[Part]:
    """A stream from its first byte to its last: packed files, and standard input in process."""
    reading = Reading(on_raw=on_raw)
    sums = Digest()
    for piece in pieces(text_of(stream, coding, reading), chunk):
        sums.add(piece.data)
        yield extract_piece(file, piece)
    yield Part(empty(), (Measure(file, raw=reading.raw, sha256=sums.hex, notes=tuple(reading.notes)),))


class Digest:
    """A sha256 that gives up, as the empty text, beyond HASHED_BYTES."""

    def __init__(self) -> None:
        self._taken = 0
        self._state = hashlib.sha256()

    def add(self, data: bytes) -> None:
        self._taken += len(data)
        if self._taken <= HASHED_BYTES:
            self._state.update(data)

    @property
    def hex(self) -> str:
        return self._state.hexdigest() if self._taken <= HASHED_BYTES else ""


def extract_piece(file: int, piece: Piece, raw: int = 0) -> Part:
    facts = extract(piece.data, file, piece.base)
    shards = facts["shards"]
    records = sum(shards.column("records").to_pylist())
    understood = sum(shards.column("understood").to_pylist())
    # A line that was cut is one line, whatever number of pieces the extractor saw.
    one = {"file": [file], "base": [piece.base], "size": [len(piece.data)], "lines": [piece.lines]}
    tables = {
        **facts.tables,
        "shards": pa.table({**one, "records": [records], "understood": [understood]}, schema=SCHEMAS["shards"]),
    }
    app = sum(1 for level in facts["event"].column("level").to_pylist() if level == "APP")
    measure = Measure(file, raw, len(piece.data), piece.lines, records, understood, app)
    return Part(replace(facts, tables=tables), (measure,))
