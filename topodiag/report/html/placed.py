"""What the commands of `place` add to their page: the layout drawn, before and after, and its cost by dimension."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from topodiag.placement.audit import Audit
from topodiag.placement.solve import Solved
from topodiag.placement.view import Look, look_of
from topodiag.report.documents.from_model import Document
from topodiag.report.html.interface import Cell, Columns, Drawing, Extras, Grid, figure, grid_of
from topodiag.report.place.look_svg import look_svg
from topodiag.words.units import percent

Priced = tuple[str, Document]
"""A dimension, and its cost in the document."""


def _columns(times: Mapping[str, str]) -> Columns[Priced]:
    """The dimension and its groups, then these times by their heading."""
    return {
        "Dimension": lambda row: row[0],
        ">Groups": lambda row: row[1]["groups"],
        ">Ranks each": lambda row: row[1]["size"],
        "Reaches over": lambda row: row[1]["level"],
        **{head: partial(_time, key) for head, key in times.items()},
    }


def _time(key: str, row: Priced) -> Cell:
    return figure(row[1][key], "{:,.2f}".format)


_AUDITED: Columns[Priced] = {
    **_columns({">ms now": "ms_per_step", ">ms packed": "best_ms"}),
    ">Lost": lambda row: Cell(
        percent(row[1]["lost_percent"] / 100), row[1]["lost_percent"], "warning" if row[1]["split"] else ""
    ),
}
_SOLVED = _columns({">ms before": "before_ms_per_step", ">ms now": "ms_per_step", ">Least possible": "bound_ms"})


def audit_extras(audit: Audit, document: Document) -> Extras:
    """The layout beside the map that it is compared with, and a row for each dimension."""
    grid = grid_of("dimensions", "Communication by dimension", _AUDITED, list(document["cost"].items()))
    return _extras(look_of(audit.cluster, audit.talk, [(audit.name, audit.assignment), ("packed", audit.best)]), grid)


def solve_extras(solved: Solved, document: Document) -> Extras:
    """The layout before beside the map that was found, and a row for each dimension."""
    grid = grid_of("dimensions", "Communication before and after", _SOLVED, list(document["cost"].items()))
    layouts = [(solved.before_name, solved.before), ("solved", solved.solution.assignment)]
    return _extras(look_of(solved.cluster, solved.talk, layouts), grid)


def _extras(look: Look | None, grid: Grid) -> Extras:
    if look is None:
        return Extras("placement", (), (grid,))
    layouts = ", ".join(f"{view.title}, {view.summary}" for view in look.views)
    drawing = Drawing(f"Groups of {look.dimension} on their nodes: {layouts}", look_svg(look, prefix="look"))
    return Extras("placement", (drawing,), (grid,))
