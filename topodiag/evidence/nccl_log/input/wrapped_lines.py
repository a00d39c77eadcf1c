"""Excerpts in which a terminal, a mail or a forum broke the sentence of torch's watchdog: its pieces joined again.

Only short texts are mended, those that somebody pasted. A piece is put behind a line only where the watchdog has not
come to the end of its sentence. Line numbers stay those of the file: a piece that moved leaves an empty line behind.

Of HTCondor's log of events, how a job ended is put behind the line that says which job it is.

What programs and people put round the lines of a text without a word of their own: colours, and the `> ` of mail.
"""

from __future__ import annotations

from collections.abc import Iterator

from topodiag.evidence.nccl_log.grammar.prefix import RECORD, clean, records
from topodiag.evidence.nccl_log.input.json_lines import JOB_EVENTS, JSON_LINES, WRAPPED_LINES, json_lines
from topodiag.evidence.signatures.literals import parts_of_lines, plain
from topodiag.evidence.signatures.wrappers import shared_label, without_label
from topodiag.words.colours import without_colours
from topodiag.words.own_data import byte_patterns, patterns

COLOURS, QUOTED, LABELLED = "colours", "quoted", "label:"
OF_CONTAINERS = (f"{LABELLED}compose", f"{LABELLED}pod")
"""Labels that say neither rank nor time: taken off the lines of jobs, too."""
_BYTES = byte_patterns("evidence/nccl_log/input/wrapped_lines", "bytes")
"""SOURCE: HTCondor src/condor_utils/condor_event.cpp (ULogEvent::formatHeader, TerminatedEvent::formatBody)."""
_MOST_OF_EVENT = 1 << 12
"""Bytes of an event that tell how its job ended."""
_LONGEST = 64
"""Bytes of a line whose begin shows what is taken off: of a longer one without an end no more are kept."""


def dress_of(head: bytes) -> Iterator[str]:
    """The layers that the first bytes of a text show, from outside in."""
    if b"\x1b[" in head:
        yield COLOURS
        head = without_colours(head)
    lines = [line for line in head.splitlines() if line.strip()]
    if len(lines) > 1 and all(line.startswith(b">") for line in lines[:-1]):  # the last one may be cut
        yield QUOTED
    if head.lstrip().startswith(b"0") and _BYTES["of_jobs"].match(head) is not None:
        yield JOB_EVENTS


def label_of(head: bytes, whole: bool) -> str:
    """The layer of a label that all of the first lines share, as launchers and containers print it; "" for none. The
    last line of a part may be cut."""
    lines = [line for line in head.decode("utf-8", "replace").split("\n") if line.strip()]
    name = shared_label(lines if whole else lines[:-1])
    return f"{LABELLED}{name}" if name else ""


def undressed(blocks: Iterator[bytes], layer: str) -> Iterator[bytes]:
    """The text without a layer. Lines stay lines, and the same whatever blocks it comes in."""
    if layer == JSON_LINES:
        return json_lines(blocks)
    if layer == WRAPPED_LINES:
        return whole_lines(blocks)
    if layer == JOB_EVENTS:
        return _whole_events(blocks)
    if layer.startswith(LABELLED):
        return _without_labels(blocks, layer.removeprefix(LABELLED))
    return (
        plain(blocks)
        if layer == COLOURS
        else (_BYTES["mark"].sub(b"", part) for part in parts_of_lines(blocks, _LONGEST))
    )


def _whole_events(blocks: Iterator[bytes]) -> Iterator[bytes]:
    held = b""
    for part in parts_of_lines(blocks, _MOST_OF_EVENT):
        text = held + part
        last = (b"\n" + text).rfind(b"\n005 (", max(0, len(text) - _MOST_OF_EVENT))
        done = text[:last] if last >= 0 else text
        yield _BYTES["job_ended"].sub(rb"\1 \2\n", done)
        held = text[len(done) :]
    yield _BYTES["job_ended"].sub(rb"\1 \2\n", held)


def _without_labels(blocks: Iterator[bytes], name: str) -> Iterator[bytes]:
    bare = without_label(name)
    for part in parts_of_lines(blocks, _LONGEST):
        yield "\n".join(map(bare, part.decode("utf-8", "replace").split("\n"))).encode()


MOST_PIECES = 4
"""Lines that one record was broken into, at most, behind its first one."""

_LIKE = patterns("evidence/nccl_log/input/wrapped_lines", "text")
_WATCHDOG_WORDS = "Watchdog caught collective operation timeout: WorkNCCL("


def looks_broken(text: bytes) -> bool:
    """Whether some record of a short text was broken. `text` is all of it."""
    lines = text.split(b"\n")
    return any(_record_at(lines, at) is not None for at in range(len(lines) - 1))


def whole_lines(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """The text with its records whole. It is short: `looks_broken` is asked of short texts only."""
    lines = b"".join(blocks).split(b"\n")
    at = 0
    while at < len(lines) - 1:
        pair = _record_at(lines, at)
        if pair is not None:
            text, pieces = pair
            lines[at : at + pieces + 1] = [text.encode("utf-8", "replace"), *[b""] * pieces]
            at += pieces
        at += 1
    yield b"\n".join(lines)


def _record_at(lines: list[bytes], at: int) -> tuple[str, int] | None:
    """The sentence of torch's watchdog that begins on this line with its further pieces, and how many; None where it is
    whole, or where no pieces make it so."""
    first = clean(lines[at])
    if _LIKE["watchdog"].search(first) is None:
        return None
    text, work, has_work = first, None, _LIKE["watchdog_work"].search(first) is not None
    pieces = [piece for raw in lines[at + 1 : at + 1 + MOST_PIECES] if (piece := clean(raw)).strip()]
    for number, piece in enumerate(pieces, 1):
        if RECORD.search(piece) is not None or next(records(piece), None) is not None:
            break
        close = text.rstrip() + piece.strip()
        text = close if _WATCHDOG_WORDS in close and _WATCHDOG_WORDS not in text else f"{text.rstrip()} {piece.strip()}"
        if _LIKE["watchdog"].search(text) is None:
            return text, number
        if not has_work and _LIKE["watchdog_work"].search(text) is not None:
            work, has_work = (text, number), True
    return work
