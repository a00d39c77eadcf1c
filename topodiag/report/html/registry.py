"""The sections of the page that have something to say, in the order of sections.toml."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from importlib import import_module

from topodiag.report.html.interface import Section, Sheet
from topodiag.words.own_data import own_data

ORDER: Mapping[str, str] = own_data("report/html/sections")["labels"]
"""Sections with their words in the navigation."""


def sections_of(sheet: Sheet) -> Iterator[Section]:
    """The sections that have something to say."""
    for name, label in ORDER.items():
        section: Section | None = import_module(f"topodiag.report.html.sections.{name}").section(sheet)
        if section is not None:
            yield replace(section, label=label)
