"""Measured bandwidth against what is expected of the machine: a curve, a line a run, and what would explain it."""

from __future__ import annotations

from topodiag.model.bench import Benchmark
from topodiag.report.bench.plot import AXIS, series_of, title_of
from topodiag.report.bench.words import collective_words, ranks_words, sign_of, verdict_word
from topodiag.report.html.interface import Cell, Drawing, Grid, Section, Sheet
from topodiag.report.plot.scale import SIZE
from topodiag.report.plot.svg import plot_svg
from topodiag.words.fold import plural
from topodiag.words.units import percent, spell_gbs

RUNS_SHOWN = 400
HYPOTHESES_SHOWN = 40


def section(sheet: Sheet) -> Section | None:
    """None without a measured run."""
    runs = sheet.result.benchmarks
    drawings = (*sheet.of("curves"), *_plots(runs))
    if not (runs or drawings):
        return None
    left = len(runs) - RUNS_SHOWN
    table = Grid(
        "runs", "Runs", ("Run", "Collective", "Ranks", "Measured, GB/s", "Expected, GB/s", "Normal from", "Verdict",
                         "Why"),
        [_row(number_, benchmark) for number_, benchmark in enumerate(runs[:RUNS_SHOWN], start=1)],
        right=frozenset({0, 3, 4, 5}), left_out=f"{left} more runs: topodiag bench --csv=rows" if left > 0 else "",
    )  # fmt: skip
    guesses = [row for number_, benchmark in enumerate(runs, start=1) for row in _hypotheses(number_, benchmark)]
    causes = Grid(
        "hypotheses", "What would explain it", ("Run", "Cause", "Predicts, GB/s", "Likely", "Evidence", "Check with"),
        guesses[:HYPOTHESES_SHOWN], right=frozenset({0, 2, 3}),
    )  # fmt: skip
    grids = [grid for grid in (table, causes) if grid.rows]
    return Section(
        "curves", "Measured bandwidth", {"drawings": drawings, "grids": grids}, plural(len(runs), "run"), "figures"
    )


def _plots(runs: tuple[Benchmark, ...]) -> list[Drawing]:
    if not runs:
        return []
    series, marks = series_of(runs, single=True)
    if not series:
        return []
    title = title_of(runs)
    svg = plot_svg(series, x=SIZE, y=AXIS, title=title, marks=marks, prefix="curves")
    return [Drawing("curves", title, svg, inline=True)]


def _row(place: int, benchmark: Benchmark) -> list[Cell]:
    run, expected = benchmark.run, benchmark.expected
    sign, hue = sign_of(benchmark)
    return [
        Cell(str(place), place), Cell(collective_words(run)), Cell(ranks_words(run), run.nranks),
        _gbs(run.top[1] if run.top is not None else None), _gbs(expected.busbw_gbs if expected is not None else None),
        _gbs(expected.normal_gbs if expected is not None else None),
        Cell(f"{sign} {verdict_word(benchmark)}", mark=hue if hue in {"error", "warning", "ok"} else ""),
        Cell(benchmark.why or (expected.machine if expected is not None else "")),
    ]  # fmt: skip


def _gbs(value: float | None) -> Cell:
    return Cell("", -1.0) if value is None else Cell(spell_gbs(value), value)


def _hypotheses(place: int, benchmark: Benchmark) -> list[list[Cell]]:
    return [
        [Cell(str(place), place), Cell(hypothesis.cause), _gbs(hypothesis.predicted_gbs),
         Cell(percent(hypothesis.likelihood), hypothesis.likelihood), Cell("; ".join(hypothesis.evidence)),
         Cell("; ".join(hypothesis.confirm))]
        for hypothesis in benchmark.hypotheses
    ]  # fmt: skip
