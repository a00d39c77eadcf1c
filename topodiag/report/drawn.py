"""A report that is drawn on a page: the terminal prints it, and the HTML page keeps it as text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TextIO

from topodiag.model.result import Result
from topodiag.report.interface import Style
from topodiag.report.page import print_page
from topodiag.report.places import Places
from topodiag.report.text import Page

Draw = Callable[[Page, Result], None]
"""Adds what a person reads of a result to a page, the line that repeats the answer too."""


def print_drawn(draw: Draw, result: Result, stream: TextIO, style: Style) -> None:
    """The page of a result, on a stream."""
    page = Page(replace(style, names=Places(result).in_text))
    draw(page, result)
    print_page(page, stream)
