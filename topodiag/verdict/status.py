"""How well a cause is founded. Never more certain than its evidence: what only shows an effect is never established as
a cause, however sure the effect is.
"""

from __future__ import annotations

from collections.abc import Sequence

from topodiag.lazy import regex
from topodiag.model.bench import Benchmark
from topodiag.model.finding import Confidence, Finding, Severity
from topodiag.model.provenance import Origin
from topodiag.model.verdict import CauseStatus
from topodiag.verdict.clearing import normal_runs
from topodiag.verdict.interface import RULES
from topodiag.verdict.scene import Scene

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
