"""A whole case, judged: its nodes, jobs and runs, each part by its checks, and the verdict that joins them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from topodiag.app.judge.results import judged_result
from topodiag.checks.registry import Subject, ids_of
from topodiag.checks.run import run
from topodiag.checks.spoken import told
from topodiag.checks.troubles.node import troubles
from topodiag.model.finding import Finding, Outcome
from topodiag.model.identity import Identity
from topodiag.model.provenance import NotObserved
from topodiag.model.result import Case, Result
from topodiag.verdict.judge import judge

if TYPE_CHECKING:
    from topodiag.app.judge.runs import BenchOptions
    from topodiag.placement.job_step import PlacedJobs


def judged_case(
    case: Case,
    trained: Mapping[str, Any] | None = None,
    *,
    options: BenchOptions | None = None,
    machine: Case | None = None,
) -> Result:
    """The case with its verdict. `trained` are the options of `topodiag model step` by name, None where nobody says
    what is trained, empty where nothing is. `options` say more of measured runs, and `machine` is theirs where another
    one is named than the case shows."""
    case = _beside_model(case)
    of_nodes = run(Subject.NODE, case.nodes)
    of_jobs: tuple[Outcome, ...] = ()
    unexplained = troubles(case.nodes, of_nodes)
    silent: list[NotObserved] = []
    runs = Result()
    if case.runs:
        from topodiag.app.judge.runs import judged_runs  # noqa: PLC0415 - numpy, which only runs need

        runs = judged_runs(case, of_nodes, options, machine)
    of_runs = runs.outcomes
    if len(case.jobs) > len(case.jobs_of_runs):
        from topodiag.app.judge.jobs import not_logged  # noqa: PLC0415 - numpy, which only jobs need
        from topodiag.checks.troubles.job import troubles as troubles_of_jobs  # noqa: PLC0415 - as above

        of_jobs = run(Subject.JOB, case.jobs)
        unexplained += troubles_of_jobs(case.jobs, of_jobs)
        silent = not_logged(case.jobs)
        # Jobs in the output of a run were judged above with all others.
        of_runs = tuple(outcome for outcome in of_runs if outcome.check in ids_of(Subject.BENCH))
    placed = _placed(case, trained)
    seats, gaps, steps = (placed.outcomes, placed.not_observed, placed.steps) if placed is not None else ((), (), ())
    joined = (*of_nodes, *of_jobs, *of_runs, *seats)
    result = judged_result(
        replace(case, not_observed=(*case.not_observed, *silent, *runs.not_observed, *gaps)),
        tuple(_by_host_names(outcome, case.identity) for outcome in joined),
        progress=case.progress,
        benchmarks=runs.benchmarks,
        unexplained=tuple(dict.fromkeys(unexplained)),
        identity=case.identity,
        timeline=case.timeline,
    )
    result = replace(result, verdict=judge(result, case, steps))
    if case.runs:
        from topodiag.app.judge.runs import with_gates  # noqa: PLC0415 - as above

        result = with_gates(result)
    return told(result)


def _beside_model(case: Case) -> Case:
    """The case with what the Inspector measured beside NCCL's model of the machines."""
    if not any(job.machines and job.inspection is not None for job in case.jobs):
        return case
    from topodiag.expect.inspector import beside_model  # noqa: PLC0415 - numpy, for the Inspector only

    beside = (replace(job, inspection=beside_model(job)) if job.machines else job for job in case.jobs)
    return replace(case, jobs=tuple(beside))


def _placed(case: Case, trained: Mapping[str, Any] | None) -> PlacedJobs | None:
    """The jobs on their seats, None where there are none."""
    if not case.layouts and not any(job.world_size > 1 for job in case.jobs):
        return None
    from topodiag.app.judge.placing import place_jobs  # noqa: PLC0415 - the model of a step, which only jobs need

    return place_jobs(case, trained)


def _by_host_names(outcome: Outcome, identity: Identity) -> Outcome:
    """The outcome with the hosts of its findings called as the case calls them. Captures of one host that were judged
    one by one (`n1#2`) keep their numbers."""
    findings = tuple(_on_machines(finding, identity) for finding in outcome.findings)
    return outcome if findings == outcome.findings else replace(outcome, findings=findings)


def _on_machines(finding: Finding, identity: Identity) -> Finding:
    names = (name if "#" in name else identity.name(name) for name in finding.where.nodes)
    return replace(finding, where=replace(finding.where, nodes=tuple(dict.fromkeys(names))))
