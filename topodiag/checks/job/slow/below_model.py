"""Communicators whose collectives are far slower than NCCL's model expects of the machines that they run on."""

from __future__ import annotations

from collections.abc import Sequence

from topodiag.checks.interface import JobCheck, hosts_word
from topodiag.checks.job.slow.inspector_names import Names
from topodiag.model.finding import Confidence, Cost, Coverage, Finding, Outcome
from topodiag.model.inspector import ModelComparison
from topodiag.model.job import Job
from topodiag.words.units import in_gbs, percent, spell_bytes

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
        hosts = list(dict.fromkeys(member.host for member in comparison.comm.members.values()))
        shared = f", shared by {comparison.sharing} communicators" if comparison.sharing > 1 else ""
        return self.finding(
            self.where(hosts if len(hosts) <= MOST_NAMED else ()),
            self.advice(
                "below model",
                part=in_gbs(part),
                expected_gbs=in_gbs(comparison.expected_gbs),
                shared=shared,
                hosts=hosts_word(hosts),
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
            confidence=Confidence.MEDIUM if comparison.hosts_seen == comparison.hosts else Confidence.LOW,
        )
