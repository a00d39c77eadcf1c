"""Ranks that come late to their collectives: by torch's flight recorder, NCCL's Inspector, and a training's own log."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from math import fsum, isfinite
from operator import attrgetter
from statistics import median

from topodiag.checks.interface import JobCheck, hosts_in, hosts_with, rank_word
from topodiag.checks.job.slow.inspector import Names, Place
from topodiag.checks.job.slow.slow_phase import beside_siblings
from topodiag.checks.shared.job.text import group_words
from topodiag.lazy import dataclass
from topodiag.model.data_waits import data_waits
from topodiag.model.finding import Cost, Coverage, Finding, Outcome, Status
from topodiag.model.inspector import InspectorCommunicator, LastArrivals, MadeOf
from topodiag.model.job import Job
from topodiag.model.late_part import LatePart, late_parts
from topodiag.model.steps import PartOf
from topodiag.words.units import few, grouped, percent, spell_s

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


LATE_S = 1.0
"""Seconds by which one arrival must differ from the rank's usual one: far above what a step varies by, and no part of a
clock's drift in the minutes that a recorder covers."""
LATE_EACH_S = 0.05
"""Seconds by which a rank must come after its neighbours of the same host, each time."""
TIMES_THE_NOISE = 5.0
"""A late arrival must stand out of the spread of the other ranks by this factor."""
FEW = "fewer than 100 calls that three ranks of a communicator recorded with the GPU's time"
ALIKE = "by the log of its steps, no rank is late in a part that the others wait for"
FEWEST_RANKS = 3
FEWEST_COLLECTIVES = 3
MOST_SHARE = 0.25
"""Share of the ranks above which lateness is that of a half of the job, not of a rank."""

Arrivals = Mapping[int, Mapping[int, float]]
"""Seconds since the epoch by sequence number and rank."""
Operations = dict[tuple[str, int], str]
"""By group and sequence number."""


_STEPS_OF = {PartOf.DATA: "late for data", PartOf.OPTIMIZER: "late after its backward pass"}
"""What to do about a rank that is late in such a part of its steps; in the others it computes."""


