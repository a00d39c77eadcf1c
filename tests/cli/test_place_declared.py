"""`topodiag place` with a launcher's file and the job's log together: the layout that ran, and where it differs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from topodiag.cli import cli
from topodiag.cli.errors import run

JOBS = Path(__file__).parents[2] / "fixtures" / "jobs"
HEALTHY, SPLIT = str(JOBS / "healthy"), str(JOBS / "split-tensor-groups")


@pytest.fixture
def hosts(tmp_path: Path) -> Any:
    def write(*lines: str) -> str:
        path = tmp_path / "hosts"
        path.write_text("".join(f"{line}\n" for line in lines))
        return str(path)

    return write


def audit(capsys: pytest.CaptureFixture[str], *args: str) -> tuple[int, list[dict[str, Any]]]:
    code = run(cli, ["place", "audit", *args, "--format", "json"])
    out, err = capsys.readouterr()
    assert not err
    violations = json.loads(out)["violations"]
    return code, [each for each in violations if each["id"] == "PLC006" and "declare" in each["message"]]


def test_a_job_that_ran_as_declared_has_no_finding(capsys: pytest.CaptureFixture[str], hosts: Any) -> None:
    declared = hosts("gpu-a01 slots=8", "gpu-a02 slots=8")
    assert audit(capsys, "--hostfile", declared, "--log", HEALTHY) == (0, [])


def test_ranks_that_ran_elsewhere_are_named_by_rank_and_host(capsys: pytest.CaptureFixture[str], hosts: Any) -> None:
    declared = hosts("gpu-a01:8", "gpu-a02:8")
    code, [found] = audit(capsys, "--hostfile", declared, "--log", SPLIT)
    assert code == 1
    assert found["message"] == f"8 of 16 ranks ran on another host than {declared} declares"
    assert found["observed"] == (
        "ranks 1, 3, 5, 7 on gpu-a02, declared on gpu-a01; ranks 8, 10, 12, 14 on gpu-a01, declared on gpu-a02"
    )
    assert found["where"]["ranks"] == [1, 3, 5, 7, 8, 10, 12, 14]
    assert found["cost"]["share"] > 0.4, "the layout declared is the better one"


def test_a_difference_that_costs_nothing_is_a_remark(capsys: pytest.CaptureFixture[str], hosts: Any) -> None:
    code, [found] = audit(capsys, "--hostfile", hosts("gpu-a02:8", "gpu-a01:8"), "--log", HEALTHY)
    assert (code, found["severity"]) == (0, "info")
    assert "no shorter" in found["cost"]["text"]


def test_a_host_that_was_not_declared_is_a_warning(capsys: pytest.CaptureFixture[str], hosts: Any) -> None:
    code, [found] = audit(capsys, "--hostfile", hosts("gpu-a01:8", "gpu-b09:8"), "--log", HEALTHY)
    assert (code, found["severity"]) == (1, "warning")
    assert found["observed"] == "ranks 8-15 on gpu-a02, declared on gpu-b09"


def test_solve_starts_from_where_ranks_ran_and_says_so(capsys: pytest.CaptureFixture[str], hosts: Any) -> None:
    declared = hosts("gpu-a01:8", "gpu-a02:8")
    assert run(cli, ["place", "solve", "--hostfile", declared, "--log", SPLIT, "--width", "200"]) == 0
    assert "the layout given is where ranks ran: 8 of 16 ranks ran on another host" in capsys.readouterr().out
