"""What the command prints on a terminal: the answer itself where a command has no findings, else folded away."""

from __future__ import annotations

from topodiag.report.html.interface import Section, Sheet
from topodiag.report.html.lines import lines_of

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
