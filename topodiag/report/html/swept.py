"""What `bench read` adds to its page: the pairs of nodes as a picture, and each run that is not like its kind."""

from __future__ import annotations

from topodiag.draw.heat import heat_svg, rank
from topodiag.model.sweep import Fabric, JudgedRun, Standing, SweepJudgement
from topodiag.report.grid import Columns, Field, figure
from topodiag.report.html.interface import Extras, drawings_of, grid_of
from topodiag.report.sweep.page import rails_of
from topodiag.words.fold import fold_hosts
from topodiag.words.units import percent, spell_gbs

ROWS_SHOWN = 400
_HUES = {Standing.FAILED: "error", Standing.LOW: "warning"}


def sweep_extras(judged: SweepJudgement, fabric: Fabric) -> Extras:
    """The matrix, where there are two nodes and more, and the runs, worst first."""
    title = "Pairs of nodes, by share of what is normal"
    drawings = drawings_of((title, heat_svg(judged, fabric, title, prefix="pairs") if len(fabric.nodes) > 1 else ""))
    runs = sorted((run for run in judged.runs if run.standing in _HUES), key=rank)
    title = "Runs that are slower than those alike, or failed"
    slow = grid_of("odd-runs", title, _RUNS, runs, ROWS_SHOWN, "runs are in the JSON")
    nodes, columns = rails_of(judged, fabric)
    title = "Nodes by rail: the best run over each, per cent of normal"
    rails = grid_of("rails", title, columns, nodes, ROWS_SHOWN, "nodes are in the JSON")
    return Extras("nodes", drawings, (rails, slow))


_RUNS: Columns[JudgedRun] = {
    Field("Run"): lambda entry: entry.run.id,
    Field("Nodes"): lambda entry: fold_hosts(entry.run.nodes),
    Field("Rail", right=True): lambda entry: figure(entry.run.rail, str),
    Field("GB/s", right=True): lambda entry: figure(entry.gbs, spell_gbs),
    Field("Alike reach", right=True): lambda entry: figure(entry.reference, spell_gbs),
    Field("Share", right=True): lambda entry: figure(entry.share, percent),
    Field("Standing"): lambda entry: (entry.standing.value, _HUES[entry.standing]),
    Field("Why"): lambda entry: entry.why,
}
