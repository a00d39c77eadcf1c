"""Measured runs, judged: their fits, what was to be expected of their machine, the verdict on each, and whether each
file passes or fails (`topodiag bench --gate`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from pathlib import PurePath

from topodiag.app.case.system import SYSTEMS
from topodiag.checks.bench.low import LIKELY
from topodiag.checks.interface import name_of
from topodiag.checks.registry import Subject
from topodiag.checks.run import run
from topodiag.cost.tiers import UnknownSystemError, find_system
from topodiag.evidence.nccl_tests.read import WITHOUT_MPI
from topodiag.expect.expect import LOW, Expected, is_severe, verdict_of
from topodiag.expect.fit import fit_run
from topodiag.expect.hypotheses import Evidence, explain
from topodiag.expect.machine import expected_of, hosts_of, lacking, machine_of_run
from topodiag.expect.other_runs import Judged, alike_elsewhere, on_same_nodes
from topodiag.expect.setting_prices import setting_prices
from topodiag.hardware.amd import amd_system_by_name
from topodiag.lazy import dataclass
from topodiag.model.bench import Benchmark, BenchRun, Gate, GateState
from topodiag.model.errors import InputError
from topodiag.model.finding import Outcome, Severity
from topodiag.model.job import Job
from topodiag.model.job_wires import seen_kind
from topodiag.model.provenance import NotObserved
from topodiag.model.result import Case, Result
from topodiag.verdict.headline import causes_of
from topodiag.words.units import few, grouped


@dataclass(frozen=True, slots=True)
class BenchOptions:
    """What is known besides the output. `machine` are bundles, topology files and NCCL logs of the nodes, `system` a
    system's name, `nics` those of a node (count, Gb/s) where neither tells; `nccl` and `env` add to what the output
    says. `by_file`: each file is another placement of the same job."""

    machine: tuple[str, ...] = ()
    system: str | None = None
    nics: tuple[int, float] | None = None
    nodes: int | None = None
    nccl: str | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    by_file: bool = False


def machine_of(case: Case) -> Case:
    """The machine that a case shows: nodes of which NCCL's topology can be told, and logs of processes."""
    nodes = tuple(node for node in case.nodes if not lacking(node))
    return replace(case, nodes=nodes, jobs=tuple(job for job in case.jobs if job.processes))


def judged_runs(
    case: Case, of_nodes: Sequence[Outcome], options: BenchOptions | None = None, machine: Case | None = None
) -> Result:
    """The runs of a case judged on the `machine`, else on what the case shows of theirs. `of_nodes` is what the checks
    say of the nodes; what the logs of other jobs show is no cause of a slow run. Raises InputError for options that do
    not fit."""
    logs = case.jobs_of_runs
    machine = machine or machine_of(replace(case, jobs=tuple(job for job in case.jobs if job not in logs)))
    chosen = options or BenchOptions()
    if chosen.system is not None:
        chosen = replace(chosen, system=_system(chosen.system))
    judged: list[Judged] = []
    known: list[Evidence] = []
    logged: list[Outcome] = []
    jobs_of = grouped((file, job) for job in logs for file in job.files)
    for source, runs in grouped((measured.source, measured) for measured in case.runs).items():
        jobs = tuple(jobs_of.get(source, ()))
        of_file = run(Subject.JOB, jobs)
        # Its silences and remarks do not matter here.
        logged += (outcome for outcome in of_file if any(one.severity > Severity.INFO for one in outcome.findings))
        for measured in runs:
            near = machine_of_run(machine, measured)
            own = _machine_of(near, jobs, machine, chosen)
            judged.append(_judged(measured, own, chosen))
            known.append(_known_of(measured, near, of_nodes, of_file, seen_kind(jobs or own.jobs)))
    pairs = zip(judged, known, strict=True)
    benchmarks = tuple(_explained(one, evidence, judged) for one, evidence in pairs)
    unlike = (NotObserved("one machine for all nodes", why) for one in judged for why in one.modelled.unlike)
    gaps = (*unlike, *_gaps(machine, benchmarks))
    return Result(outcomes=(*run(Subject.BENCH, benchmarks), *logged), benchmarks=benchmarks, not_observed=gaps)


def _judged(measured: BenchRun, machine: Case, chosen: BenchOptions) -> Judged:
    """The run with its expectation and the verdict. What the user says beats what the output says."""
    if chosen.by_file:
        measured = replace(measured, placement=PurePath(measured.source).stem)
    modelled = Expected() if measured.is_foreign else expected_of(
        measured, machine,
        system=chosen.system, nics=chosen.nics, nodes=chosen.nodes, version=chosen.nccl, env=chosen.env,
    )  # fmt: skip
    return Judged(measured, modelled, verdict_of(measured, modelled.expectation, modelled.why))


def _known_of(
    run: BenchRun, near: Case, of_nodes: Sequence[Outcome], of_logs: Sequence[Outcome], network: str
) -> Evidence:
    """What speaks for or against causes of a run: checks on its own nodes, and on logs in its file and beside it."""
    nodes = {node.host for node in near.nodes}
    own = tuple(outcome for outcome in of_nodes if outcome.node in nodes)
    names, hosts = hosts_of(near, (outcome.node for outcome in own)), hosts_of(near, run.hosts)
    all_nodes = bool(hosts) and (hosts <= names or len(hosts) == len(names) == 1)
    return Evidence(own, tuple(of_logs), all_nodes, network)


