"""A stream of bytes in windows of bounded size, each with some lines before and behind what it owns.

A sentence belongs to the window that owns its first byte, so that none is met twice and each has its neighbours.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from topodiag.lazy import dataclass
from topodiag.words.colours import without_colours

BEHIND = 8 << 10
"""Bytes in front of the owned ones."""
AHEAD = 8 << 10
"""Bytes after them."""
BLOCK = 1 << 20
_LONGEST_COLOUR = 32


@dataclass(frozen=True, slots=True)
class Window:
    """`data[start:stop]` are the owned bytes; `line` is the number of the line in which `data` begins, from 1."""

    data: bytes
    start: int
    stop: int
    line: int


def windows(blocks: Iterable[bytes]) -> Iterator[Window]:
    """The text of these blocks in windows, without colours and NULs. Blocks may be cut anywhere."""
    data, start, line = b"", 0, 1
    for block in _plain(blocks):
        data += block
        if len(data) - start < BLOCK:
            continue
        stop = data.rfind(b"\n", start, len(data) - AHEAD) + 1 or len(data) - AHEAD
        yield Window(data, start, stop, line)
        begin = max(0, stop - BEHIND)
        begin = data.find(b"\n", begin, stop) + 1 or begin
        line += data.count(b"\n", 0, begin)
        data, start = data[begin:], stop - begin
    yield Window(data, start, len(data), line)


def _plain(blocks: Iterable[bytes]) -> Iterator[bytes]:
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


__all__ = ["BLOCK", "Window", "windows"]
