"""What NCCL's own diagnostics found to differ or to fail between the ranks of a job."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from topodiag.checks.interface import JobCheck, hosts_with, quoted, rank_word
from topodiag.checks.job.settings.differ import MEANT_TO_DIFFER, MUST_AGREE
from topodiag.checks.shared import nccl_variables
from topodiag.checks.shared.job.logs import Line, named_by
from topodiag.checks.shared.job.text import logged, world_of
from topodiag.checks.shared.phrases import Phrase, phrases
from topodiag.lazy import dataclass
from topodiag.model.diagnostics import Diagnosis
from topodiag.model.finding import Finding, Outcome
from topodiag.model.job import Job
from topodiag.model.provenance import Origin
from topodiag.words.own_data import patterns
from topodiag.words.units import grouped, percent, spell_us

# Which NICs take long for a job's transfers, by the summaries that NCCL prints with NCCL_IB_WQE_LATENCY_REPORT.

SLOW_SHARE = 0.05
"""Part of a NIC's posts above NCCL's threshold (`thr`) from which the NIC is slow."""
OTHERS = 5
"""How many times larger that part is than that of the other NICs together: all slow alike is no fault of a NIC."""
LEAST_POSTS = 1000
"""Fewer are the first posts of a connection."""

NO_LINES = "no lines of NCCL's diagnostics: NCCL_RUN_RAS_DIAGNOSTICS=1, 2.31 and later"


@dataclass(frozen=True, slots=True)
class NicPosts:
    """The posts of one NIC: how many, those above the threshold, the worst p99 of a queue pair, and its line."""

    host: str
    nic: str
    posts: int
    slow: int
    threshold_ns: int
    p99_ns: int
    origin: Origin | None

    @property
    def share(self) -> float:
        return self.slow / self.posts if self.posts else 0.0


def slow_nics(job: Job) -> tuple[NicPosts, ...]:
    """NICs whose posts take far longer than those of the others, the slowest first; none where most are slow."""
    lines = [line for line in named_by(job, "nic", "wqe latency") if line.process >= 0]
    by_nic = grouped(((line.host, line.details["nic"]), line) for line in lines)
    seen = [_posts_of(*place, own) for place, own in by_nic.items()]
    slow = [nic for nic in seen if nic.posts >= LEAST_POSTS and nic.share >= SLOW_SHARE]
    rest = [nic for nic in seen if nic not in slow]
    others = sum(nic.slow for nic in rest) / max(1, sum(nic.posts for nic in rest))
    if len(slow) > len(rest):
        return ()
    return tuple(sorted((nic for nic in slow if nic.share >= OTHERS * others), key=lambda nic: -nic.share))


def _posts_of(host: str, nic: str, lines: Sequence[Line]) -> NicPosts:
    posts, slow = (sum(int(line.details[name]) for line in lines) for name in ("posts", "slow"))
    worst = max(lines, key=lambda line: int(line.details["p99_ns"]))
    threshold_ns, p99_ns = int(lines[-1].details["threshold_ns"]), int(worst.details["p99_ns"])
    return NicPosts(host, nic, posts, slow, threshold_ns, p99_ns, worst.origin)


_LINES = patterns("checks/job/settings/diagnostics", "lines")


class NcclReports(JobCheck, id="JOB013"):
    """JOB013: NCCL's own diagnostics report a difference or a fault

    What it finds
        What NCCL 2.31 says of the ranks of a communicator: other GPUs, other drivers, uncorrected memory errors,
        inactive links, settings that differ, and pairs of GPUs over which a test transfer fails or arrives wrong. Of
        2.32 also NICs far slower than the median, links of different speeds, Xid and SXid errors that ask for action,
        and what rdma_topo finds; and NICs whose posts take far longer than those of the others, by the summaries of
        NCCL_IB_WQE_LATENCY_REPORT.

    Why it matters
        NCCL only says what differs, and goes on. Each costs something else: this check says what.

    Evidence it reads
        `NCCL DIAG` lines: NCCL_RUN_RAS_DIAGNOSTICS=1 and NCCL_RUN_DIAGNOSTICS=1 on the output of rank 0, or
        `ncclras -D`. NCCL tags differences and missing data alike as [INFO]: the text decides.

    When it stays silent
        Lines that are [OK]: clean. Settings that are meant to differ, as NCCL_DEBUG_FILE of each process, and those
        that the logs show as well (JOB003). Data that NCCL could not read, or reports that not all ranks answered:
        unknown. Peer access that the test switched on for itself. A NIC that is faster than the median; the mode of the
        IOMMU, its groups and ATS, which are no fault by themselves.

    How to confirm
        ncclras -D                                     on a node of the job, while it runs
        NCCL_RUN_DIAGNOSTICS=1                         tests each pair of GPUs at the next start

    How to fix
        As the finding says; the checks of nodes (`topodiag scan`) say more of a link, a GPU or a driver.

    References
        NCCL src/ras/diagnostics_gpu.cc, diagnostics_env.cc, src/diagnostics/p2p.cc v2.31; diagnostics_xid.cc,
        src/diagnostics/ib_write_bw.cc v2.32; user guide, Diagnostics.
    """

    def observe(self, judged: Job, peers: Sequence[Job]) -> Outcome:
        slow = slow_nics(judged)
        if not judged.diagnostics and not slow:
            return self.not_applicable(judged, NO_LINES)
        failed = [diagnosis for diagnosis in judged.diagnostics if not diagnosis.ok]
        of_kind = [(kind, _lines_of(kind, failed)) for kind in phrases("diagnosis")]
        findings = [
            *map(self._slow, slow),
            *(self._reported(judged, kind, lines) for kind, lines in of_kind if lines),
            *(self._differing(judged, name, values) for name, values in _settings(judged, failed)),
        ]
        blind = next((diagnosis for diagnosis in failed if _LINES["no_data"].search(diagnosis.text)), None)
        unseen = quoted(f"{blind.subject}: {blind.text}") if blind is not None else ""
        return self.any_of(judged, findings, unknown=unseen)

    def _reported(self, job: Job, kind: Phrase, lines: Sequence[Diagnosis]) -> Finding:
        """Lines of one kind."""
        ranks, words = _world(job, lines)
        named = list(dict.fromkeys(a or b for line in lines for a, b in _LINES["host"].findall(line.text)))
        words = words or ", ".join(named)
        return self.finding(
            self.where(named or hosts_with(job, ranks), ranks=ranks),
            "reported by nccl",
            f"{kind.says}: {words}" if words else kind.says,
            severity=kind.severity,
            observed=quoted(f"{lines[0].subject}: {lines[0].text}", 200),
            fix=(kind.fix,),
            cost=kind.cost,
            evidence=lines,
        )

    def _slow(self, nic: NicPosts) -> Finding:
        return self.finding(
            self.where([nic.host] if nic.host else [], nics=[nic.nic]),
            self.advice("slow posts", nic=nic.nic),
            f"{nic.host or 'a node'}: {percent(nic.share)} of the posts to {nic.nic} take longer than"
            f" {spell_us(nic.threshold_ns / 1000)}, far more than to the other NICs",
            observed=f"{nic.slow} of {nic.posts} posts, 99 % within {spell_us(nic.p99_ns / 1000)}",
            evidence=[nic],
        )

    def _differing(self, job: Job, name: str, values: Mapping[str, Diagnosis]) -> Finding:
        """A setting that ranks have in several values, with NCCL's line of each."""
        must = name in MUST_AGREE
        diagnosis = min(values.values(), key=lambda line: len(line.ranks))
        ranks, _ = _world(job, [diagnosis])
        return self.finding(
            self.where(hosts_with(job, ranks), ranks=ranks),
            "settings differ",
            f"{name} differs between ranks: "
            + ", ".join(f"{value} on {rank_word(line.ranks)}" for value, line in list(values.items())[:4]),
            sure=must,
            observed=quoted(diagnosis.text),
            cost="the first collective fails or hangs" if must else "ranks may choose by different rules",
            evidence=values.values(),
        )


