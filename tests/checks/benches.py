"""Benchmarks built by hand: a sweep, what was expected of it, and the verdict."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from topodiag.checks import registry
from topodiag.checks.interface import BenchCheck
from topodiag.model.bench import BenchDevice, Benchmark, BenchRow, BenchRun, Expectation, Fit, Timing
from topodiag.model.finding import Confidence, Outcome

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
SIZES = (8, 1 * KIB, 64 * KIB, 1 * MIB, 16 * MIB, 64 * MIB, 256 * MIB, 1 * GIB, 8 * GIB)
GROWING = dict(zip(SIZES, (0.001, 0.1, 5, 60, 200, 300, 350, 380, 390), strict=True))


def sweep(busbw: dict[int, float] | None = None, **known: Any) -> BenchRun:
    """An all_reduce of 16 ranks on two nodes; `busbw` by size, the same in both blocks."""
    rows = tuple(
        BenchRow(size, out_of_place=_timing(size, gbs), in_place=_timing(size, gbs))
        for size, gbs in (GROWING if busbw is None else busbw).items()
    )
    devices = tuple(BenchDevice(rank, f"n{rank // 8}", rank % 8, "NVIDIA H100 80GB HBM3") for rank in range(16))
    bench_run = BenchRun("all_reduce", rows, devices, 16, source="out.log", out_of_bounds=0)
    return replace(bench_run, **known)


def _timing(size: int, gbs: float) -> Timing:
    return Timing(size / gbs / 1000, gbs / 1.875, gbs, 0.0)


def expectation(**known: Any) -> Expectation:
    estimate = Expectation(
        "DGX H100", 390.0, 351.0, 750.0, Confidence.HIGH, busbw={8 * GIB: 388.0, 1 * GIB: 380.0}, latency_us=25.0
    )
    return replace(estimate, **known)


def benchmark(run: BenchRun | None = None, verdict: str = "normal", **known: Any) -> Benchmark:
    made = Benchmark(run or sweep(), Fit(latency_us=30.0), expectation(), verdict, f"said to be {verdict}")
    return replace(made, **known)


def judge(check_id: str, made: Benchmark, *others: Benchmark) -> Outcome:
    cls = registry.check_class(check_id)
    assert cls is not None
    assert issubclass(cls, BenchCheck)
    return cls().judge(made, others)
