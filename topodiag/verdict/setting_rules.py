"""Conditions of rules on settings, limits and containers, by the name of the rule: each explains only what it can
cause."""

from __future__ import annotations

from collections.abc import Mapping

from topodiag.lazy import regex
from topodiag.model.finding import Finding
from topodiag.model.provenance import Origin
from topodiag.verdict import clearing
from topodiag.verdict.interface import Condition, Contradiction
from topodiag.verdict.job_errors import error_is, error_says, is_severe
from topodiag.verdict.scene import Scene
from topodiag.words.own_data import own_data

CAN_CAUSE: dict[str, tuple[str, ...]] = {
    name: tuple(entry["leads_to"]) for entry in own_data("verdict/settings")["effect"] for name in entry["variables"]
}
"""By variable, what it can lead to. A variable that is not here explains nothing."""
EFFECTS = tuple(sorted({check_id for effects in CAN_CAUSE.values() for check_id in effects} - {"JOB003"}))
"""What some setting can lead to."""


def _names_the_missing(cause: Finding, other: Finding, _: Scene) -> bool:
    return bool(cause.settings and other.where.nics) and set(other.where.nics) <= set(cause.where.nics)


def _can_cause(cause: Finding, other: Finding, scene: Scene) -> bool:
    names = [name for name, _ in cause.settings]
    if not any(other.id in CAN_CAUSE.get(name, ()) for name in names):
        return False
    if other.id[:3] not in ("JOB", "BEN") and not scene.same_node(cause, other):
        return False
    if other.id not in ("JOB005", "JOB006"):
        return True
    words = [word for name in names for word in own_data("verdict/settings")["error_words"].get(name, ())]
    values = [value for _, value in cause.settings if value and len(value) > 2]
    return error_says(other, scene, *names, *values, *words)


def _uses_rdma(cause: Finding, scene: Scene) -> tuple[Origin, ...]:
    """A setting that is written somewhere and keeps NCCL from RDMA is not in force where NCCL uses RDMA."""
    if not any(name == "NCCL_IB_DISABLE" for name, _ in cause.settings):
        return ()
    return clearing.rdma_in_use(scene, cause.where.nodes)


def _parts_ranks(cause: Finding, other: Finding, scene: Scene) -> bool:
    if other.id == "ENV001":  # the same setting, told once more for what it costs the ranks that have it
        return not {name for name, _ in cause.settings}.isdisjoint(name for name, _ in other.settings)
    channels = any("NCHANNELS" in name or "CTAS" in name for name, _ in cause.settings)
    if channels and other.id == "JOB005" and error_says(other, scene, "with family"):
        return True  # a connection of a channel that the peer does not make
    return other.id != "JOB005" or error_is(other, scene, "mismatch", "watchdog", "timeout", "connect")


_SHM_FULL = regex(r"/dev/shm is too small|\(/dev/shm\) (?:is full|holds)")  # noqa: S108 - words of a finding
_BUS_ERROR = regex(r"[Bb]us error|SIGBUS|\bsignal 7\b|exit ?code:? (?:-7|135)\b")
"""How a process ends that touches memory for which there is no room."""


def _leaves_no_room(cause: Finding, other: Finding, scene: Scene) -> bool:
    """Of ends that of a page of a mapped file for which there is no room: the kernel sends SIGBUS."""
    if other.id != "JOB009":
        return True
    full = _SHM_FULL.search(cause.message) is not None and scene.same_node(cause, other)
    return full and _BUS_ERROR.search(f"{other.message} {other.observed}") is not None


HOLDS: Mapping[str, Condition] = {
    "SettingLeavesOut": _names_the_missing,
    "SettingDoesIt": _can_cause,
    "SettingsDiffer": _parts_ranks,
    "LimitReached": _leaves_no_room,
    "MemoryRemoved": is_severe,
}
CONTRADICTED_BY: Mapping[str, Contradiction] = {"SettingDoesIt": _uses_rdma}
