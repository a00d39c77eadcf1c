"""A stream of bytes in windows of bounded size, each with some lines before and behind what it owns.

A sentence belongs to the window that owns its first byte, so that none is met twice and each has its neighbours.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence

from topodiag.evidence.signatures.literals import Hit, line_ends
from topodiag.lazy import dataclass
from topodiag.words.colours import without_colours

BEHIND = 8 << 10
"""Bytes in front of the owned ones."""
AHEAD = 8 << 10
"""Bytes after them."""
BLOCK = 1 << 20
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
        between = line_ends(self.data, min(before, place), max(before, place))
        number += between if place >= before else -between
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
