"""Which NICs take long for a job's transfers, by the summaries that NCCL prints with NCCL_IB_WQE_LATENCY_REPORT."""

from __future__ import annotations

from topodiag.checks.job.evidence import said_by
from topodiag.lazy import dataclass, regex
from topodiag.model.job import Job
from topodiag.model.provenance import Origin

SLOW_SHARE = 0.05
"""Part of a NIC's posts above NCCL's threshold (`thr`) from which the NIC is slow."""
OTHERS = 5
"""How many times larger that part is than that of the other NICs together: all slow alike is no fault of a NIC."""
LEAST_POSTS = 1000
"""Fewer are the first posts of a connection."""

_SUMMARY = regex(
    r"WQE latency summary \[.{0,120}?\bdev=(\S{1,60}) .{0,60}\]: n=(\d{1,15}) slow=(\d{1,15}) thr=(\d{1,15})ns"
    r".{0,160} p99=(\d{1,15})"
)


@dataclass(slots=True)
class NicPosts:
    """The posts of one NIC: how many, those above the threshold, the worst p99 of a queue pair, and the lines."""

    host: str
    nic: str
    posts: int = 0
    slow: int = 0
    threshold_ns: int = 0
    p99_ns: int = 0
    origin: Origin | None = None

    @property
    def share(self) -> float:
        return self.slow / self.posts if self.posts else 0.0


def slow_nics(job: Job) -> tuple[NicPosts, ...]:
    """NICs whose posts take far longer than those of the others, the slowest first; none where most are slow."""
    seen: dict[tuple[str, str], NicPosts] = {}
    for number, text, where in said_by(job, "wqe latency"):
        found = _SUMMARY.search(text)
        if found is None or number < 0:
            continue
        host = job.processes[number].host
        nic = seen.setdefault((host, found[1]), NicPosts(host, found[1]))
        nic.posts += int(found[2])
        nic.slow += int(found[3])
        nic.threshold_ns = int(found[4])
        if nic.origin is None or int(found[5]) > nic.p99_ns:
            nic.p99_ns, nic.origin = int(found[5]), where
    slow = [nic for nic in seen.values() if nic.posts >= LEAST_POSTS and nic.share >= SLOW_SHARE]
    rest = [nic for nic in seen.values() if nic not in slow]
    others = sum(nic.slow for nic in rest) / max(1, sum(nic.posts for nic in rest))
    if len(slow) > len(rest):
        return ()
    return tuple(sorted((nic for nic in slow if nic.share >= OTHERS * others), key=lambda nic: -nic.share))
