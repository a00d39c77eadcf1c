"""JOB008, JOB011 and JOB012 by NCCL's Inspector: the late rank, the slow part and the slow hours, and silence."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from benchmarks.inspector import Fault, Shape, faults, findings, is_named, read
from topodiag.checks.job.slow.late_kernels import late_kernels
from topodiag.checks.job.slow.late_ranks import LateArriver
from topodiag.checks.job.slow.slow_hours import SlowHoursOfJob
from topodiag.checks.job.slow.slow_phase import SlowPartOfJob
from topodiag.model.connections import no_connections
from topodiag.model.finding import Confidence, Status
from topodiag.model.inspector import (
    CallsOfOneSize,
    HourOfCalls,
    Inspection,
    InspectorCommunicator,
    InspectorMember,
    LastArrivals,
)
from topodiag.model.job import Job

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


def siblings(slow: Sequence[int] = (), times: float = 2.0, count: int = 8) -> Job:
    """Communicators of rank n on each of four nodes; those in `slow` take `times` as long."""
    communicators = [
        comm(n, range(n, 8 * 4, 8), clean_us=1000 * (times if n in slow else 1 + 0.01 * (n % 3))) for n in range(count)
    ]
    return job(*communicators)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", ["healthy", "late rank", "slow NIC", "hour of congestion"])
def test_each_fault_of_a_simulated_job_is_named_and_a_healthy_one_is_silent(name: str, seed: int) -> None:
    fault = faults(SMALL, seed)[name]
    assert is_named(name, fault, findings(read(SMALL, fault, seed)), SMALL)


def test_who_is_late_only_because_a_peer_of_its_node_is_late_is_not_named() -> None:
    kernels = late_kernels(read(SMALL, Fault(late_rank=37, late_us=2500.0), 1))
    assert [[place.rank for place in late.who] for late in kernels] == [[37]]
    assert kernels[0].group == "tp_4"


def test_waiting_that_is_little_or_spread_is_silent() -> None:
    even = {rank: LastArrivals(25, 25 * 100.0) for rank in range(8)}
    one = {0: LastArrivals(200, 200 * 50.0)}
    for wait, last in ((20_000.0, even), (10_000.0, one)):
        judged = job(comm(1, range(8), nodes=1, wait_us=wait, last=last))
        assert LateArriver().judge(judged).status is Status.CLEAN


def test_a_host_whose_ranks_come_last_in_turn_is_named_as_one() -> None:
    last = {rank: LastArrivals(25, 25 * 400.0) for rank in range(8, 16)}
    judged = job(comm(1, range(32), wait_us=200 * 400.0, last=last, nodes=4))
    (finding,) = LateArriver().judge(judged).findings
    assert finding.message.startswith("the ranks of n1 come last to the collectives of c1: the others wait 40 %")
    assert finding.where.ranks == tuple(range(8, 16))


def test_few_calls_and_two_ranks_are_unknown() -> None:
    assert LateArriver().judge(job(comm(1, range(8), calls=99))).status is Status.UNKNOWN
    assert LateArriver().judge(job(comm(1, range(2)))).status is Status.UNKNOWN


def test_one_slow_communicator_names_the_ranks_that_may_be_to_blame() -> None:
    (finding,) = SlowPartOfJob().judge(siblings(slow=[3])).findings
    assert (
        finding.message
        == "c3 takes 2.0 times as long as 7 peers; the slow place is at one of 4 ranks on n0, n1, n2 and 1 more node"
    )
    assert finding.confidence is Confidence.LOW
    assert finding.cost.gbs_lost == pytest.approx(33.1, abs=0.5)


def test_communicators_that_are_slow_beside_many_are_no_fault_of_a_part() -> None:
    assert SlowPartOfJob().judge(siblings(slow=[0, 1, 2, 3])).status is Status.CLEAN
    assert SlowPartOfJob().judge(siblings(slow=[3], times=1.2)).status is Status.CLEAN
    assert SlowPartOfJob().judge(siblings(slow=[1], count=3)).status is Status.UNKNOWN


def test_a_slow_communicator_inside_a_node_is_no_matter_of_its_network() -> None:
    communicators = [comm(n, range(8 * n, 8 * n + 8), clean_us=2500 if n == 2 else 1000, nodes=1) for n in range(6)]
    (finding,) = SlowPartOfJob().judge(job(*communicators)).findings
    assert finding.message.startswith("n2 slows 1 communicator: c2 takes 2.5 times as long as 5 peers")
    assert "NVLink" in finding.fix[0]


def test_hours_that_are_slow_in_most_communicators_are_told_once_with_their_begin_and_end() -> None:
    hours = [1000.0] * 10
    hours[4] = hours[5] = 1700.0
    (finding,) = SlowHoursOfJob().judge(job(*(comm(n, range(8), by_hour=hours) for n in range(4)))).findings
    assert finding.message.startswith(
        "from 1970-01-05 08:00 to 1970-01-05 10:00 UTC communication between nodes took 1.7"
    )


def test_slow_hours_of_a_few_communicators_and_of_most_of_the_time_are_silent() -> None:
    calm, slow, often = [1000.0] * 10, [1000.0] * 9 + [1700.0], [1000.0] * 5 + [1700.0] * 5
    few = [comm(n, range(8), by_hour=slow if n == 0 else calm) for n in range(4)]
    assert SlowHoursOfJob().judge(job(*few)).status is Status.CLEAN
    assert SlowHoursOfJob().judge(job(*(comm(n, range(8), by_hour=often) for n in range(4)))).status is Status.CLEAN
    assert SlowHoursOfJob().judge(job(comm(1, range(8), by_hour=calm[:3]))).status is Status.UNKNOWN


def test_hours_that_are_slow_inside_the_nodes_as_well_are_no_congestion() -> None:
    hours = [1000.0] * 9 + [1700.0]
    outside = [comm(n, range(8), by_hour=hours) for n in range(4)]
    inside = [comm(9, range(8), nodes=1, by_hour=hours)]
    (finding,) = SlowHoursOfJob().judge(job(*outside, *inside)).findings
    assert "all communication" in finding.message
    assert "clocks" in finding.fix[0]


def test_a_job_without_records_is_not_judged_by_them() -> None:
    bare = replace(job(), inspection=None)
    assert SlowPartOfJob().judge(bare).status is Status.NOT_APPLICABLE
    assert SlowHoursOfJob().judge(bare).status is Status.NOT_APPLICABLE
