"""What `bench read` adds to its page: the pairs of nodes as a picture, and each run that is not like its kind."""

from __future__ import annotations

from topodiag.model.sweep import Fabric, JudgedRun, Standing, SweepJudgement
from topodiag.report.html.interface import Cell, Drawing, Extras, Grid
from topodiag.report.sweep.heat import heat_svg
from topodiag.report.sweep.page import best_by_rail
from topodiag.words.fold import fold_hosts
from topodiag.words.units import percent, spell_gbs

ROWS_SHOWN = 400
_MARKS = {Standing.FAILED: "error", Standing.LOW: "warning"}


def sweep_extras(judged: SweepJudgement, fabric: Fabric) -> Extras:
    """The matrix, where there are two nodes and more, and the runs, worst first."""
    drawings: tuple[Drawing, ...] = ()
    if len(fabric.nodes) > 1:
        title = "Pairs of nodes, by share of what is normal"
        drawings = (Drawing("nodes", title, heat_svg(judged, fabric, title, prefix="pairs"), inline=True),)
    runs = sorted((run for run in judged.runs if run.standing in _MARKS), key=_rank)
    left = len(runs) - ROWS_SHOWN
    heads = ("Run", "Nodes", "Rail", "GB/s", "Alike reach", "Share", "Standing", "Why")
    grid = Grid(
        "odd-runs", "Runs that are slower than those alike, or failed", heads,
        [_row(judged_run) for judged_run in runs[:ROWS_SHOWN]], right=frozenset({2, 3, 4, 5}),
        left_out=f"{left} more runs are in the JSON" if left > 0 else "",
    )  # fmt: skip
    grids = tuple(one for one in (_rails(judged, fabric), grid) if one.rows)
    return Extras(drawings, {"nodes": grids} if grids else {})


def _rails(judged: SweepJudgement, fabric: Fabric) -> Grid:
    """The best run over each rail of each node whose rails were measured one by one."""
    best = best_by_rail(judged)
    rails = range(fabric.rails)
    nodes = [node for node in fabric.nodes if any((node, rail) in best for rail in rails)]
    left = len(nodes) - ROWS_SHOWN
    return Grid(
        "rails", "Nodes by rail: the best run over each, per cent of normal", ("Node", *map(str, rails)),
        [[Cell(node), *(_share(best.get((node, rail))) for rail in rails)] for node in nodes[:ROWS_SHOWN]],
        right=frozenset(range(1, fabric.rails + 1)), left_out=f"{left} more nodes are in the JSON" if left > 0 else "",
    )  # fmt: skip


def _share(judged_run: JudgedRun | None) -> Cell:
    if judged_run is None or judged_run.share is None:
        return Cell("", -1.0)
    return Cell(f"{judged_run.share * 100:.0f}", judged_run.share, _MARKS.get(judged_run.standing, ""))


def _rank(judged_run: JudgedRun) -> tuple[bool, float]:
    return judged_run.standing is not Standing.FAILED, judged_run.share if judged_run.share is not None else 0.0


def _row(entry: JudgedRun) -> list[Cell | str]:
    run = entry.run
    return [
        Cell(run.id), Cell(fold_hosts(run.nodes)), Cell("" if run.rail is None else str(run.rail), run.rail),
        _gbs(entry.gbs), _gbs(entry.reference),
        Cell("" if entry.share is None else percent(entry.share), entry.share),
        Cell(entry.standing.value, mark=_MARKS[entry.standing]), Cell(entry.why),
    ]  # fmt: skip


def _gbs(value: float | None) -> Cell:
    return Cell("", -1.0) if value is None else Cell(spell_gbs(value), value)
