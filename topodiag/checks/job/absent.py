"""For JOB001: processes that waited where all ranks meet, and others that did not come."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from topodiag.checks.interface import JobCheck
from topodiag.checks.shared.words import quoted
from topodiag.model.finding import Confidence, Cost, Finding, Severity
from topodiag.model.job import Job

ABSENT = "absent"
"""The fault of a line that says so (evidence/nccl_log/grammar/job_faults.py)."""
_CAME = re.compile(r"\b(\d{1,6})/(\d{1,6}) clients joined|barrier: (\d{1,6})/(\d{1,6})")
_WORKERS = re.compile(r"world_size=(\d{1,6}), worker_count=(\d{1,6})")


def absent_at_meeting(check: JobCheck[Any], job: Job) -> Iterator[Finding]:
    """The finding on a store, a coordinator or a barrier at which not all ranks came in time."""
    told = [event for event in job.events if event.details.get("fault") == ABSENT]
    if not told:
        return
    # Who counts who came is at the meeting, and is quoted before those that wait for one more thing.
    told.sort(key=lambda event: not _count(event.text))
    count = _count(told[0].text)
    yield check.finding(
        Severity.ERROR,
        f"not all processes came to where the job meets{count}",
        observed=quoted(told[0].text, 200),
        expected="as many processes as the world size says, within the time that the first one waits",
        fix=(
            "the log of a process that did not come: it never started (launcher, scheduler, image), ended before, or"
            " meets elsewhere (MASTER_ADDR, MASTER_PORT, the coordinator's address)",
            "more processes than the world size: two launches with one address, or a wrong --nnodes, --nproc_per_node",
            "nodes that start slowly: a longer timeout of the rendezvous",
        ),
        cost=Cost(text="the job does not begin"),
        evidence=[event.origin for event in told],
        confidence=Confidence.HIGH if _CAME.search(told[0].text) else Confidence.MEDIUM,
    )


def _count(text: str) -> str:
    """How many came of how many, where the line counts them."""
    came, workers = _CAME.search(text), _WORKERS.search(text)
    if came is not None:
        return f": {came[1] or came[3]} of {came[2] or came[4]} did"
    return f": {workers[2]} for {workers[1]} ranks" if workers is not None else ""
