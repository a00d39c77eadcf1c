"""`topodiag bench --gate`: each file passes or fails, for the acceptance of nodes. Nothing is judged here anew."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from topodiag.checks.bench.low import LIKELY
from topodiag.checks.interface import name_of
from topodiag.model.bench import Benchmark, Gate, GateState
from topodiag.model.finding import Outcome, Severity
from topodiag.model.result import Result
from topodiag.words.fold import grouped

_WORST = (GateState.FAIL, GateState.UNKNOWN, GateState.PASS)


def gate_of(benchmark: Benchmark, outcomes: Sequence[Outcome]) -> Gate:
    """Whether a run passes: its bandwidth is normal, and no check of benchmarks found an error in it."""
    top, expected = benchmark.run.top, benchmark.expected
    size, gbs = top if top is not None else (None, None)
    bar = None
    if expected is not None and size is not None:
        bar = expected.normal_gbs * expected.busbw.get(size, expected.busbw_gbs) / expected.busbw_gbs
    state, why = _state(benchmark, outcomes)
    return Gate(benchmark.run.source, state, benchmark.run.collective, size, gbs, bar, why)


def gates(result: Result, paths: Sequence[str]) -> tuple[Gate, ...]:
    """One gate for each file, its worst run; then those of `paths` in which nothing was measured. In order of files."""
    judged = (benchmark.gate for benchmark in result.benchmarks if benchmark.gate is not None)
    by_file = grouped((gate.path, gate) for gate in judged)
    states = [min(states, key=lambda gate: _WORST.index(gate.state)) for states in by_file.values()]
    return (*states, *_without_run(result, paths, by_file))


def _without_run(result: Result, paths: Sequence[str], judged: dict[str, list[Gate]]) -> Iterator[Gate]:
    gaps = {gap.what: gap.why for gap in result.not_observed}
    for path in dict.fromkeys(paths):
        if path in gaps and path not in judged:
            yield Gate(path, GateState.UNKNOWN, why=gaps[path])


def _state(benchmark: Benchmark, outcomes: Sequence[Outcome]) -> tuple[GateState, str]:
    name = name_of(benchmark)
    errors = [
        finding
        for outcome in outcomes
        if outcome.node == name and outcome.check.startswith("BEN")
        for finding in outcome.findings
        if finding.severity is Severity.ERROR
    ]
    failures = [error for error in errors if error.id != "BEN001"]
    if failures:
        return GateState.FAIL, failures[0].message
    if benchmark.verdict in {"low", "impossible"}:
        cause = benchmark.hypotheses[0] if benchmark.hypotheses else None
        likely = cause is not None and benchmark.verdict == "low" and (cause.shown or cause.likelihood >= LIKELY)
        named = f"; likeliest: {cause.cause}" if cause is not None and likely else ""
        return GateState.FAIL, benchmark.why + named
    return (GateState.PASS if benchmark.verdict == "normal" else GateState.UNKNOWN), benchmark.why
