"""Physical lines: launchers' labels taken off, records of NCCL cut out, so that what nccl-tests wrote is left.

A launcher's label is kept as the key of a stream: each process of a job writes its own text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from topodiag.evidence.nccl_log.grammar.prefix import BARE, RECORD
from topodiag.lazy import dataclass, regex
from topodiag.words.colours import without_colours

MAX_LINE = 1 << 16
"""Bytes of one line that are looked at; a row with all its broken pieces is below a tenth of this."""

_LABELS = (
    regex(r"\s{0,20}[|>]\s?"),
    # Container engines (CRI), Ray, CloudWatch, `mpirun --timestamp-output`.
    regex(r"\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[\d.,]{0,12}(?:Z|[+-]\d\d:?\d\d)?\]?\s{0,4}(?:std(?:out|err) [FP] )?"),
    regex(r"[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4}(?=[\[<])"),
)
_KEYED = (
    regex(r"\[([\w.@-]{1,100},\d{1,6})\](?:<std(?:out|err)>)?:? ?"),
    regex(r"\[(\d{1,6})\] ?"),
    regex(r"\[(pod/[\w./-]{1,300})\] ?"),
    regex(r"\(([\w./-]{1,60} pid=\d{1,10}(?:, ip=[\w.:]{1,60})?)\) ?"),
    regex(r"\s{0,6}(\d{1,6}): ?"),
    regex(r"([A-Za-z0-9][\w.-]{0,100}): (?=[#\s]|\d)"),
)
TAG = regex(r"\[[\w.@-]{0,100}\d{1,6},\d{1,6}\](?:<std(?:out|err)>)?:?|\[\d{1,6}\](?!\w)")
"""A label in the middle of a line: the row went on after another process had written."""


@dataclass(frozen=True, slots=True)
class Line:
    """`key`: the stream it belongs to, "" without a label. `text`: without label. `number` from 1."""

    number: int
    key: str
    text: str
    raw: str


def physical(data: bytes) -> Iterator[tuple[int, str, bool]]:
    """Numbered lines of the text without ends and colours, and whether one was cut for its length."""
    start, number, size = 0, 0, len(data)
    while start < size:
        end = data.find(b"\n", start)
        end = size if end < 0 else end
        number += 1
        cut = end - start > MAX_LINE
        raw = data[start : min(end, start + MAX_LINE)]
        start = end + 1
        for piece in raw.split(b"\r"):
            yield number, without_colours(piece.decode("utf-8", "replace")), cut


def labelled(number: int, text: str) -> Line:
    """The line without what launchers and log collectors put in front."""
    key: list[str] = []
    at = 0
    for _ in range(4):
        before = at
        for pattern in _LABELS:
            found = pattern.match(text, at)
            if found:
                at = found.end()
        for keyed in _KEYED:
            found = keyed.match(text, at)
            if found:
                key.append(found[1])
                at = found.end()
                break
        if at == before:
            break
    return Line(number, " ".join(key), text[at:], text)


_GLUED = regex(r"-1|\d+(?:\.\d+)?(?:e[+-]?\d+)?(?=[A-Za-z])|N/A")


def without_records(text: str, hosts: frozenset[str], words: re.Pattern[str], *, in_row: bool) -> tuple[str, str]:
    """What a line holds before NCCL's first record, and the records. A row is written in pieces without line ends, so
    the last cell of a piece can be glued to the host's name: `-1gpu-a01:12:34 [0] NCCL INFO`."""
    if "NCCL" not in text and "INFO" not in text:
        return text, ""
    head = RECORD.search(text)
    if head is None:
        bare = BARE.search(text)
        return (text[: bare.start()], text[bare.start() :]) if bare else (text, "")
    at = head.start(1)
    host = head[1]
    if host not in hosts:
        ends = [known for known in hosts if host.endswith(known)]
        if ends:
            at += len(host) - len(max(ends, key=len))
        elif in_row or text[:at].strip()[:1].isdigit():
            glued = _GLUED.match(host) or words.match(host)
            at += glued.end() if glued else 0
    return text[:at], text[at:]
