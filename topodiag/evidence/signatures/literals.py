"""Where fixed bytes stand in a text: all literals in one pass by hyperscan, or one after the other where it is missing.

Both give the same answers, which a test holds. hyperscan (Vectorscan inside) has wheels for x86-64 and aarch64.

A stream of bytes in windows of bounded size, each with some lines before and behind what it owns.

A sentence belongs to the window that owns its first byte, so that none is met twice and each has its neighbours.
"""

from __future__ import annotations

import re
import sys
import threading
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from importlib.util import find_spec
from typing import Any

from topodiag.lazy import dataclass
from topodiag.words.colours import without_colours

BLOCK = 1 << 20
"""Bytes that are searched together, or are in a window."""
PAYS = 1 << 16
"""Bytes from which on a database pays: it takes as long to compile as so many bytes to search without one."""
NEVER = sys.maxsize
"""As many of a finder that has no database."""
LEAST = 1 << 9
"""Bytes for which a shorter text counts: each literal costs a call, however short the text is."""
_COUNTED = 1 << 12
"""Bytes from which on numpy counts line ends faster."""
_HAS_HYPERSCAN = find_spec("hyperscan") is not None
Hit = tuple[int, int]
"""Where a literal begins in the block, and its number."""


class Finder:
    """Finds each occurrence of each of its literals, overlapping ones too; of each the first one found where `once`
    is wanted. With `lines`, for `lines_with` alone, it finds some place in each line that holds one of its literals, of
    lower case, in whatever case.

    By hyperscan, in literal mode: 3 GB/s of CPU time for 1,000 literals. The first `pays` bytes are searched a literal
    at a time, as most runs see no more, and all of them where hyperscan is missing. A database may be read by several
    threads at once, its scratch space by one: each thread has its own.
    """

    _compiling = threading.Lock()

    def __init__(self, literals: Sequence[bytes], once: bool = False, lines: bool = False, pays: int = PAYS) -> None:
        self.literals = tuple(literals)
        self.once = once
        self.lines = lines
        self._lengths = [1] if lines else [len(literal) for literal in self.literals]
        self._left = pays if literals and _HAS_HYPERSCAN else NEVER
        self._database: Any = None

    def _is_plain(self, block: bytes) -> bool:
        """Whether a block is searched without the database, which is compiled where it is not."""
        if self._database is not None:
            return False
        cost = max(len(block), LEAST) if self._left < NEVER else 0
        if cost <= self._left:
            self._left -= cost
            return True
        with self._compiling:
            if self._database is None and block:
                import hyperscan  # noqa: PLC0415 - where it pays

                flag = hyperscan.HS_FLAG_SINGLEMATCH if self.once else hyperscan.HS_FLAG_CASELESS if self.lines else 0
                wanted = [_line_of(self.literals)] if self.lines else list(self.literals)
                count = len(wanted)
                database = hyperscan.Database()
                database.compile(wanted, list(range(count)), count, [flag] * count, literal=not self.lines)
                self._of_thread = threading.local()
                self._database = database
        return self._database is None

    def hits(self, block: bytes) -> list[Hit]:
        """All occurrences, in the order in which they begin."""
        pairs = self._plain_hits(block) if self._is_plain(block) else self._hits_of_database(block)
        pairs.sort()
        return pairs

    def _plain_hits(self, block: bytes) -> list[Hit]:
        block = block.lower() if self.lines else block
        pairs: list[Hit] = []
        for number, literal in enumerate(self.literals):
            at = block.find(literal)
            while at >= 0:
                pairs.append((at, number))
                at = block.find(literal, at + 1) if not self.once else -1
        return pairs

    def _hits_of_database(self, block: bytes) -> list[Hit]:
        pairs: list[Hit] = []
        lengths, add = self._lengths, pairs.append

        def on_match(number: int, _start: int, end: int, _flags: int, _context: object) -> None:
            add((end - lengths[number], number))

        self._database.scan(block, match_event_handler=on_match, scratch=self._scratch())
        return pairs

    def any(self, block: bytes) -> bool:
        """Whether any of them stands in the block; nothing is read behind the first."""
        if self._is_plain(block):
            return any(literal in block for literal in self.literals)
        import hyperscan  # noqa: PLC0415 - as above

        try:
            self._database.scan(block, match_event_handler=lambda *_: True, scratch=self._scratch())
        except hyperscan.ScanTerminated:
            return True
        return False

    def _scratch(self) -> Any:
        """The space in which this thread scans; hyperscan refuses one that is in use."""
        scratch = getattr(self._of_thread, "scratch", None)
        if scratch is None:
            import hyperscan  # noqa: PLC0415 - as above

            scratch = self._of_thread.scratch = hyperscan.Scratch(self._database)
        return scratch


def _line_of(literals: Sequence[bytes]) -> bytes:
    """The pattern of a line from one of these to its end: one match for a line costs less than one for each literal."""
    return b"(?:" + b"|".join(map(re.escape, literals)) + rb")[^\n]*(?:\n|\z)"


def line_ends(data: bytes, begin: int, end: int) -> int:
    """The line ends between two places. Before Python 3.13 bytes are counted one by one, and numpy, where a run has
    loaded it, is eight times as fast."""
    numpy = sys.modules.get("numpy") if end - begin >= _COUNTED else None
    if numpy is None:
        return data.count(b"\n", begin, end)
    return int(numpy.count_nonzero(numpy.frombuffer(data, numpy.uint8, end - begin, begin) == ord("\n")))


