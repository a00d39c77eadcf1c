"""One pasted line gives the finding that is in it (JOB002 to JOB004), and two versions of one launch are one job."""

from __future__ import annotations

from topodiag.api import logs
from topodiag.model.finding import Finding, Severity

VERSIONS = "n0:1:1 [0] NCCL INFO NCCL version 2.28.9+cuda12.8\nn1:1:1 [0] NCCL INFO NCCL version 2.27.3+cuda12.8\n"
SETTINGS = (
    "n0:1:1 [0] NCCL INFO NCCL_ALGO set by environment to Ring\n"
    "n1:1:1 [0] NCCL INFO NCCL_ALGO set by environment to Tree\n"
)
STARTS = (
    "n0:1:9 [0] NCCL INFO ncclCommInitRankConfig comm 0x1 rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId 1000 commId 0xab"
    " - Init START\n"
    "n1:1:9 [0] NCCL INFO ncclCommInitRank comm 0x2 rank 1 nranks 2 cudaDev 0 busId 1000 commId 0xab - Init START\n"
)


def first(text: str) -> Finding:
    return logs(text.encode()).findings[0]


def test_the_version_lines_of_two_ranks_alone_give_the_finding_and_are_its_evidence() -> None:
    finding = first(VERSIONS + SETTINGS)
    assert (finding.id, finding.severity) == ("JOB002", Severity.ERROR)
    assert {origin.text for origin in finding.evidence} == {
        "NCCL version 2.28.9+cuda12.8",
        "NCCL version 2.27.3+cuda12.8",
    }


def test_two_versions_in_one_launch_are_one_job() -> None:
    answer = logs((VERSIONS + STARTS).encode())
    assert len(answer.jobs) == 1
    assert answer.findings[0].id == "JOB002"


def test_settings_of_two_ranks_alone_give_the_finding() -> None:
    finding = first(SETTINGS)
    assert (finding.id, finding.severity) == ("JOB003", Severity.ERROR)
    assert [origin.text for origin in finding.evidence] == [line.split("INFO ")[1] for line in SETTINGS.splitlines()]


def test_the_sentence_of_a_duplicate_gpu_alone_gives_the_finding() -> None:
    finding = first("Duplicate GPU detected : rank 1 and rank 0 both on CUDA device a4000\n")
    assert (finding.id, finding.where.ranks) == ("JOB004", (0, 1))


def test_the_mismatch_of_versions_that_nccl_reports_alone_gives_the_finding() -> None:
    text = (
        "n0:1:1 [0] init.cc:1 NCCL WARN Mismatched NCCL version detected : rank 0 version 22809 rank 1 version 22703\n"
    )
    assert first(text).id == "JOB002"
