"""One of several among its peers by NCCL's Inspector and profiler: communicators slower than those of the same size,
and the rank or host that they share; a rank whose transfers wait for something else than those of the others."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence, Set
from dataclasses import replace
from math import fsum, log
from statistics import median

from topodiag.checks.interface import JobCheck, hosts_in, hosts_with, hosts_word, rank_word
from topodiag.checks.job.slow.inspector import Names, Place
from topodiag.checks.shared.bench_text import as_option, program_of
from topodiag.checks.shared.job.text import logged, world_of
from topodiag.lazy import dataclass
from topodiag.model.diagnostics import StepWaits
from topodiag.model.finding import Confidence, Cost, Coverage, Finding, Outcome
from topodiag.model.inspector import CallsOfOneSize, InspectorCommunicator
from topodiag.model.job import Job
from topodiag.words.own_data import own_data
from topodiag.words.units import few, grouped, in_gbs, percent, plural, spell_bytes

FEWEST_SIBLINGS = 4
"""Communicators of one kind below which none is odd."""
FEWEST_CALLS = 50
SLOWER = 1.25
"""Times the peers' median above which a communicator is slow: sizes within a class differ by 1.19."""
TIMES_THE_SPREAD = 5.0
MOST_SHARE = 0.25
"""Share of the peers above which it is two kinds of communicators, not a slow one."""

Process = tuple[str, int, int]
"""Host, pid, and the rank in the communicator of all where a process has several: what one GPU and its NIC serve."""


@dataclass(frozen=True, slots=True)
class SlowCommunicator:
    """A communicator beside its peers: how many times longer it takes, over the sizes that take most time."""

    comm: InspectorCommunicator
    times: float
    worst: CallsOfOneSize
    usual_gbs: float
    siblings: int
    slow: bool


def beside_siblings(communicators: Sequence[InspectorCommunicator]) -> list[SlowCommunicator]:
    """Each communicator that has enough peers, with how much longer than theirs its calls take."""
    series = grouped(
        ((comm.nranks, comm.nnodes, size.collective, round(log(size.bytes, 2) * 4)), (comm, size))
        for comm in communicators
        for size in (comm.sizes if comm.is_one else ())
        if size.calls >= FEWEST_CALLS * comm.enough_calls and size.clean_us > 0 and size.bytes > 0
    )
    sizes: dict[int, list[tuple[float, SlowCommunicator]]] = defaultdict(list)
    for several in series.values():
        if len(several) < FEWEST_SIBLINGS:
            continue
        usual = median(size.clean_us for _, size in several)
        gbs = median(size.busbw_gbs for _, size in several)
        spread = 1.4826 * median(abs(log(size.clean_us / usual)) for _, size in several)
        slow = [log(size.clean_us / usual) > max(log(SLOWER), TIMES_THE_SPREAD * spread) for _, size in several]
        few_slow = sum(slow) <= max(1, MOST_SHARE * len(several))
        for (comm, size), is_slow in zip(several, slow, strict=True):
            one = SlowCommunicator(comm, size.clean_us / usual, size, gbs, len(several) - 1, is_slow and few_slow)
            sizes[id(comm)].append((size.calls * size.clean_us, one))
    beside = []
    for rows in sizes.values():
        total, slow_us = fsum(us for us, _ in rows), fsum(us for us, one in rows if one.slow)
        _, worst = max(rows, key=lambda row: (row[1].slow, row[0]))
        beside.append(replace(worst, slow=slow_us * 2 > total))
    return beside


def processes_of(comm: InspectorCommunicator) -> frozenset[Process]:
    counted = Counter((member.host, member.pid) for member in comm.members.values())
    return frozenset((m.host, m.pid, m.rank if counted[m.host, m.pid] > 1 else -1) for m in comm.members.values())


MOST_NAMED = 8


