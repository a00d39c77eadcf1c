"""What `fleet compare` adds to its page: whom to exclude, what is odd, what is equal, classes of nodes and outliers."""

from __future__ import annotations

from topodiag.draw.fleet import draw_classes, draw_parts, draw_strips
from topodiag.model.finding import Severity
from topodiag.model.fleet import Cohort, FleetResult
from topodiag.model.fleet_words import spelled
from topodiag.report.html.interface import Cell, Drawing, Extras, Grid
from topodiag.report.node.marks import SIGNS
from topodiag.words.fold import few, fold_hosts, fold_labels

ROWS_SHOWN = 500
_MARKS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: ""}


def fleet_extras(result: FleetResult) -> Extras:
    """Pictures and tables of the section of nodes."""
    pictures = (
        ("Classes of nodes", draw_classes(result, prefix="classes")),
        ("Nodes by parts", draw_parts([node.host for node in result.nodes], result.findings, prefix="parts")),
        ("Odd numbers beside the usual ones", draw_strips(result, prefix="strips")),
    )
    drawings = tuple(Drawing("nodes", title, svg, inline=True) for title, svg in pictures if svg)
    grids = (_exclusions(result), *(grid for n, cohort in enumerate(result.cohorts) for grid in _cohort(cohort, n)))
    return Extras(drawings, {"nodes": tuple(grid for grid in grids if grid.rows)})


def _exclusions(result: FleetResult) -> Grid:
    rows = [
        [
            Cell(fold_hosts(exclusion.nodes)),
            Cell(str(len(exclusion.nodes)), len(exclusion.nodes)),
            Cell(
                f"{SIGNS[exclusion.severity]} {exclusion.severity}",
                float(exclusion.severity),
                _MARKS[exclusion.severity],
            ),
            Cell("; ".join(f"{check} {message}" for check, message in exclusion.reasons)),
        ]
        for exclusion in result.exclusions
    ]
    return _grid("exclude", "Nodes to exclude now", ("Nodes", "Count", "Severity", "Why"), rows, {1})


def _cohort(cohort: Cohort, number: int) -> tuple[Grid, ...]:
    """What differs, which populations there are, and what is equal, of one kind of node."""
    of = f"{cohort.name}, {len(cohort.nodes)} nodes"
    cells = [
        [
            Cell(outlier.family),
            Cell(outlier.key),
            Cell(_parts(outlier.parts)),
            Cell(spelled(outlier.value, outlier.unit)),
            Cell(
                f"{spelled(outlier.usual, outlier.unit)} on {outlier.usual_count} of {outlier.total}",
                outlier.usual_count,
            ),
            Cell(fold_hosts(outlier.nodes)),
            Cell(str(len(outlier.nodes)), len(outlier.nodes)),
            Cell(outlier.explained_by),
        ]
        for outlier in cohort.outliers
    ]
    split = [
        [Cell(few([f"{family} {key}" for family, key, _ in population.facts], 4)), Cell(", ".join(group.values)),
         Cell(str(len(group.nodes)), len(group.nodes)), Cell(fold_hosts(group.nodes)),
         Cell(f"{population.association.attribute}" if population.association is not None else "")]
        for population in cohort.populations for group in population.groups
    ]  # fmt: skip
    same = [
        [Cell(each.family), Cell(each.key), Cell(_parts(each.parts)),
         Cell(", ".join(spelled(value, each.unit) for value in each.values)), Cell(str(each.known), each.known)]
        for each in cohort.same
    ]  # fmt: skip
    heads = ("Family", "Fact", "Parts", "Here", "Usual", "Nodes", "Count", "Explained by")
    return (
        _grid(f"odd-{number}", f"What differs: {of}", heads, cells, {6}),
        _grid(f"split-{number}", f"Populations: {of}", ("Facts", "Value", "Count", "Nodes", "Goes with"), split, {2}),
        _grid(f"same-{number}", f"What is equal: {of}", ("Family", "Fact", "Parts", "Value", "Known on"), same, {4}),
    )


def _parts(parts: tuple[str, ...]) -> str:
    """`gpu0-7`; a fact of some parts and of the node itself names it, too."""
    return fold_labels([part or "node" for part in parts]) if any(parts) else ""


def _grid(name: str, caption: str, heads: tuple[str, ...], rows: list[list[Cell]], right: set[int]) -> Grid:
    left = len(rows) - ROWS_SHOWN
    return Grid(name, caption, heads, rows[:ROWS_SHOWN], frozenset(right),
                f"{left} more rows are in the JSON" if left > 0 else "")  # fmt: skip
