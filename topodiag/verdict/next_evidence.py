"""The observation that would settle what is open: a command for a named host, and why that one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from topodiag.model.finding import Finding, Status
from topodiag.model.result import Result
from topodiag.model.verdict import Cause, CauseStatus, NextEvidence, State
from topodiag.verdict.clearing import active_ports
from topodiag.verdict.scene import Scene
from topodiag.verdict.status import names_a_cause
from topodiag.words.fold import fold_hosts
from topodiag.words.hosts import short_name
from topodiag.words.own_data import own_data

MAX_STEPS = 3
"""More would be a list of chores, not the observation that settles it."""

_OPENS: dict[str, str] = own_data("verdict/next_evidence")
"""By check, what a capture of the node shows."""


def next_evidence(causes: Sequence[Cause], state: State, result: Result, scene: Scene) -> tuple[NextEvidence, ...]:
    """At most MAX_STEPS steps, the one that splits most of what is open first."""
    evidences: dict[tuple[str, str], NextEvidence] = {}
    for cause in sorted(causes, key=lambda cause: cause.status is CauseStatus.ESTABLISHED):
        for step in _steps(cause, result, scene):
            evidences.setdefault((step.where, step.command), step)
    if not causes and state not in (State.HEALTHY,):
        for step in _where_nothing_was_found(scene):
            evidences.setdefault((step.where, step.command), step)
    return tuple(evidences.values())[:MAX_STEPS]


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
        yield NextEvidence(
            "each node against a good one", "", "topodiag bench plan --nodelist NODES -o plan.json",
            "pairs with known-good partners tell which node is slow",
        )  # fmt: skip


def _stack(finding: Finding, scene: Scene) -> Iterator[NextEvidence]:
    """What the rank does that the others wait for."""
    for job in scene.jobs_of(finding):
        for number in finding.where.ranks[:1]:
            rank = job.by_rank.get(number)
            if rank is not None:
                yield NextEvidence(
                    f"the stack of rank {number}", rank.host, f"py-spy dump --pid {rank.pid}",
                    "only its stack shows why it is behind the other ranks",
                )  # fmt: skip
                return


def _inside(finding: Finding, scene: Scene) -> Iterator[NextEvidence]:
    """What the process sees, where the machine has what the job did not use."""
    hosts = finding.where.nodes[:1]
    for host in hosts:
        healthy = bool(active_ports(scene, (host,)))
        why = "the NICs of the machine are up: the container or its libraries hide them" if healthy else ""
        pods = [name for job in scene.jobs_of(finding) for name in job.hosts if scene.host(name) == scene.host(host)]
        inside = next((name for name in pods if name != host), host)
        yield NextEvidence(
            "the RDMA devices inside the job's container", inside, "ibv_devinfo; ls /dev/infiniband; ulimit -l",
            why or "without these devices NCCL has sockets only",
        )  # fmt: skip


def _captures(finding: Finding, scene: Scene) -> Iterator[NextEvidence]:
    captured = scene.hosts(node.host for node in scene.case.nodes)
    missing = [host for host in finding.where.nodes if scene.host(host) not in captured]
    question = _OPENS.get(finding.id, "")
    if not missing or (not question and names_a_cause(finding, scene)):
        return
    hosts = {host for job in scene.jobs_of(finding) for host in job.hosts}
    siblings = sorted(host for host in hosts if scene.host(host) in captured)
    known = f"; its peers {fold_hosts(siblings)} have captures" if siblings else ""
    host = missing[0]
    yield NextEvidence(
        f"a capture of {fold_hosts(missing)}", host, f"topodiag scan --save {short_name(host)}.tar.gz",
        f"{question or 'this node has no capture yet'}{known}",
    )  # fmt: skip


def _where_nothing_was_found(scene: Scene) -> Iterator[NextEvidence]:
    """What would tell something where nothing was found and the case is not healthy."""
    captured = scene.hosts(node.host for node in scene.case.nodes)
    for job in scene.case.jobs:
        missing = [host for host in job.hosts if scene.host(host) not in captured]
        if missing:
            yield NextEvidence(
                f"a capture of {fold_hosts(missing)}", missing[0],
                f"topodiag scan --save {short_name(missing[0])}.tar.gz", "this node has no capture yet",
            )  # fmt: skip
    unlogged = bool(scene.case.jobs) and all(job.steps and not job.processes for job in scene.case.jobs)
    if unlogged or not scene.case.jobs:
        yield NextEvidence(
            "NCCL's log of the job",
            "",
            'eval "$(topodiag env)"',
            "then run the job again: its log shows what NCCL uses",
        )