class SlowPartOfJob(JobCheck, id="JOB011"):
    """JOB011: a communicator is slower than its peers of the same size

    What it finds
        Communicators whose collectives take a quarter longer than those of the same operation and size in other
        communicators of as many ranks and nodes, without the time that is spent waiting for a late rank; and the rank
        or the host that the slow ones hold and no fast one does: its NIC, its cable, its links.

    Why it matters
        A ring is as fast as its slowest link: one NIC at half of its rate halves each collective that passes it, and
        the groups that wait for those.

    Evidence it reads
        Records of NCCL's Inspector that the GPU timed: the shortest kernel of each call holds the transfer and no
        waiting. NICs by rank from the log, where there is one.

    When it stays silent
        Fewer than four communicators of a kind, or fewer than 50 calls of one size: unknown. More than a quarter of
        them slow: two kinds of groups. Less than 1.25 times the median, or within five times the spread. That
        communicators are slow together, as in an hour of congestion, is JOB012.

    How to confirm
        all_reduce_perf -b 64M -e 1G -f 2 -g 1         with two ranks, one of them the one that is named
        mlxlink -d DEVICE -m -c                        rate, width and errors of its NIC's port

    How to fix
        Look at the NIC, the cable and the switch port of the rank that is named, at the PCIe link of the NIC and at
        NVLink of the GPU: `topodiag scan` on its node.

    References
        NCCL plugins/profiler/inspector (inspector_json.cc), 2.28 and later.
    """

    def observe(self, judged: Job, peers: Sequence[Job]) -> Outcome:
        if judged.inspection is None:
            return self.not_applicable(judged, "no records of NCCL's Inspector")
        beside = beside_siblings(judged.inspection.communicators)
        if not beside:
            return self.unknown(judged, "fewer than four communicators of one kind with 50 calls of one size")
        names = Names(judged)
        coverage = Coverage(len(beside), len(judged.inspection.communicators), "communicators")
        findings = [self._slow_together(slow, shared, names) for slow, shared in _grouped(beside)]
        return self.any_of(judged, findings, coverage)

    def _slow_together(self, slow: Sequence[SlowCommunicator], shared: Set[Process], names: Names) -> Finding:
        """Communicators that are slow for one reason, and the ranks that all of them hold and no fast one does."""
        worst = max(slow, key=lambda communicator: communicator.times)
        calls, lost = worst.worst, worst.usual_gbs - worst.worst.busbw_gbs
        own = [(slow[0].comm, member) for member in slow[0].comm.members.values()]
        who = [names.place(comm, m) for comm, m in own if {(m.host, m.pid, -1), (m.host, m.pid, m.rank)} & shared]
        nics = names.nics(who[0].rank) if len(who) == 1 and who[0].rank >= 0 else ()
        hosts = hosts_in(who)
        several, labels = plural(len(slow), "communicator"), [names.label(communicator.comm) for communicator in slow]
        verb = "takes" if len(slow) == 1 else "take"
        groups = f"{few(labels, 3)} {verb} {worst.times:.1f} times as long as {plural(worst.siblings, 'peer')}"
        size = as_option(calls.bytes)
        between_nodes = worst.comm.nnodes > 1
        if len(who) == 1:
            message = f"{_subject(who[0], nics, between_nodes=between_nodes)} slows {several}: {groups}"
        elif len(hosts) == 1:
            message = f"{hosts[0]} slows {several}: {groups}"
        else:
            message = f"{groups}; the slow place is at one of {len(who)} ranks on {hosts_word(hosts)}"
        exact = len(who) == 1 or len(hosts) == 1
        look = "the NIC, its cable and switch port" if between_nodes else "NVLink and PCIe of the GPUs"
        place = hosts_word(hosts) if exact else "those nodes"
        return self.finding(
            self.where(
                hosts if len(hosts) <= MOST_NAMED else (),
                ranks=sorted(place.rank for place in who if place.rank >= 0) if len(who) <= MOST_NAMED else (),
                nics=nics,
            ),
            self.advice("slow communicators", usual=in_gbs(worst.usual_gbs), look=look, at=place),
            message,
            observed=f"{calls.collective} of {spell_bytes(calls.bytes)}: {in_gbs(calls.busbw_gbs)} bus bandwidth"
            " without waiting",
            cost=Cost(lost, 1 - 1 / worst.times, f"{in_gbs(lost)} of bus bandwidth in these communicators"),
            evidence=who,
            confidence=Confidence.MEDIUM if exact else Confidence.LOW,
            confirm=[("all_reduce_perf", program_of(calls.collective)), ("-b 64M -e 1G", f"-b {size} -e {size}")],
        )


def _subject(place: Place, nics: Sequence[str], *, between_nodes: bool) -> str:
    if not between_nodes:
        return place.word
    return f"{few(nics)} of {place.word}" if nics else f"the network at {place.word}"


SlowTogether = tuple[list[SlowCommunicator], frozenset[Process]]
"""Communicators, and the processes that they share."""


def _grouped(beside: Sequence[SlowCommunicator]) -> Iterator[SlowTogether]:
    """Slow communicators with what they share and no fast one of theirs holds, as few groups as explain all of them:
    those between nodes, then those within one."""
    for between in (True, False):
        kind = [one for one in beside if (one.comm.nnodes > 1) is between]
        cleared = set().union(*(processes_of(one.comm) for one in kind if not one.slow))
        yield from _explaining([one for one in kind if one.slow], cleared)


