"""Curves of measured runs beside what was expected: for the terminal, and as series for a file."""

from __future__ import annotations

from collections.abc import Sequence

from topodiag.draw.scale import BANDWIDTH, SIZE, Mark, Series
from topodiag.expect.fit import main_rows
from topodiag.model.bench import Benchmark, BenchRun
from topodiag.report.bench.words import collective_words, folder_of, gpus_words, place_words, ranks_words
from topodiag.report.plot import draw_plot
from topodiag.report.text import Page
from topodiag.words.units import spell_bytes

AXIS = BANDWIDTH
"""Linear, since what matters is the height of the plateau: half of it is next to all of it on a logarithmic axis."""
MOST_CURVES = 6
"""Signs and hues that a terminal tells apart."""
LEAST_POINTS = 3


def draw_curves(page: Page, benchmarks: Sequence[Benchmark]) -> None:
    """Bus bandwidth by size, measured and expected. Nothing where there are hardly any points."""
    series, marks = series_of(benchmarks)
    if not series or max(len(curve.points) for curve in series) < LEAST_POINTS:
        return
    page.heading("bus bandwidth by size", lead="  ")
    draw_plot(page, series, x=SIZE, y=AXIS, marks=marks)


def series_of(benchmarks: Sequence[Benchmark], *, single: bool = False) -> tuple[list[Series], list[Mark]]:
    """What is drawn of these runs, at most MOST_CURVES, and where the first becomes bound by bandwidth. `alone`: the
    names tell what no page around the picture does."""
    several = len(benchmarks) > 1
    with_expected = len(benchmarks) <= 2  # more lines than runs hide what was measured
    folder = folder_of([benchmark.run for benchmark in benchmarks])
    series: list[Series] = []
    seen: set[tuple[tuple[float, float], ...]] = set()
    for number, benchmark in enumerate(benchmarks[:MOST_CURVES]):
        run = benchmark.run
        points = tuple(
            (float(row.size), float(row.best.busbw_gbs)) for row in main_rows(run.rows) if row.best.busbw_gbs
        )
        if not points:
            continue
        name = f"{number + 1} {run.placement or collective_words(run)}" if several else "measured"
        series.append(Series(_full_name(name, run, folder if several else None) if single else name, points))
        curve = _expected(benchmark, points[0][0], points[-1][0]) if with_expected else ()
        if curve and curve not in seen and benchmark.expected is not None:
            seen.add(curve)
            name = f"expected of {number + 1}" if several else "expected"
            series.append(Series(f"{name}: {benchmark.expected.machine}" if single else name, curve, dashed=True))
    bound = benchmarks[0].fit.bound_from if len(benchmarks) == 1 else None
    return series, [Mark(float(bound), f"bandwidth-bound from {spell_bytes(bound)}")] if bound else []


def _full_name(name: str, run: BenchRun, folder: str | None) -> str:
    """The name with what the page around a picture would say: of several runs (`folder` is theirs) ranks and place."""
    if folder is not None:
        ranks = f", {run.nranks} ranks" if run.nranks is not None else ""
        return f"{name}{ranks}, {place_words(run, folder)}"
    return f"{name}: {gpus_words(run)}" if run.devices and gpus_words(run) else name


def _expected(benchmark: Benchmark, low: float, high: float) -> tuple[tuple[float, float], ...]:
    """What should be reached, between two sizes."""
    busbw = benchmark.expected.busbw if benchmark.expected is not None else {}
    return tuple((float(size), float(gbs)) for size, gbs in sorted(busbw.items()) if low <= size <= high)


def title_of(benchmarks: Sequence[Benchmark]) -> str:
    """A title for a file: the collective and ranks of a single run, or how many there are."""
    count = len(benchmarks)
    if count != 1:
        return f"bus bandwidth of {count} runs" if count <= MOST_CURVES else f"the first {MOST_CURVES} of {count} runs"
    run = benchmarks[0].run
    return f"bus bandwidth of {collective_words(run)}, {ranks_words(run)}"
