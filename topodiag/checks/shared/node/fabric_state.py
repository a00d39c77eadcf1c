"""What single GPUs say of the NVSwitch fabric: registration, health, NVLink domain. fabric.py makes findings of it."""

from __future__ import annotations

from topodiag.checks.shared.comparisons import majority
from topodiag.checks.shared.devices import BOOT_S, just_booted
from topodiag.lazy import dataclass
from topodiag.model.devices import Gpu
from topodiag.model.finding import Confidence, Severity
from topodiag.model.node import Node

PASSING = ("recovery",)
"""Health fields that pass by themselves: route and access-timeout recovery say that the fabric is at work on it."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing wrong with one GPU's registration. Equal faults of several GPUs become one finding."""

    severity: Severity
    text: str
    expected: str
    confidence: Confidence = Confidence.HIGH
    waiting: bool = False
    """The GPU has not joined the fabric: what a dead Fabric Manager looks like from the GPU."""
    refused: bool = False
    """The GPU asked to join, and the fabric said no."""
    apart: bool = False
    """The GPU is in the fabric but not in the NVLink domain of its peers."""


def registers(gpu: Gpu) -> bool:
    """Whether the GPU registers with a fabric at all: A100 and cards without NVSwitch say `not supported`."""
    state = gpu.fabric.state.value
    return state is not None and state != "not_supported"


def faults_of(node: Node, gpu: Gpu, siblings: list[Gpu]) -> list[Fault]:
    """All that is wrong with one GPU that registers with a fabric; `peers` are the GPUs of its node."""
    return [*_registration(node, gpu), *_health(gpu), *_domain(gpu, siblings)]


def _registration(node: Node, gpu: Gpu) -> list[Fault]:
    state, status = gpu.fabric.state.value or "", gpu.fabric.status.value
    words = state.replace("_", " ")
    wanted = "state completed and status success (NCCL and CUDA need both)"
    if state != "completed":
        uptime = node.os.uptime_s.value
        if just_booted(node):
            minutes = f"{(uptime or 0.0) / 60:.0f} minutes after boot"
            text = f"fabric registration is {words}, {minutes}: transient"
            return [Fault(Severity.INFO, text, f"{wanted} within {BOOT_S / 60:.0f} minutes of boot", waiting=True)]
        if uptime is None and state == "in_progress":
            text = f"fabric registration is {words} (uptime unknown: may be transient)"
            return [Fault(Severity.WARNING, text, wanted, Confidence.MEDIUM, waiting=True)]
        return [Fault(Severity.ERROR, f"fabric registration is {words}", wanted, waiting=True)]
    if status and status != "success":
        return [Fault(Severity.ERROR, f"fabric registration ended with {status}", wanted, refused=True)]
    return []


def _health(gpu: Gpu) -> list[Fault]:
    if gpu.fabric.state.value != "completed":
        return []
    parts = []
    if gpu.fabric.health.value in ("unhealthy", "limited"):
        parts.append({"unhealthy": "unhealthy", "limited": "of limited capacity"}[gpu.fabric.health.value])
    if gpu.fabric.bandwidth.value == "degraded":
        parts.append("of degraded bandwidth")
    problems = [part.strip() for part in (gpu.fabric.problems.value or "").split(",") if part.strip()]
    if problems:
        parts.append(f"with {', '.join(problems[:6])}")
    if not parts:
        return []
    passing = all(any(sign in problem.lower() for sign in PASSING) for problem in problems)
    mild = gpu.fabric.health.value != "unhealthy" and gpu.fabric.bandwidth.value != "degraded" and passing
    expected = "health healthy, bandwidth full, no other field set (DCGM fails a GPU for any of them)"
    return [Fault(Severity.WARNING if mild else Severity.ERROR, f"the fabric is {' '.join(parts)}", expected)]


def cluster(gpu: Gpu) -> str | None:
    """The UUID of the multi-node NVLink domain, or None when the GPU is in none or does not say."""
    uuid = gpu.fabric.cluster_uuid.value
    return uuid if uuid and uuid.strip("0-") else None


def _domain(gpu: Gpu, siblings: list[Gpu]) -> list[Fault]:
    if gpu.fabric.state.value != "completed" or gpu.fabric.cluster_uuid.value is None:
        return []
    known = [sibling for sibling in siblings if sibling.fabric.cluster_uuid.value is not None]
    common = majority(cluster(sibling) for sibling in known)
    if common is None:
        return []
    if cluster(gpu) is None:
        text = "in no multi-node NVLink domain, unlike its peers"
        return [Fault(Severity.ERROR, text, f"cluster {common}, as its peers", apart=True)]
    if cluster(gpu) != common:
        return [
            Fault(Severity.ERROR, f"in NVLink cluster {cluster(gpu)}", f"cluster {common}, as its peers", apart=True)
        ]
    clique = majority(sibling.fabric.clique_id.value for sibling in known if sibling.fabric.clique_id.value is not None)
    own = gpu.fabric.clique_id.value
    if own is not None and clique is not None and own != clique:
        return [Fault(Severity.ERROR, f"in NVLink clique {own}", f"clique {clique}, as its peers", apart=True)]
    return []
