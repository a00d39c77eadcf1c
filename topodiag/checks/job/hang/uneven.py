"""Nodes with different numbers of ranks, where the job does not come through with them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from topodiag.checks.interface import JobCheck, hosts_word
from topodiag.checks.job.hang.check import HANG_KINDS
from topodiag.checks.shared.job.logs import most
from topodiag.checks.shared.job.text import ask_for
from topodiag.model.finding import Coverage, Outcome
from topodiag.model.job import Communicator, Job
from topodiag.model.provenance import Origin
from topodiag.words.units import plural


class RanksUneven(JobCheck, id="JOB010"):
    """JOB010: ranks per node differ where NCCL or the layout needs them equal

    What it finds
        A communicator over nodes with different numbers of ranks whose init does not end while NVLink SHARP (NVLS)
        is being set up.

    Why it matters
        The multicast groups of the nodes have different sizes then, and the ranks wait for each other for ever: no
        error, no timeout of NCCL.

    Evidence it reads
        `nRanks .. nNodes .. localRanks ..` and Init lines: ranks of each node; NVLS lines; Init COMPLETE; watchdogs.

    When it stays silent
        Equal numbers. Init completed and nothing hung: uneven nodes are slower, but they work. NVLink SHARP is off
        or absent. Ranks that left no line could be on any node: then NCCL's own counts of local ranks decide, and
        without those the answer is unknown.

    How to confirm
        export NCCL_NVLS_ENABLE=0                      then run again: passes, where NVLink SHARP is what hangs

    How to fix
        Give each node the same number of ranks, or set NCCL_NVLS_ENABLE=0 for this job.

    References
        github.com/NVIDIA/nccl/issues/2385 (7 and 8 ranks on two nodes).
    """

    def observe(self, judged: Job, peers: Sequence[Job]) -> Outcome:
        world = judged.world
        if world is None:
            return self.unknown(judged, f"no communicator in the log: {ask_for(judged)}")
        by_host = _ranks_by_host(judged, world)
        if len(by_host) < 2:
            return self.not_applicable(judged, "ranks of one node, or NCCL's counts of them are not in the log")
        coverage = Coverage(sum(by_host.values()), world.nranks, "ranks counted")
        if len(set(by_host.values())) == 1:
            return self.clean(judged, f"{plural(next(iter(by_host.values())), 'rank')} on each node", coverage)
        hung = any(event.kind in HANG_KINDS for event in judged.events)
        if world.init_complete or (bool(world.completed.any()) and not hung):
            return self.clean(judged, "ranks per node differ, and init completed", coverage)
        multicast = _multicast(judged)
        if multicast is None:
            return self.clean(judged, "ranks per node differ, and nothing shows NVLink SHARP", coverage)
        usual = most(by_host.values())
        texts = [host for host, count in by_host.items() if count != usual]
        words = ", ".join(f"{count} on {host}" for host, count in list(by_host.items())[:6])
        finding = self.finding(
            self.where(list(by_host), ranks=[int(rank) for rank in world.known[:4096]]),
            "uneven",
            f"ranks per node differ ({words}), and init does not end while NVLink SHARP is set up",
            observed=f"{hosts_word(texts)} {'has' if len(texts) == 1 else 'have'} another number of ranks than"
            f" {plural(usual, 'rank')}",
            evidence=[multicast],
            settings=(("NCCL_NVLS_ENABLE", "0"),),
        )
        return self.any_of(judged, [finding], coverage)


def _ranks_by_host(job: Job, world: Communicator) -> dict[str, int]:
    """Ranks of the world by host: all of them where each left a line, else NCCL's own counts."""
    if len(world.known) == world.nranks:
        return dict(Counter(rank.host for rank in job.ranks))
    return dict(world.local_ranks)


def _multicast(job: Job) -> Origin | None:
    """A line by which NVLink SHARP is being set up; None where it is off, or no line shows it."""
    given = [process.settings.get("NCCL_NVLS_ENABLE") for process in job.processes]
    if any(setting is not None and setting.value == "0" for setting in given):
        return None
    lines = ((process, line) for process in job.processes for line in process.said("nvls"))
    return next((line.origin or process.origin for process, line in lines if "multicast" in line.details), None)
