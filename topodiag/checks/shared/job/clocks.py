"""Whether the clocks of a job's hosts can be compared, and how far apart they are.

Init ends with a barrier of all members (NCCL src/init.cc, ncclCommInitRankFunc): their Init COMPLETE lines are printed
within a second or two of each other, so that what they differ by beyond that is the difference of the hosts' clocks.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import field
from statistics import median, median_low

import numpy as np

from topodiag.lazy import dataclass
from topodiag.model.job import Communicator, Event, Job
from topodiag.words.units import spell_s

BARRIER_S = 2.0
"""Seconds by which Init COMPLETE lines of one communicator differ on hosts whose clocks agree."""


@dataclass(frozen=True, slots=True)
class Clocks:
    """By host that a common communicator compares, the seconds that its clock is ahead; 0 where it agrees."""

    ahead_s: Mapping[str, float] = field(default_factory=dict)

    def at(self, event: Event) -> float:
        """The time of an event by the common clock, as far as that is known; 0 for one without a time."""
        return 0.0 if event.ts is None else event.ts - self.ahead_s.get(event.host, 0.0)

    def compares(self, *hosts: str) -> bool:
        return all(host in self.ahead_s for host in hosts)

    def words(self, *hosts: str) -> str:
        """`; the clock of n1 is 62 s ahead by the init of the job`; "" where all of them agree."""
        pairs = [(host, self.ahead_s[host]) for host in hosts if self.ahead_s.get(host)]
        texts = [f"the clock of {host} is {spell_s(abs(s))} {'ahead' if s > 0 else 'behind'}" for host, s in pairs]
        return f"; {', '.join(texts)} by the end of init" if texts else ""


def clocks_of(job: Job) -> Clocks:
    """The clocks of the hosts by the largest communicator whose members printed the time of their Init COMPLETE."""
    for communicator in sorted(job.communicators, key=lambda communicator: -communicator.nranks):
        times = _times(job, communicator)
        if len(times) > 1:
            middle = median_low(times.values())
            return Clocks({host: _apart(ts - middle) for host, ts in times.items()})
    return Clocks()


def _apart(seconds: float) -> float:
    return seconds if abs(seconds) > BARRIER_S else 0.0


def _times(job: Job, communicator: Communicator) -> dict[str, float]:
    """By host, the median time of its members' Init COMPLETE."""
    if len(communicator.completed_ts) != len(communicator.ranks):
        return {}
    by_host: dict[str, list[float]] = defaultdict(list)
    for at in np.flatnonzero(np.isfinite(communicator.completed_ts)).tolist():
        rank = job.by_rank.get(int(communicator.ranks[at]))
        if rank is not None and rank.host:
            by_host[rank.host].append(float(communicator.completed_ts[at]))
    return {host: median(times) for host, times in by_host.items()}
