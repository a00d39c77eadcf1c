"""What NCCL's Inspector records: ranks and communicators by their names, as far as known; collectives far below NCCL's
model of their machines, and hours in which all are slow together."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from functools import cached_property
from math import fsum
from statistics import median

from topodiag.checks.interface import JobCheck, hosts_word
from topodiag.checks.shared.bench_text import as_option, launched, program_of
from topodiag.checks.shared.job.text import logged, world_of
from topodiag.lazy import dataclass
from topodiag.model.clock_text import stamp
from topodiag.model.finding import Confidence, Cost, Coverage, Finding, Outcome
from topodiag.model.inspector import InspectorCommunicator, InspectorMember, MadeOf, ModelComparison
from topodiag.model.job import Job
from topodiag.model.job_wires import nics_of
from topodiag.model.provenance import Origin
from topodiag.words.units import few, in_gbs, percent, spell_bytes

Process = tuple[str, int]
"""Host and pid."""


@dataclass(frozen=True, slots=True)
class Place:
    """One rank: that of the world, -1 where nothing ties it, its host and its process; `gpu` where only that is known,
    as its process counts."""

    rank: int
    host: str
    pid: int
    origin: Origin | None = None
    gpu: int = -1

    @property
    def word(self) -> str:
        if self.rank >= 0:
            return f"rank {self.rank} on {self.host}"
        if self.gpu >= 0:
            return f"GPU {self.gpu} of {self.host}"
        return f"process {self.pid} on {self.host}"


class Names:
    """World ranks by the log's communicators, by (host, pid), or by the one communicator that holds all processes."""

    def __init__(self, job: Job) -> None:
        self._job = job

    @cached_property
    def _by_process(self) -> dict[Process, int]:
        counted = Counter((rank.host, rank.pid) for rank in self._job.ranks)
        known = {(r.host, r.pid): r.rank for r in self._job.ranks if counted[r.host, r.pid] == 1}
        comms = self._job.inspection.communicators if self._job.inspection is not None else ()
        if known or not comms or any(comm.made_of is not MadeOf.CALLS for comm in comms):
            return known  # metrics name no ranks
        sizes = sorted((comm.nranks for comm in comms), reverse=True)
        world = max(comms, key=lambda comm: comm.nranks)
        processes = {(member.host, member.pid) for comm in comms for member in comm.members.values()}
        of_world = Counter((member.host, member.pid) for member in world.members.values())
        if sizes[1:2] == sizes[:1] or not processes <= of_world.keys():
            return {}
        return {(m.host, m.pid): m.rank for m in world.members.values() if of_world[m.host, m.pid] == 1}

    def place(self, comm: InspectorCommunicator, member: InspectorMember) -> Place:
        """The rank of the world that a member is."""
        known = logged(self._job, comm.hash)
        if known is not None and (rank := world_of(known, member.rank)) >= 0:
            own = self._job.by_rank.get(rank)
            return Place(rank, own.host if own is not None else member.host, member.pid, member.origin)
        rank = self._by_process.get((member.host, member.pid), -1)
        return Place(rank, member.host, member.pid, member.origin, member.gpu)

    def label(self, comm: InspectorCommunicator) -> str:
        """What a reader calls a communicator: the application's name, the log's, or its hash."""
        if comm.name:
            return comm.name
        known = logged(self._job, comm.hash)
        return known.label if known is not None else f"communicator {comm.hash:#x} of {comm.nranks} ranks"

    def nics(self, rank: int) -> tuple[str, ...]:
        """The NICs by which the log says that a world rank sends between nodes."""
        conns, own = self._job.connections, self._job.by_rank.get(rank)
        process = self._job.process_of(own) if own is not None else None
        if process is None:
            return ()
        used: set[int] = set()
        for batch in conns.batches():
            mine = (batch.world == rank) & (batch.net_dev >= 0) & (batch.direction == 1) & (batch.proxy < 0)
            used |= {int(device) for device in batch.net_dev[mine]}
        names = nics_of(process)
        return tuple(names[device].name for device in sorted(used & names.keys()))


MOST_NAMED = 8


