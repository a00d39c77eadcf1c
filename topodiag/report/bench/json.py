"""Measured runs for programs: `facts.benchmarks` of the machine-readable result, and the rows of all runs as CSV, one
line each, with what was expected. Unknown numbers are empty."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TextIO

from topodiag.model.bench import Benchmark
from topodiag.model.result import Result
from topodiag.report.bench.words import expected_at
from topodiag.report.documents.from_model import Document, from_model
from topodiag.report.table_files import table_of, write_csv

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


def write_bench_csv(result: Result, stream: TextIO) -> None:
    """Heading and rows."""
    table = table_of("bench", "rows", _sizes)
    write_csv(table.types, table.rows(result), stream)


def _sizes(result: Result) -> Iterator[Document]:
    """Each row of each run, as the columns are read from it."""
    for number, benchmark in enumerate(result.benchmarks):
        of_run = {"number": number, "run": benchmark.run, "hosts": len(benchmark.run.hosts) or None}
        for row in benchmark.run.rows:
            expected = expected_at(benchmark, row.size)
            yield of_run | {
                "row": row, "cut": str(row.cut), "expected_busbw_gbs": expected, "verdict": benchmark.verdict
            }  # fmt: skip
