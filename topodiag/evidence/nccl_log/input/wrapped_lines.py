"""Excerpts whose lines a terminal, a mail or a forum broke: the pieces of a record put together again.

Only short texts are mended, those that somebody pasted; NCCL itself breaks no line. A text that was broken at one width
shows it: what goes on below stands under lines that had no room for one more word. Elsewhere a piece is put behind a
line only where torch's watchdog has not come to the end of its sentence. Line numbers stay those of the file: a piece
that moved leaves an empty line behind.

What programs and people put round the lines of a text without a word of their own: colours, and the `> ` of mail.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from topodiag.evidence.nccl_log.grammar.prefix import RECORD, clean, records
from topodiag.evidence.signatures.wrappers import shared_label, without_label
from topodiag.lazy import regex
from topodiag.words.colours import without_colours
from topodiag.words.own_data import own_data

COLOURS, QUOTED, LABELLED = "colours", "quoted", "label:"
OF_CONTAINERS = (f"{LABELLED}compose", f"{LABELLED}pod")
"""Labels that say neither rank nor time: taken off the lines of jobs, too."""
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


def label_of(head: bytes, whole: bool) -> str:
    """The layer of a label that all of the first lines share, as launchers and containers print it; "" for none. The
    last line of a part may be cut."""
    lines = [line for line in head.decode("utf-8", "replace").split("\n") if line.strip()]
    name = shared_label(lines if whole else lines[:-1])
    return f"{LABELLED}{name}" if name else ""


def undressed(blocks: Iterator[bytes], layer: str) -> Iterator[bytes]:
    """The text without a layer. Lines stay lines, and the same whatever blocks it comes in."""
    if layer.startswith(LABELLED):
        return _without_labels(blocks, layer.removeprefix(LABELLED))
    return _without_colours(blocks) if layer == COLOURS else (_MARK.sub(b"", part) for part in _parts(blocks))


def _without_labels(blocks: Iterator[bytes], name: str) -> Iterator[bytes]:
    bare = without_label(name)
    for part in _parts(blocks):
        yield "\n".join(map(bare, part.decode("utf-8", "replace").split("\n"))).encode()


def _without_colours(blocks: Iterator[bytes]) -> Iterator[bytes]:
    rest = b""
    for block in blocks:
        text = rest + block
        cut = _BEGUN.search(text, max(0, len(text) - MOST_CARRIED))
        rest = text[cut.start() :] if cut is not None else b""
        yield without_colours(text[: len(text) - len(rest)])
    if rest:
        yield rest


def _parts(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """The text in parts of whole lines."""
    rest = b""
    for block in blocks:
        whole, end, rest = (rest + block).rpartition(b"\n")
        if len(rest) > MOST_CARRIED and not end:  # a line without an end does not fill the memory
            whole, rest = rest[:-MOST_CARRIED], rest[-MOST_CARRIED:]
        if whole or end:
            yield whole + end
    yield rest


MOST_PIECES = 4
"""Lines that one record was broken into, at most, behind its first one."""

_LIKE = {name: regex(text) for name, text in own_data("evidence/nccl_log/input/wrapped_lines").items()}
_WATCHDOG_WORDS = "Watchdog caught collective operation timeout: WorkNCCL("
_WIDTHS = range(40, 241)
"""Columns at which terminals, mails and forums break lines."""
_LEAST_BREAKS = 2
_MOST_FOLDS = 24
"""Pieces of NCCL's longest line, 1,024 characters (src/debug.cc), at the least width."""


def looks_broken(text: bytes) -> bool:
    """Whether some record of a short text was broken. `text` is all of it."""
    _, lines = _without_shared_label(text)
    return bool(_folds(lines)) or any(_record_at(lines, at) is not None for at in range(len(lines) - 1))


def whole_lines(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """The text with its records whole. It is short: `looks_broken` is asked of short texts only."""
    labels, lines = _without_shared_label(b"".join(blocks))
    lines = _unfolded(lines)
    at = 0
    while at < len(lines) - 1:
        pair = _record_at(lines, at)
        if pair is not None:
            text, pieces = pair
            lines[at : at + pieces + 1] = [text.encode("utf-8", "replace"), *[b""] * pieces]
            at += pieces
        at += 1
    yield b"\n".join(label + line if line else line for label, line in zip(labels, lines, strict=True))


def _without_shared_label(text: bytes) -> tuple[list[bytes], list[bytes]]:
    """The label that all lines share, of each line, and the lines without it: what it stands before was broken."""
    lines = text.split(b"\n")
    layer = label_of(text, whole=True)
    if not layer:
        return [b""] * len(lines), lines
    bare = b"".join(_without_labels(iter((text,)), layer.removeprefix(LABELLED))).split(b"\n")
    return [line[: len(line) - len(own)] for line, own in zip(lines, bare, strict=True)], bare


def _folds(lines: list[bytes]) -> list[int]:
    """The lines that go on in the one below because the text was broken at one width; none where it was not."""
    texts = [clean(line).rstrip() for line in lines]
    width = max(map(len, texts), default=0)
    if width not in _WIDTHS:
        return []
    begin = [_LIKE["headed"].match(text) is not None or _is_record(text) for text in texts]
    if not any(begin):
        return []
    below = [at for at, text in enumerate(texts) if at and text and texts[at - 1] and not begin[at]]
    full = [at - 1 for at in below if len(texts[at - 1]) + 1 + len(texts[at].split(None, 1)[0]) > width]
    return full if len(full) >= max(_LEAST_BREAKS, 2 * (len(below) - len(full))) else []


def _unfolded(lines: list[bytes]) -> list[bytes]:
    """The lines with those that were broken at one width whole again."""
    folds = set(_folds(lines))
    texts = [clean(line) for line in lines]
    # Broken by a terminal every line is full to the last column, and a word goes on in the next.
    between = "" if {len(texts[at]) for at in folds} == {max(map(len, texts))} else " "
    unfolded, at = list(lines), 0
    while at < len(lines):
        last = at
        while last in folds and last - at < _MOST_FOLDS:
            last += 1
        if last > at:
            pieces = [text if not between else text.strip() for text in texts[at : last + 1]]
            unfolded[at : last + 1] = [between.join(pieces).encode("utf-8", "replace"), *[b""] * (last - at)]
        at = last + 1
    return unfolded


def _record_at(lines: list[bytes], at: int) -> tuple[str, int] | None:
    """The sentence of torch's watchdog that begins on this line with its further pieces, and how many; None where it is
    whole, or where no pieces make it so."""
    first = clean(lines[at])
    if _LIKE["watchdog"].search(first) is None:
        return None
    text, work = first, None
    pieces = [piece for raw in lines[at + 1 : at + 1 + MOST_PIECES] if (piece := clean(raw)).strip()]
    for number, piece in enumerate(pieces, 1):
        if _is_record(piece):
            break
        close = text.rstrip() + piece.strip()
        text = close if _WATCHDOG_WORDS in close and _WATCHDOG_WORDS not in text else f"{text.rstrip()} {piece.strip()}"
        if _LIKE["watchdog"].search(text) is None:
            return text, number
        if (
            work is None
            and _LIKE["watchdog_work"].search(first) is None
            and _LIKE["watchdog_work"].search(text) is not None
        ):
            work = text, number
    return work


def _is_record(line: str) -> bool:
    return RECORD.search(line) is not None or any(True for _ in records(line))
