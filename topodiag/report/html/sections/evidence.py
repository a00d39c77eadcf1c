"""Every line that a finding rests on, with its file and line, and which finding it shows."""

from __future__ import annotations

from topodiag.report.html.interface import Anchors, Section, Sheet, quotes
from topodiag.report.places import Places
from topodiag.words.units import grouped

MOST = 1000
NAMED = 4
"""Findings that a line names."""


def section(sheet: Sheet) -> Section | None:
    """None where no finding quotes anything."""
    result = sheet.result
    places = Places(result)
    lines = grouped(
        (quote, (finding.id, anchor))
        for anchor, finding in Anchors(result).named
        for quote in quotes(finding.evidence, finding, places)
    )
    if not lines:
        return None
    shown = [(quote, list(dict.fromkeys(used))) for quote, used in list(lines.items())[:MOST]]
    values = {"lines": shown, "named": NAMED, "left": max(len(lines) - MOST, 0)}
    return Section("evidence", "Evidence", values, note=str(len(lines)))