def _explaining(slow: Sequence[SlowCommunicator], cleared: Set[Process]) -> Iterator[SlowTogether]:
    """The processes that most slow communicators share, then of those left, and so on."""
    left = list(slow)
    while left:
        holders = grouped((process, one) for one in left for process in processes_of(one.comm) - cleared)
        if not holders:
            for communicator in left:  # each of its members is in a fast one as well: together they are slow
                yield [communicator], processes_of(communicator.comm)
            return
        best = max(holders.values(), key=len)
        yield best, frozenset(process for process, several in holders.items() if several == best)
        left = [phase for phase in left if all(phase is not other for other in best)]


FEWEST_RANKS = 3
LEAST_US = 1000.0
"""Waiting of a rank below which its trace is too short to be judged."""
LEAST_SHARE = 0.4
MOST_OF_OTHERS = 0.2
"""Median share of the other ranks above which the state is common: a network that is busy everywhere is no rank's."""
MOST_RANKS = 0.25


@dataclass(frozen=True, slots=True)
class State:
    """A state of a step that points at a place: what is so, what to look at. `peer`: the place is the receiver's."""

    name: str
    message: str
    fix: str
    peer: bool = False


STATES = tuple(State(**entry) for entry in own_data("checks/job/slow/step_waits")["state"])


class OddStepWaits(JobCheck, id="JOB014"):
    """JOB014: the steps of one rank's transfers wait for something else than those of the others

    What it finds
        A rank whose steps wait in one state for 40 % of their waiting time, while other ranks hardly wait there: its
        GPU does not take what has arrived, its NIC or network takes data slowly, its flushes are slow, or its receiver
        is not ready.

    Why it matters
        Each step of a ring waits for the one before: the others wait for this rank, and their times say nothing of
        themselves.

    Evidence it reads
        Traces of NCCL's example profiler plug-in: SendGpuWait, SendPeerWait, SendWait, RecvWait, RecvFlushWait and
        RecvGpuWait, summed by rank.

    When it stays silent
        A state that is common to the ranks. RecvWait and SendGpuWait, which only say that a rank waits for another one,
        or for data that it has yet to receive. Fewer than three traces of one communicator, or less than a millisecond
        of waiting: unknown.

    How to confirm
        export NCCL_PROFILER_PLUGIN=example NCCL_PROFILE_EVENT_MASK=30 NCCL_PROFILE_DUMP_FILE=trace

    How to fix
        As the finding says: the state names the place.

    References
        NCCL plugins/profiler/example/print_event.cc, src/transport/net.cc (sendProxyProgress, recvProxyProgress).
    """

    def observe(self, judged: Job, peers: Sequence[Job]) -> Outcome:
        if not judged.step_waits:
            return self.not_applicable(judged, "no traces of NCCL's profiler")
        by_comm = grouped((wait.comm, wait) for wait in judged.step_waits if wait.total_us >= LEAST_US)
        groups = [waits for waits in by_comm.values() if len(waits) >= FEWEST_RANKS]
        if not groups:
            return self.unknown(judged, "fewer than three traces of one communicator with a millisecond of waiting")
        return self.any_of(judged, [self._outlier(judged, waits, state) for waits in groups for state in STATES])

    def _outlier(self, job: Job, waits: Sequence[StepWaits], state: State) -> Finding | None:
        """The ranks of a communicator whose steps wait in a state in which those of the others hardly do."""
        outliers = [wait for wait in waits if wait.share(state.name) >= LEAST_SHARE]
        rest = [wait.share(state.name) for wait in waits if wait.share(state.name) < LEAST_SHARE]
        if not outliers or not rest or len(outliers) > max(1, MOST_RANKS * len(waits)) or median(rest) > MOST_OF_OTHERS:
            return None
        own = [wait.rank for wait in outliers]
        ranks = _world(job, outliers[0].comm, own)
        numbers = sorted({max(wait.peers, key=wait.peers.__getitem__) for wait in outliers if wait.peers})
        to = f" (to {rank_word(numbers)})" if state.peer and numbers else ""
        share = max(wait.share(state.name) for wait in outliers)
        return self.finding(
            self.where(hosts_with(job, ranks), ranks=ranks),
            self.advice("step waits", usual=percent(median(rest)), look=state.fix),
            f"{rank_word(ranks or own)}: {state.message}{to}",
            observed=f"{state.name} is {percent(share)} of the waiting of its steps",
            evidence=outliers,
            coverage=Coverage(len(waits), len(waits), "ranks with traces"),
        )


def _world(job: Job, comm: int, ranks: Sequence[int]) -> list[int]:
    """World ranks, by the log's communicator, or where there is nothing but traces of one communicator."""
    if (known := logged(job, comm)) is not None:
        return sorted(rank for member in ranks if (rank := world_of(known, member)) >= 0)
    is_whole = not job.processes and len({wait.comm for wait in job.step_waits}) == 1
    return sorted(ranks) if is_whole else []
