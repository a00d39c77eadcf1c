"""JOB006 by NCCL's own log: processes that RAS gave up while others of the job ran (subsystem RAS)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import field
from typing import Any

from topodiag.checks.interface import JobCheck
from topodiag.checks.shared.job.evidence import said_by
from topodiag.checks.words import hosts_word, rank_word
from topodiag.lazy import dataclass, regex
from topodiag.model.finding import Confidence, Cost, Coverage, Finding, Severity
from topodiag.model.job import Job, Process
from topodiag.model.provenance import Origin
from topodiag.words.fold import plural

_OWN = regex(r"^RAS network listening socket at (\S{3,80}<\d{1,5}>)")
_GIVEN_UP = regex(r"^RAS declaring peer (\S{3,80}<\d{1,5}>) as DEAD\b")
"""src/ras/ras.cc and src/ras/peers.cc, 2.24 and later: RAS gives a peer up that it did not reach for 60 s."""


@dataclass(slots=True)
class _Peer:
    """`told_by` are the processes whose RAS gave it up."""

    told_by: set[int] = field(default_factory=set)
    origins: list[Origin | None] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _GivenUp:
    """Processes that the others gave up, and the addresses of those that no line names. `tellers` of `size` say so."""

    known: tuple[int, ...]
    unknown: tuple[str, ...]
    tellers: int
    size: int
    origins: tuple[Origin | None, ...]


def _given_up(job: Job) -> _GivenUp | None:
    """None at the end of a job, where rank 0 saves a checkpoint and all others are gone: a communicator was torn down,
    or half of the processes and more are given up."""
    if job.ras or (job.world is not None and job.world.destroyed):
        return None
    own: dict[str, int] = {}
    peers: dict[str, _Peer] = defaultdict(_Peer)
    for number, text, origin in said_by(job, "ras"):
        if found := _OWN.match(text):
            own[found[1]] = number
        elif found := _GIVEN_UP.match(text):
            peers[found[1]].told_by.add(number)
            peers[found[1]].origins.append(origin)
    dead = {own[address] for address in peers if address in own}
    tellers = set().union(*(peer.told_by for peer in peers.values())) - dead
    size = max(job.world_size, len(job.processes))
    if not peers or not tellers or 2 * len(peers) >= size:
        return None
    unknown = tuple(sorted(address for address in peers if address not in own))
    origins = tuple(origin for peer in peers.values() for origin in peer.origins)
    return _GivenUp(tuple(sorted(dead)), unknown, len(tellers), size, origins)


def by_dead_peers(check: JobCheck[Any], job: Job) -> Iterator[Finding]:
    """Processes that the others gave up while the job ran."""
    seen = _given_up(job)
    if seen is None:
        return
    rank_of = {rank.process: rank.rank for rank in job.ranks}
    ranks = sorted(rank_of[number] for number in seen.known if number in rank_of)
    known = [job.processes[number] for number in seen.known if number >= 0]
    who = [rank_word(ranks)] if len(ranks) == len(seen.known) and ranks else [f"process {each.pid}" for each in known]
    who += [f"the process at {address.partition('<')[0]}" for address in seen.unknown]
    hosts = list(dict.fromkeys(each.host for each in known))
    places = [f"process {each.pid} on {each.host}" for each in known] + list(seen.unknown)
    yield check.finding(
        Severity.WARNING,
        f"RAS of {plural(seen.tellers, 'process', 'processes')} gave up {', '.join(who[:4])}"
        f"{f' ({hosts_word(hosts)})' if hosts else ''}: it reached them no more while they ran",
        observed=f"{'; '.join(places[:4])}: `as DEAD` in the others' logs, after 60 s (times NCCL_RAS_TIMEOUT_FACTOR)",
        expected="all processes of the job answer RAS until their communicators are torn down",
        fix=(_look_at(known[0] if known else None),),
        nodes=hosts,
        ranks=ranks,
        cost=Cost(text="the others wait in their next collective with it"),
        evidence=seen.origins[:8],
        coverage=Coverage(seen.tellers, seen.size, "processes that say so"),
        confidence=Confidence.MEDIUM,
    )


def _look_at(first: Process | None) -> str:
    if first is None:
        return "is that host up, and do its processes run? its kernel log names what was killed"
    return (
        f"on {first.host}: `ps -o stat,etime,cmd -p {first.pid}`, `dmesg -T | tail`, `nvidia-smi`: stopped,"
        " killed (out of memory?), or cut off from the network?"
    )
