"""What the commands of `place` add to their page: the layout drawn, before and after, and its cost by dimension."""

from __future__ import annotations

from topodiag.draw.layouts import look_svg
from topodiag.placement.audit import Audit
from topodiag.placement.solve import Solved
from topodiag.placement.view import Look, look_of
from topodiag.report.html.interface import Drawing, Extras, Grid, grid_of
from topodiag.report.place.layouts import DIMENSIONS, costs_of, dimension_columns


def audit_extras(audit: Audit) -> Extras:
    """The layout beside the map that it is compared with, and a row for each dimension."""
    grid = grid_of("dimensions", "Communication by dimension", dimension_columns(audit), audit.dimensions)
    return _extras(look_of(audit.cluster, audit.talk, [(audit.name, audit.assignment), ("packed", audit.best)]), grid)


def solve_extras(solved: Solved) -> Extras:
    """The layout before beside the map that was found, and a row for each dimension."""
    grid = grid_of("dimensions", "Communication before and after", DIMENSIONS, costs_of(solved))
    layouts = [(solved.before_name, solved.before), ("solved", solved.solution.assignment)]
    return _extras(look_of(solved.cluster, solved.talk, layouts), grid)


def _extras(look: Look | None, grid: Grid) -> Extras:
    if look is None:
        return Extras("placement", (), (grid,))
    layouts = ", ".join(f"{view.title}, {view.summary}" for view in look.views)
    drawing = Drawing(f"Groups of {look.dimension} on their nodes: {layouts}", look_svg(look, prefix="look"))
    return Extras("placement", (drawing,), (grid,))
