"""What `fleet history` adds to its page: the nodes that fail or come and go over time, and counters that rise."""

from __future__ import annotations

from topodiag.checks.fleet.places import label_of
from topodiag.draw.history import draw_history
from topodiag.model.history import FleetHistory
from topodiag.report.html.interface import Cell, Drawing, Extras, Grid
from topodiag.words.fold import few
from topodiag.words.units import number

ROWS_SHOWN = 500


def history_extras(answers: FleetHistory) -> Extras:
    """The picture and the tables of the section of nodes."""
    svg = draw_history(answers.tracks, prefix="history")
    drawings = (Drawing("nodes", "Nodes over time", svg, inline=True),) if svg else ()
    grids = tuple(grid for grid in (_failing(answers), _rising(answers), _common(answers)) if grid.rows)
    return Extras(drawings, {"nodes": grids} if grids else {})


def _failing(answers: FleetHistory) -> Grid:
    rows = [
        [
            Cell(failure.host),
            Cell(str(failure.times), failure.times),
            Cell(str(failure.captures), failure.captures),
            Cell(failure.first),
            Cell(failure.last),
            Cell(few([f"{name} ({count}x)" for name, count in failure.failures], 4)),
        ]
        for failure in answers.failing[:ROWS_SHOWN]
    ]
    heads = ("Node", "New failures", "Captures with errors", "First", "Last", "What")
    return Grid("failing", "Nodes that keep failing", heads, rows, frozenset({1, 2}), _more(len(answers.failing)))


def _rising(answers: FleetHistory) -> Grid:
    rows = [
        [
            Cell(growth.host),
            Cell(label_of(growth.part)),
            Cell(growth.key),
            Cell(f"{growth.count:,}", growth.count),
            Cell(number(growth.hours / 24), growth.hours),
            Cell(f"{growth.parts} of {growth.total}", growth.parts / growth.total),
        ]
        for growth in answers.rising[:ROWS_SHOWN]
    ]
    heads = ("Node", "Part", "Counter", "Rose by", "Days", "Rises on")
    return Grid("rising", "Counters that rise on few parts", heads, rows, frozenset({3, 4, 5}),
                _more(len(answers.rising)))  # fmt: skip


def _common(answers: FleetHistory) -> Grid:
    rows = [[Cell(key), Cell(f"{parts} of {total}", parts / total)] for key, parts, total in answers.common]
    caption = "Counters that rise on many parts, and so are no part's fault"
    return Grid("common", caption, ("Counter", "Rises on"), rows[:ROWS_SHOWN], frozenset({1}), _more(len(rows)))


def _more(count: int) -> str:
    return f"{count - ROWS_SHOWN} more rows are in the JSON" if count > ROWS_SHOWN else ""
