"""Measured runs for programs: `facts.benchmarks` of the machine-readable result, and the rows of all runs as CSV, one
line each, with what was expected. Unknown numbers are empty."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TextIO

from topodiag.model.bench import Benchmark, Timing
from topodiag.model.result import Result
from topodiag.report.bench.words import expected_at
from topodiag.report.documents.from_model import Document, from_model
from topodiag.report.table_files import Row, write_csv

MAX_ROWS = 10_000
"""Rows of one run; a sweep has some thirty."""

_NO_GATE = ("unknown", None, None, None, "not judged")


def benchmark_facts(benchmark: Benchmark) -> Document:
    """One run. `rows` carry the out-of-place block (the in-place one where there is no other) and both beside it;
    `fit.alpha_us` is that of the smallest sizes, `fit.beta_gbs` the algorithm bandwidth of the largest."""
    fit, expected = benchmark.fit, benchmark.expected.busbw if benchmark.expected is not None else {}
    return from_model(
        "result.Benchmark",
        benchmark,
        rows=[
            from_model("result.Row", row, expected_busbw_gbs=expected.get(row.size))
            for row in benchmark.run.rows[:MAX_ROWS]
        ],
        fit=from_model("result.Fit", fit, beta_gbs=fit.regimes[-1].beta_gbs if fit.regimes else None),
        gate=benchmark.gate or _NO_GATE,
    )


COLUMNS = (
    "source", "line", "run", "placement", "collective", "nranks", "hosts", "nccl", "bytes", "count", "type", "redop",
    "root", "time_us", "algbw_gbs", "busbw_gbs", "wrong", "in_place_time_us", "in_place_algbw_gbs",
    "in_place_busbw_gbs", "in_place_wrong", "cut", "expected_busbw_gbs", "verdict",
)  # fmt: skip


def write_bench_csv(result: Result, stream: TextIO) -> None:
    """Heading and rows."""
    write_csv(COLUMNS, _rows(result), stream)


def _rows(result: Result) -> Iterator[Row]:
    for number, benchmark in enumerate(result.benchmarks):
        run = benchmark.run
        for row in run.rows:
            line = row.origin.line if row.origin is not None else None
            yield (
                run.source, line, number, run.placement, run.collective, run.nranks,
                len(run.hosts) or None, run.nccl, row.size, row.count, row.dtype, row.redop, row.root,
                *_timing(row.out_of_place), *_timing(row.in_place), str(row.cut), expected_at(benchmark, row.size),
                benchmark.verdict,
            )  # fmt: skip


def _timing(timing: Timing) -> tuple[float | None, ...]:
    return timing.time_us, timing.algbw_gbs, timing.busbw_gbs, timing.wrong
