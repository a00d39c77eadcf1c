"""What the commands on many nodes add to the section of nodes. `fleet compare`: whom to exclude, what differs, what is
equal, classes of nodes and outliers; `fleet history`: the nodes that fail or come and go over time, and counters that
rise; `bench read`: the pairs of nodes as a picture, and each run that is not like its kind."""

from __future__ import annotations

from topodiag.draw.fleet import draw_classes, draw_parts, draw_strips
from topodiag.draw.heat import heat_svg, rank
from topodiag.draw.history import draw_history
from topodiag.model.fleet import Cohort, Exclusion, FleetResult, Outlier, Population, Populations, SharedFact, spelled
from topodiag.model.history import FleetHistory
from topodiag.report.fleet.history import tables_of
from topodiag.report.grid import Cell, Columns, Field, figure
from topodiag.report.html.interface import Extras, Grid, drawings_of, grid_of
from topodiag.report.sweep.page import rails_of
from topodiag.report.words import SIGNS
from topodiag.sweep.values import Fabric, JudgedRun, Standing, SweepJudgement
from topodiag.words.units import few, fold_hosts, fold_labels, percent, spell_gbs

ROWS_SHOWN = 400
_HUES = {Standing.FAILED: "error", Standing.LOW: "warning"}


def fleet_extras(result: FleetResult) -> Extras:
    """Pictures and tables of the section of nodes."""
    drawings = drawings_of(
        ("Classes of nodes", draw_classes(result, prefix="classes")),
        ("Nodes by parts", draw_parts([node.host for node in result.nodes], result.findings, prefix="parts")),
        ("Odd numbers beside the usual ones", draw_strips(result, prefix="strips")),
    )
    grids = (_exclusions(result), *(grid for n, cohort in enumerate(result.cohorts) for grid in _cohort(cohort, n)))
    return Extras("nodes", drawings, grids)


def _exclusions(result: FleetResult) -> Grid:
    columns: Columns[Exclusion] = {
        Field("Nodes"): lambda exclusion: fold_hosts(exclusion.nodes),
        Field("Count", right=True): lambda exclusion: len(exclusion.nodes),
        Field("Severity"): lambda exclusion: Cell(
            (f"{SIGNS[exclusion.severity]} {exclusion.severity}", str(exclusion.severity)), exclusion.severity
        ),
        Field("Why"): lambda exclusion: "; ".join(f"{check} {message}" for check, message in exclusion.reasons),
    }
    return grid_of("exclude", "Nodes to exclude now", columns, result.exclusions)


_OUTLIERS: Columns[Outlier] = {
    Field("Family"): lambda outlier: outlier.family,
    Field("Fact"): lambda outlier: outlier.key,
    Field("Parts"): lambda outlier: _parts(outlier.parts),
    Field("Here"): lambda outlier: spelled(outlier.value, outlier.unit),
    Field("Usual"): lambda outlier: Cell(
        f"{spelled(outlier.usual, outlier.unit)} on {outlier.usual_count} of {outlier.total}", outlier.usual_count
    ),
    Field("Nodes"): lambda outlier: fold_hosts(outlier.nodes),
    Field("Count", right=True): lambda outlier: len(outlier.nodes),
    Field("Explained by"): lambda outlier: outlier.explained_by,
}
_POPULATIONS: Columns[tuple[Populations, Population]] = {
    Field("Facts"): lambda row: few([f"{family} {key}" for family, key, _ in row[0].facts], 4),
    Field("Value"): lambda row: ", ".join(row[1].values),
    Field("Count", right=True): lambda row: len(row[1].nodes),
    Field("Nodes"): lambda row: fold_hosts(row[1].nodes),
    Field("Goes with"): lambda row: row[0].association.attribute if row[0].association is not None else "",
}
_SAME: Columns[SharedFact] = {
    Field("Family"): lambda fact: fact.family,
    Field("Fact"): lambda fact: fact.key,
    Field("Parts"): lambda fact: _parts(fact.parts),
    Field("Value"): lambda fact: ", ".join(spelled(value, fact.unit) for value in fact.values),
    Field("Known on", right=True): lambda fact: fact.known,
}


def _cohort(cohort: Cohort, number: int) -> tuple[Grid, ...]:
    """What differs, which populations there are, and what is equal, of one kind of node."""
    of = f"{cohort.name}, {len(cohort.nodes)} nodes"
    groups = [(population, group) for population in cohort.populations for group in population.groups]
    return (
        grid_of(f"odd-{number}", f"What differs: {of}", _OUTLIERS, cohort.outliers),
        grid_of(f"split-{number}", f"Populations: {of}", _POPULATIONS, groups),
        grid_of(f"same-{number}", f"What is equal: {of}", _SAME, cohort.same),
    )


def _parts(parts: tuple[str, ...]) -> str:
    """`gpu0-7`; a fact of some parts and of the node itself names it, too."""
    return fold_labels([part or "node" for part in parts]) if any(parts) else ""


def history_extras(answers: FleetHistory) -> Extras:
    """The picture and the tables of the section of nodes."""
    drawings = drawings_of(("Nodes over time", draw_history(answers.tracks, prefix="history")))
    tables = enumerate(tables_of(answers))
    grids = (grid_of(f"history-{n}", title, columns, rows) for n, (title, columns, rows, _) in tables)
    return Extras("nodes", drawings, tuple(grids))


def sweep_extras(judged: SweepJudgement, fabric: Fabric) -> Extras:
    """The matrix, where there are two nodes and more, and the runs, worst first."""
    title = "Pairs of nodes, by share of what is normal"
    drawings = drawings_of((title, heat_svg(judged, fabric, title, prefix="pairs") if len(fabric.nodes) > 1 else ""))
    runs = sorted((run for run in judged.runs if run.standing in _HUES), key=rank)
    title = "Runs that are slower than those alike, or failed"
    slow = grid_of("odd-runs", title, _SLOW_RUNS, runs, ROWS_SHOWN, "runs are in the JSON")
    nodes, columns = rails_of(judged, fabric)
    title = "Nodes by rail: the best run over each, per cent of normal"
    rails = grid_of("rails", title, columns, nodes, ROWS_SHOWN, "nodes are in the JSON")
    return Extras("nodes", drawings, (rails, slow))


_SLOW_RUNS: Columns[JudgedRun] = {
    Field("Run"): lambda entry: entry.run.id,
    Field("Nodes"): lambda entry: fold_hosts(entry.run.nodes),
    Field("Rail", right=True): lambda entry: figure(entry.run.rail, str),
    Field("GB/s", right=True): lambda entry: figure(entry.gbs, spell_gbs),
    Field("Alike reach", right=True): lambda entry: figure(entry.reference, spell_gbs),
    Field("Share", right=True): lambda entry: figure(entry.share, percent),
    Field("Standing"): lambda entry: (entry.standing.value, _HUES[entry.standing]),
    Field("Why"): lambda entry: entry.why,
}
