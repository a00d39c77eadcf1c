"""Where ranks ran by the word of the launcher, for logs whose own lines name no host."""

from __future__ import annotations

from topodiag.lazy import regex
from topodiag.model.job import Job

_TASKS = regex(r"(\d{1,7})(?:-(\d{1,7}))?")
_MOST_TASKS = 1 << 17
_ASKED = frozenset({"stopped", "cancelled"})
"""Ends that the launcher itself brought about."""


def launched_on(job: Job, rank: int) -> str:
    """The host on which Slurm says that a rank's task ended, "" where it does not say.

    A task is a rank where a host has several; with one a host the tasks are launchers of their own (`srun torchrun`),
    and only the host of the one task that failed by itself is told.
    """
    tasks: dict[str, set[int]] = {}
    failed: dict[str, None] = {}
    for event in job.events:
        host, named = event.details.get("host", ""), event.details.get("tasks", "")
        if host and named:
            tasks.setdefault(host, set()).update(_expanded(named))
            if event.details.get("how") not in _ASKED:
                failed[host] = None
    if any(len(task) > 1 for task in tasks.values()):
        return next((host for host, numbers in tasks.items() if rank in numbers), "")
    return next(iter(failed)) if len(failed) == 1 else ""


def _expanded(text: str) -> set[int]:
    """`8-11,13` as numbers; at most so many as a job has."""
    ends = ((int(match[1]), int(match[2] or match[1])) for match in _TASKS.finditer(text))
    return {task for first, last in ends for task in range(first, min(last, first + _MOST_TASKS) + 1)}
