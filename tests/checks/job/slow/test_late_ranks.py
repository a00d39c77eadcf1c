"""JOB008: a rank that comes late to its collectives, and when the check stays silent."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.checks import jobs
from topodiag.checks.job.slow.late_ranks import LateArriver
from topodiag.model.finding import Finding, Severity, Status
from topodiag.model.job import FlightRecord, Job

START, STEP = 1.7e9, 0.5
RANKS, CALLS = 8, 6


def job_with(late: Callable[[int, int], float], operation: str = "all_reduce") -> Job:
    """Eight ranks of one node and eight of another; `late(rank, seq)` is by how much a rank enqueues a call later."""
    records = []
    for rank in range(2 * RANKS):
        entries = tuple(("0", seq, operation, "completed") for seq in range(1, CALLS + 1))
        times = tuple(START + STEP * seq + 0.002 * (rank % 3) + late(rank, seq) for seq in range(1, CALLS + 1))
        members = {"0": tuple(range(2 * RANKS))}
        records.append(FlightRecord(rank, entries, members, {"0": "default_pg"}, jobs.origin(f"{rank}"), times))
    return replace(jobs.job(2), flight=tuple(records))


def found(job: Job) -> list[Finding]:
    return list(LateArriver().judge(job).findings)


def test_a_rank_that_came_late_once_is_named_with_the_operation() -> None:
    [finding] = found(job_with(lambda rank, seq: 12.4 if (rank, seq) == (5, 4) else 0.0))
    assert finding.message.startswith("rank 5 enters all_reduce number 4 of process group default_pg 12.4 s after")
    assert finding.where.ranks == (5,)
    assert finding.severity is Severity.WARNING


def test_a_rank_that_comes_after_the_others_of_its_host_each_time_is_named() -> None:
    [finding] = found(job_with(lambda rank, seq: 0.2 if rank == 3 else 0.0))
    assert finding.message.startswith("rank 3 enters each collective of process group default_pg 1")
    assert finding.cost.text.endswith("each time")


@pytest.mark.parametrize(
    "late",
    [
        lambda rank, seq: 0.0,
        lambda rank, seq: 90.0 if rank >= RANKS else 0.0,
        lambda rank, seq: 5.0 if rank % 2 and seq == 4 else 0.0,
        lambda rank, seq: 0.03 if rank == 3 else 0.0,
    ],
    ids=["noise", "another clock of a node", "half of the ranks", "less than a step varies by"],
)
def test_noise_clocks_and_lateness_of_many_are_silent(late: Callable[[int, int], float]) -> None:
    assert LateArriver().judge(job_with(late)).status is Status.CLEAN


def test_sends_and_receives_are_not_compared() -> None:
    outcome = LateArriver().judge(job_with(lambda rank, seq: 9.0 * (rank == 5 and seq == 4), "send 0->1"))
    assert outcome.status is Status.UNKNOWN


def test_dumps_without_times_and_jobs_without_dumps_are_unknown() -> None:
    timed = job_with(lambda rank, seq: 0.0)
    untimed = replace(timed, flight=tuple(replace(record, created_s=()) for record in timed.flight))
    assert LateArriver().judge(untimed).status is Status.UNKNOWN
    assert LateArriver().judge(jobs.job(2)).status is Status.UNKNOWN
