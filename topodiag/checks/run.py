"""Runs every check over every node or job, folds equal findings and sorts them, worst first, in a stable order."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from topodiag.checks import registry
from topodiag.checks.interface import MAX_EVIDENCE, BenchCheck, Check, JobCheck, NodeCheck, PlacementCheck
from topodiag.model.finding import Finding, Outcome, Status
from topodiag.model.node import Node

if TYPE_CHECKING:
    from topodiag.model.bench import Benchmark
    from topodiag.model.job import Job
    from topodiag.placement.audit import Audit


def run_checks(nodes: Sequence[Node], only: Collection[str] = ()) -> tuple[Outcome, ...]:
    """One outcome per check and node, in the order of the catalogue; `only` these ids, () for all."""
    made: list[Outcome] = []
    for check_id in registry.ids():
        if only and check_id not in only:
            continue
        for cls in registry.check_classes(check_id):
            if not issubclass(cls, NodeCheck):
                continue
            check = cls()
            for node in nodes:
                peers = tuple(other for other in nodes if other is not node)
                made.append(_guarded(check, node.host, partial(check.judge, node, peers)))
    return tuple(made)


def run_job_checks(jobs: Sequence[Job]) -> tuple[Outcome, ...]:
    """One outcome per job check and job, in the order of the catalogue. Findings name their job where it has others
    beside it."""
    made: list[Outcome] = []
    for check_id in registry.ids():
        for cls in registry.job_classes(check_id):
            if issubclass(cls, JobCheck):
                check = cls()
                made.extend(_guarded(check, job.name, partial(check.judge, job)) for job in jobs)
    return tuple(_named(outcome) for outcome in made) if len(jobs) > 1 else tuple(made)


def run_bench_checks(benchmarks: Sequence[Benchmark]) -> tuple[Outcome, ...]:
    """One outcome per check of benchmarks and run, in the order of the catalogue."""
    made: list[Outcome] = []
    for check_id in registry.ids():
        for cls in registry.check_classes(check_id):
            if not issubclass(cls, BenchCheck):
                continue
            check = cls()
            for benchmark in benchmarks:
                others = tuple(other for other in benchmarks if other is not benchmark)
                place = benchmark.run.placement or benchmark.run.source
                made.append(_guarded(check, place, partial(check.judge, benchmark, others)))
    return tuple(made)


def run_placement_checks(audit: Audit) -> tuple[Outcome, ...]:
    """One outcome per check of layouts, in the order of the catalogue."""
    made: list[Outcome] = []
    for check_id in registry.ids():
        for cls in registry.check_classes(check_id):
            if issubclass(cls, PlacementCheck):
                check = cls()
                made.append(_guarded(check, audit.name, partial(check.judge, audit)))
    return tuple(made)


def _named(outcome: Outcome) -> Outcome:
    """The outcome of a job with the job's name in its findings."""
    findings = tuple(replace(each, where=replace(each.where, jobs=(outcome.node,))) for each in outcome.findings)
    return replace(outcome, findings=findings) if findings else outcome


def _guarded(check: Check, place: str, judge: Callable[[], Outcome]) -> Outcome:
    try:
        return judge()
    except Exception as error:  # noqa: BLE001 - the last guard: a check's bug costs its verdict, never the run
        return Outcome(check.id, Status.UNKNOWN, place, why=f"the check failed: {type(error).__name__}: {error}")


def fold(outcomes: Sequence[Outcome]) -> tuple[Finding, ...]:
    """All findings; those that say the same of several nodes or jobs become one with all of them, and with evidence of
    each job."""
    folded: dict[tuple[object, ...], Finding] = {}
    for outcome in outcomes:
        for finding in outcome.findings:
            where = finding.where
            key = (finding.id, finding.severity, finding.message, finding.observed, finding.expected, where.gpus,
                   where.nics, where.links, where.ranks)  # fmt: skip
            first = folded.get(key)
            if first is None:
                folded[key] = finding
                continue
            nodes = tuple(dict.fromkeys(first.where.nodes + where.nodes))
            jobs = tuple(dict.fromkeys(first.where.jobs + where.jobs))
            evidence = first.evidence
            if len(jobs) > len(first.where.jobs):
                evidence = tuple(dict.fromkeys((*evidence, *finding.evidence[:1])))[:MAX_EVIDENCE]
            folded[key] = replace(first, where=replace(first.where, nodes=nodes, jobs=jobs), evidence=evidence)
    return tuple(sorted(folded.values(), key=_order))


def _order(finding: Finding) -> tuple[object, ...]:
    lost = finding.cost.gbs_lost or 0.0
    return -finding.severity, -finding.confidence, -lost, finding.id, finding.where.nodes, finding.message
