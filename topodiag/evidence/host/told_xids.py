"""Xids that a tool of its own wording tells: `XID 120 (GSP Error) detected on PCI:0000:9c:00`, `last xid: 79`.

The kernel's own line and those of known agents are read by `kernel_log`. Here a number counts where the line says that
it was met. A text that lists many numbers explains them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from topodiag.evidence.host.part_states import not_said
from topodiag.hardware.xids import xid

MAX_LINE = 1000
MOST = 4
"""Numbers in one text from which on it is a list of what they mean, unless a bus or a GPU stands with each."""
_XID = re.compile(
    r"\bXid(?:s|Errors?|_errors?)?(?: errors?)?(?: codes?| events?)?\s{0,2}[:=#(]{0,2}\s{0,2}(\d{1,3})\b(?![.:]\d)",
    re.I,
)
_MET = re.compile(
    r"\b(?:detected|found|reported|occurr?ed|received|got|saw|seen|hit|logged|raised|threw|error|critical|fatal|failed|unhealthy"
    r"|last|died|crashed|after|with|on)\b|[:=]\s{0,2}\d{1,3}\s*\Z",
    re.IGNORECASE,
)
_WHERE = re.compile(
    r"\b(?:PCI:?\s{0,2})?[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\b|\bGPU[ -#:=]{0,2}(?:\d{1,2}\b|[0-9a-f]{8})", re.I
)
_BUS = re.compile(r"\b([0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2})\b", re.I)
_TABLE_ROW = re.compile(r"\s{0,8}\||\s{0,8}[-*]\s|\s{0,8}\d{1,3}\s{0,4}[|,:]")


@dataclass(frozen=True, slots=True)
class ToldXid:
    """A number, the line that tells it, and the bus id that stands there."""

    code: int
    line: int
    bus_id: str | None
    text: str


def told_xids(lines: Sequence[str]) -> tuple[ToldXid, ...]:
    """The Xids that numbered lines (from 1) say were met, each number and bus once."""
    found = list(_found(lines))
    if len({each.code for each in found}) >= MOST and any(_WHERE.search(each.text) is None for each in found):
        return ()
    made: dict[tuple[int, str | None], ToldXid] = {}
    for each in found:
        made.setdefault((each.code, each.bus_id), each)
    return tuple(made.values())


def _found(lines: Sequence[str]) -> Iterator[ToldXid]:
    for number, whole in enumerate(lines, 1):
        if "xid" not in whole.lower():
            continue
        line = whole[:MAX_LINE]
        said = _XID.search(line)
        if said is None or _TABLE_ROW.match(line) or not_said(line) or not (_MET.search(line) or _WHERE.search(line)):
            continue
        if xid(int(said[1])) is not None:
            bus = _BUS.search(line)
            yield ToldXid(int(said[1]), number, bus[1] if bus is not None else None, " ".join(line.split())[:300])


__all__ = ["ToldXid", "told_xids"]
