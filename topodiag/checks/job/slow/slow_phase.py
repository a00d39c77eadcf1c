"""JOB011: communicators beside those of the same size in the same job, and the rank or host that slow ones share."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence, Set
from dataclasses import replace
from math import fsum, log
from statistics import median

from topodiag.checks.interface import Advice, JobCheck, hosts_in, hosts_word
from topodiag.checks.job.slow.inspector_names import Names, Place
from topodiag.lazy import dataclass
from topodiag.model.finding import Confidence, Cost, Coverage, Finding, Outcome
from topodiag.model.inspector import CallsOfOneSize, InspectorCommunicator
from topodiag.model.job import Job
from topodiag.words.units import few, grouped, in_gbs, plural, spell_bytes

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
        between_nodes = worst.comm.nnodes > 1
        if len(who) == 1:
            message = f"{_subject(who[0], nics, between_nodes=between_nodes)} slows {several}: {groups}"
        elif len(hosts) == 1:
            message = f"{hosts[0]} slows {several}: {groups}"
        else:
            message = f"{groups}; the slow place is at one of {len(who)} ranks on {hosts_word(hosts)}"
        exact = len(who) == 1 or len(hosts) == 1
        look = "the NIC, its cable and switch port" if between_nodes else "NVLink and PCIe of the GPUs"
        return self.finding(
            self.where(
                hosts if len(hosts) <= MOST_NAMED else (),
                ranks=sorted(place.rank for place in who if place.rank >= 0) if len(who) <= MOST_NAMED else (),
                nics=nics,
            ),
            Advice(confidence=Confidence.MEDIUM if exact else Confidence.LOW),
            message,
            observed=f"{calls.collective} of {spell_bytes(calls.bytes)}: {in_gbs(calls.busbw_gbs)} bus bandwidth"
            " without waiting",
            expected=f"{in_gbs(worst.usual_gbs)}, the median of communicators of as many ranks and nodes",
            fix=(f"look at {look}: topodiag scan on {hosts_word(hosts) if exact else 'those nodes'}",),
            cost=Cost(lost, 1 - 1 / worst.times, f"{in_gbs(lost)} of bus bandwidth in these communicators"),
            evidence=who,
        )


def _subject(place: Place, nics: Sequence[str], *, between_nodes: bool) -> str:
    if not between_nodes:
        return place.word
    return f"{few(nics)} of {place.word}" if nics else f"the network at {place.word}"


def _grouped(beside: Sequence[SlowCommunicator]) -> Iterator[tuple[list[SlowCommunicator], frozenset[Process]]]:
    """Slow communicators with what they share and no fast one of theirs holds, as few groups as explain all of them:
    those between nodes, then those within one."""
    for between in (True, False):
        kind = [one for one in beside if (one.comm.nnodes > 1) is between]
        cleared = set().union(*(processes_of(one.comm) for one in kind if not one.slow))
        yield from _explaining([one for one in kind if one.slow], cleared)


def _explaining(
    slow: Sequence[SlowCommunicator], cleared: Set[Process]
) -> Iterator[tuple[list[SlowCommunicator], frozenset[Process]]]:
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
