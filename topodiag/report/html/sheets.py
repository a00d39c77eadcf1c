"""The sheet of each kind of report: what its command prints on a terminal, its JSON, and the pictures it adds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from topodiag.model.result import Result
from topodiag.report.documents.from_model import Document
from topodiag.report.findings import draw_findings
from topodiag.report.formats.json_report import document
from topodiag.report.gaps import draw_gaps, gaps_of
from topodiag.report.html.interface import Extras, Sheet
from topodiag.report.interface import Style
from topodiag.report.page import Draw
from topodiag.report.places import Places
from topodiag.report.text import Page

WIDE = 110
"""Columns of the terminal's text on the page."""


NODES_WITH_FACTS = 64
"""More nodes than these have no facts in the page: each has some 100 kB of them, and the page shows kinds of nodes."""


def result_sheet(command: str, result: Result, draw: Draw, extras: Extras | None = None) -> Sheet:
    """The sheet of a command whose answer is a result."""
    page = Page(Style(width=WIDE, names=Places(result).sent), on_screen=False)
    if len(result.nodes) <= NODES_WITH_FACTS:
        draw(page, result)
        return Sheet(command, result, page, document(result), extras or Extras())
    light = replace(result, nodes=(), not_observed=tuple(gaps_of(result)))
    draw_findings(page, result.findings, several_nodes=True)
    draw_gaps(page, light)
    return Sheet(command, result, page, document(light), extras or Extras(), lacks="the facts of the nodes")


def drawn_sheet(
    command: str, draw: Callable[[Page], None], dumped: Document | None, result: Result, extras: Extras | None = None
) -> Sheet:
    """The sheet of a command that draws its answer; `result` holds its findings, nodes and inputs."""
    page = Page(Style(width=WIDE), on_screen=False)
    draw(page)
    page.repeat_answers()
    return Sheet(command, result, page, dumped, extras or Extras(), leading=True)
