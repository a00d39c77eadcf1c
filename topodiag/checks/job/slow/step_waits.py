"""What the steps of transfers wait for, and the rank whose steps wait for something else than those of the others."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from topodiag.checks.interface import JobCheck, hosts_with, rank_word
from topodiag.checks.shared.job.text import logged, world_of
from topodiag.lazy import dataclass
from topodiag.model.diagnostics import StepWaits
from topodiag.model.finding import Coverage, Finding, Outcome
from topodiag.model.job import Job
from topodiag.words.own_data import own_data
from topodiag.words.units import grouped, percent

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
            "step waits",
            f"{rank_word(ranks or own)}: {state.message}{to}",
            observed=f"{state.name} is {percent(share)} of the waiting of its steps",
            expected=f"{percent(median(rest))}, the median of the other ranks",
            fix=(state.fix,),
            evidence=outliers,
            coverage=Coverage(len(waits), len(waits), "ranks with traces"),
        )


def _world(job: Job, comm: int, ranks: Sequence[int]) -> list[int]:
    """World ranks, by the log's communicator, or where there is nothing but traces of one communicator."""
    if (known := logged(job, comm)) is not None:
        return sorted(rank for member in ranks if (rank := world_of(known, member)) >= 0)
    is_whole = not job.processes and len({wait.comm for wait in job.step_waits}) == 1
    return sorted(ranks) if is_whole else []
