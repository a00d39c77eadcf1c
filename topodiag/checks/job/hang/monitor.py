"""JOB006 by NCCL's own monitor of progress counters (2.32): a GPU that does not finish even a small copy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from topodiag.checks.interface import JobCheck
from topodiag.checks.job.straggler import look_at
from topodiag.checks.words import hosts_word, rank_word
from topodiag.lazy import regex
from topodiag.model.finding import Confidence, Cost, Finding, Severity
from topodiag.model.job import Event, Job
from topodiag.words.fold import plural
from topodiag.words.units import in_s

PENDING = regex(r"counter DMA still pending after ([0-9]{1,9}(?:\.[0-9]{1,3})?)s \(cudaDev ([0-9]{1,4})")
"""The monitor copies a few counters of each communicator to the host, on a stream of its own beside the collectives: a
kernel that waits for a peer does not hold the copy up (strings of the library of 2.32.3)."""
MOST_SHARE = 0.25
"""Share of the ranks above which those that say so are not the exception."""


def by_monitor(check: JobCheck[Any], job: Job, hung: bool) -> Iterator[Finding]:
    """Of a job that hung only: a copy may also wait behind others of a job that runs."""
    pending = [(event, found) for event in job.events if (found := PENDING.search(event.text))]
    places = {(event.host, event.rank, found[2]) for event, found in pending}
    size = max((communicator.nranks for communicator in job.communicators), default=len(job.ranks))
    if not hung or not pending or len(places) > max(1, MOST_SHARE * size):
        return
    ranks = sorted({rank for _, rank, _ in places if rank >= 0})
    hosts = sorted({host for host, _, _ in places if host})
    devices = sorted({f"cudaDev {device}" for _, _, device in places})
    who = rank_word(ranks) if ranks else f"{', '.join(devices)} of {hosts_word(hosts)}"
    longest = max(float(found[1]) for _, found in pending)
    yield check.finding(
        Severity.ERROR,
        f"{who}: the GPU does not finish a copy of a few bytes, while the job hangs",
        observed=f"NCCL's monitor of progress counters waits for it for {in_s(longest)} or longer"
        f" ({', '.join(devices)}; {plural(len(pending), 'line')})",
        expected="a copy beside the collectives ends within milliseconds, also where a kernel waits for a peer",
        fix=(
            f"`nvidia-smi` and `dmesg | grep -i xid` on {hosts_word(hosts)}: does the GPU still answer",
            *look_at(job, ranks),
        ),
        nodes=hosts,
        ranks=ranks,
        cost=Cost(text="the others wait in the collective until it comes"),
        evidence=_evidence([event for event, _ in pending]),
        confidence=Confidence.MEDIUM,
    )


def _evidence(events: list[Event]) -> list[Any]:
    return [event.origin for event in events[:4]]
