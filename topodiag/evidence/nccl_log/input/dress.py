"""What programs and people put round the lines of a text without a word of their own: colours, and the `> ` of mail."""

from __future__ import annotations

import re
from collections.abc import Iterator

from topodiag.lazy import regex
from topodiag.words.colours import without_colours

COLOURS, QUOTED = "colours", "quoted"
_BEGUN = regex(rb"\x1b(?:\[[0-9;?]{0,20})?\Z")
"""A sequence that a block may end in the middle of."""
_MARK = regex(rb"^>[ \t]?", re.M)
MOST_CARRIED = 64


def dress_of(head: bytes) -> Iterator[str]:
    """The layers that the first bytes of a text show, from outside in."""
    if b"\x1b[" in head:
        yield COLOURS
        head = without_colours(head)
    lines = [line for line in head.splitlines() if line.strip()]
    if len(lines) > 1 and all(line.startswith(b">") for line in lines[:-1]):  # the last one may be cut
        yield QUOTED


def undressed(blocks: Iterator[bytes], layer: str) -> Iterator[bytes]:
    """The text without a layer. Lines stay lines, and the same whatever blocks it comes in."""
    return _without_colours(blocks) if layer == COLOURS else _without_marks(blocks)


def _without_colours(blocks: Iterator[bytes]) -> Iterator[bytes]:
    rest = b""
    for block in blocks:
        text = rest + block
        cut = _BEGUN.search(text, max(0, len(text) - MOST_CARRIED))
        rest = text[cut.start() :] if cut is not None else b""
        yield without_colours(text[: len(text) - len(rest)])
    if rest:
        yield rest


def _without_marks(blocks: Iterator[bytes]) -> Iterator[bytes]:
    rest = b""
    for block in blocks:
        whole, end, rest = (rest + block).rpartition(b"\n")
        if len(rest) > MOST_CARRIED and not end:  # a line without an end does not fill the memory
            whole, rest = rest[:-MOST_CARRIED], rest[-MOST_CARRIED:]
        yield _MARK.sub(b"", whole) + end
    yield _MARK.sub(b"", rest)