class BelowModel(JobCheck, id="JOB015"):
    """JOB015: collectives in production are far below what the machine should reach

    What it finds
        A kind of communicators of which the fastest, in the best tenth of its calls and without waiting for a late
        rank, reaches less than half of its part of the bus bandwidth that NCCL's model expects of its machines.

    Why it matters
        Where all groups are slow alike, none is slower than its peers: only the machine tells that they could be
        twice as fast.

    Evidence it reads
        Records of NCCL's Inspector that the GPU timed; captures of the nodes; version and settings of NCCL
        from the log. The expectation is that of `topodiag bench`.

    When it stays silent
        Other communicators are busy on the same GPUs: each counts as one more that shares the links, sends and
        receives as another, and the expectation is divided among them. The calls differ (the median takes 1.4 times
        the best tenth): what comes and goes is not the machine. Without a capture of a node that has the job's GPUs, or
        without a log that shows the communicators with version and settings: unknown. Communicators that hold a part of
        their nodes' GPUs, whose ranks did not all record, with fewer than 100 calls of a size, with calls that should
        take less than 2 ms, or of means (metrics hold the waiting for late ranks): not compared. The application limits
        CTAs: slow by intent. Half of the expectation is reached: kernels that compute at the same time, and other jobs
        on the network, cost as much. One communicator of several is slow: that is JOB011.

    How to confirm
        all_reduce_perf -b 64M -e 4G -f 2 -g 1         on the same nodes, and give it to topodiag bench

    How to fix
        Where nccl-tests is fast on the same nodes, it is the job: compute that overlaps, groups that share NICs, other
        jobs. Where it is slow as well, `topodiag bench` names the cause.

    References
        NCCL plugins/profiler/inspector, 2.28 and later; src/graph/tuning.cc.
    """

    def observe(self, judged: Job, peers: Sequence[Job]) -> Outcome:
        if judged.inspection is None:
            return self.not_applicable(judged, "no records of NCCL's Inspector")
        beside = judged.inspection.beside_model
        if not beside:
            return self.unknown(judged, judged.inspection.not_beside)
        names = Names(judged)
        low = [self._below(names, comparison) for comparison in beside if comparison.is_low]
        if low:
            return self.with_findings(judged, low)
        best = max(beside, key=lambda comparison: comparison.size.calls * comparison.size.clean_us)
        reached = f"{best.size.collective}: {in_gbs(best.gbs)}, above half of the {in_gbs(best.part_gbs)} expected"
        return self.clean(judged, reached)

    def _below(self, names: Names, comparison: ModelComparison) -> Finding:
        part = comparison.part_gbs
        what = f"{comparison.size.collective} of {spell_bytes(comparison.size.bytes)}"
        who = names.label(comparison.comm)
        ranks = Counter(member.host for member in comparison.comm.members.values())
        program, size = program_of(comparison.size.collective), as_option(comparison.size.bytes)
        return self.finding(
            self.where(list(ranks) if len(ranks) <= MOST_NAMED else ()),
            self.advice(
                "below model",
                part=in_gbs(part),
                expected_gbs=in_gbs(comparison.expected_gbs),
                shared=f", shared by {comparison.sharing} communicators" if comparison.sharing > 1 else "",
                hosts=hosts_word(list(ranks)),
                program=program,
            ),
            f"{what} reaches {percent(comparison.gbs / part)} of what {comparison.machine} should: {who} has"
            f" {in_gbs(comparison.gbs)} in its best calls",
            observed=f"{in_gbs(comparison.gbs)} bus bandwidth in the best tenth of {comparison.size.calls} calls",
            cost=Cost(
                gbs_lost=part - comparison.gbs,
                share=1 - comparison.gbs / part,
                text=f"{in_gbs(part - comparison.gbs)} of bus bandwidth, if nothing else used the links",
            ),
            evidence=[next(iter(comparison.comm.members.values()))],
            coverage=Coverage(comparison.hosts_seen, comparison.hosts, "nodes captured"),
            confirm=[("all_reduce_perf", launched(program, ranks)), ("-b 64M -e 4G", f"-b {size} -e {size}")],
            confidence=Confidence.MEDIUM if comparison.hosts_seen == comparison.hosts else Confidence.LOW,
        )


FEWEST_HOURS = 4
FEWEST_CALLS = 10
"""Calls of one size of a communicator within an hour below which the hour's median says little."""
SLOWER = 1.25
MOST_OF = 0.5
"""Share of the communicators that must be slow in an hour: what strikes a few is their own (JOB011)."""
MOST_HOURS = 0.25
"""Share of the hours above which slow hours are the rule, and the others lucky."""
ALIKE = 1.1
"""Times its usual time up to which an operation inside a node is as ever: then it is the network that was slow."""


Ratios = Mapping[int, Mapping[int, float]]
"""By hour, then by the number of the communicator, how many times longer its operations took than usual."""


