"""JOB008: a rank that comes late to its collectives, and when the check stays silent."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from benchmarks.inspector import Fault, Shape, faults, findings, is_named, read
from tests.checks import jobs
from tests.checks.wanted import Wanted, expect, shown
from tests.tables import examples
from topodiag.checks.job.slow.late_kernels import late_kernels
from topodiag.checks.job.slow.late_ranks import LateArriver
from topodiag.checks.job.slow.slow_hours import SlowHoursOfJob
from topodiag.checks.job.slow.slow_phase import SlowPartOfJob
from topodiag.model.connections import no_connections
from topodiag.model.finding import Finding, Severity, Status
from topodiag.model.inspector import (
    CallsOfOneSize,
    HourOfCalls,
    Inspection,
    InspectorCommunicator,
    InspectorMember,
    LastArrivals,
)
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
    outcome = found(job_with(lambda rank, seq: 0.2 if rank == 3 else 0.0))
    expect(outcome, message="rank 3 enters each collective of process group default_pg 1*", cost="*each time")


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


# --- JOB008, JOB011 and JOB012 by NCCL's Inspector: the late rank, the slow part and the slow hours, and silence

SMALL = Shape(width=4, hours=8, steps_an_hour=14)


def job(*communicators: InspectorCommunicator) -> Job:
    return Job("Inspector", 8, (), (), (), no_connections(), (), inspection=Inspection(communicators))


def comm(
    number: int, ranks: Sequence[int], *, clean_us: float = 1000.0, nodes: int = 2, **other: object
) -> InspectorCommunicator:
    """A communicator of these world ranks, eight of which are on a node. `by_hour` gives medians from hour 100 on."""
    members = {at: InspectorMember(at, f"n{rank // 8}", 4000 + rank) for at, rank in enumerate(ranks)}
    by_hour = other.pop("by_hour", ())
    assert isinstance(by_hour, Sequence)
    hours = tuple(HourOfCalls(100 + at, 20, us) for at, us in enumerate(by_hour))
    size = CallsOfOneSize("AllReduce", 1 << 26, 200, clean_us, 67e3 / clean_us, 1, hours)
    communicator = InspectorCommunicator(number, f"c{number}", len(ranks), nodes, members, (size,), 200, 200 * clean_us)
    return replace(communicator, **other)  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", ["healthy", "late rank", "slow NIC", "hour of congestion"])
def test_each_fault_of_a_simulated_job_is_named_and_a_healthy_one_is_silent(name: str, seed: int) -> None:
    fault = faults(SMALL, seed)[name]
    assert is_named(name, fault, findings(read(SMALL, fault, seed)), SMALL)


def test_who_is_late_only_because_a_peer_of_its_node_is_late_is_not_named() -> None:
    kernels = late_kernels(read(SMALL, Fault(late_rank=37, late_us=2500.0), 1))
    assert [[place.rank for place in late.who] for late in kernels] == [[37]]
    assert kernels[0].group == "tp_4"


CHECKS = {check.__name__: check for check in (LateArriver, SlowPartOfJob, SlowHoursOfJob)}


def comms(number: int = 1, count: int = 1, ranks: Sequence[int] = (0, 8), **told: Any) -> list[InspectorCommunicator]:
    """So many communicators of a row, numbered on, of the same world ranks: the first and the one behind the last,
    perhaps each so manieth; `last` has the times that a rank came last, and how long the others waited."""
    last = {int(rank): LastArrivals(*arrivals) for rank, arrivals in told.pop("last", {}).items()}
    return [comm(number + at, range(*ranks), **told, **({"last": last} if last else {})) for at in range(count)]


@examples("check", "communicators", "wanted")
def test_what_records_say_of_communicators(check: str, communicators: list[dict[str, Any]], wanted: Wanted) -> None:
    made = [each for told in communicators for each in comms(**told)]
    assert shown(CHECKS[check]().judge(job(*made)), wanted) == wanted


def test_a_job_without_records_is_not_judged_by_them() -> None:
    bare = replace(job(), inspection=None)
    assert SlowPartOfJob().judge(bare).status is Status.NOT_APPLICABLE
    assert SlowHoursOfJob().judge(bare).status is Status.NOT_APPLICABLE
