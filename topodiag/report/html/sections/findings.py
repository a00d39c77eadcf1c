"""All findings, worst first, each with what was seen, what was to be expected, its cost, its fix and its evidence."""

from __future__ import annotations

from collections import Counter

from topodiag.report.html.interface import Section, Sheet
from topodiag.report.html.sections.shared import FINDINGS_SHOWN, cards

OPENED = 12
"""Findings up to this number all stand open at first."""
OPENED_OF_MANY = 4
"""Of more the worst ones, so that what comes below is in reach."""


def section(sheet: Sheet) -> Section | None:
    """None where nothing was found: the verdict says that."""
    drawn = cards(sheet.result)
    if not drawn:
        return None
    counts = Counter(card.severity for card in drawn)
    kinds = [(kind, counts[kind]) for kind in ("error", "warning", "note") if counts[kind]]
    values = {
        "cards": drawn,
        "kinds": kinds,
        "opened": OPENED if len(drawn) <= OPENED else OPENED_OF_MANY,
        "left": max(len(sheet.result.findings) - FINDINGS_SHOWN, 0),
    }
    return Section("findings", "Findings", values, note=str(len(sheet.result.findings)))
