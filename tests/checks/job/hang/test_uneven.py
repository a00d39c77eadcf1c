"""JOB010: ranks per node differ where NCCL needs them equal."""

from dataclasses import replace

import numpy as np
import pytest

from tests.checks import jobs
from topodiag.checks.job.hang.check import RanksUneven
from topodiag.model.finding import Severity, Status
from topodiag.model.job import Job

CREATING = "NVLS Creating Multicast group nranks 7 size 2097152 on rank 0"


def stuck(counts: dict[str, int], *, said: str = CREATING, done: bool = False) -> Job:
    """A job of two nodes of which NCCL counted these ranks; its first process is setting up NVLink SHARP."""
    job = jobs.job(2)
    world = job.communicators[0]
    size = sum(counts.values())
    ranks = np.full(size, -1, np.int64)
    ranks[:2] = [0, 1]
    world = replace(world, nranks=size, ranks=ranks, local_ranks=counts, started=np.ones(size, bool),
                    completed=np.full(size, done))  # fmt: skip
    first = replace(job.processes[0], messages=(jobs.message("nvls", said),) if said else ())
    return replace(job, communicators=(world,), processes=(first, *job.processes[1:]), world_size=size)


def test_seven_and_eight_ranks_that_hang_in_the_setup_of_nvlink_sharp_are_found() -> None:
    [finding] = RanksUneven().judge(stuck({"n0": 7, "n1": 8})).findings
    assert finding.message.startswith("ranks per node differ (7 on n0, 8 on n1), and init does not end")
    assert finding.severity is Severity.ERROR
    assert finding.settings == (("NCCL_NVLS_ENABLE", "0"),)


@pytest.mark.parametrize(
    ("job", "why"),
    [
        (stuck({"n0": 8, "n1": 8}), "8 ranks on each node"),
        (stuck({"n0": 7, "n1": 8}, done=True), "ranks per node differ, and init completed"),
        (stuck({"n0": 7, "n1": 8}, said=""), "ranks per node differ, and nothing shows NVLink SHARP"),
    ],
    ids=["equal", "completed", "without NVLink SHARP"],
)
def test_uneven_nodes_that_work_or_have_no_multicast_are_silent(job: Job, why: str) -> None:
    outcome = RanksUneven().judge(job)
    assert (outcome.status, outcome.why) == (Status.CLEAN, why)


def test_nvlink_sharp_that_is_switched_off_is_not_what_hangs() -> None:
    job = stuck({"n0": 7, "n1": 8})
    off = replace(job.processes[0], settings={"NCCL_NVLS_ENABLE": jobs.given("NCCL_NVLS_ENABLE", "0")})
    assert RanksUneven().judge(replace(job, processes=(off, *job.processes[1:]))).status is Status.CLEAN


def test_without_counts_of_two_nodes_it_does_not_apply() -> None:
    assert RanksUneven().judge(stuck({"n0": 8})).status is Status.NOT_APPLICABLE
