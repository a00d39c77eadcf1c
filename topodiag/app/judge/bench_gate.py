"""`topodiag bench --gate`: each file passes or fails, for the acceptance of nodes. Nothing is judged here anew."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from topodiag.checks.bench.low import LIKELY
from topodiag.checks.interface import name_of
from topodiag.model.bench import Benchmark, Gate, GateState
from topodiag.model.finding import Outcome, Severity
from topodiag.model.result import Result
from topodiag.verdict.headline import causes_of
from topodiag.words.units import grouped

_WORST = (GateState.FAIL, GateState.UNKNOWN, GateState.PASS)


def with_gates(result: Result) -> Result:
    """The result with a gate at each run. Where the verdict has a cause of a low run, the gate names this one, and what
    only the numbers suggest is left out."""
    return replace(result, benchmarks=tuple(_with_gate(benchmark, result) for benchmark in result.benchmarks))


def _with_gate(benchmark: Benchmark, result: Result) -> Benchmark:
    causes = [cause for cause in causes_of(benchmark, result)[:1] if not cause.finding.id.startswith("BEN")]
    if causes:
        benchmark = replace(benchmark, hypotheses=(), ruled_out=())
    named = [f"; {cause.status.value}: {cause.finding.message}" for cause in causes]
    named += [f"; likeliest: {one.cause}" for one in benchmark.hypotheses[:1] if one.likelihood >= LIKELY]
    return replace(benchmark, gate=_gate_of(benchmark, result.outcomes, "".join(named)))


def _gate_of(benchmark: Benchmark, outcomes: Sequence[Outcome], named: str) -> Gate:
    """Whether a run passes: its bandwidth is normal, and no check of benchmarks found an error in it. `named` is the
    cause of a low one."""
    top, expected = benchmark.run.top, benchmark.expected
    size, gbs = top if top is not None else (None, None)
    bar = None
    if expected is not None and size is not None:
        bar = expected.normal_gbs * expected.busbw.get(size, expected.busbw_gbs) / expected.busbw_gbs
    state, why = _state(benchmark, outcomes)
    why += named if why == benchmark.why and benchmark.verdict == "low" else ""
    return Gate(benchmark.run.source, state, benchmark.run.collective, size, gbs, bar, why)


def gates(result: Result, paths: Sequence[str]) -> tuple[Gate, ...]:
    """One gate for each file, its worst run; then those of `paths` in which nothing was measured. In order of files."""
    judged = (benchmark.gate for benchmark in result.benchmarks if benchmark.gate is not None)
    by_file = grouped((gate.path, gate) for gate in judged)
    states = [min(states, key=lambda gate: _WORST.index(gate.state)) for states in by_file.values()]
    gaps = {gap.what: gap.why for gap in result.not_observed}
    without_run = (path for path in dict.fromkeys(paths) if path in gaps and path not in by_file)
    return (*states, *(Gate(path, GateState.UNKNOWN, why=gaps[path]) for path in without_run))


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
    by_verdict = {"low": GateState.FAIL, "impossible": GateState.FAIL, "normal": GateState.PASS}
    return by_verdict.get(benchmark.verdict, GateState.UNKNOWN), benchmark.why
