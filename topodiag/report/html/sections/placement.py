"""Where ranks sit and what that costs by dimension, before and after: what the commands of `place` hand over."""

from __future__ import annotations

from topodiag.report.html.interface import Section, Sheet, figures


def section(sheet: Sheet) -> Section | None:
    """None for other commands."""
    return figures(sheet, "placement", "Placement")
