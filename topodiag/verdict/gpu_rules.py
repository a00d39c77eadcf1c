"""Conditions of rules on GPUs, NVLink, PCIe and storage, by the name of the rule."""

from __future__ import annotations

from collections.abc import Mapping

from topodiag.lazy import regex
from topodiag.model.finding import Finding
from topodiag.verdict.interface import Condition
from topodiag.verdict.job_errors import is_severe
from topodiag.verdict.scene import Scene


def _is_lost_by_itself(lost: Finding, other: Finding, _: Scene) -> bool:
    """Not where a GPU's processor does not answer and nvidia-smi shows none: the driver starts no such GPU."""
    return "(GSP)" not in other.message or "nvidia-smi finds no GPU" not in lost.message


def _are_links_of_the_gpu(cause: Finding, other: Finding, scene: Scene) -> bool:
    if _ends_a_job(scene):  # then the failure is what its user asks for, and the links are its trace
        return False
    return "nvlink" in f"{other.message} {other.observed}".lower() and _same_gpu(cause, other, scene)


def _ends_a_job(scene: Scene) -> bool:
    """Whether a job of this case died of an NVLink error, by its own first error."""
    errors = scene.first_errors.values()
    return any(event is not None and "nvlink error" in event.text.lower() for event in errors)


def _same_gpu(cause: Finding, other: Finding, _: Scene) -> bool:
    return bool(_gpus(cause) & _gpus(other))


def _gpus(finding: Finding) -> frozenset[str]:
    return frozenset(label.split(" ")[0] for label in (*finding.where.gpus, *finding.where.links))


_OPERATOR_POD = regex(
    r"\b(?:nvidia-(?:cuda-|operator-)?validator|(?:nvidia|dra-driver-nvidia|gpu)-[\w-]{0,60}(?:plugin|exporter)\b)"
    r"\S{0,80} .{0,60}CrashLoopBackOff"
)
"""What NVIDIA's operator starts on each node to see whether CUDA starts there, and the plug-ins that ask each GPU for
its fabric."""


def _refuses_cuda(cause: Finding, other: Finding, scene: Scene) -> bool:
    """Of ends a program that names no reason, or CUDA's, and no signal or limit of another kind."""
    if other.id != "JOB009" or _OPERATOR_POD.search(other.observed) is not None:
        return True
    if not scene.same_node(cause, other):
        return False
    return "802" in other.observed or "error code" in other.message or _is_later_exception(cause, other)


def _is_later_exception(cause: Finding, other: Finding) -> bool:
    """Whether a program ends with an exception below the line in which CUDA refuses to start: whatever it says, the
    program has no GPU."""
    return "exception" in other.message and any(
        first.source == later.source and 0 < (first.line or 0) < (later.line or 0)
        for first in cause.evidence
        for later in other.evidence
    )


HOLDS: Mapping[str, Condition] = {
    "LostGpuOnItsNode": _is_lost_by_itself,
    "LinksThatTheKernelReported": _are_links_of_the_gpu,
    "FaultMetByTest": _same_gpu,
    "HungDriverHoldsJob": is_severe,
    "FabricFailsJob": _refuses_cuda,
}
