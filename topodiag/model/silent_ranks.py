"""Where the ranks of a job are that left no line."""

from __future__ import annotations

from collections import Counter

from topodiag.model.job import Job


def silent_host(job: Job) -> str:
    """The host of the ranks without a line, by the others: it has as many ranks less than the fullest one as are
    missing, and no other has room. "" where there is none such."""
    counts = Counter(rank.host for rank in job.ranks)
    most = max(counts.values(), default=0)
    room = {host: most - count for host, count in counts.items() if count < most}
    lost = job.world_size - len(job.ranks)
    return next(iter(room)) if len(room) == 1 and sum(room.values()) == lost else ""
