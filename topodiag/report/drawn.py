"""A report that is drawn on a page: the terminal prints it, and the HTML page keeps it as text."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import TextIO

from topodiag.model.result import Result
from topodiag.report.interface import Report, Style
from topodiag.report.page import print_page
from topodiag.report.places import Places
from topodiag.report.text import Page


class DrawnReport(Report):
    """What a person reads of a result."""

    name = "table"

    @abstractmethod
    def draw(self, page: Page, result: Result) -> None:
        """Add the lines of the report, the one that repeats the answer too."""

    def render(self, result: Result, stream: TextIO, style: Style) -> None:
        page = Page(replace(style, names=Places(result).in_text))
        self.draw(page, result)
        print_page(page, stream)
