"""NVL005 by logs: the fabric as NVML told NCCL."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.checks import jobs
from topodiag.checks.nvlink.job import FabricInLog
from topodiag.model.finding import Finding, Severity, Status
from topodiag.model.job import Job, Process

LINE = "MNNVL busId 0x801000 fabric UUID 3143b15bc2cd192b.28cc9b5473fb5b93 cliqueId 0x7ffe state {} healthMask {}"
IMEX = (
    "MNNVL (cliqueSize 8) is available but not working on this system. Check the IMEX configuration (nvidia-imex-ctl"
    " -N). Set NCCL_MNNVL_ENABLE=0 to ignore this issue."
)


def said(state: int, mask: str) -> Job:
    return jobs.job(1, 1, messages=[jobs.message("mnnvl", LINE.format(state, mask))])


def only(job: Job) -> Finding:
    (finding,) = FabricInLog().judge(job).findings
    return finding


@pytest.mark.parametrize("mask", ["0xaa", "0x0", "0x2"])
def test_fields_that_are_false_or_not_supported_are_healthy(mask: str) -> None:
    assert FabricInLog().judge(said(3, mask)).status is Status.CLEAN


@pytest.mark.parametrize(
    ("mask", "words", "severity"),
    [
        ("0xa9", "bandwidth is degraded", Severity.WARNING),
        ("0x9a", "unhealthy", Severity.WARNING),
        ("0xa6", "recovery", Severity.INFO),
    ],
)
def test_fields_that_are_true_are_told(mask: str, words: str, severity: Severity) -> None:
    finding = only(said(3, mask))
    assert words in finding.message
    assert finding.severity is severity
    assert finding.where.nodes == ("n0",)


def test_a_registration_that_is_not_complete_is_told() -> None:
    assert "in progress" in only(said(2, "0x0")).message
    assert FabricInLog().judge(said(0, "0x0")).status is Status.CLEAN


def test_nvlink_between_trays_that_does_not_work_is_an_error() -> None:
    finding = only(jobs.job(events=[jobs.event("cuda", IMEX)]))
    assert finding.severity is Severity.ERROR
    assert "IMEX" in finding.message


def test_a_log_without_a_fabric_is_not_judged() -> None:
    assert FabricInLog().judge(jobs.job()).status is Status.NOT_APPLICABLE


def trays(*uuids: str) -> Job:
    """A job of one tray for each fabric UUID, "" for a tray that NVML knows of none."""
    kinds = ("version", "bootstrap", "hcas")
    processes = [
        Process(
            f"n{at}",
            100 + at,
            messages=(
                *(jobs.message(kind, "x") for kind in kinds),
                *(
                    [jobs.message("mnnvl", f"MNNVL busId 0x1 fabric UUID {uuid} cliqueId 0x2 state 3 healthMask 0x0")]
                    if uuid
                    else []
                ),
            ),
        )
        for at, uuid in enumerate(uuids)
    ]
    return replace(jobs.job(len(uuids), 1), processes=tuple(processes))


def test_a_tray_without_a_fabric_uuid_beside_trays_that_have_one_is_named() -> None:
    finding = only(trays("3731.342d", "", "3731.342d"))
    assert finding.message == "n1 is in no NVLink domain, unlike n0, n2"
    assert finding.severity is Severity.WARNING


def test_trays_that_all_say_nothing_are_of_no_fabric() -> None:
    assert FabricInLog().judge(trays("", "")).status is Status.NOT_APPLICABLE
    assert FabricInLog().judge(trays("3731.342d", "3731.342d")).status is Status.CLEAN
