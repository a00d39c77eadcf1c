"""JOB008 by NCCL's Inspector: whose kernels are the shortest, since the others run while they wait for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import fsum

from topodiag.checks.job.slow.inspector_names import Names, Place
from topodiag.checks.job.slow.slow_phase import beside_siblings
from topodiag.lazy import dataclass
from topodiag.model.inspector import InspectorCommunicator, LastArrivals
from topodiag.model.job import Job
from topodiag.words.units import grouped

FEWEST_CALLS = 100
FEWEST_RANKS = 3
LEAST_WAIT = 0.10
"""Share of the time of the collectives that is waiting: below it nobody would gain by a punctual rank."""
LEAST_SHARE = 0.5
"""Share of the waiting that one rank, or the ranks of one host, cause as the last to arrive."""
TIMES_ITS_SHARE = 2.0
"""And how much more than its even share that must be: of three ranks one causes a third by chance."""


@dataclass(frozen=True, slots=True)
class LateKernels:
    """Ranks that arrive last: in which communicator, how often, and what the others wait for them. `wait_us` is each
    time, `share` that of the communicator's time. `also` counts the other communicators where it shows."""

    who: tuple[Place, ...]
    comm: InspectorCommunicator
    group: str
    times: int
    wait_us: float
    share: float

    @property
    def processes(self) -> frozenset[tuple[str, int]]:
        return frozenset((place.host, place.pid) for place in self.who)

    @property
    def word(self) -> str:
        """What a reader calls those that are late."""
        return self.who[0].word if len(self.who) == 1 else f"the ranks of {self.who[0].host}"

    def explains(self, other: LateKernels) -> bool:
        """Whether those that are late there are members here, where others are the late ones: they waited here."""
        here = {(member.host, member.pid) for member in self.comm.members.values()}
        return other.processes <= here and self.processes.isdisjoint(other.processes)


def judged_communicators(job: Job) -> tuple[InspectorCommunicator, ...]:
    """The communicators of which there are enough calls and ranks to tell who comes last."""
    if job.inspection is None:
        return ()
    return tuple(
        communicator
        for communicator in job.inspection.communicators
        if communicator.is_one and communicator.calls >= FEWEST_CALLS * communicator.enough_calls
        if len(communicator.members) >= FEWEST_RANKS and communicator.time_us > 0
    )


def late_kernels(job: Job) -> tuple[LateKernels, ...]:
    """Who comes last and makes the others wait, one for each place, that which costs most first.

    A rank that comes late to its small group makes all of this group late to their other ones, and a slow group makes
    all of its members late elsewhere. Only who is late where neither is to blame is named."""
    names = Names(job)
    kernels = [late for comm in judged_communicators(job) if (late := _late(comm, names)) is not None]
    if not kernels or job.inspection is None:
        return ()
    slow = [sibling.comm for sibling in beside_siblings(job.inspection.communicators) if sibling.slow]
    kernels = [late for late in kernels if not _in_slow_communicator(late, slow)]
    roots = [late for late in kernels if not any(other.explains(late) for other in kernels)]
    merged = grouped((late.processes, late) for late in roots)
    worst = [max(several, key=_total) for several in merged.values()]
    return tuple(sorted(worst, key=_total, reverse=True))


def _in_slow_communicator(late: LateKernels, slow: Sequence[InspectorCommunicator]) -> bool:
    """Whether those that are late were kept in a communicator that is slower than its peers (JOB011)."""
    members = [{(m.host, m.pid) for m in comm.members.values()} for comm in slow if comm is not late.comm]
    return any(late.processes <= member for member in members)


def _total(late: LateKernels) -> float:
    return late.wait_us * late.times


def _late(comm: InspectorCommunicator, names: Names) -> LateKernels | None:
    if comm.wait_us < LEAST_WAIT * comm.time_us:
        return None
    ranks = _who(comm, comm.last, fsum(arrivals.wait_us for arrivals in comm.last.values()))
    if not ranks:
        return None
    times = sum(comm.last[rank].times for rank in ranks)
    waited = _sum(comm.last, ranks)
    who = tuple(names.place(comm, comm.members[rank]) for rank in ranks)
    return LateKernels(who, comm, names.label(comm), times, waited / times, waited / comm.time_us)


def _who(comm: InspectorCommunicator, last: Mapping[int, LastArrivals], caused: float) -> tuple[int, ...]:
    """The rank, or the ranks of one host, that cause most of the waiting; () where it is spread."""
    count = len(comm.members)
    rank = max(last, key=lambda number: last[number].wait_us)
    if last[rank].wait_us >= max(LEAST_SHARE, TIMES_ITS_SHARE / count) * caused:
        return (rank,)
    by_host = grouped((comm.members[rank].host, rank) for rank in last if rank in comm.members)
    hosts = {member.host for member in comm.members.values()}
    if len(hosts) < FEWEST_RANKS:
        return ()
    host = max(by_host, key=lambda word: _sum(last, by_host[word]), default="")
    even = sum(member.host == host for member in comm.members.values()) / count
    if _sum(last, by_host.get(host, ())) < max(LEAST_SHARE, TIMES_ITS_SHARE * even) * caused:
        return ()
    return tuple(sorted(by_host.get(host, ())))


def _sum(last: Mapping[int, LastArrivals], ranks: Sequence[int]) -> float:
    return fsum(last[rank].wait_us for rank in ranks)
