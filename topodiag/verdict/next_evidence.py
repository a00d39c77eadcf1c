"""The observation that would settle what is open: a command for a named host, and why that one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from topodiag.model.finding import Finding, Status
from topodiag.model.result import Result
from topodiag.model.verdict import Cause, CauseStatus, NextEvidence, State
from topodiag.verdict.clearing import active_ports
from topodiag.verdict.scene import Scene
from topodiag.verdict.state import cut_words
from topodiag.verdict.status import is_only_effect
from topodiag.words.hosts import short_name
from topodiag.words.own_data import own_data
from topodiag.words.units import fold_hosts, grouped

MAX_STEPS = 3
"""More would be a list of chores, not the observation that settles it."""

_DATA = own_data("verdict/next_evidence")
_NO_CAPTURE = "this node has no capture yet"


def next_evidence(causes: Sequence[Cause], state: State, result: Result, scene: Scene) -> tuple[NextEvidence, ...]:
    """At most MAX_STEPS steps, the one that splits most of what is open first."""
    ordered = sorted(causes, key=lambda cause: cause.status is CauseStatus.ESTABLISHED)
    steps = [step for cause in ordered for step in _steps(cause, result, scene)]
    if not causes and state is not State.HEALTHY:
        steps += _where_nothing_was_found(scene)
    alike = grouped(((step.where, step.command), step) for step in steps)
    return tuple(own[0] for own in alike.values())[:MAX_STEPS]


def _steps(cause: Cause, result: Result, scene: Scene) -> Iterator[NextEvidence]:
    finding = cause.finding
    if finding.id == "JOB006":
        yield from _stack(finding, scene)
        return
    # A plugin may fail in one of its parts, and every rank uses RDMA all the same.
    rdma = any(outcome.check == "NET001" and outcome.status is Status.CLEAN for outcome in result.outcomes)
    if finding.id in ("NET001", "HST002") or (finding.id == "NET005" and not rdma):
        yield from _inside(finding, scene)
    if cause.status is not CauseStatus.ESTABLISHED:
        yield from _captures(finding, scene)
    if finding.id.startswith("BEN"):
        yield _step("bench")


def _step(step: str, where: str = "", **given: object) -> NextEvidence:
    """One of the steps of the table, at this host."""
    what, command, why = (_DATA["step"][step][part].format(**given) for part in ("what", "command", "why"))
    return NextEvidence(what, where, command, why)


def _capture_of(hosts: Sequence[str], why: str) -> NextEvidence:
    return _step("capture", hosts[0], hosts=fold_hosts(hosts), name=short_name(hosts[0]), why=why)


def _stack(finding: Finding, scene: Scene) -> Iterator[NextEvidence]:
    """What the rank does that the others wait for."""
    for job in scene.jobs_of(finding):
        for number in finding.where.ranks[:1]:
            rank = job.by_rank.get(number)
            if rank is not None:
                yield _step("stack", rank.host, rank=number, pid=rank.pid)
                return


def _inside(finding: Finding, scene: Scene) -> Iterator[NextEvidence]:
    """What the process sees, where the machine has what the job did not use."""
    for host in finding.where.nodes[:1]:
        pods = [name for job in scene.jobs_of(finding) for name in job.hosts if scene.host(name) == scene.host(host)]
        inside = next((name for name in pods if name != host), host)
        up = active_ports(scene, (host,))
        yield _step("inside", inside, why=_DATA["inside"]["up" if up else "unknown"])


def _captures(finding: Finding, scene: Scene) -> Iterator[NextEvidence]:
    missing = [host for host in finding.where.nodes if scene.host(host) not in scene.captured]
    question = _DATA["opens"].get(finding.id, "")
    if not missing or (not question and not is_only_effect(finding, scene)):
        return
    hosts = {host for job in scene.jobs_of(finding) for host in job.hosts}
    peers = sorted(host for host in hosts if scene.host(host) in scene.captured)
    known = f"; its peers {fold_hosts(peers)} have captures" if peers else ""
    yield _capture_of(missing, f"{question or _NO_CAPTURE}{known}")


def _where_nothing_was_found(scene: Scene) -> Iterator[NextEvidence]:
    """What would tell something where nothing was found and the case is not healthy."""
    for job in scene.case.jobs:
        missing = [host for host in job.hosts if scene.host(host) not in scene.captured]
        if missing:
            yield _capture_of(missing, _NO_CAPTURE)
    jobs = scene.case.jobs
    seen = jobs or scene.captures or scene.case.runs or scene.case.progress
    if not seen or any(cut_words(job, scene) for job in jobs):
        yield _step("output")  # another run shows nothing of one that is over
    elif all(job.steps and not job.processes for job in jobs) and not (jobs and all(job.done for job in jobs)):
        yield _step("log")
