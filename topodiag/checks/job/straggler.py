"""What is said alike of ranks that are behind the others: where they run, and what to look at there."""

from __future__ import annotations

from collections.abc import Sequence

from topodiag.checks.words import hosts_word, spell_ranks
from topodiag.model.job import Job


def hosts_with(job: Job, ranks: Sequence[int]) -> list[str]:
    """Hosts of these world ranks, each once, in the order of the ranks."""
    by_rank = job.by_rank
    return list(dict.fromkeys(by_rank[rank].host for rank in ranks if rank in by_rank))


def look_at(job: Job, ranks: Sequence[int]) -> tuple[str, ...]:
    """What to run on the hosts of these world ranks while they hang; all of it only reads."""
    hosts = hosts_word(hosts_with(job, ranks))
    place = f"rank {spell_ranks(ranks)}" + (f" on {hosts}" if hosts else "")
    pids = [str(job.by_rank[rank].pid) for rank in ranks[:3] if rank in job.by_rank and job.by_rank[rank].pid > 0]
    there = f"`py-spy dump --pid {' '.join(pids[:1]) or 'PID'}; nvidia-smi dmon -s pu -c 3; dmesg -T | tail -50`"
    return (
        f"find out what {place} was doing: its own log, `py-spy dump`, dmesg",
        f"while it hangs, on {hosts or 'its node'}: {there} (all of them only read; a GPU that waits in a collective"
        " shows sm near 100 %, mem near 0 and little power, one that the rank does not use shows sm 0)",
    )
