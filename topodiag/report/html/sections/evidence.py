"""Every line that a finding rests on, with its file and line, and which finding it shows."""

from __future__ import annotations

from topodiag.report.html.interface import Section, Sheet
from topodiag.report.html.sections.shared import Anchors
from topodiag.report.places import Places

MOST = 1000
NAMED = 4
"""Findings that a line names."""


def section(sheet: Sheet) -> Section | None:
    """None where no finding quotes anything."""
    result = sheet.result
    places = Places(result)
    lines: dict[tuple[str, str, str], list[tuple[str, str]]] = {}
    for anchor, finding in Anchors(result).named:
        for origin in finding.evidence:
            key = (places.spell(origin, finding), " ".join(origin.text.split()), origin.command)
            used = lines.setdefault(key, [])
            if (finding.id, anchor) not in used:
                used.append((finding.id, anchor))
    if not lines:
        return None
    values = {"lines": list(lines.items())[:MOST], "named": NAMED, "left": max(len(lines) - MOST, 0)}
    return Section("evidence", "Evidence", values, note=str(len(lines)))
