"""HST006 by a job's output: storage that takes no more."""

from __future__ import annotations

from pathlib import Path

import pytest

import topodiag
from tests.checks import jobs
from tests.tables import examples
from topodiag.checks.host.job import LimitInLog, StorageInLog
from topodiag.evidence.nccl_log.rebuild.events import classify
from topodiag.model.finding import Finding, Severity
from topodiag.model.job import Event, Job

FULL = "OSError: [Errno 28] No space left on device: '/scratch/ckpt/step_4000/rank2.pt'"


def told(text: str, rank: int = -1) -> Event:
    kind, secondary, details = classify("APP", text)
    return jobs.event(kind, text, "", level="APP", secondary=secondary, details=dict(details), rank=rank)


def job(*texts: str) -> Job:
    return jobs.job(2, events=[told(text, 2) for text in texts])


def found(*texts: str) -> list[Finding]:
    return list(StorageInLog().judge(job(*texts)).findings)


@examples("text", "words")
def test_what_the_storage_refuses_is_named(text: str, words: str) -> None:
    [finding] = found(text)
    assert words in finding.message
    assert finding.severity is Severity.ERROR


@examples("text")
def test_shared_memory_is_a_limit_and_no_storage(text: str) -> None:
    assert found(text) == []
    assert len(LimitInLog().judge(job(text)).findings) == 1


@pytest.mark.parametrize("text", ["FileNotFoundError: [Errno 2] No such file or directory: 'a'", "saved to /scratch"])
def test_other_errors_of_files_are_none_of_it(text: str) -> None:
    assert found(text) == []


def test_the_full_disk_of_one_rank_is_the_cause_and_its_end_and_the_timeouts_follow() -> None:
    wait = (
        "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=18213, OpType=ALLREDUCE, NumelIn=1, NumelOut=1,"
        " Timeout(ms)=600000) ran for 600021 milliseconds before timing out."
    )
    lines = [
        "2: [rank2]: Traceback (most recent call last):",
        "2: [rank2]: RuntimeError: [enforce fail at inline_container.cc:603] . PytorchStreamWriter failed writing file",
        f"2: [rank2]: {FULL}",
        *(f"{rank}: [rank{rank}]:[E ProcessGroupNCCL.cpp:616] [Rank {rank}] {wait}" for rank in (0, 1, 3)),
    ]
    verdict = topodiag.diagnose("\n".join(lines).encode()).result.verdict
    assert verdict is not None
    assert [cause.finding.id for cause in verdict.causes] == ["HST006"]
    assert {consequence.finding.id for consequence in verdict.causes[0].consequences} >= {"JOB005", "JOB009"}


REFUSED = "mkdir: cannot create directory '/app': Read-only file system"
SERVED = 'INFO:     10.0.0.1:1234 - "POST /v1/completions HTTP/1.1" 200 OK'
RANK = "[rank0]: ValueError: shapes do not match"


NO_DRIVER = (
    "CUDA error #35 (cudaErrorInsufficientDriver): CUDA driver version is insufficient for CUDA runtime version."
)
DONE = "Finished mdrun on rank 0 Mon Jun 28 09:42:20 2021"


@pytest.mark.parametrize(
    ("check", "lines", "severity"),
    [
        ("HST006", [REFUSED, *[SERVED] * 3, RANK], Severity.INFO),
        ("HST006", [*[SERVED] * 3, REFUSED, RANK], Severity.ERROR),
        ("HST006", [REFUSED, SERVED, RANK], Severity.ERROR),
        ("HST006", [REFUSED, DONE, RANK], Severity.INFO),
        ("HST006", [DONE, REFUSED, RANK], Severity.ERROR),
        ("HST004", [NO_DRIVER, *[SERVED] * 3, RANK], Severity.INFO),
        ("HST004", [NO_DRIVER, DONE, RANK], Severity.INFO),
        ("HST004", [NO_DRIVER, SERVED, RANK], Severity.ERROR),
    ],
    ids=[
        "the work begins below",
        "the work stands above",
        "one line that a buffer held",
        "the work is done below",
        "the work was done above",
        "no driver, and the CPUs work",
        "no driver, and the CPUs did the work",
        "no driver, and one line that a buffer held",
    ],
)
def test_what_a_host_refused_before_the_work_began_is_a_remark(
    check: str, lines: list[str], severity: Severity, tmp_path: Path
) -> None:
    (tmp_path / "job.out").write_text("\n".join([*lines, ""]), encoding="utf-8")
    result = topodiag.diagnose(str(tmp_path / "job.out")).result
    [finding] = [finding for finding in result.findings if finding.id == check]
    assert finding.severity is severity
    assert result.verdict is not None
    causes = [cause.finding.id for cause in result.verdict.causes]
    assert (check in causes) is (severity is not Severity.INFO)
    assert causes[0] == "JOB009" or severity is not Severity.INFO