class LateArriver(JobCheck, id="JOB008"):
    """JOB008: a late arriver: a rank, or all of them, starts its collectives late

    What it finds
        A rank that entered one collective seconds after the others, beyond its usual distance from them; and a rank
        that enters each collective after the other ranks of its host. By the Inspector: a rank, or the ranks of one
        host, whose kernels are the shortest where the others wait. Who is late because a peer in another group made it
        wait, or because that group is slow (JOB011), is not named. By the training's own log: steps that wait for data
        for half of their time, or slow steps that are slow by it; a rank that takes longer than the others for its
        data, its forward or its backward pass, while they wait for it in the part that holds the communication.

    Why it matters
        The others wait inside the collective: their communication looks slow, and is innocent. What makes the rank
        late is its data loader, a checkpoint, the CPU or a slow GPU.

    Evidence it reads
        `time_created_ns` of torch's flight recorder dumps: when each rank enqueued which operation. Records of NCCL's
        Inspector that the GPU timed, matched by communicator, collective and sequence number. Tables of the ranks' own
        times. The time and the data time of each step in a training's log, and the times of its parts, in one file for
        each rank or in one for all.

    When it stays silent
        Lateness within the noise, or spread over more than a quarter of the ranks. A constant distance between ranks
        of different hosts, which may be that of their clocks. Fewer than three ranks or three common collectives of a
        group, or dumps without times: unknown. Sends and receives, which ranks enqueue by design at different times.
        The Inspector's calls hold less than a tenth of waiting, or no rank and no host causes half of it; fewer than
        100 calls of three ranks, or 20 dumps of Prometheus' metrics: unknown, as where metrics do not show which GPUs
        are one communicator, and for those of NCCL 2.29, which do not say whose clock timed them. Steps: the first
        tenth, the first batch of an epoch, fewer than three lines, waiting below 15 % of all time, or of the same time
        in all of thirty lines and more: the loop waits for its own GPUs there. Parts of steps:
        fewer than five common steps, a rank that is late by less than a tenth of a step or half of the part, in less
        than four of five steps, or for whom nobody waits. Between two ranks only the data part is judged.

    How to confirm
        export TORCH_NCCL_TRACE_BUFFER_SIZE=2000       then dump a run that is slow and does not hang
        py-spy record -p PID -d 60                     on the rank that is named
        export NCCL_INSPECTOR_ENABLE=1                 with NCCL_PROFILER_PLUGIN: the time of each collective

    How to fix
        Look at what the rank does before the collective: input, logging, checkpoint, garbage collection, clocks of
        its GPU (GPU004). Where steps wait for data: more workers for the loader, a faster store, a cache on local
        disks.

    References
        torch/csrc/distributed/c10d/FlightRecorderDetail.hpp (time_created_ns), torch 2.3 and later. NCCL
        plugins/profiler/inspector (README.md, inspector_json.cc), 2.28 and later.
    """

    def observe(self, judged: Job, peers: Sequence[Job]) -> Outcome:
        by_rank = self._single_ranks(judged)
        parts = late_parts(judged.steps)
        # A rank that is late for its data waits for them, too: that is one finding, not two.
        of_steps = list(self._late_in_parts(judged, parts)) if parts else list(self._late_for_data(judged))
        if by_rank.findings or of_steps:
            return self.with_findings(judged, (*by_rank.findings, *of_steps))
        alike = parts is not None and by_rank.status is Status.UNKNOWN
        return self.clean(judged, ALIKE) if alike else by_rank

    def _single_ranks(self, judged: Job) -> Outcome:
        """By what shows when each rank came to its collectives."""
        kernels = late_kernels(judged)
        if kernels:
            return self.with_findings(judged, map(self._late_to_kernels, kernels))
        recorded = self._recorded(judged)
        if not recorded.findings and judged.inspection is not None:
            return self.clean(judged) if judged_communicators(judged) else self.unknown(judged, FEW)
        return recorded

    def _late_to_kernels(self, late: LateKernels) -> Finding:
        """By the Inspector."""
        who = late.word
        calls = "calls" if late.comm.made_of is MadeOf.CALLS else "means over a dump"
        times = f"{percent(late.times / late.comm.calls)} of {late.comm.calls} {calls}"
        return self.finding(
            self.where(hosts_in(late.who), ranks=sorted(place.rank for place in late.who if place.rank >= 0)),
            self.advice("last to arrive", who=who),
            f"{who} {'comes' if len(late.who) == 1 else 'come'} last to the collectives of {late.group}: the"
            f" others wait {percent(late.share)} of the time in them",
            observed=f"the shortest kernel in {times}, where the others take {spell_s(late.wait_us / 1e6)} longer",
            cost=Cost(share=late.share, text=f"the others wait {spell_s(late.wait_us / 1e6)} each time"),
            evidence=late.who,
            coverage=Coverage(len(late.comm.members), late.comm.nranks, "ranks with records"),
        )

    def _recorded(self, judged: Job) -> Outcome:
        """By the flight recorder."""
        if not judged.flight:
            return self.unknown(judged, "no flight recorder: TORCH_NCCL_TRACE_BUFFER_SIZE=2000 and a dump of each rank")
        operations: Operations = {}
        groups = _arrivals(judged, operations)
        timed = {group: arrivals for group, arrivals in groups.items() if len(arrivals) >= FEWEST_COLLECTIVES}
        if not timed:
            return self.unknown(judged, "fewer than three collectives with times of three ranks in the dumps")
        findings = [self._late_to_group(judged, group, arrivals, operations) for group, arrivals in timed.items()]
        return self.any_of(judged, findings)

    def _late_to_group(self, job: Job, group: str, arrivals: Arrivals, operations: Operations) -> Finding | None:
        """Ranks that came late to one operation of a process group, or to each."""
        late = _once(arrivals) or _each_time(job, arrivals)
        if late is None:
            return None
        seq, ranks, late_s = late
        seen = max(len(by_rank) for by_rank in arrivals.values())
        size = max(len(record.groups.get(group, ())) for record in job.flight)
        records = {record.rank: record for record in job.flight}
        call = f"{operations.get((group, seq)) or 'operation'} number {seq}" if seq else "each collective"
        return self.finding(
            self.where(hosts_with(job, ranks), ranks=ranks),
            self.advice("late to a collective", ranks=rank_word(ranks)),
            f"{rank_word(ranks)} {'enters' if len(ranks) == 1 else 'enter'} {call} of process group"
            f" {group_words(job, group)} {spell_s(late_s)} after the others",
            observed=f"enqueued {spell_s(late_s)} later than by the median of the other ranks",
            cost=f"the other ranks wait {spell_s(late_s)}" + ("" if seq else " each time"),
            evidence=[records[rank] for rank in ranks if rank in records],
            coverage=Coverage(seen, max(size, seen), "ranks with dumps"),
        )

    def _late_in_parts(self, job: Job, parts: Sequence[LatePart]) -> Iterator[Finding]:
        """By the times of the parts of each step that the ranks of a training print, the latest first."""
        for several in grouped((part.part, part) for part in parts).values():
            worst = several[0]
            ranks = sorted(part.series.rank for part in several if part.series.rank >= 0)
            one = len(several) == 1
            who = rank_word(ranks) if len(ranks) == len(several) else few([part.who for part in several], 4)
            waits = " and ".join(worst.waits_in)
            share = min(worst.late_s / worst.step_s, 1.0)
            yield self.finding(
                self.where(hosts_with(job, ranks) or hosts_in(part.series for part in several), ranks=ranks),
                "late rank",
                f"{who} {'is' if one else 'are'} late in each step: {'its' if one else 'their'} {worst.part} takes"
                f" {'' if one else 'up to '}{spell_s(worst.own_s)}, that of the others {spell_s(worst.usual_s)}, and"
                f" they wait for {'it' if one else 'them'} in {waits}",
                observed=f"{worst.part} {spell_s(worst.own_s)} on {worst.who}, in {waits} {spell_s(worst.waited_s)}"
                f" less than the others, by the median of {worst.steps} steps of {spell_s(worst.step_s)}",
                fix=self.steps(_STEPS_OF.get(worst.of, "late in computing"), "not the links", who=who),
                cost=Cost(share=share, text=f"the others wait {spell_s(worst.late_s)} of each step, {percent(share)}"),
                evidence=[part.step for part in several],
                coverage=Coverage(
                    worst.ranks, max(job.world_size, worst.ranks), "ranks that time the parts of their steps"
                ),
            )

    def _late_for_data(self, job: Job) -> Iterator[Finding]:
        """By the time that the last start of a training waits for its data: of several logs of it the worst."""
        waiting = [waits for pace in job.paces if (waits := data_waits(pace.series)) is not None]
        if not waiting:
            return
        waits = max(waiting, key=attrgetter("share"))
        who, host, rank = waits.series.who, waits.series.host, waits.series.rank
        of = f" of {who}" if who else ""
        message = f"steps{of} wait for data {percent(waits.share)} of their time: the input sets the pace"
        if not waits.always:
            message = f"{waits.slow} of {waits.lines} steps{of} are long because they wait for data:"
            message += f" {percent(waits.share)} of all time goes to waiting for input"
        yield self.finding(
            self.where([host] if host else [], ranks=[rank] if rank >= 0 else []),
            "waits for data",
            message,
            observed=f"of {spell_s(waits.step_s)} a step, {spell_s(waits.waited_s)} are waiting for data in the mean of"
            f" {waits.lines} lines after the warm-up; without it a step takes {spell_s(waits.usual_s)}",
            cost=Cost(share=waits.share, text=f"{spell_s(waits.waited_s)} of a step are spent waiting for data"),
            evidence=waits.evidence,
        )


