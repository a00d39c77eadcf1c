"""Benchmarks built by hand: a sweep, what was expected of it, and the verdict."""

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


Given = dict[str, Any]


def of_row(given: Given) -> Benchmark:
    """A benchmark as a row of a table tells it: the bandwidth `at` some sizes of the usual sweep, or `only` at these,
    `times` of all that; fields of its `run`, "null" for None; the `latency` of its fit; fields of what is `expected`,
    or "null"; other keywords of `benchmark`."""
    parts = dict(given)
    busbw = _by_size(parts.pop("only")) if "only" in given else GROWING | _by_size(parts.pop("at", {}))
    times = parts.pop("times", 1.0)
    own = {name: None if value == "null" else value for name, value in parts.pop("run", {}).items()}
    run = sweep({size: gbs * times for size, gbs in busbw.items()}, **own)
    if (latency := parts.pop("latency", None)) is not None:
        parts["fit"] = Fit() if latency == "null" else Fit(latency_us=latency)
    if (expected := parts.pop("expected", None)) is not None:
        parts["expected"] = None if expected == "null" else expectation(**_expected(expected))
    return benchmark(run, **parts)


def _by_size(told: dict[str, float]) -> dict[int, float]:
    units = {"B": 1, "KiB": KIB, "MiB": MIB, "GiB": GIB}
    return {int(size.split()[0]) * units[size.split()[1]]: gbs for size, gbs in told.items()}


def _expected(told: Given) -> Given:
    kinds: dict[str, Any] = {
        "busbw": _by_size,
        "confidence": Confidence.__getitem__,
        "terms": lambda terms: tuple(map(tuple, terms)),
        "latency_us": lambda us: None if us == "null" else us,
    }
    return {name: kinds[name](value) for name, value in told.items()}
