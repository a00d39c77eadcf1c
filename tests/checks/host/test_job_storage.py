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


@pytest.mark.parametrize(
    ("lines", "severity"),
    [
        ([REFUSED, *[SERVED] * 3, RANK], Severity.INFO),
        ([*[SERVED] * 3, REFUSED, RANK], Severity.ERROR),
        ([REFUSED, SERVED, RANK], Severity.ERROR),
    ],
    ids=["the work begins below", "the work stands above", "one line that a buffer held"],
)
def test_what_the_storage_refused_before_the_work_began_is_a_remark(
    lines: list[str], severity: Severity, tmp_path: Path
) -> None:
    (tmp_path / "job.out").write_text("\n".join([*lines, ""]), encoding="utf-8")
    result = topodiag.diagnose(str(tmp_path / "job.out")).result
    [finding] = [finding for finding in result.findings if finding.id == "HST006"]
    assert finding.severity is severity
    assert result.verdict is not None
    assert ("JOB009" in {cause.finding.id for cause in result.verdict.causes}) is (severity is Severity.INFO)
