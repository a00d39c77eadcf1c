"""Measured bandwidth against what is expected of the machine: a curve, a line a run, and what would explain it."""

from __future__ import annotations

from topodiag.draw.plot import plot_svg
from topodiag.draw.scale import SIZE
from topodiag.model.bench import Benchmark, Hypothesis
from topodiag.report.bench.plot import AXIS, series_of, title_of
from topodiag.report.bench.words import collective_words, ranks_words, signed
from topodiag.report.grid import Cell, Columns, Field, figure
from topodiag.report.html.interface import Drawing, Section, Sheet, figures, grid_of
from topodiag.words.units import percent, plural, spell_gbs

RUNS_SHOWN = 400
HYPOTHESES_SHOWN = 40


def section(sheet: Sheet) -> Section | None:
    """None without a measured run."""
    runs = sheet.result.benchmarks
    numbered = list(enumerate(runs, start=1))
    causes = [(number, hypothesis) for number, run in numbered for hypothesis in run.hypotheses][:HYPOTHESES_SHOWN]
    grids = (
        grid_of("runs", "Runs", _RUNS, numbered, RUNS_SHOWN, "runs: topodiag bench --csv=rows"),
        grid_of("hypotheses", "What would explain it", _HYPOTHESES, causes),
    )
    return figures(sheet, "curves", "Measured bandwidth", _plots(runs), grids, plural(len(runs), "run"))


def _plots(runs: tuple[Benchmark, ...]) -> list[Drawing]:
    series, marks = series_of(runs, single=True)
    if not series:
        return []
    title = title_of(runs)
    return [Drawing(title, plot_svg(series, x=SIZE, y=AXIS, title=title, marks=marks, prefix="curves"))]


def _gbs(value: float | None) -> Cell:
    return figure(value, spell_gbs)


_RUNS: Columns[tuple[int, Benchmark]] = {
    Field("Run", right=True): lambda row: row[0],
    Field("Collective"): lambda row: collective_words(row[1].run),
    Field("Ranks"): lambda row: Cell(ranks_words(row[1].run), row[1].run.nranks),
    Field("Measured, GB/s", right=True): lambda row: _gbs(row[1].run.top[1] if row[1].run.top else None),
    Field("Expected, GB/s", right=True): lambda row: _gbs(row[1].expected.busbw_gbs if row[1].expected else None),
    Field("Normal from", right=True): lambda row: _gbs(row[1].expected.normal_gbs if row[1].expected else None),
    Field("Verdict"): lambda row: signed(row[1]),
    Field("Why"): lambda row: row[1].why or (row[1].expected.machine if row[1].expected else ""),
}
_HYPOTHESES: Columns[tuple[int, Hypothesis]] = {
    Field("Run", right=True): lambda row: row[0],
    Field("Cause"): lambda row: row[1].cause,
    Field("Predicts, GB/s", right=True): lambda row: _gbs(row[1].predicted_gbs),
    Field("Likely", right=True): lambda row: figure(row[1].likelihood, percent),
    Field("Evidence"): lambda row: "; ".join(row[1].evidence),
    Field("Check with"): lambda row: "; ".join(row[1].confirm),
}
