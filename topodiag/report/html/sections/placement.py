"""Where ranks sit and what that costs by dimension, before and after: what the commands of `place` hand over."""

from __future__ import annotations

from topodiag.report.html.interface import Section, Sheet


def section(sheet: Sheet) -> Section | None:
    """None for other commands."""
    drawings, grids = sheet.of("placement"), sheet.extras.grids.get("placement", ())
    if not (drawings or grids):
        return None
    return Section("placement", "Placement", {"drawings": drawings, "grids": grids}, template="figures")
