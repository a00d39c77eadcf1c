"""What the command prints on a terminal: the answer itself where a command has no findings, else folded away."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby

from rich.text import Text

from topodiag.report.html.interface import Section, Sheet
from topodiag.words.own_data import own_data

MOST = 2000
"""Lines kept."""


def section(sheet: Sheet) -> Section | None:
    """None where the command prints nothing."""
    lines = sheet.page.lines[:MOST]
    if not lines:
        return None
    folded = not sheet.leading or bool(sheet.result.findings)
    return Section("terminal", "The report as text" if folded else "Report", {"lines": lines, "folded": folded})


_HUES: Mapping[str, str] = own_data("report/hues")["page"]


def hued(line: Text) -> list[tuple[str, str]]:
    """A line as (text, hue); the hue is "" for plain text."""
    edges = {at for span in line.spans for at in (span.start, span.end) if 0 < at < len(line)}
    pieces = [(piece.plain, _HUES.get(str(piece.spans[-1].style), "") if piece.spans else "")
              for piece in line.divide(sorted(edges))]  # fmt: skip
    runs = groupby(pieces, key=lambda piece: piece[1])
    return [("".join(text for text, _ in own), hue) for hue, own in runs]
