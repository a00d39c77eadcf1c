"""What the commands of `place` add to their page: the layout drawn, before and after, and its cost by dimension."""

from __future__ import annotations

from topodiag.placement.audit import Audit
from topodiag.placement.solve import Solved
from topodiag.placement.view import Look, look_of
from topodiag.report.documents.from_model import Document
from topodiag.report.html.interface import Cell, Drawing, Extras, Grid
from topodiag.report.place.look_svg import look_svg
from topodiag.words.units import percent


def audit_extras(audit: Audit, document: Document) -> Extras:
    """The layout beside the map that it is compared with, and a row for each dimension."""
    heads = ("Dimension", "Groups", "Ranks each", "Reaches over", "ms now", "ms packed", "Lost")
    rows = [
        [Cell(name), _count(each["groups"]), _count(each["size"]), Cell(each["level"]),
         _ms(each["ms_per_step"]), _ms(each["best_ms"]),
         Cell(percent(each["lost_percent"] / 100), each["lost_percent"], "warning" if each["split"] else "")]
        for name, each in document["cost"].items()
    ]  # fmt: skip
    grid = Grid("dimensions", "Communication by dimension", heads, rows, right=frozenset({1, 2, 4, 5, 6}))
    layouts = [(audit.name, audit.assignment), ("packed", audit.best)]
    return _extras(look_of(audit.cluster, audit.talk, layouts), grid)


def solve_extras(solved: Solved, document: Document) -> Extras:
    """The layout before beside the map that was found, and a row for each dimension."""
    heads = ("Dimension", "Groups", "Ranks each", "Reaches over", "ms before", "ms now", "Least possible")
    rows = [
        [Cell(name), _count(each["groups"]), _count(each["size"]), Cell(each["level"]),
         _ms(each["before_ms_per_step"]), _ms(each["ms_per_step"]), _ms(each["bound_ms"])]
        for name, each in document["cost"].items()
    ]  # fmt: skip
    grid = Grid("dimensions", "Communication before and after", heads, rows, right=frozenset({1, 2, 4, 5, 6}))
    layouts = [(solved.before_name, solved.before), ("solved", solved.solution.assignment)]
    return _extras(look_of(solved.cluster, solved.talk, layouts), grid)


def _extras(look: Look | None, grid: Grid | None) -> Extras:
    drawings = () if look is None else (Drawing("placement", _title(look), look_svg(look, prefix="look"), inline=True),)
    return Extras(drawings, {"placement": (grid,)} if grid is not None and grid.rows else {})


def _title(look: Look) -> str:
    return f"Groups of {look.dimension} on their nodes: " + ", ".join(f"{v.title}, {v.said}" for v in look.views)


def _count(value: int) -> Cell:
    return Cell(str(value), value)


def _ms(value: float) -> Cell:
    return Cell(f"{value:,.2f}", value)
