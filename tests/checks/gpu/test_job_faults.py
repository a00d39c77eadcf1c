"""GPU001, GPU002, GPU003, HST001 and JOB004 by the output of a job, whoever prints the line."""

from __future__ import annotations

import pytest

from tests.checks.excerpts import jobs_of
from tests.tables import examples
from topodiag.checks.gpu.job_faults import GpuLostInLog, GpuMemoryInLog, NvlinkErrorInLog
from topodiag.checks.host.job import LimitInLog
from topodiag.checks.job.end.errors import FirstError
from topodiag.checks.job.shared_gpu import SharedGpu
from topodiag.model.finding import Outcome, Status

CHECKS = {"GPU001": GpuLostInLog, "GPU002": GpuMemoryInLog, "GPU003": NvlinkErrorInLog, "HST001": LimitInLog}


def _judged(check: str, text: str) -> Outcome:
    (job,) = jobs_of(text)
    return CHECKS[check]().judge(job)


@examples("check", "line")
def test_one_line_of_any_program_is_the_finding(check: str, line: str) -> None:
    outcome = _judged(check, f"{line}\n")
    assert outcome.status is Status.FINDING
    assert outcome.findings[0].evidence[0].text.strip()[:40] in line


@examples("check", "line")
def test_other_words_are_no_such_fault(check: str, line: str) -> None:
    assert _judged(check, f"n1:7:8 [0] NCCL INFO Using network IB\n{line}\n").status is Status.NOT_APPLICABLE


FULL = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 290.00 MiB. GPU 0 has a total capacity of 93.00 GiB"
)
OTHER = "Process 118636 has {} memory in use."
OWN = "Including non-PyTorch memory, this process has 21.24 GiB memory in use."


@pytest.mark.parametrize("said", [f"{OTHER} {OWN}", f"{OWN} {OTHER}"])
def test_a_full_gpu_of_which_another_process_holds_a_large_part_is_job004(said: str) -> None:
    outcome = SharedGpu().judge(jobs_of(f"[rank3]: {FULL}. {said.format('71.62 GiB')}\n")[0])
    assert outcome.findings[0].message == "process 118636 holds 71.62 GiB of the GPU on which rank 3 ran out of memory"


@examples("said")
def test_a_full_gpu_is_no_shared_one_without_a_large_part_of_another_process(said: str) -> None:
    outcome = SharedGpu().judge(jobs_of(f"n1:7:8 [0] NCCL INFO Using network IB\n[rank3]: {FULL}. {said}\n")[0])
    assert outcome.status is not Status.FINDING


@examples("line")
def test_a_peer_that_cannot_be_reached_is_an_error_and_no_fault_of_the_gpu_that_says_so(line: str) -> None:
    (job,) = jobs_of(f"{line}\n")
    assert FirstError().judge(job).status is Status.FINDING
    assert NvlinkErrorInLog().judge(job).status is Status.NOT_APPLICABLE
