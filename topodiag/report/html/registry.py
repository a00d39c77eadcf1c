"""Every section of the page, one line each, in the order in which a reader needs them."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module

from topodiag.report.html.interface import Section, Sheet

ORDER = (
    "verdict",
    "todo",
    "chain",
    "picture",
    "waterfall",
    "findings",
    "job",
    "rings",
    "timeline",
    "placement",
    "curves",
    "nodes",
    "open",
    "evidence",
    "checks",
    "inputs",
    "terminal",
)


def sections_of(sheet: Sheet) -> Iterator[Section]:
    """The sections that have something to say."""
    for name in ORDER:
        made: Section | None = import_module(f"topodiag.report.html.sections.{name}").section(sheet)
        if made is not None:
            yield made
