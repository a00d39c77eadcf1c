"""A whole case, judged: its nodes, jobs and runs, each part by its checks, and the verdict that joins them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any

from topodiag.app.case.build import Opened
from topodiag.app.case.machine import Machine, lacking
from topodiag.app.judge.nodes import judged as judged_nodes
from topodiag.app.judge.results import judged_result
from topodiag.checks.registry import Subject, ids_of
from topodiag.checks.spoken import told
from topodiag.model.case import Case
from topodiag.model.finding import Finding, Outcome
from topodiag.model.identity import Identity
from topodiag.model.result import Result
from topodiag.verdict.judge import judge

if TYPE_CHECKING:
    from topodiag.app.case.runs import BenchEvidence
    from topodiag.placement.job_step import PlacedJobs


def judged_case(opened: Opened, trained: Mapping[str, Any] | None = None) -> Result:
    """The case with its verdict. `trained` are the options of `topodiag model step` by name, None where nobody says
    what is trained, empty where nothing is."""
    case = opened.case
    if any(job.machines and job.inspection is not None for job in case.jobs):
        from topodiag.app.judge.inspector_model import beside_model  # noqa: PLC0415 - numpy, for the Inspector only

        beside = tuple(replace(job, inspection=beside_model(job)) if job.machines else job for job in case.jobs)
        opened = replace(opened, case=replace(case, jobs=beside))
    return _result(opened.case, _results(opened), trained)


def _results(opened: Opened) -> list[Result]:
    """The parts of the case, each judged."""
    case, given = opened.case, opened.runs
    nodes = judged_nodes(replace(case, jobs=())) if case.nodes else Result()
    runs = _measured(given, nodes, case.identity) if given is not None else Result()
    if not case.jobs or (given is not None and len(case.jobs) == len(given.jobs)):
        return [nodes, runs]
    from topodiag.app.judge import jobs  # noqa: PLC0415 - numpy, which only jobs need

    # A run is a job of its own: what NCCL logged in its output is judged beside the other jobs, which show what the
    # same nodes can do.
    of_bench = ids_of(Subject.BENCH)
    runs = replace(runs, jobs=(), outcomes=tuple(outcome for outcome in runs.outcomes if outcome.check in of_bench))
    return [nodes, jobs.judged(replace(case, nodes=())), runs]


def _measured(given: BenchEvidence, nodes: Result, identity: Identity) -> Result:
    """Runs on the machine that the nodes are, which were read and judged already."""
    from topodiag.app.judge.runs import judged_runs  # noqa: PLC0415 - numpy, which only runs need

    beside, paths = given.machine, tuple(item.path for item in nodes.inputs)
    whole = tuple(node for node in nodes.nodes if not lacking(node))
    machine = Machine((*beside.nodes, *whole), beside.jobs, (*beside.paths, *(paths if whole else ())), identity)
    return judged_runs(replace(given, machine=machine), of_nodes=nodes.outcomes)


def _result(case: Case, results: Sequence[Result], trained: Mapping[str, Any] | None) -> Result:
    """The parts of the diagnosis as one result, with what no part read."""
    placed = _placed(case, trained)
    seats, gaps, steps = (placed.outcomes, placed.not_observed, placed.steps) if placed is not None else ((), (), ())
    joined = (*(outcome for result in results for outcome in result.outcomes), *seats)
    outcomes = tuple(_by_host_names(outcome, case.identity) for outcome in joined)
    whole = replace(
        case,
        inputs=tuple(dict.fromkeys((*case.inputs, *(item for result in results for item in result.inputs)))),
        not_observed=(*chain(*(result.not_observed for result in results)), *case.not_observed, *gaps),
        unread=tuple(dict.fromkeys(chain(*(result.unread for result in results), case.unread))),
    )
    result = judged_result(
        whole,
        outcomes,
        progress=case.progress,
        benchmarks=tuple(run for result in results for run in result.benchmarks),
        unexplained=tuple(dict.fromkeys(line for result in results for line in result.unexplained)),
        identity=case.identity,
        timeline=case.timeline,
    )
    return told(replace(result, verdict=judge(result, case, steps)))


def _placed(case: Case, trained: Mapping[str, Any] | None) -> PlacedJobs | None:
    """The jobs on their seats, None where there are none."""
    if not case.layouts and not any(job.world_size > 1 for job in case.jobs):
        return None
    from topodiag.app.judge.placed_jobs import place_jobs  # noqa: PLC0415 - the model of a step, which only jobs need

    return place_jobs(case, trained)


def _by_host_names(outcome: Outcome, identity: Identity) -> Outcome:
    """The outcome with the hosts of its findings called as the case calls them. Captures of one host that were judged
    one by one (`n1#2`) keep their numbers."""
    findings = tuple(_on_machines(finding, identity) for finding in outcome.findings)
    return outcome if findings == outcome.findings else replace(outcome, findings=findings)


def _on_machines(finding: Finding, identity: Identity) -> Finding:
    names = (name if "#" in name else identity.name(name) for name in finding.where.nodes)
    return replace(finding, where=replace(finding.where, nodes=tuple(dict.fromkeys(names))))
