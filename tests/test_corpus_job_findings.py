"""The corpus' jobs, whose logs NCCL wrote for known machines: faults are found, the healthy are left alone."""

import json
from pathlib import Path

import pytest

from tests.scanned import logs_at
from topodiag.model.finding import Severity
from topodiag.model.result import Result

JOBS = Path(__file__).resolve().parents[2] / "shared" / "corpus" / "jobs"
NAMES = sorted(path.parent.name for path in JOBS.glob("*/truth.json"))

if not NAMES:
    pytest.skip(f"the corpus is not at {JOBS}: nothing was compared", allow_module_level=True)


def diagnosed(name: str) -> Result:
    return logs_at(str(JOBS / name / "logs"))


def expected(name: str) -> list[list[str]] | None:
    wanted: list[list[str]] | None = json.loads((JOBS / name / "truth.json").read_text())["expected_findings"]
    return wanted


@pytest.mark.parametrize("name", [name for name in NAMES if expected(name)])
def test_one_id_of_each_alternative_is_found(name: str) -> None:
    texts = {finding.id for finding in diagnosed(name).findings}
    missed = [ids for ids in expected(name) or [] if not texts & set(ids)]
    assert missed == []


@pytest.mark.parametrize("name", [name for name in NAMES if expected(name) == []])
def test_a_healthy_job_gives_no_error(name: str) -> None:
    wrong = [(f.id, f.message) for f in diagnosed(name).findings if f.severity is Severity.ERROR]
    assert wrong == []


@pytest.mark.parametrize("name", NAMES)
def test_no_check_fails(name: str) -> None:
    failed = [(o.check, o.why) for o in diagnosed(name).outcomes if o.why.startswith("the check failed")]
    assert failed == []
