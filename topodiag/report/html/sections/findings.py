"""All findings, worst first, each with what was seen, what was to be expected, its cost, its fix and its evidence."""

from __future__ import annotations

from collections import Counter

from topodiag.report.html.interface import Anchors, Section, Sheet
from topodiag.report.places import Places
from topodiag.report.words import KINDS

EVIDENCE_SHOWN = 20
"""Lines of evidence below one finding."""
OPENED = 12
"""Findings up to this number all stand open at first."""
OPENED_OF_MANY = 4
"""Of more the worst ones, so that what comes below is in reach."""


def section(sheet: Sheet) -> Section | None:
    """None where nothing was found: the verdict says that."""
    result = sheet.result
    anchors = Anchors(result)
    shown = anchors.named
    if not shown:
        return None
    counts = Counter(KINDS[finding.severity] for _, finding in shown)
    values = {
        "findings": shown,
        "kinds": [(kind, counts[kind]) for kind in ("error", "warning", "note") if counts[kind]],
        "anchors": anchors,
        "places": Places(result),
        "quoted": EVIDENCE_SHOWN,
        "opened": OPENED if len(shown) <= OPENED else OPENED_OF_MANY,
        "left": len(result.findings) - len(shown),
    }
    return Section("findings", "Findings", values, note=str(len(result.findings)))
