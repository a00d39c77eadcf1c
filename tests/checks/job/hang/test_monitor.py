"""JOB006 by NCCL 2.32's monitor of progress counters: a GPU that does not finish a copy while the job hangs."""

from __future__ import annotations

from tests.checks import jobs
from topodiag.checks.job.hang.check import RankBehind
from topodiag.evidence.nccl_log.rebuild.events import classify
from topodiag.model.finding import Confidence, Finding, Severity
from topodiag.model.job import Event

PENDING = (
    "NCCL progress counter monitor: counter DMA still pending after {seconds}s (cudaDev {dev}, 2 comms); "
    "progress-counter mirrors may be stale"
)
WAIT = (
    "[Rank 7] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=12, OpType=ALLREDUCE, NumelIn=1,"
    " NumelOut=1, Timeout(ms)=1200000) ran for 1200027 milliseconds before timing out."
)


def pending(rank: int, seconds: float = 6.0) -> Event:
    return told(PENDING.format(seconds=seconds, dev=rank % 8), rank, "WARN")


def told(text: str, rank: int = -1, level: str = "APP") -> Event:
    kind, secondary, details = classify(level, text)
    return jobs.event(kind, text, "n0", level=level, secondary=secondary, details=dict(details), rank=rank)


def found(*events: Event) -> list[Finding]:
    made = jobs.job(2, events=list(events), communicators=())
    return [each for each in RankBehind().judge(made).findings if "copy" in each.message]


def test_the_gpu_whose_copy_does_not_end_while_the_job_hangs_is_named() -> None:
    [finding] = found(told(WAIT, 7), pending(3), pending(3, 12.0))
    assert finding.message == "rank 3: the GPU does not finish a copy of a few bytes, while the job hangs"
    assert (finding.severity, finding.confidence) == (Severity.ERROR, Confidence.MEDIUM)
    assert "12 s or longer (cudaDev 3; 2 lines)" in (finding.observed or "")
    assert finding.where.ranks == (3,)


def test_a_job_that_runs_has_late_copies_too() -> None:
    assert found(pending(3)) == []


def test_all_gpus_whose_copies_wait_are_no_exception() -> None:
    assert found(told(WAIT, 7), *(pending(rank) for rank in range(8))) == []


def test_without_a_rank_the_device_of_the_host_is_named() -> None:
    [finding] = found(told(WAIT, 7), told(PENDING.format(seconds=6.0, dev=5), -1, "WARN"))
    assert finding.message.startswith("cudaDev 5 of n0: ")
