"""For JOB001 and JOB003: numbers of ranks that do not fit the world, and worlds of different sizes."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from topodiag.checks.interface import JobCheck, quoted, rank_word
from topodiag.lazy import regex
from topodiag.model.finding import Finding
from topodiag.model.job import Event, Job
from topodiag.words.units import plural

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
