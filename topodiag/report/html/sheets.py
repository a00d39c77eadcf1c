"""The sheet of each kind of report: what its command prints on a terminal, its JSON, and the pictures it adds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from topodiag.model.result import Result
from topodiag.report.answer import repeat_answers
from topodiag.report.drawn import DrawnReport
from topodiag.report.formats.json_report import document
from topodiag.report.html.interface import Drawing, Grid, Sheet
from topodiag.report.interface import Style
from topodiag.report.text import Page

if TYPE_CHECKING:
    from msgspec import Struct

WIDE = 110
"""Columns of the terminal's text on the page."""


def result_sheet(command: str, result: Result, report: DrawnReport) -> Sheet:
    """The sheet of a command whose answer is a result."""
    page = Page(Style(width=WIDE))
    report.draw(page, result)
    return Sheet(command, result, page, document(result))


def drawn_sheet(
    command: str,
    draw: Callable[[Page], None],
    dumped: Struct,
    *,
    result: Result | None = None,
    drawings: tuple[Drawing, ...] = (),
    grids: Mapping[str, tuple[Grid, ...]] | None = None,
) -> Sheet:
    """The sheet of a command that draws its answer; `result` holds its findings and inputs."""
    page = Page(Style(width=WIDE))
    draw(page)
    repeat_answers(page)
    return Sheet(command, result or Result(), page, dumped, drawings, grids or {}, leading=True)