def _arrivals(job: Job, operations: Operations) -> dict[str, Arrivals]:
    """By group, the arrivals at collectives that at least three ranks recorded with a time."""
    arrivals: dict[str, dict[int, dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
    for record in job.flight:
        for (group, seq, operation, _), created in zip(record.entries, record.created_s, strict=False):
            if isfinite(created) and not any(word in operation.lower() for word in ("send", "recv", "coalesced")):
                arrivals[group][seq][record.rank] = created
                operations.setdefault((group, seq), operation.split(" ")[0])
    return {
        group: {seq: by_rank for seq, by_rank in sorted(by_seq.items()) if len(by_rank) >= FEWEST_RANKS}
        for group, by_seq in arrivals.items()
    }


def _delays(by_rank: Mapping[int, float]) -> dict[int, float]:
    """Seconds of each rank after the median of all."""
    middle = median(by_rank.values())
    return {rank: at - middle for rank, at in by_rank.items()}


def _once(arrivals: Arrivals) -> tuple[int, tuple[int, ...], float] | None:
    """The collective to which few ranks came later than they usually do: a constant distance is that of clocks."""
    late = {seq: _delays(by_rank) for seq, by_rank in arrivals.items()}
    usual = grouped(delay for by_rank in late.values() for delay in by_rank.items())
    base = {rank: median(seconds) for rank, seconds in usual.items()}
    worst: tuple[int, tuple[int, ...], float] | None = None
    for seq, by_rank in late.items():
        beyond = {rank: seconds - base[rank] for rank, seconds in by_rank.items() if len(usual[rank]) > 2}
        pair = _standing_out(beyond, LATE_S)
        if pair is not None and (worst is None or pair[1] > worst[2]):
            worst = (seq, *pair)
    return worst


def _each_time(job: Job, arrivals: Arrivals) -> tuple[int, tuple[int, ...], float] | None:
    """The rank that comes after the others of its host to each collective: they share one clock."""
    host_of = {rank.rank: rank.host for rank in job.ranks if rank.host}
    seconds: dict[str, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for by_rank in arrivals.values():
        by_host: dict[str, dict[int, float]] = defaultdict(dict)
        for rank, at in by_rank.items():
            if rank in host_of:
                by_host[host_of[rank]][rank] = at
        for host, own in by_host.items():
            if len(own) >= FEWEST_RANKS:
                for rank, late in _delays(own).items():
                    seconds[host][rank].append(late)
    for by_rank_of_host in seconds.values():
        typical = {rank: median(late) for rank, late in by_rank_of_host.items() if len(late) >= FEWEST_COLLECTIVES}
        pair = _standing_out(typical, LATE_EACH_S)
        if pair is not None:
            return 0, *pair
    return None


def _standing_out(late: Mapping[int, float], least: float) -> tuple[tuple[int, ...], float] | None:
    """The ranks that are late by more than `least` and out of the noise of the others; None where they are many."""
    numbers = tuple(sorted(rank for rank, seconds in late.items() if seconds > least))
    if not numbers or len(numbers) > max(1, MOST_SHARE * len(late)):
        return None
    rest = [abs(seconds) for rank, seconds in late.items() if rank not in numbers]
    if not rest or min(late[rank] for rank in numbers) < TIMES_THE_NOISE * median(rest):
        return None
    return numbers, max(late[rank] for rank in numbers)
