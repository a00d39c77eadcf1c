"""How messages name ranks, hosts and processes, and what to run where ranks hang. No word of a check alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Protocol

from topodiag.words.fold import few, runs, spell_run

if TYPE_CHECKING:
    from topodiag.model.job import Job


class OfHost(Protocol):
    """An event, a process, a stack: its host, "" unknown."""

    @property
    def host(self) -> str: ...


class OfRank(Protocol):
    """An event, a stack: its rank, -1 unknown."""

    @property
    def rank(self) -> int: ...


def hosts_in(events: Iterable[OfHost]) -> list[str]:
    """The hosts that are named, in the order of the events."""
    return list(dict.fromkeys(event.host for event in events if event.host))


def ranks_in(events: Iterable[OfRank]) -> list[int]:
    """The ranks that are named, in order."""
    return sorted({event.rank for event in events if event.rank >= 0})


def spell_ranks(ranks: Iterable[int]) -> str:
    """World ranks with their runs folded: `0-7, 9`; at most MAX_NAMED runs."""
    return few([spell_run(low, high) for low, high in runs(ranks)])


def hosts_word(hosts: Sequence[str]) -> str:
    """`n0, n1, n2 and 61 more nodes`; `a node` where its name was taken off the log."""
    hosts = [host or "a node" for host in hosts]
    return few(hosts, 3) + ("" if len(hosts) <= 3 else " node" if len(hosts) == 4 else " nodes")


def rank_word(ranks: Sequence[int]) -> str:
    if not ranks:
        return "members of unknown rank"
    return f"rank {ranks[0]}" if len(ranks) == 1 else f"ranks {spell_ranks(ranks)}"


def quoted(text: str, most: int = 160) -> str:
    """A line of the log on one line, at most `most` characters: cut between words, so that no number is left half."""
    words = " ".join(text.split())
    if len(words) <= most:
        return words
    end = words.rfind(" ", most // 2, most - 3)
    return f"{words[: end if end > 0 else most - 4]} ..."


def hosts_with(job: Job, ranks: Sequence[int]) -> list[str]:
    """Hosts of these world ranks, each once, in the order of the ranks."""
    by_rank = job.by_rank
    return list(dict.fromkeys(by_rank[rank].host for rank in ranks if rank in by_rank))


def processes_word(job: Job, processes: Sequence[int]) -> str:
    """Processes of a job by their world ranks and hosts."""
    wanted = set(processes)
    world = sorted(rank.rank for rank in job.ranks if rank.process in wanted)
    hosts = hosts_word(list(dict.fromkeys(job.processes[at].host for at in processes)))
    return f"{rank_word(world)} ({hosts})" if world else hosts


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
