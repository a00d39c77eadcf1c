"""JOB006 by the load of the GPUs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.checks import jobs
from topodiag.checks.job.hang.check import RankBehind
from topodiag.model.devices import Gpu
from topodiag.model.finding import Confidence, Severity
from topodiag.model.job import Job
from topodiag.model.node import Node
from topodiag.model.provenance import Fact

WATCHDOG = jobs.event("watchdog", "Watchdog caught collective operation timeout", rank=0, level="APP")
WAITS = {"utilization": 100, "memory_utilization": 0, "power_w": 131.0, "power_limit_w": 700.0}
IDLE = {"utilization": 0, "memory_utilization": 0, "power_w": 72.0, "power_limit_w": 700.0}
COMPUTES = {"utilization": 100, "memory_utilization": 38, "power_w": 610.0, "power_limit_w": 700.0}
HELD = {"memory_used_mib": 71234}


def gpu(index: int, load: dict[str, float]) -> Gpu:
    facts = {name: Fact(value, jobs.origin(f"{name} {value}")) for name, value in load.items()}
    return Gpu(index, jobs.bus_id(index), **facts)  # type: ignore[arg-type]


def job(loads: Sequence[dict[str, float]], *, hung: bool = True, ranks: bool = True) -> Job:
    """Two nodes of eight GPUs with these loads."""
    machines = {
        f"n{host}": Node(host=f"n{host}", gpus=tuple(gpu(at, loads[8 * host + at]) for at in range(8)))
        for host in range(2)
    }
    made = replace(jobs.job(events=[WATCHDOG] if hung else []), machines=machines)
    return made if ranks else replace(made, ranks=(), communicators=(), world_size=-1)


def one(load: dict[str, float], others: dict[str, float], at: int = 13) -> list[dict[str, float]]:
    return [load if number == at else others for number in range(16)]


def test_the_rank_whose_gpu_runs_nothing_is_behind_those_that_wait() -> None:
    (finding,) = RankBehind().judge(job(one(IDLE, WAITS))).findings
    assert finding.severity is Severity.ERROR
    assert finding.confidence is Confidence.MEDIUM
    assert finding.where.ranks == (13,)
    assert finding.where.nodes == ("n1",)
    assert (
        finding.observed
        == "load 0 %, memory 0 %, 72 W of 700 W on GPU5 of n1; load 100 %, memory 0 %, 131 W of 700 W on GPU0 of n0"
    )
    assert "py-spy dump --pid " in finding.fix[1]


def test_a_rank_that_still_computes_is_behind_only_in_a_hang() -> None:
    (finding,) = RankBehind().judge(job(one(COMPUTES, WAITS))).findings
    assert finding.confidence is Confidence.LOW
    assert not RankBehind().judge(job(one(COMPUTES, WAITS), hung=False)).findings


def test_without_a_log_gpus_that_a_process_holds_are_those_of_the_job() -> None:
    (finding,) = RankBehind().judge(job(one(IDLE | HELD, WAITS | HELD), hung=False, ranks=False)).findings
    assert finding.severity is Severity.WARNING
    assert finding.message == "GPU5 of n1 runs nothing, while 15 GPUs wait in a kernel"
    assert not RankBehind().judge(job(one(IDLE, WAITS | HELD), hung=False, ranks=False)).findings, "nobody's GPU"


@pytest.mark.parametrize(
    ("loads", "why"),
    [
        ([WAITS] * 16, "all wait: who keeps them is not told"),
        ([COMPUTES] * 16, "all compute"),
        (one(IDLE, COMPUTES), "nobody waits"),
        ([IDLE] * 8 + [WAITS] * 8, "half of them: another job, or another phase"),
        (one(IDLE, {"utilization": 100}), "a load alone does not tell waiting from computing"),
        (one(IDLE, {"utilization": 100, "power_w": 300.0, "power_limit_w": 700.0}), "decoding takes as much"),
        (one({}, WAITS), "the load of one is not known"),
    ],
)  # fmt: skip
def test_nobody_is_blamed(loads: list[dict[str, float]], why: str) -> None:
    found = RankBehind().judge(job(loads)).findings
    assert all("in a kernel" not in finding.message for finding in found), why
