"""JOB006 by dumps that are missing: all ranks that dumped wait in one collective, and one rank of the group did not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any

from topodiag.checks.interface import JobCheck
from topodiag.checks.job.straggler import hosts_with
from topodiag.checks.words import rank_word
from topodiag.lazy import dataclass
from topodiag.model.finding import Confidence, Cost, Coverage, Finding, Severity
from topodiag.model.job import FlightRecord, Job
from topodiag.words.fold import plural

TIMED_OUT = "timed out"
"""State of an operation that the watchdog took from its list before it was complete."""
MOST_SHARE = 0.25
"""Share of the group without a dump above which the files are only not here."""

LastEntry = tuple[int, int, str, str]
"""Rank, sequence number, operation and state."""


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A process group all of whose ranks that dumped wait in one collective, and the ranks without a dump."""

    group: str
    size: int
    missing: list[int]
    last: Sequence[LastEntry]


def by_missing_dumps(
    check: JobCheck[Any], job: Job, hung: bool, waiting: Mapping[str, Sequence[LastEntry]]
) -> Iterator[Finding]:
    """`waiting`: by process group, the last entry of each rank. Of several groups the largest is told."""
    records = {record.rank: record for record in job.flight}
    found = [
        each
        for group, last in waiting.items()
        if (each := _waiting(job, hung, group, last, records.keys())) is not None
    ]
    if not found:
        return
    best = max(found, key=lambda each: each.size)
    size, group, missing, last = best.size, best.group, best.missing, best.last
    words = next((r.descriptions[group] for r in job.flight if r.descriptions.get(group)), group)
    _, number, operation, state = last[0]
    ended = [event for event in job.events if event.rank in missing and event.kind == "ended"]
    yield check.finding(
        Severity.ERROR,
        f"{rank_word(missing)} left no flight recorder dump, and all others of process group {words} wait in"
        f" {operation} number {number}",
        observed=f"{plural(len(last), 'rank')} at number {number}, state {state}; no dump of {rank_word(missing)}",
        advice=check.advice("missing dumps", missing=rank_word(missing)),
        nodes=hosts_with(job, missing),
        ranks=missing,
        cost=Cost(text=f"{plural(len(last), 'rank')} wait in that collective"),
        evidence=[*(event.origin for event in ended), *(records[rank].origin for rank, *_ in last[:2])],
        coverage=Coverage(len(last), size, "flight recorder dumps"),
        confidence=Confidence.MEDIUM,
    )


def _waiting(job: Job, hung: bool, group: str, last: Sequence[LastEntry], dumped: Set[int]) -> _Waiting | None:
    members = _members(job, group)
    missing = sorted(set(members) - dumped)
    alike = len({(number, operation) for _, number, operation, _ in last}) == 1
    all_wait = alike and all(state != "completed" for *_, state in last) and last[0][1] > 0
    sure = hung or any(state == TIMED_OUT for *_, state in last)
    few = 0 < len(missing) <= max(1, MOST_SHARE * len(members)) and len(last) >= 2
    return _Waiting(group, len(members), missing, last) if all_wait and sure and few else None


def _members(job: Job, group: str) -> tuple[int, ...]:
    return next((record.groups[group] for record in job.flight if record.groups.get(group)), ())


def last_entries(
    entries: Mapping[str, Mapping[int, Sequence[tuple[int, str, str]]]], records: Sequence[FlightRecord]
) -> dict[str, list[LastEntry]]:
    """Of each process group, the last entry of each rank that dumped and belongs to it; number 0 where it has none."""
    made: dict[str, list[LastEntry]] = {}
    for group, by_rank in entries.items():
        for record in records:
            own = by_rank.get(record.rank, ())
            if own:
                number, operation, state = max(own)
                made.setdefault(group, []).append((record.rank, number, operation, state))
            elif record.rank in record.groups.get(group, ()):
                made.setdefault(group, []).append((record.rank, 0, "", ""))
    return made
