"""How well a cause is founded, and the observation that would settle what is open: a command for a named host, and why
that one.

A cause is never more certain than its evidence: what only shows an effect is never established as a cause, however
sure the effect is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from topodiag.lazy import regex
from topodiag.model.bench import Benchmark
from topodiag.model.finding import Confidence, Finding, Severity, Status
from topodiag.model.provenance import Origin, Topic
from topodiag.model.result import Result
from topodiag.model.verdict import Cause, CauseStatus, NextEvidence, State
from topodiag.verdict.clearing import active_ports, normal_runs
from topodiag.verdict.interface import RULES
from topodiag.verdict.scene import Scene
from topodiag.verdict.state import cut_words
from topodiag.words.hosts import short_name
from topodiag.words.own_data import own_data
from topodiag.words.units import fold_hosts, grouped

if TYPE_CHECKING:
    from topodiag.model.job import Job

_EFFECTS = ("BEN", "JOB001", "JOB005", "JOB008", "JOB011", "JOB012", "JOB014", "JOB015", "NET003", "NET004", "NET006",
            "NET007", "NET008", "NET010", "NIC005", "NVL004", "P2P001", "TOP004", "GPU005", "NET001", "NET002",
            "GDR001")  # fmt: skip
"""Checks that see what something did, in a log or a measurement, and not what did it. A finding of these that names the
setting which does it, or that was read on the machine itself, is a cause."""

_ON_MACHINE = frozenset({"NIC005", "NVL004", "GDR001", "TOP004"})
"""Of those, what a capture of the machine shows directly."""

_WAITS = frozenset({"watchdog", "timeout", "peer closed", "connect", "stalled"})
"""Kinds of first errors that only say that somebody else did not answer."""

_SLOWS_A_MACHINE = ("NVL001", "NVL002", "NVL004", "PCI001", "PCI002", "PCI004", "NIC002", "NIC003", "NIC005", "NET003",
                    "GDR001", "GDR002", "P2P001", "TOP004", "NUM001", "HST003", "GPU004", "GPU006")  # fmt: skip
"""Faults that a measurement on the same machines meets."""

_LASTING = ("TOP", "NUM001")
"""Of what no boot changes: how the machine is built."""

_SETTING = regex(r"\b(?:NCCL|RCCL)_[A-Z0-9_]{1,60}=")

_BY_CONFIDENCE = {
    Confidence.HIGH: CauseStatus.ESTABLISHED,
    Confidence.MEDIUM: CauseStatus.LIKELY,
    Confidence.LOW: CauseStatus.HYPOTHESIS,
}


def contradictions(cause: Finding, scene: Scene, benchmarks: Sequence[Benchmark]) -> tuple[Origin, ...]:
    """Lines of the case that speak against a cause: what the rules of its mechanism see in use, and measurements on the
    same machines that reach what they should."""
    against = [line for rule in RULES if cause.id in rule.causes for line in rule.against(cause, scene)]
    if cause.id in _SLOWS_A_MACHINE:
        against += normal_runs(scene, benchmarks, cause.where.nodes)
    return tuple(dict.fromkeys(against))


def status_of(cause: Finding, scene: Scene, against: Sequence[Origin]) -> CauseStatus:
    """By the confidence of the finding, what kind of thing it sees, and what speaks against it."""
    status = _BY_CONFIDENCE[cause.confidence]
    if not cause.evidence or cause.severity is Severity.INFO or is_only_effect(cause, scene):
        status = _at_most(status, CauseStatus.LIKELY)
    if _only_waits(cause, scene):
        status = CauseStatus.HYPOTHESIS
    if not against:
        return status
    return CauseStatus.LIKELY if status is CauseStatus.ESTABLISHED else CauseStatus.HYPOTHESIS


def of_another_time(cause: Finding, scene: Scene) -> bool:
    """Whether only captures from before the job, or of a later boot, show it: the job need not have met it."""
    if cause.id.startswith(_LASTING) or not cause.evidence:
        return False
    stale = scene.hosts(host.name for host in scene.case.identity.hosts if host.stale)
    met = {path for job in scene.case.jobs for path in job.files}
    nodes = scene.nodes(cause)
    return bool(nodes) and nodes <= stale and not any(line.source in met for line in cause.evidence)


def at_another_time(status: CauseStatus, is_met: bool) -> CauseStatus:
    """What is left of a status where a capture of another time shows the cause, and a job its consequence, or none."""
    return _at_most(status, CauseStatus.LIKELY if is_met else CauseStatus.HYPOTHESIS)


def is_only_effect(cause: Finding, scene: Scene) -> bool:
    """Whether the finding says only what is seen, and not what makes it so."""
    if not cause.id.startswith(_EFFECTS) or cause.settings or _SETTING.search(cause.message):
        return False
    if cause.id in _ON_MACHINE:
        logs = {path for job in scene.case.jobs for path in job.files}
        return not (scene.nodes(cause) <= scene.captured and any(line.source not in logs for line in cause.evidence))
    return True


def _only_waits(cause: Finding, scene: Scene) -> bool:
    if cause.id != "JOB005":
        return False
    errors = scene.errors(cause)
    return not errors or all(event.kind in _WAITS for event in errors)


def _at_most(status: CauseStatus, most: CauseStatus) -> CauseStatus:
    order = list(CauseStatus)
    return order[max(order.index(status), order.index(most))]


MAX_STEPS = 3
"""More would be a list of chores, not the observation that settles it."""

_DATA = own_data("verdict/next_evidence")
_NO_CAPTURE = "this node has no capture yet"
_ONE_TOOL = "shows what the output of one tool leaves open"


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
    """What the rank does that the others wait for, or one of all where nobody is behind."""
    for job in scene.jobs_of(finding):
        for number in finding.where.ranks[:1]:
            rank = job.by_rank.get(number)
            if rank is not None:
                why = _DATA["stack"]["even" if set(finding.where.ranks) >= job.by_rank.keys() else "behind"]
                yield _step("stack", rank.host, rank=number, pid=rank.pid, why=why)
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
    jobs, captures = scene.case.jobs, scene.captures
    for job in jobs:
        missing = [host for host in job.hosts if scene.host(host) not in scene.captured]
        if missing:
            yield _capture_of(missing, _NO_CAPTURE)
    partly = [node for node in captures if Topic.OS not in node.topics]
    if partly and not jobs:
        named = [node.host for node in partly if not node.nameless]
        unnamed = _step("capture", hosts="the node", name="node", why=_ONE_TOOL)
        yield _capture_of(named, _ONE_TOOL) if named else unnamed
    elif jobs or captures or scene.case.runs or scene.case.progress:
        yield from _of_the_jobs(jobs, scene)
    else:
        yield _step("output")


def _of_the_jobs(jobs: Sequence[Job], scene: Scene) -> Iterator[NextEvidence]:
    """The rest of their output, or NCCL's log of another run, which shows nothing of one that is over, or of MPI: of
    that the machines, as long as none is known."""
    of_mpi = bool(scene.case.runs) and all(run.is_foreign for run in scene.case.runs)
    goes_on = any(not job.done for job in jobs) if jobs else not of_mpi
    if any(cut_words(job, scene) for job in jobs):
        yield _step("output")
    elif goes_on and all(job.steps and not job.processes for job in jobs):
        yield _step("log")
    elif of_mpi and not (jobs or scene.captures):
        yield _step("mpi")
