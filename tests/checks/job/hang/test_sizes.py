"""JOB006 by the amounts of data that torch's watchdogs name."""

import pytest

from tests.checks import jobs
from topodiag.checks.job.hang.check import RankBehind
from topodiag.evidence.nccl_log.rebuild.events import classify
from topodiag.model.finding import Confidence, Finding
from topodiag.model.job import Event

LINE = (
    "{group}Watchdog caught collective operation timeout: WorkNCCL(SeqNum={seq}, OpType={op}, NumelIn={into},"
    " NumelOut={out}, Timeout(ms)=600000) ran for 600086 milliseconds before timing out."
)


def waits(rank: int, op: str, into: int, out: int, *, seq: int = 610, guid: str = "") -> Event:
    group = f"[PG ID 1 PG GUID {guid} Rank {rank}] " if guid else f"[Rank {rank}] "
    text = LINE.format(group=group, seq=seq, op=op, into=into, out=out)
    kind, secondary, details = classify("APP", text)
    return jobs.event(kind, text, "", rank=rank, level="APP", secondary=secondary, details=dict(details))


def apart(events: list[Event]) -> list[Finding]:
    findings = RankBehind().judge(jobs.job(1, events=events)).findings
    return [finding for finding in findings if ", where" in finding.message]


@pytest.mark.parametrize(("guid", "sure"), [("7", Confidence.MEDIUM), ("", Confidence.LOW)])
def test_ranks_that_wait_at_one_number_in_other_operations_are_told(guid: str, sure: Confidence) -> None:
    [finding] = apart(
        [waits(0, "ALLREDUCE", 1, 1, guid=guid), waits(2, "ALLREDUCE", 1, 1, guid=guid),
         waits(1, "BROADCAST", 64, 64, guid=guid)]
    )  # fmt: skip
    assert finding.message == "rank 1 waits in BROADCAST number 610, where ranks 0, 2 wait in ALLREDUCE"
    assert finding.confidence is sure


@pytest.mark.parametrize("guid", ["7", ""])
def test_a_rank_that_waits_in_another_size_of_the_same_work_is_named(guid: str) -> None:
    waiting = [waits(rank, "_ALLGATHER_BASE", 1024 if rank == 2 else 8192, 1, guid=guid) for rank in range(4)]
    [finding] = apart(waiting)
    assert finding.where.ranks == (2,)
    assert finding.message == (
        "rank 2 waits in _ALLGATHER_BASE (1024 elements) number 610, where ranks 0-1, 3 wait in _ALLGATHER_BASE"
        " (8192 elements)"
    )


@pytest.mark.parametrize(
    "events",
    [
        [waits(rank, "ALLREDUCE", 1 + rank // 2, 1) for rank in range(4)],
        [waits(0, "ALLTOALL_BASE", 1, 9, guid="7"), waits(1, "ALLTOALL_BASE", 9, 1, guid="7")],
        [waits(0, "ALLREDUCE", 1, 1, guid="7"), waits(1, "BROADCAST", 64, 64, guid="8")],
        [waits(0, "ALLREDUCE", 1, 1), waits(1, "BROADCAST", 64, 64, seq=611)],
        [waits(0, "ALLREDUCE", 1, 1), waits(1, "SEND", 64, 64)],
        [waits(0, "ALLREDUCE", 1, 1), waits(1, "ALLREDUCE", 1, 1)],
    ],
)
def test_works_of_other_groups_or_numbers_and_sends_are_not_compared(events: list[Event]) -> None:
    assert not apart(events)


def test_a_rank_that_waits_at_a_lower_number_is_named_alone() -> None:
    outcome = RankBehind().judge(
        jobs.job(1, events=[waits(0, "ALLREDUCE", 1, 1), waits(1, "ALLREDUCE", 1, 1, seq=608)])
    )
    (finding,) = [finding for finding in outcome.findings if "until the watchdog" in finding.message]
    assert finding.where.ranks == (1,)
    assert "rank 1 of 8 waited in ALLREDUCE number 608, rank 0 in ALLREDUCE number 610 until" in finding.message
    assert "1 in others" in finding.observed
