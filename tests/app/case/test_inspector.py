"""Records of NCCL's Inspector beside the jobs that they are of."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from tests.checks import jobs
from topodiag.app.case.inspector import ALONE, with_inspection
from topodiag.model.inspector import Inspection, InspectorCommunicator, InspectorMember
from topodiag.model.job import Job


def comm(number: int, *pids: int, host: str = "n0") -> InspectorCommunicator:
    members = {at: InspectorMember(at, host, pid) for at, pid in enumerate(pids)}
    return InspectorCommunicator(number, f"c{number}", len(pids), 1, members)


def logged(comm_id: int) -> Job:
    job = jobs.job(1)
    return replace(
        job, communicators=tuple(replace(communicator, comm_id=comm_id) for communicator in job.communicators)
    )


def hashes(job: Job) -> set[int]:
    return {communicator.hash for communicator in job.inspection.communicators} if job.inspection is not None else set()


def test_records_of_two_jobs_are_those_of_each() -> None:
    first, second = logged(0xA), logged(0xB)
    inspection = Inspection((comm(0xA, 1, 2), comm(0xB, 11, 12), comm(3, 2), comm(4, 12)))
    runs = with_inspection((first, second), inspection)
    assert [hashes(job) for job in runs] == [{0xA, 3}, {0xB, 4}]


def test_what_is_of_no_job_of_the_logs_is_a_job_of_its_own() -> None:
    runs = with_inspection((logged(0xA),), Inspection((comm(0xA, 1, 2), comm(7, 31, 32))))
    assert [(job.name, hashes(job)) for job in runs][1] == (ALONE, {7})
    assert hashes(runs[0]) == {0xA}


def test_records_without_a_log_are_jobs_apart_where_their_groups_share_no_process() -> None:
    runs = with_inspection((), Inspection((comm(1, 1, 2), comm(2, 3, 4), comm(3, 2, 5))))
    assert [(job.name, hashes(job)) for job in runs] == [(ALONE, {1, 3}), (f"{ALONE} 2", {2})]


@given(st.lists(st.lists(st.integers(0, 30), min_size=1, max_size=4, unique=True), max_size=12))
def test_the_order_of_communicators_splits_no_job(groups: list[list[int]]) -> None:
    communicators = [comm(0xA + 100 * at, *pids) for at, pids in enumerate(groups)]
    shuffled = sorted(communicators, key=lambda communicator: (communicator.hash * 7919) % 31)
    one = with_inspection((logged(0xA),), Inspection(tuple(communicators)))
    other = with_inspection((logged(0xA),), Inspection(tuple(shuffled)))
    assert [hashes(job) for job in one] == [hashes(job) for job in other]
