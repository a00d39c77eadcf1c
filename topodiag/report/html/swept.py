"""What `bench read` adds to its page: the pairs of nodes as a picture, and each run that is not like its kind."""

from __future__ import annotations

from functools import partial

from topodiag.model.sweep import Fabric, JudgedRun, Standing, SweepJudgement
from topodiag.report.html.interface import Cell, Columns, Extras, Grid, drawings_of, figure, grid_of
from topodiag.report.sweep.heat import heat_svg, rank
from topodiag.report.sweep.page import best_by_rail
from topodiag.words.fold import fold_hosts
from topodiag.words.units import percent, spell_gbs

ROWS_SHOWN = 400
_MARKS = {Standing.FAILED: "error", Standing.LOW: "warning"}


def sweep_extras(judged: SweepJudgement, fabric: Fabric) -> Extras:
    """The matrix, where there are two nodes and more, and the runs, worst first."""
    title = "Pairs of nodes, by share of what is normal"
    drawings = drawings_of((title, heat_svg(judged, fabric, title, prefix="pairs") if len(fabric.nodes) > 1 else ""))
    runs = sorted((run for run in judged.runs if run.standing in _MARKS), key=rank)
    title = "Runs that are slower than those alike, or failed"
    slow = grid_of("odd-runs", title, _RUNS, runs, ROWS_SHOWN, "runs are in the JSON")
    return Extras("nodes", drawings, (_rails(judged, fabric), slow))


def _rails(judged: SweepJudgement, fabric: Fabric) -> Grid:
    """The best run over each rail of each node whose rails were measured one by one."""
    best = best_by_rail(judged)
    rails = range(fabric.rails)
    nodes = [node for node in fabric.nodes if any((node, rail) in best for rail in rails)]

    def share(rail: int, node: str) -> Cell:
        return _share(best.get((node, rail)))

    columns: Columns[str] = {"Node": str, **{f">{rail}": partial(share, rail) for rail in rails}}
    title = "Nodes by rail: the best run over each, per cent of normal"
    return grid_of("rails", title, columns, nodes, ROWS_SHOWN, "nodes are in the JSON")


def _share(judged_run: JudgedRun | None) -> Cell:
    if judged_run is None or judged_run.share is None:
        return Cell("", -1.0)
    return Cell(f"{judged_run.share * 100:.0f}", judged_run.share, _MARKS.get(judged_run.standing, ""))


_RUNS: Columns[JudgedRun] = {
    "Run": lambda entry: entry.run.id,
    "Nodes": lambda entry: fold_hosts(entry.run.nodes),
    ">Rail": lambda entry: "" if entry.run.rail is None else entry.run.rail,
    ">GB/s": lambda entry: figure(entry.gbs, spell_gbs),
    ">Alike reach": lambda entry: figure(entry.reference, spell_gbs),
    ">Share": lambda entry: Cell("" if entry.share is None else percent(entry.share), entry.share),
    "Standing": lambda entry: Cell(entry.standing.value, mark=_MARKS[entry.standing]),
    "Why": lambda entry: entry.why,
}