class SlowHoursOfJob(JobCheck, id="JOB012"):
    """JOB012: all communication was slow for some hours

    What it finds
        Hours in which operations between nodes took a quarter longer than in the other hours, in half of the
        communicators at the same time, without the time that is spent waiting for a late rank.

    Why it matters
        What slows all groups at once is shared: spines, storage on the same network, another job. Nothing on the nodes
        of this job mends it.

    Evidence it reads
        Records of NCCL's Inspector that the GPU timed, by the hour in which they were dumped. Communicators inside a
        node, which the network does not slow, tell congestion from clocks and power.

    When it stays silent
        Fewer than four hours: unknown, as where all records were dumped at the end of the job. Slow hours are more
        than a quarter of all. Fewer than half of the communicators are slow in the hour.

    How to confirm
        sacct -a -S BEGIN -E END -o JobID,NodeList     which other jobs ran in that hour
        the counters of the switches: port_xmit_wait, ECN marks, pause frames of that hour

    How to fix
        Ask who used the network in that hour: other jobs, storage, a rebalance. Adaptive routing and another placement
        help where it comes again.

    References
        NCCL plugins/profiler/inspector (inspector_json.cc, dump_timestamp_us), 2.28 and later.
    """

    def observe(self, judged: Job, peers: Sequence[Job]) -> Outcome:
        if judged.inspection is None:
            return self.not_applicable(judged, "no records of NCCL's Inspector")
        hours = judged.inspection.hours
        if len(hours) < FEWEST_HOURS:
            return self.unknown(judged, "the records were dumped within fewer than four hours")
        between = [comm for comm in judged.inspection.communicators if comm.nnodes > 1]
        inside = [comm for comm in judged.inspection.communicators if comm.nnodes == 1]
        compared = between or inside
        ratios, own = _ratios(compared), _ratios(inside if between else [])
        runs = _slow_runs(ratios)
        if sum(map(len, runs)) > MOST_HOURS * len(hours):
            return self.clean(judged)
        return self.any_of(judged, [self._of_run(judged, run, compared, ratios, own) for run in runs])

    def _of_run(
        self, job: Job, run: Sequence[int], compared: Sequence[InspectorCommunicator], ratios: Ratios, own: Ratios
    ) -> Finding:
        """Consecutive slow hours, by the ratios of the communicators that are compared and of those inside a node."""
        names, hours = Names(job), job.inspection.hours if job.inspection is not None else ()
        slow = sorted({number for hour in run for number, ratio in ratios[hour].items() if ratio >= SLOWER})
        seen = len({number for hour in run for number in ratios[hour]})
        times = median(ratio for hour in run for ratio in ratios[hour].values() if ratio >= SLOWER)
        inside = [ratio for hour in run for ratio in own.get(hour, {}).values()]
        as_ever = bool(inside) and median(inside) < ALIKE
        other = f"; inside the nodes it was {'as ever' if as_ever else 'slow as well'}" if inside else ""
        network = as_ever or not inside
        what = "communication between nodes" if network else "all communication"
        return self.finding(
            self.where(),
            self.advice("slow hours", hours=len(hours)),
            f"from {_time(run[0])} to {_time(run[-1] + 1)} UTC {what} took {times:.1f} times as long as in other"
            f" hours{other}",
            observed=f"{len(slow)} of {seen} communicators slow in the same hours:"
            f" {few([names.label(compared[number]) for number in slow], 3)}",
            fix=self.steps("who used the network" if network else "GPUs in these hours"),
            cost=Cost(share=1 - 1 / times, text=f"in these hours {percent(1 - 1 / times)} of the rate"),
            evidence=[next(iter(compared[number].members.values())) for number in slow[:3]],
            coverage=Coverage(seen, len(compared), "communicators"),
        )


def _ratios(communicators: Sequence[InspectorCommunicator]) -> Ratios:
    """Of each size the median of its hours is as usual; the sizes weigh by the time that they take."""
    ratios: dict[int, dict[int, float]] = defaultdict(dict)
    for number, comm in enumerate(communicators):
        by_hour: dict[int, list[tuple[float, float]]] = defaultdict(list)
        for size in comm.sizes:
            counted = [hour for hour in size.by_hour if hour.calls >= FEWEST_CALLS]
            if len(counted) < FEWEST_HOURS:
                continue
            usual = median(hour.clean_us for hour in counted)
            for calls in counted:
                by_hour[calls.hour].append((calls.calls * usual, calls.clean_us / usual))
        for hour, pairs in by_hour.items():
            total = fsum(weight for weight, _ in pairs)
            ratios[hour][number] = fsum(weight * ratio for weight, ratio in pairs) / total
    return ratios


def _slow_runs(ratios: Ratios) -> list[list[int]]:
    """The hours in which enough communicators were slow, in runs without a gap."""
    runs: list[list[int]] = []
    for hour in sorted(ratios):
        if sum(ratio >= SLOWER for ratio in ratios[hour].values()) < max(1, MOST_OF * len(ratios[hour])):
            continue
        if runs and hour == runs[-1][-1] + 1:
            runs[-1].append(hour)
        else:
            runs.append([hour])
    return runs


def _time(hour: int) -> str:
    return stamp(hour * 3600)[:16]
