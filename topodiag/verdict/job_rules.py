"""Conditions of rules on processes and libraries, by the name of the rule."""

from __future__ import annotations

from collections.abc import Mapping

from topodiag.checks.shared.node.kernel_events import lasted_s
from topodiag.model.clock_text import booted, is_wall
from topodiag.model.finding import Finding, Severity
from topodiag.verdict.interface import Condition
from topodiag.verdict.job_errors import comes_from, of_number, of_store, waits_for_all
from topodiag.verdict.moments import waited_s
from topodiag.verdict.one_node import wall_s
from topodiag.verdict.scene import Scene

_WAITED = {"watchdog", "timeout"}
"""Kinds of first errors that only say that somebody is behind."""
_PATIENCE_S = 180.0
"""Seconds that a client waits before the kernel says that a server is silent (nfs(5): 60 s, tried three times)."""
_ZONE_S = 14 * 3600.0
"""How far apart clocks of unknown zones show one moment."""


def _takes_the_store(cause: Finding, other: Finding, scene: Scene) -> bool:
    if not comes_from(cause, scene, waits_for_all):
        return False
    if other.id == "JOB006":
        return "ncclUniqueId" in other.message
    errors = [event for event in scene.errors(other) if event is not None]
    return bool(errors) and all(of_store(event) for event in errors)


def _has_the_port(cause: Finding, _: Finding, scene: Scene) -> bool:
    return comes_from(cause, scene, lambda event: event.details.get("how") == "port taken")


def _leaves_a_rank_to_nobody(cause: Finding, other: Finding, scene: Scene) -> bool:
    errors = [event for event in scene.errors(other) if event is not None]
    if not errors or not comes_from(cause, scene, of_number):
        return False
    return all(of_number(event) or event.kind in _WAITED or of_store(event) for event in errors)


def _is_more_than_a_wait(cause: Finding, _: Finding, scene: Scene) -> bool:
    kinds = [event.kind for event in scene.errors(cause) if event is not None]
    return bool(kinds) and not _WAITED.issuperset(kinds)


def _keeps_ranks_out(cause: Finding, other: Finding, scene: Scene) -> bool:
    """A watchdog reports that somebody is behind: it keeps nobody from a collective."""
    kinds = [event.kind for event in scene.errors(cause) if event is not None]
    return other.id != "JOB006" or not kinds or not _WAITED.issuperset(kinds)


def _lasted_as_long(cause: Finding, other: Finding, scene: Scene) -> bool:
    """What is over by now held a rank only where it lasted about as long as ranks waited, and at no other time."""
    if cause.severity is not Severity.INFO:
        return True
    lines = [(event, node) for node in scene.case.nodes for event in node.events if event.origin in cause.evidence]
    lasted = lasted_s([event for event, _ in lines])
    days = [day for event, node in lines if (day := wall_s(event, booted(node))) is not None]
    return any(
        lasted >= max(waited - _PATIENCE_S, waited / 2)
        and (not days or not is_wall(event.ts) or min(days) - _ZONE_S < event.ts < max(days) + waited + _ZONE_S)
        for job in scene.jobs_of(other)
        for event in job.events
        if (waited := waited_s(event))
    )


HOLDS: Mapping[str, Condition] = {
    "AbsentAtMeeting": _takes_the_store,
    "PortTaken": _has_the_port,
    "NumbersDoNotFit": _leaves_a_rank_to_nobody,
    "ErrorKeepsRanksOut": _is_more_than_a_wait,
    "ErrorEndsInit": _keeps_ranks_out,
    "StorageHoldsJob": _lasted_as_long,
}
