"""What checks of jobs ask of a job alike: how to spell ranks, where members run, and what to log. Decides nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from topodiag.model.job import Communicator, Job
from topodiag.model.job_domains import domains as domains  # noqa: PLC0414 - checks find all words on a job here

MAX_NAMED = 6
"""Hosts or groups that a message names before it counts the rest."""


NET = ("NET", "GRAPH")
"""Subsystems that tell of NICs, transports and NCCL's view of the node, for `ask_for`."""


def spell_ranks(ranks: Iterable[int]) -> str:
    """World ranks with their runs folded: `0-7, 9`; at most MAX_NAMED runs."""
    runs: list[list[int]] = []
    for rank in sorted(set(ranks)):
        if runs and runs[-1][1] + 1 == rank:
            runs[-1][1] = rank
        else:
            runs.append([rank, rank])
    return few([str(low) if low == high else f"{low}-{high}" for low, high in runs])


def few(words: Sequence[str], most: int = MAX_NAMED) -> str:
    """The words, or the first of them and how many more."""
    rest = len(words) - most
    return ", ".join(words) if rest <= 0 else f"{', '.join(words[:most])} and {rest} more"


def quoted(text: str, most: int = 160) -> str:
    """A line of the log on one line, at most `most` characters: cut between words, so that no number is left half."""
    words = " ".join(text.split())
    if len(words) <= most:
        return words
    end = words.rfind(" ", most // 2, most - 3)
    return f"{words[: end if end > 0 else most - 4]} ..."


def hosts_word(hosts: Sequence[str]) -> str:
    """`n0, n1, n2 and 61 more nodes`."""
    return few(hosts, 3) + ("" if len(hosts) <= 3 else " node" if len(hosts) == 4 else " nodes")


def rank_word(ranks: Sequence[int]) -> str:
    if not ranks:
        return "members of unknown rank"
    return f"rank {ranks[0]}" if len(ranks) == 1 else f"ranks {spell_ranks(ranks)}"


def hosts_of(job: Job) -> Mapping[int, str]:
    """Host by world rank, of the ranks that left a line."""
    return {rank.rank: rank.host for rank in job.ranks if rank.host}


def members(communicator: Communicator) -> list[int]:
    """World ranks of the known members, in the order of the communicator."""
    return [int(rank) for rank in communicator.ranks if rank >= 0]


def ask_for(job: Job, *names: str) -> str:
    """How to log what is missing."""
    wanted = sorted({"INIT", "ENV", *names} | (job.subsystems & {"NET", "GRAPH", "COLL", "TUNING"}))
    return f"set NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS={','.join(wanted)} next time"


def unconnected(job: Job, what: str) -> str:
    """Why no connection of a kind is in the log: since 2.22 NCCL connects when an operation first needs it
    (NCCL_RUNTIME_CONNECT, src/init.cc v2.22.3 and later)."""
    lazy = [version for version in job.nccl_versions if at_least(version, 2, 22)]
    if job.subsystems >= {"INIT", "NET"} and job.nccl_versions and len(lazy) == len(job.nccl_versions):
        return f"no operation used {what}: NCCL connects when one first does, and a log that goes on shows it"
    return f"{what} was not seen; {ask_for(job, *NET)}"


def at_least(version: str, major: int, minor: int) -> bool:
    """Whether an NCCL version, as `2.28.9`, is this one or later; one that cannot be read is not."""
    parts = version.split(".")[:2]
    known = len(parts) == 2 and all(part.isascii() and part.isdigit() and len(part) < 6 for part in parts)
    return known and (int(parts[0]), int(parts[1])) >= (major, minor)


def failed(job: Job) -> bool:
    """Whether anything says that the job went wrong, not only that it was watched: codes that unwind, a watchdog, a
    transport that gave up, an application that prints NCCL's error."""
    signs = {"ib completion", "peer closed", "cuda", "memory", "bootstrap", "version", "duplicate gpu", "watchdog",
             "mismatch", "timeout", "connect", "unwind"}  # fmt: skip
    return any(e.level == "APP" or (e.level in ("UNWIND", "WARN") and e.kind in signs) for e in job.events)
