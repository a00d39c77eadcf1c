"""Every section of the page, one line each, in the order in which a reader needs them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module

from topodiag.report.html.interface import Section, Sheet

ORDER = {
    "verdict": "Verdict",
    "todo": "What to do",
    "chain": "Causes",
    "picture": "Machine",
    "waterfall": "Losses",
    "findings": "Findings",
    "job": "Ranks",
    "rings": "Rings",
    "timeline": "Timeline",
    "placement": "Placement",
    "curves": "Bandwidth",
    "nodes": "Nodes",
    "open": "Open",
    "evidence": "Evidence",
    "checks": "Checks",
    "inputs": "Inputs",
    "terminal": "Text",
}
"""Sections with their words in the navigation: all of them fit one line of a wide window."""


def sections_of(sheet: Sheet) -> Iterator[Section]:
    """The sections that have something to say."""
    for name, label in ORDER.items():
        section: Section | None = import_module(f"topodiag.report.html.sections.{name}").section(sheet)
        if section is not None:
            yield replace(section, label=label)
