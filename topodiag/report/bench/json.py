"""Measured runs in the machine-readable result: `facts.benchmarks`."""

from __future__ import annotations

from topodiag.model.bench import Benchmark
from topodiag.report.documents.from_model import Document, from_model

MAX_ROWS = 10_000
"""Rows of one run; a sweep has some thirty."""

_NO_GATE = {"state": "unknown", "bytes": None, "measured_gbs": None, "bar_gbs": None, "why": "not judged"}


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
        fit=from_model(
            "result.Fit",
            fit,
            alpha_us=fit.regimes[0].alpha_us if fit.regimes else None,
            beta_gbs=fit.regimes[-1].beta_gbs if fit.regimes else None,
        ),
        gate=benchmark.gate or _NO_GATE,
    )
