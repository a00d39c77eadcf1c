"""What `fleet history` adds to its page: the nodes that fail or come and go over time, and counters that rise."""

from __future__ import annotations

from topodiag.checks.fleet.places import label_of
from topodiag.draw.history import draw_history
from topodiag.model.history import FleetHistory, NodeFailures, RisingCounter
from topodiag.report.html.interface import Cell, Columns, Drawing, Extras, grid_of
from topodiag.words.fold import few
from topodiag.words.units import number

_FAILING: Columns[NodeFailures] = {
    "Node": lambda failure: failure.host,
    ">New failures": lambda failure: failure.times,
    ">Captures with errors": lambda failure: failure.captures,
    "First": lambda failure: failure.first,
    "Last": lambda failure: failure.last,
    "What": lambda failure: few([f"{name} ({count}x)" for name, count in failure.failures], 4),
}
_RISING: Columns[RisingCounter] = {
    "Node": lambda growth: growth.host,
    "Part": lambda growth: label_of(growth.part),
    "Counter": lambda growth: growth.key,
    ">Rose by": lambda growth: Cell(f"{growth.count:,}", growth.count),
    ">Days": lambda growth: Cell(number(growth.hours / 24), growth.hours),
    ">Rises on": lambda growth: Cell(f"{growth.parts} of {growth.total}", growth.parts / growth.total),
}
_COMMON: Columns[tuple[str, int, int]] = {
    "Counter": lambda row: row[0],
    ">Rises on": lambda row: Cell(f"{row[1]} of {row[2]}", row[1] / row[2]),
}


def history_extras(answers: FleetHistory) -> Extras:
    """The picture and the tables of the section of nodes."""
    svg = draw_history(answers.tracks, prefix="history")
    drawings = (Drawing("Nodes over time", svg),) if svg else ()
    common = "Counters that rise on many parts, and so are no part's fault"
    grids = (
        grid_of("failing", "Nodes that keep failing", _FAILING, answers.failing),
        grid_of("rising", "Counters that rise on few parts", _RISING, answers.rising),
        grid_of("common", common, _COMMON, answers.common),
    )
    return Extras("nodes", drawings, grids)
