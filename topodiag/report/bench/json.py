"""Measured runs in the machine-readable result: `facts.benchmarks`."""

from __future__ import annotations

from topodiag.model.bench import Benchmark, BenchRow, Expectation, Fit, Gate, Timing
from topodiag.report.documents.parts import LEVEL
from topodiag.report.documents.types import bench as shape

MAX_ROWS = 10_000
"""Rows of one run; a sweep has some thirty."""


def benchmark_facts(benchmark: Benchmark) -> shape.Benchmark:
    """One run. `rows` carry the out-of-place block (the in-place one where there is no other) and both beside it;
    `fit.alpha_us` is that of the smallest sizes, `fit.beta_gbs` the algorithm bandwidth of the largest."""
    run, expected = benchmark.run, benchmark.expected
    return shape.Benchmark(
        collective=run.collective or None,
        nranks=run.nranks,
        nranks_why=run.nranks_why,
        rows=[_row(row, expected) for row in run.rows[:MAX_ROWS]],
        fit=_fit(benchmark.fit),
        expected_busbw_gbs=expected.busbw_gbs if expected is not None else None,
        expected=_expected(expected),
        verdict=benchmark.verdict,
        severe=benchmark.severe,
        why=benchmark.why,
        gate=_gate(benchmark.gate),
        hypotheses=[
            shape.Hypothesis(
                cause=each.cause,
                predicted_gbs=each.predicted_gbs,
                likelihood=each.likelihood,
                evidence=list(each.evidence),
                confirm=list(each.confirm),
                check=each.check or None,
                shown=each.shown,
            )
            for each in benchmark.hypotheses
        ],
        ruled_out=list(benchmark.ruled_out),
        hosts=list(run.hosts),
        devices=[
            shape.RunDevice(rank=device.rank, host=device.host, device=device.device, name=device.name,
             bus_id=device.bus_id or None)
            for device in run.devices
        ],
        nccl_version=run.nccl or None,
        nccl_tests_version=run.version or None,
        parameters=dict(run.parameters),
        settings=dict(run.env),
        average_busbw_gbs=run.average_gbs,
        out_of_bounds=run.out_of_bounds,
        complete=run.complete,
        errors=list(run.errors),
        notes=list(run.notes),
        placement=run.placement or None,
        source=run.source,
        line=run.origin.line if run.origin is not None else None,
    )  # fmt: skip


def _gate(gate: Gate | None) -> shape.BenchGate:
    if gate is None:
        return shape.BenchGate(state="unknown", bytes=None, measured_gbs=None, bar_gbs=None, why="not judged")
    return shape.BenchGate(
        state=gate.state.value, bytes=gate.size, measured_gbs=gate.gbs, bar_gbs=gate.bar_gbs, why=gate.why
    )


def _timing(timing: Timing) -> shape.Timing:
    return shape.Timing(
        time_us=timing.time_us,
        algbw_gbs=timing.algbw_gbs,
        busbw_gbs=timing.busbw_gbs,
        wrong=timing.wrong,
    )


def _row(row: BenchRow, expected: Expectation | None) -> shape.Row:
    best = row.best
    return shape.Row(
        bytes=row.size,
        time_us=best.time_us,
        algbw_gbs=best.algbw_gbs,
        busbw_gbs=best.busbw_gbs,
        wrong=best.wrong,
        expected_busbw_gbs=expected.busbw.get(row.size) if expected is not None else None,
        count=row.count,
        type=row.dtype,
        redop=row.redop or None,
        root=row.root,
        in_place=_timing(row.in_place),
        cut=row.cut,
    )


def _fit(fit: Fit) -> shape.Fit:
    return shape.Fit(
        alpha_us=fit.regimes[0].alpha_us if fit.regimes else None,
        beta_gbs=fit.regimes[-1].beta_gbs if fit.regimes else None,
        regimes=[
            shape.Regime(
                low_bytes=regime.low,
                high_bytes=regime.high,
                alpha_us=regime.alpha_us,
                beta_gbs=regime.beta_gbs,
                alpha_range_us=regime.alpha_range,
                beta_range_gbs=regime.beta_range,
                points=regime.points,
            )
            for regime in fit.regimes
        ],
        plateau_busbw_gbs=fit.plateau_gbs,
        bound_from_bytes=fit.bound_from,
        latency_us=fit.latency_us,
    )


def _expected(expected: Expectation | None) -> shape.Expected | None:
    if expected is None:
        return None
    return shape.Expected(
        machine=expected.machine,
        busbw_gbs=expected.busbw_gbs,
        low_gbs=expected.low_gbs,
        limit_gbs=expected.limit_gbs,
        confidence=LEVEL[expected.confidence],
        latency_us=expected.latency_us,
        terms=[shape.ExpectedTerm(name=name, value=value, formula=formula) for name, value, formula in expected.terms],
    )
