"""The view of what was not understood."""

from __future__ import annotations

from topodiag.model.result import Result
from topodiag.report.gaps import unread_count
from topodiag.report.text import Page
from topodiag.words.fold import plural

SHAPES_SHOWN = 40


def draw_unread(page: Page, result: Result) -> None:
    """Shapes of records that nothing understood, the most frequent first, each with its first place."""
    page.blank()
    count = unread_count(result)
    if not count:
        page.add("", ("every record was understood", "ok"))
        return
    page.add("", (f"{plural(count, 'record')} not understood", "strong"))
    for line in page.listed(result.unread, SHAPES_SHOWN, "shape"):
        page.add("  ", line.why)
        place = line.source if line.line is None else f"{line.source}:{line.line}"
        page.add("      ", (place, "close"), f"  {line.text}" if line.text else "")
