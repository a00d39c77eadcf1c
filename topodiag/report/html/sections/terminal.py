"""What the command prints on a terminal: the answer itself where a command has no findings, else folded away."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from rich.text import Text

from topodiag.report.html.interface import Section, Sheet
from topodiag.words.own_data import own_data

MOST = 2000
"""Lines kept."""


def section(sheet: Sheet) -> Section | None:
    """None where the command prints nothing."""
    lines = lines_of(sheet.page.lines[:MOST])
    if not lines:
        return None
    folded = not sheet.leading or bool(sheet.result.findings)
    title = "The report as text" if folded else "Report"
    return Section("terminal", title, {"lines": lines, "folded": folded})


_HUES: Mapping[str, str] = own_data("report/hues")["page"]

Line = list[tuple[str, str]]


def lines_of(lines: Sequence[Text]) -> list[Line]:
    """Each line as (text, hue); the hue is "" for plain text."""
    return [_pieces(line) for line in lines]


def _pieces(line: Text) -> Line:
    plain = line.plain
    edges = sorted({0, len(plain), *(at for span in line.spans for at in (span.start, span.end) if at < len(plain))})
    pieces: Line = []
    for start, end in pairwise(edges):
        inside = [span for span in line.spans if span.start <= start and end <= span.end]
        hue = _HUES.get(str(inside[-1].style), "") if inside else ""
        if pieces and pieces[-1][1] == hue:
            pieces[-1] = (pieces[-1][0] + plain[start:end], hue)
        else:
            pieces.append((plain[start:end], hue))
    return pieces
