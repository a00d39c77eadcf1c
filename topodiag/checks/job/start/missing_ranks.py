"""For JOB001: processes that waited where all ranks meet, and others that did not come."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from topodiag.checks.interface import JobCheck, rank_word
from topodiag.checks.shared.job.text import MET
from topodiag.model.finding import Confidence, Finding, Severity
from topodiag.model.job import Event, Job
from topodiag.words.units import grouped

ABSENT = "absent"
"""The fault of a line that says so (evidence/signatures/catalogue/process.toml)."""
_MOST_RANKS = 1 << 16


def absent_at_meeting(check: JobCheck, job: Job) -> Iterator[Finding]:
    """The finding on a store, a coordinator or a barrier at which not all ranks came in time, or on a store's barrier
    at which ranks wait when the log ends, or when the time limit ends them."""
    events = [event for event in job.events if event.details.get("fault") == ABSENT]
    waits, missing = open_barrier(job, over=not events)
    if not events and not waits:
        return
    # Who counts who came is at the meeting, and is quoted before those that wait for one more thing.
    lines = sorted(events, key=lambda event: not _count(event)) or waits
    ended = any(event.details.get("how") == "limit" for event in job.events)
    sure = bool(events) and not {"joined", "all"}.isdisjoint(lines[0].details)
    yield check.of_events(
        lines,
        "absent at a meeting",
        f"not all processes came to where the job meets{_count(lines[0])}"
        + (f"; {rank_word(missing)} never came" if missing else ""),
        check.where(ranks=missing),
        severity=Severity.ERROR if events or ended else Severity.WARNING,
        confidence=Confidence.HIGH if sure else Confidence.MEDIUM,
    )


def open_barrier(job: Job, *, over: bool) -> tuple[list[Event], list[int]]:
    """The lines of ranks that wait for others at the store's last barrier, and the ranks that never came; none where
    nothing shows that it stays open. `over`: whether what ranks do behind the barrier shows its end; where its time ran
    out, its end is known."""
    went_on = bool(job.steps) or any(bool(communicator.completed.any()) for communicator in job.communicators)
    events = [] if over and went_on else _last_barrier(job)
    waits = [event for event in events if "came" in event.details]
    if not waits or any("all" in event.details for event in events):
        return [], []
    world, came = int(waits[-1].details["world"]), max(int(event.details["came"]) for event in waits)
    seen = {int(event.details["ranks"]) for event in events}
    # Without its own words for it, an old torch's start that went well ends with the line of the rank that came last.
    if not 2 <= world <= _MOST_RANKS or came == world or len(seen) >= world:
        return [], []
    if over and not (any("last" in event.details for event in events) and _wait_long(waits, came)):
        return [], []
    return waits, sorted(set(range(world)) - seen) if len(seen) == came else []


def _last_barrier(job: Job) -> list[Event]:
    """The lines of the store's last barrier."""
    by_key = grouped((event.details["key"], event) for event in job.events if event.kind == MET)
    return next(reversed(by_key.values()), [])


def _wait_long(waits: Sequence[Event], came: int) -> bool:
    """Whether a rank said more than once that it waits, or all that came say so: one line is what a rank prints that
    is ten seconds ahead of the others."""
    lines = Counter[str]()
    for event in waits:
        lines[event.details["ranks"]] += event.count
    return max(lines.values()) > 1 or len(lines) >= max(came, 2)


def _count(event: Event) -> str:
    """How many came of how many, where the line counts them."""
    named = event.details
    if "all" in named:
        return f": {named['came']} of {named['all']} did"
    if "joined" in named:
        return f": {named['joined']} of {named['wanted']} did"
    return f": {named['workers']} for {named['wanted_workers']} ranks" if "workers" in named else ""
