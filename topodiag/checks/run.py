"""Runs the checks of subjects over what they judge, folds equal findings and sorts them, worst first, in a stable
order."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from topodiag.checks.interface import MAX_EVIDENCE, Check, Judged, name_of
from topodiag.checks.peers import peers_of
from topodiag.checks.registry import Subject, check_of, has_check, idle_answer, ids_of
from topodiag.checks.shared.reports import answered_by, with_reports
from topodiag.checks.shared.tables import reported_by_tables
from topodiag.checks.spoken import spoken
from topodiag.model.finding import Finding, Outcome, Status
from topodiag.model.maker import dialect_of
from topodiag.words.units import grouped

if TYPE_CHECKING:
    from topodiag.model.node import Node

J = TypeVar("J", bound=Judged)

_WITH = {Subject.NODE: (Subject.NODE, Subject.TOPO)}
"""A topology file is judged with the node that it describes."""


def run(subject: Subject, judged: Sequence[Any], only: Collection[str] = ()) -> tuple[Outcome, ...]:
    """One outcome per check of the subject and per thing judged, in the order of the catalogue.

    `only` names the ids to run, () stands for all. Findings name their job where it has others beside it.
    """
    judged = [_with_tables(node) for node in judged] if subject is Subject.NODE else judged
    subjects = _WITH.get(subject, (subject,))
    peers = peers_of(judged)
    dialects = [dialect_of(part) for part in judged]
    outcomes = tuple(
        spoken(outcome, dialect)
        for check_id in ids_of(*subjects)
        if not only or check_id in only
        for *pair, dialect in zip(judged, peers, dialects, strict=True)
        for outcome in _answers([part for part in subjects if has_check(part, check_id)], check_id, *pair)
    )
    if subject is Subject.NODE:
        outcomes += tuple(own for node in judged for own in _without_job(node) if not only or own.check in only)
    return tuple(_with_job(outcome) for outcome in outcomes) if subject is Subject.JOB and len(judged) > 1 else outcomes


def _answers(parts: Sequence[Subject], check_id: str, judged: Any, peers: Sequence[Any]) -> list[Outcome]:
    """The answers of the subjects that have this check. One that does not apply says nothing beside one that does."""
    outcomes = [_answer(part, check_id, judged, peers) for part in parts]
    return [outcome for outcome in outcomes if outcome.status is not Status.NOT_APPLICABLE] or outcomes[:1]


def _answer(subject: Subject, check_id: str, judged: Any, peers: Sequence[Any]) -> Outcome:
    idle = idle_answer(subject)
    why = idle(judged) if idle is not None else None
    if why is not None:
        return Outcome(check_id, why[0], name_of(judged), why=why[1])
    answer = _guarded(check_of(subject, check_id)(), judged, peers)
    if subject is Subject.NODE and judged.reports:
        return with_reports(answer, judged, answered_by(check_id))
    return answer


def _with_tables(node: Node) -> Node:
    """The node with what its tables report among its reports."""
    return replace(node, reports=(*node.reports, *reported_by_tables(node))) if node.tables else node


def _without_job(node: Node) -> Iterator[Outcome]:
    """What a text that is no log of a job reports of faults that checks of jobs and benchmarks alone judge: of ranks
    and hosts, of ways to peers."""
    for check_id in ids_of(Subject.JOB, Subject.BENCH) if node.reports else ():
        if not has_check(Subject.NODE, check_id):
            answer = Outcome(check_id, Status.NOT_APPLICABLE, node.host)
            answer = with_reports(answer, node, answered_by(check_id))
            if answer.status is Status.FINDING:
                yield spoken(answer, dialect_of(node))


def _with_job(outcome: Outcome) -> Outcome:
    """The outcome of a job with the job's name in its findings."""
    findings = tuple(replace(own, where=replace(own.where, jobs=(outcome.node,))) for own in outcome.findings)
    return replace(outcome, findings=findings) if findings else outcome


def _guarded(check: Check[J], judged: J, peers: Sequence[J]) -> Outcome:
    try:
        return check.judge(judged, peers)
    except Exception as error:  # noqa: BLE001 - the last guard: a check's bug costs its verdict, never the run
        why = f"the check failed: {type(error).__name__}: {error}"
        return Outcome(check.id, Status.UNKNOWN, name_of(judged), why=why)


def fold(outcomes: Sequence[Outcome]) -> tuple[Finding, ...]:
    """All findings; those that say the same of several nodes or jobs become one with all of them, and with evidence of
    each job."""
    alike = grouped((_words(finding), finding) for outcome in outcomes for finding in outcome.findings)
    return tuple(sorted(map(_folded, alike.values()), key=_order))


def _words(finding: Finding) -> tuple[object, ...]:
    """All that a finding says, but for its nodes and jobs."""
    place = finding.where.gpus, finding.where.nics, finding.where.links, finding.where.ranks
    return finding.id, finding.severity, finding.message, finding.observed, finding.expected, place


def _folded(findings: Sequence[Finding]) -> Finding:
    """One of those that say the same, with the nodes and jobs of all."""
    first = findings[0]
    if len(findings) == 1:
        return first
    nodes = tuple(dict.fromkeys(node for finding in findings for node in finding.where.nodes))
    jobs: dict[str, None] = dict.fromkeys(first.where.jobs)
    evidence = dict.fromkeys(first.evidence)
    for finding in findings[1:]:
        known = len(jobs)
        jobs.update(dict.fromkeys(finding.where.jobs))
        if len(jobs) > known:
            evidence.update(dict.fromkeys(finding.evidence[:1]))
    return replace(
        first,
        where=replace(first.where, nodes=nodes, jobs=tuple(jobs)),
        evidence=first.evidence if len(evidence) == len(first.evidence) else tuple(evidence)[:MAX_EVIDENCE],
    )


def _order(finding: Finding) -> tuple[object, ...]:
    lost = finding.cost.gbs_lost or 0.0
    return -finding.severity, -finding.confidence, -lost, finding.id, finding.where.nodes, finding.message
