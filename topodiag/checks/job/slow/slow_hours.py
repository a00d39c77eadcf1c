"""Hours in which the communicators of a job are slow together: what its nodes share, and not one of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from math import fsum
from statistics import median

from topodiag.checks.interface import JobCheck
from topodiag.checks.job.slow.inspector_names import Names
from topodiag.model.finding import Cost, Coverage, Finding, Outcome
from topodiag.model.inspector import InspectorCommunicator
from topodiag.model.job import Job
from topodiag.words.units import few, percent

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
            "slow hours",
            f"from {_time(run[0])} to {_time(run[-1] + 1)} UTC {what} took {times:.1f} times as long as in other"
            f" hours{other}",
            observed=f"{len(slow)} of {seen} communicators slow in the same hours:"
            f" {few([names.label(compared[number]) for number in slow], 3)}",
            expected=f"the median of {len(hours)} hours",
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
    return datetime.fromtimestamp(hour * 3600, UTC).strftime("%Y-%m-%d %H:%M")
