"""Hours in which the communicators of a job are slow together: what its nodes share, and not one of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from math import fsum
from statistics import median

from topodiag.checks.interface import JobCheck
from topodiag.checks.job.slow.inspector_names import Names
from topodiag.lazy import dataclass
from topodiag.model.finding import Cost, Coverage, Finding, Outcome
from topodiag.model.inspector import InspectorCommunicator
from topodiag.model.job import Job
from topodiag.words.fold import few
from topodiag.words.units import percent

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


@dataclass(frozen=True, slots=True)
class SlowHours:
    """Consecutive hours (since the epoch, the last one included), and how many times longer operations took in them.
    `inside` is the same of communicators inside a node, None where none is judged."""

    first: int
    last: int
    times: float
    inside: float | None
    slow: tuple[InspectorCommunicator, ...]
    judged: int
    hours: int
    coverage: Coverage


class SlowHoursOfJob(JobCheck[tuple[SlowHours, ...]]):
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

    id = "JOB012"

    def observe(self, judged: Job, peers: Sequence[Job]) -> tuple[SlowHours, ...] | Outcome:
        if judged.inspection is None:
            return self.not_applicable(judged, "no records of NCCL's Inspector")
        hours = judged.inspection.hours
        if len(hours) < FEWEST_HOURS:
            return self.unknown(judged, "the records were dumped within fewer than four hours")
        between = [comm for comm in judged.inspection.communicators if comm.nnodes > 1]
        inside = [comm for comm in judged.inspection.communicators if comm.nnodes == 1]
        slow_hours = [*_slow(between or inside, inside if between else [], len(hours))]
        told = sum(slow_hours.last - slow_hours.first + 1 for slow_hours in slow_hours)
        if not slow_hours or told > MOST_HOURS * len(hours):
            return self.clean(judged)
        return tuple(slow_hours)

    def findings(self, judged: Job, observed: tuple[SlowHours, ...]) -> Iterator[Finding]:
        names = Names(judged)
        for hours in observed:
            network = hours.inside is not None and hours.inside < ALIKE
            what = "communication between nodes" if network or hours.inside is None else "all communication"
            when = f"{_time(hours.first)} to {_time(hours.last + 1)} UTC"
            other = ""
            if hours.inside is not None:
                other = "; inside the nodes it was as ever" if network else "; inside the nodes it was slow as well"
            cause = (
                "ask who else used the network then: other jobs, storage; the switches' counters of congestion tell"
                if network or hours.inside is None
                else "look at clocks, power and temperature of the GPUs then: inside a node there is no network"
            )
            yield self.finding(
                self.where(),
                "slow hours",
                f"from {when} {what} took {hours.times:.1f} times as long as in other hours{other}",
                observed=f"{len(hours.slow)} of {hours.judged} communicators slow in the same hours:"
                f" {few([names.label(comm) for comm in hours.slow], 3)}",
                expected=f"the median of {hours.hours} hours",
                fix=(cause,),
                cost=Cost(share=1 - 1 / hours.times, text=f"in these hours {percent(1 - 1 / hours.times)} of the rate"),
                evidence=[next(iter(comm.members.values())).origin for comm in hours.slow[:3]],
                coverage=hours.coverage,
            )


def _ratios(communicators: Sequence[InspectorCommunicator]) -> dict[int, dict[int, float]]:
    """By hour, then by the number of the communicator, how many times longer its operations took than usual: over its
    sizes, weighed by the time that they take."""
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


def _slow(
    judged: Sequence[InspectorCommunicator], inside: Sequence[InspectorCommunicator], hours: int
) -> Iterator[SlowHours]:
    ratios, own = _ratios(judged), _ratios(inside)
    run: list[int] = []
    for hour in sorted(ratios):
        slow = [ratio for ratio in ratios[hour].values() if ratio >= SLOWER]
        if len(slow) < max(1, MOST_OF * len(ratios[hour])):
            continue
        if run and hour != run[-1] + 1:
            yield _slow_hours(run, ratios, own, judged, hours)
            run = []
        run.append(hour)
    if run:
        yield _slow_hours(run, ratios, own, judged, hours)


def _slow_hours(
    run: Sequence[int],
    ratios: dict[int, dict[int, float]],
    own: dict[int, dict[int, float]],
    judged: Sequence[InspectorCommunicator],
    hours: int,
) -> SlowHours:
    slow = sorted({number for hour in run for number, ratio in ratios[hour].items() if ratio >= SLOWER})
    times = median(ratio for hour in run for ratio in ratios[hour].values() if ratio >= SLOWER)
    inside = [ratio for hour in run for ratio in own.get(hour, {}).values()]
    seen = {number for hour in run for number in ratios[hour]}
    return SlowHours(
        run[0],
        run[-1],
        times,
        median(inside) if inside else None,
        tuple(judged[number] for number in slow),
        len(seen),
        hours,
        Coverage(len(seen), len(judged), "communicators"),
    )


def _time(hour: int) -> str:
    return datetime.fromtimestamp(hour * 3600, UTC).strftime("%Y-%m-%d %H:%M")
