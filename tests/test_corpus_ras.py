"""What NCCL's own RAS said of emulated jobs: the guilty rank is named, and nobody in a healthy one."""

import json
from pathlib import Path
from typing import Any

import pytest

import topodiag
from topodiag.model.errors import InputError
from topodiag.model.finding import Severity

RAS = Path(__file__).resolve().parents[2] / "shared" / "corpus" / "ras"
NAMES = sorted(path.parent.name for path in RAS.glob("*/truth.json"))
UNSEEN = {
    "split_incomplete-2.26.6": "RAS says RUNNING and OK of ranks that wait in ncclCommSplit, no line names it",
    "init_rank_missing-2.26.6": "RAS closes the connection before the first communicator",
    "init_rank_missing-2.29.7": "RAS knows nothing of a rank that never came",
}
"""Scenarios whose guilty rank neither RAS nor the log can name, and why."""
BY_LOG = {"split_incomplete-2.29.7": "RAS says RUNNING and OK of ranks that wait in ncclCommSplit"}
"""Scenarios whose guilty rank only the log names."""

pytestmark = pytest.mark.skipif(not NAMES, reason=f"the corpus is not at {RAS}")


def blamed(paths: list[Path]) -> tuple[set[int], set[str]]:
    """Ranks and hosts of findings that say who is at fault."""
    findings = [finding for finding in topodiag.diagnose(paths).findings if finding.severity is Severity.ERROR]
    named = [finding for finding in findings if finding.id == "JOB006"]
    return {rank for finding in named for rank in finding.where.ranks}, {
        host for finding in named for host in finding.where.nodes
    }


@pytest.mark.parametrize("name", NAMES)
def test_the_guilty_rank_is_named_by_answers_and_logs(name: str) -> None:
    truth: dict[str, Any] = json.loads((RAS / name / "truth.json").read_text())
    ranks, hosts = blamed([RAS / name])
    if name in UNSEEN:
        assert not ranks, "somebody innocent is blamed"
        return
    assert ranks == {each["rank"] for each in truth["guilty"]}
    assert hosts == {each["host"] for each in truth["guilty"]}


@pytest.mark.parametrize("name", [name for name in NAMES if name not in UNSEEN | BY_LOG])
def test_the_guilty_process_is_named_by_answers_alone(name: str) -> None:
    truth: dict[str, Any] = json.loads((RAS / name / "truth.json").read_text())
    ranks, hosts = blamed([RAS / name / "ras"])
    assert hosts == {truth["hosts"][each["host"]] for each in truth["guilty"]}
    assert ranks <= {each["rank"] for each in truth["guilty"]}, "text of split communicators names no world rank"


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith(("killed", "stopped"))])
def test_a_process_that_the_others_gave_up_is_named_by_the_logs_alone(name: str) -> None:
    truth: dict[str, Any] = json.loads((RAS / name / "truth.json").read_text())
    findings = [finding for finding in topodiag.logs([RAS / name / "logs"]).findings if finding.id == "JOB006"]
    assert [finding.where.ranks for finding in findings] == [tuple(each["rank"] for each in truth["guilty"])]


def test_an_init_that_waits_is_told_where_ras_can_say_it() -> None:
    findings = topodiag.diagnose([RAS / "init_rank_missing-2.29.7" / "ras"]).findings
    assert [(finding.id, finding.severity) for finding in findings] == [("JOB001", Severity.ERROR)]
    with pytest.raises(InputError, match="empty"):  # 2.26 closes the connection: no answer is no health
        topodiag.diagnose([RAS / "init_rank_missing-2.26.6" / "ras"])