def _lines_of(kind: Phrase, failed: Sequence[Diagnosis]) -> list[Diagnosis]:
    return [line for line in failed if kind.words.search(f"{line.subject}: {line.text}") and not _fast(line)]


def _fast(line: Diagnosis) -> bool:
    """Whether a line tells a bandwidth that is far from the median because it is more."""
    match = _LINES["off_median"].search(line.text)
    return match is not None and float(match[1]) > float(match[2])


def _settings(job: Job, diagnosis: Sequence[Diagnosis]) -> Iterator[tuple[str, Mapping[str, Diagnosis]]]:
    """Settings of several values, without those that each process has of its own and those that JOB003 tells."""
    in_logs = job.settings()
    by_name: dict[str, dict[str, Diagnosis]] = {}
    for report in diagnosis:
        match = _LINES["setting"].search(report.text)
        if match is not None:
            by_name.setdefault(match[1], {}).setdefault(match[2], report)
    for name, values in sorted(by_name.items()):
        own = name in MEANT_TO_DIFFER or nccl_variables.is_foreign(name) or len(in_logs.get(name, ())) > 1
        each_its_own = len(values) > 2 and all(len(line.ranks) <= 1 for line in values.values())
        if not own and len(values) > 1 and not each_its_own:
            yield name, values


def _world(job: Job, lines: Sequence[Diagnosis]) -> tuple[list[int], str]:
    """World ranks that the lines list, and how a reader calls them: by their communicator where nothing ties it."""
    ranks: set[int] = set()
    for line in lines:
        if (comm := logged(job, line.comm)) is not None:
            ranks |= {world_of(comm, rank) for rank in line.ranks}
        elif line.size in (-1, job.world_size):
            ranks |= set(line.ranks)
    if worlds := sorted(ranks - {-1}):
        return worlds, rank_word(worlds)
    first = next((line for line in lines if line.ranks), None)
    return [], f"{rank_word(first.ranks)} of communicator {first.comm:#x}" if first is not None else ""
