"""What the rules of several families ask of a cause and of a job's first error."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from topodiag.lazy import regex
from topodiag.model.finding import Finding
from topodiag.verdict.scene import Scene

if TYPE_CHECKING:
    from topodiag.model.job import Event

ABSENT, NUMBERS = "absent", frozenset({"rank twice", "no such rank"})
"""Faults of lines on who did not come, and on numbers that do not fit (evidence/signatures/catalogue/process.toml)."""
_STORE = regex(r"\bstore\b|Store\b|ncclUniqueId|client socket|[Rr]endezvous")
"""Words of torch for where ranks meet."""


def error_is(other: Finding, scene: Scene, *kinds: str) -> bool:
    """Whether the first error of the finding's job is of one of these kinds, or only consequences are in the log."""
    errors = [scene.first_errors[name] for name in scene.jobs(other)]
    return not errors or any(event is None or event.kind in kinds for event in errors)


def error_says(other: Finding, scene: Scene, *words: str) -> bool:
    """Whether the text of the first error of the finding's job holds one of these words."""
    return any(word in event.text for event in scene.errors(other) for word in words)


def comes_from(finding: Finding, scene: Scene, lines: Callable[[Event], bool]) -> bool:
    """Whether a finding rests on such a line of its job."""
    origins = [event.origin for job in scene.jobs_of(finding) for event in job.events if lines(event)]
    return any(origin in origins for origin in finding.evidence)


def waits_for_all(event: Event) -> bool:
    """Whether a line is of one that waited for all others: not of one that waits for what another rank makes."""
    return event.details.get("fault") == ABSENT and event.kind != "stalled"


def of_number(event: Event) -> bool:
    """Whether a line says that a rank's number does not fit the world."""
    return event.details.get("fault") in NUMBERS


def of_store(event: Event) -> bool:
    """Whether an error is one of the store at which ranks meet: it was not there, or went away."""
    return event.details.get("fault") == ABSENT or (event.kind == "connect" and _STORE.search(event.text) is not None)