def lines_with(finder: Finder, data: bytes) -> Iterator[tuple[int, int, int, frozenset[int]]]:
    """The lines that hold one of the literals: the line's number from 1, where it begins and ends, and the numbers of
    its literals, unless the finder is one of `lines`. Of a line longer than BLOCK the first bytes are searched."""
    number, at = 1, 0
    while at < len(data):
        stop = data.rfind(b"\n", at, at + BLOCK) + 1 or min(at + BLOCK, len(data))
        block, counted, begin, end = data[at:stop], 0, 0, -1
        numbers: set[int] = set()
        for place, literal in finder.hits(block):
            if place >= end:
                if numbers:
                    yield number, at + begin, at + end, frozenset(numbers)
                begin, end = block.rfind(b"\n", 0, place) + 1, block.find(b"\n", place)
                end = end if end >= 0 else len(block)
                number, counted = number + line_ends(block, counted, begin), begin
                numbers = set()
            numbers.add(literal)
        if numbers:
            yield number, at + begin, at + end, frozenset(numbers)
        number += line_ends(block, counted, len(block))
        at = stop if block[-1:] == b"\n" else data.find(b"\n", stop) + 1 or len(data)
        number += at > stop and data[at - 1 : at] == b"\n"


BEHIND = 8 << 10
"""Bytes in front of the owned ones."""
AHEAD = 8 << 10
"""Bytes after them."""
MAX_LINE = 8 << 10
"""Bytes of a line around a literal that are looked at: no sentence is longer."""
_LONGEST_COLOUR = 32


@dataclass(slots=True)
class Window:
    """`data[start:stop]` are the owned bytes; `counted` is a place in `data`, and the number of its line, from 1."""

    data: bytes
    start: int
    stop: int
    counted: tuple[int, int]

    def line_of(self, place: int) -> int:
        """The number of the line in which this byte stands. Line ends are counted from the place that was asked for
        last: for places in a row, all of them once."""
        before, number = self.counted
        number += line_ends(self.data, before, place) if place >= before else -line_ends(self.data, place, before)
        self.counted = place, number
        return number

    def owned(self, hits: Sequence[Hit]) -> Sequence[Hit]:
        """Those of the hits, which are in their order, that it owns."""
        return hits[bisect_left(hits, (self.start, 0)) : bisect_left(hits, (self.stop, 0))]


def windows(blocks: Iterable[bytes]) -> Iterator[Window]:
    """The text of these blocks in windows, without colours and NULs. Blocks may be cut anywhere."""
    data, start, line = b"", 0, 1
    for block in plain(blocks):
        data += block
        if len(data) - start < BLOCK:
            continue
        stop = data.rfind(b"\n", start, len(data) - AHEAD) + 1 or len(data) - AHEAD
        window = Window(data, start, stop, (0, line))
        yield window
        begin = max(0, stop - BEHIND)
        begin = data.find(b"\n", begin, stop) + 1 or begin
        line = window.line_of(begin)
        data, start = data[begin:], stop - begin
    yield Window(data, start, len(data), (0, line))


def parts_of_lines(blocks: Iterable[bytes], longest: int, least: int = 1) -> Iterator[bytes]:
    """The text of these blocks in parts of whole lines, of at least so many bytes each but the last. A line that is
    longer than `longest` comes in parts, too: one without an end does not fill the memory."""
    held, size = list[bytes](), 0
    for block in blocks:
        held.append(block)
        size += len(block)
        if size >= least:
            text = b"".join(held)
            end = text.rfind(b"\n") + 1 or (size if size > longest else 0)
            if end:
                yield text[:end]
            held, size = [text[end:]], size - end
    if size:
        yield b"".join(held)


def plain(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """The blocks without colours; a sequence that is cut waits for its other part."""
    held = b""
    for block in blocks:
        for at in range(0, len(block), BLOCK):
            part = held + block[at : at + BLOCK]
            held = b""
            if b"\x1b" in part[-_LONGEST_COLOUR:]:
                cut = part.rfind(b"\x1b")
                part, held = part[:cut], part[cut:]
            yield without_colours(part)
    yield without_colours(held)


def owned_lines(hits: Sequence[Hit], window: Window) -> Iterator[tuple[int, int, frozenset[int]]]:
    """The lines with literals that the window owns: where each begins and ends, and the numbers of its literals. Of a
    line that is longer than what is looked at, a part that lies in the one before is left out."""
    data = window.data
    begin = end = last = done = -1
    numbers: set[int] = set()
    for place, literal in window.owned(hits):
        if not begin <= place < end or place - begin > MAX_LINE // 2:
            if last >= done and numbers:
                yield begin, end, frozenset(numbers)
                done = end
            begin, end = _line_at(data, place)
            numbers.clear()
        numbers.add(literal)
        last = place
    if last >= done and numbers:
        yield begin, end, frozenset(numbers)


def _line_at(data: bytes, at: int) -> tuple[int, int]:
    """Where the line around this byte begins and ends, at most MAX_LINE of it."""
    begin = data.rfind(b"\n", max(0, at - MAX_LINE // 2), at) + 1 or max(0, at - MAX_LINE // 2)
    end = data.find(b"\n", at, begin + MAX_LINE)
    return begin, end if end >= 0 else min(len(data), begin + MAX_LINE)
