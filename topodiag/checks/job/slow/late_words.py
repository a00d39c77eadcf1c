"""For JOB008: ranks or nodes that a text itself calls slower than the others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from topodiag.checks.interface import JobCheck
from topodiag.checks.job.straggler import hosts_with
from topodiag.checks.words import hosts_word, quoted, rank_word
from topodiag.lazy import dataclass
from topodiag.model.finding import Confidence, Cost, Finding, Severity
from topodiag.model.job import Event, Job

LATE = "late"
"""Kind of such lines (grammar/job_sentences.py, `state_of`); with `what` it is no rank that is late,
but all."""


@dataclass(frozen=True, slots=True)
class ToldLate:
    """The lines that say so, and whom they name."""

    events: tuple[Event, ...]
    ranks: tuple[int, ...]
    hosts: tuple[str, ...]


def told_late(job: Job) -> tuple[ToldLate, ...]:
    """One for all lines of a job; none where no line says so."""
    events = tuple(event for event in job.events if event.kind == LATE and "what" not in event.details)
    if not events:
        return ()
    ranks = {int(word) for event in events for word in event.details.get("ranks", "").split(",") if word.isdecimal()}
    hosts = dict.fromkeys(host for event in events if (host := event.details.get("host", "")))
    return (ToldLate(events, tuple(sorted(ranks)), tuple(hosts)),)


def tell_late(check: JobCheck[Any], job: Job, told: Sequence[ToldLate]) -> list[Finding]:
    """The finding on what a text says of itself."""
    return [_finding(check, job, each) for each in told]


def _finding(check: JobCheck[Any], job: Job, told: ToldLate) -> Finding:
    who = rank_word(told.ranks) if told.ranks else hosts_word(told.hosts)
    first = told.events[0]
    return check.finding(
        Severity.WARNING,
        f"{who}: slower than the others, in the text's own words: {quoted(first.text)}",
        observed=quoted(first.text, 300),
        expected="all ranks take the same time for their part of a step",
        fix=(
            f"look at what {who} does before the collectives: data loader, logging, checkpoint, clocks of the GPU"
            " (GPU004); the communication of the others only waits",
        ),
        nodes=list(told.hosts) or hosts_with(job, told.ranks),
        ranks=told.ranks,
        cost=Cost(text="the other ranks wait for it in each step"),
        evidence=[event.origin for event in told.events],
        confidence=Confidence.LOW,
    )
