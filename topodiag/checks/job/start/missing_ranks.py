"""For JOB001: processes that waited where all ranks meet, and others that did not come."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence

from topodiag.checks.interface import JobCheck, quoted, rank_word
from topodiag.checks.shared.job.text import MET
from topodiag.lazy import regex
from topodiag.model.finding import Confidence, Finding, Severity
from topodiag.model.job import Event, Job
from topodiag.words.units import grouped, plural

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


TWICE, BEYOND, WORLDS = "rank twice", "no such rank", "worlds"
"""Faults of lines that say so (evidence/signatures/catalogue/process.toml)."""
_OF_FILE = regex(r"(?:^|[^a-z])rank[-_.]?(\d{1,6})(?!\d)", re.I)
"""How launchers and people name the output of a rank."""
_MOST_NAMED = 4
"""Ranks of which none is known to have come that are still worth a name."""


def wrong_numbers(check: JobCheck, job: Job) -> Iterator[Finding]:
    """A number that two processes have, and one that no rank of the world can have."""
    for event, rank, world in _numbers(job, TWICE):
        yield check.finding(
            check.where(ranks=[rank] if _of_world(job, world) else []),
            check.advice("number of two processes", rank=rank, last=world - 1),
            f"two processes take themselves for rank {rank} of {world}{_never_came(job, {0, rank}, world)}",
            evidence=[event],
        )
        return
    for event, rank, world in _numbers(job, BEYOND):
        root = {0} if "Invalid rank" in event.text else set()  # NCCL's id is there; gloo's ranks may begin at 1
        yield check.finding(
            check.where([event.host] if event.host else []),
            check.advice("number beyond the world", last=world - 1),
            f"a process takes itself for rank {rank} of {world}, and the last one is rank {world - 1}"
            f"{_never_came(job, root, world)}",
            evidence=[event],
        )
        return


def unlike_sizes(check: JobCheck, job: Job) -> Iterator[Finding]:
    """Ranks of one meeting that count worlds of different sizes."""
    for event, own, other in _numbers(job, WORLDS):
        at = f" ({event.host})" if event.host else ""
        yield check.finding(
            check.where(),
            "unlike sizes",
            f"the world's size differs between ranks: {own} and {other}",
            observed=f"the process of rank 0{at} counts {plural(own, 'rank')}, one that came to it {other}:"
            f" {quoted(event.text, 160)}",
            evidence=[event],
        )
        return


def _numbers(job: Job, fault: str) -> Iterator[tuple[Event, int, int]]:
    """The lines that name a fault, each with its two numbers; NCCL's own before those that repeat it."""
    events = [event for event in job.events if event.details.get("fault") == fault]
    for event in sorted(events, key=lambda event: event.level == "APP"):
        if {"number", "size"} <= event.details.keys():
            yield event, int(event.details["number"]), int(event.details["size"])


def _of_world(job: Job, size: int) -> bool:
    """Whether numbers of a communicator of this size are the job's own: a smaller group has numbers of its own."""
    return job.world_size <= 0 or job.world_size == size


def _never_came(job: Job, known: Collection[int], world: int) -> str:
    """Who is missing for that, as far as lines, or the names of logs, show who came."""
    if not _of_world(job, world):
        return ""
    named = {int(match[1]) for file in job.files for match in _OF_FILE.finditer(file.rpartition("/")[2])}
    seen = {*known, *named, *(rank.rank for rank in job.ranks)}
    missing = [rank for rank in range(min(world, 1 << 16)) if rank not in seen]
    if len(missing) == 1:
        return f"; rank {missing[0]} never came"
    return f"; one of {rank_word(missing)} never came" if 1 < len(missing) <= _MOST_NAMED else ""