def _explained(judged: Judged, known: Evidence, runs: Sequence[Judged]) -> Benchmark:
    """The run with what would explain its verdict, beside all `runs`."""
    run, modelled, verdict = judged.run, judged.modelled, judged.verdict
    fit = fit_run(run)
    if verdict.word == LOW:  # each asks all runs
        known = replace(known, alike=alike_elsewhere(judged, runs))
    others = on_same_nodes(run, runs) if verdict.word == LOW else ()
    explained = explain(run, modelled, verdict, fit=fit, known=known, others=others)
    # A build without MPI looks like runs of one rank, and is told as what it is.
    why = next((note for note in run.notes if WITHOUT_MPI in note), "")
    return Benchmark(
        run=run,
        fit=fit,
        expected=modelled.expectation,
        verdict=verdict.word,
        why=why or verdict.why,
        action=modelled.action if modelled.expectation is None and not why else "",
        hypotheses=explained.causes,
        severe=is_severe(verdict, shown=bool(explained.causes) and explained.causes[0].shown),
        failures=known.findings if run.errors else (),
        ruled_out=explained.ruled_out,
        settings=setting_prices(run, modelled, explained.causes) if verdict.word == LOW else (),
    )


def _machine_of(near: Case, jobs: tuple[Job, ...], whole: Case, chosen: BenchOptions) -> Case:
    """The machine of a run, of which `near` is what names its hosts: what --machine names, else the nodes beside it,
    else the `jobs` of NCCL's log in its own file, else the logs beside it that name its hosts. With --system or --nics
    nodes are no machine, but what checks say of them counts."""
    if chosen.machine:
        return replace(near, jobs=() if near.nodes else near.jobs or whole.jobs)
    nodes = () if chosen.system is not None or chosen.nics is not None else near.nodes
    return replace(near, nodes=nodes, jobs=() if nodes else jobs or near.jobs)


# -- inputs --


def _system(name: str) -> str:
    """The full name of a system. Raises InputError with near names."""
    other = amd_system_by_name(name)
    if other is not None:
        return other.name
    try:
        return find_system(name).name
    except UnknownSystemError as unknown:
        hint = f"did you mean {' or '.join(unknown.near)}?" if unknown.near else SYSTEMS
        raise InputError("--system", str(unknown), hint=hint) from None


def _gaps(machine: Case, benchmarks: Sequence[Benchmark]) -> Iterator[NotObserved]:
    names = [*(node.host for node in machine.nodes), *(file for job in machine.jobs for file in job.files)]
    if names and not any(benchmark.expected is not None for benchmark in benchmarks):
        yield NotObserved(few(names, 3), "the machine of these runs could not be told from it")
    elif any(one.expected is None and one.run.rows and (one.run.nranks or 0) > 1 for one in benchmarks):
        why = "no machine is known for them: give a bundle, a topology file or NCCL's log beside them (or as --machine)"
        yield NotObserved("what some runs should reach", f"{why}, --system or --nics")


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
    top, expected = benchmark.run.top, benchmark.expected
    size, gbs = top if top is not None else (None, None)
    bar = None
    if expected is not None and size is not None:
        bar = expected.normal_gbs * expected.busbw.get(size, expected.busbw_gbs) / expected.busbw_gbs
    state, why = _state(benchmark, result.outcomes)
    why += "".join(named) if why == benchmark.why and benchmark.verdict == "low" else ""
    return replace(benchmark, gate=Gate(benchmark.run.source, state, benchmark.run.collective, size, gbs, bar, why))


def gates(result: Result, paths: Sequence[str]) -> tuple[Gate, ...]:
    """One gate for each file, its worst run; then those of `paths` in which nothing was measured. In order of files."""
    judged = (benchmark.gate for benchmark in result.benchmarks if benchmark.gate is not None)
    by_file = grouped((gate.path, gate) for gate in judged)
    states = [min(states, key=lambda gate: _WORST.index(gate.state)) for states in by_file.values()]
    gaps = {gap.what: gap.why for gap in result.not_observed}
    without_run = (path for path in dict.fromkeys(paths) if path in gaps and path not in by_file)
    return (*states, *(Gate(path, GateState.UNKNOWN, why=gaps[path]) for path in without_run))


def _state(benchmark: Benchmark, outcomes: Sequence[Outcome]) -> tuple[GateState, str]:
    """Whether a run passes, and why: its bandwidth is normal, and no check of benchmarks found an error in it."""
    name = name_of(benchmark)
    own = (outcome for outcome in outcomes if outcome.node == name and outcome.check.startswith("BEN"))
    errors = [one for outcome in own for one in outcome.findings if one.severity is Severity.ERROR]
    failures = [error for error in errors if error.id != "BEN001"]
    if failures:
        return GateState.FAIL, failures[0].message
    by_verdict = {"low": GateState.FAIL, "impossible": GateState.FAIL, "normal": GateState.PASS}
    return by_verdict.get(benchmark.verdict, GateState.UNKNOWN), benchmark.why
