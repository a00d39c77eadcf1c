"""Every made-up job of fixtures/jobs replays: the ranks, the communicators, and exactly the expected findings."""

import json
from functools import cache
from pathlib import Path

import pytest

from topodiag.app.case.jobs import LogOptions
from topodiag.app.logs import logs as diagnose_logs
from topodiag.model.finding import Severity
from topodiag.model.result import Result

JOBS = Path(__file__).resolve().parents[1] / "fixtures" / "jobs"
NAMES = sorted(path.name for path in JOBS.iterdir() if path.is_dir())


@cache
def diagnosed(name: str) -> Result:
    return diagnose_logs([str(JOBS / name / "logs")], options=LogOptions(workers=1))


def expected(name: str) -> dict[str, list[dict[str, object]]]:
    loaded: dict[str, list[dict[str, object]]] = json.loads((JOBS / name / "expected.json").read_text())
    return loaded


def test_the_required_jobs_are_there() -> None:
    assert len(NAMES) >= 8


@pytest.mark.parametrize("name", NAMES)
def test_the_warnings_and_errors_are_exactly_the_expected_ones(name: str) -> None:
    pairs = {
        (finding.id, str(finding.severity))
        for finding in diagnosed(name).findings
        if finding.severity >= Severity.WARNING
    }
    assert pairs == {(finding["id"], finding["severity"]) for finding in expected(name)["findings"]}


@pytest.mark.parametrize("name", NAMES)
def test_every_rank_is_on_its_host_and_gpu(name: str) -> None:
    (job,) = diagnosed(name).jobs
    assert job.world_size == expected(name)["world_size"]
    records = [{"rank": r.rank, "host": r.host, "gpu": r.nvml_dev, "bus_id": r.bus_id} for r in job.ranks]
    assert records == expected(name)["ranks"]


@pytest.mark.parametrize("name", NAMES)
def test_communicators_have_their_members(name: str) -> None:
    (job,) = diagnosed(name).jobs
    pairs = sorted((comm.color, comm.ranks.tolist()) for comm in job.communicators)
    stuck = name == "init-hang"
    wanted = sorted((comm["color"], comm["ranks"]) for comm in expected(name)["communicators"])
    if stuck:
        wanted = [(color, [rank if rank != 13 else -1 for rank in ranks]) for color, ranks in wanted]
    assert pairs == wanted


def test_a_finding_names_file_and_line() -> None:
    (finding,) = [finding for finding in diagnosed("port-error-cascade").findings if finding.id == "JOB005"]
    origin = finding.evidence[0]
    assert "port error" in Path(origin.source).read_text().splitlines()[origin.line - 1]
    assert 11 in finding.where.ranks
