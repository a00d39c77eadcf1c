"""GDR001 and GDR002 by logs."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tests.checks import jobs
from tests.checks.wanted import Wanted, shown
from tests.tables import examples
from topodiag.checks.gpudirect.job import GdrOffInLog, GdrTooFarInLog
from topodiag.model.job import Process


def disabled(*hosts: int) -> Callable[[int, int, Process], Process]:
    def hook(rank: int, host: int, process: Process) -> Process:
        off = tuple(replace(hca, gdr=False) for hca in process.hcas)
        return replace(process, hcas=off) if host in hosts else process

    return hook


def receives_without() -> list[dict[str, Any]]:
    """The second node receives without GPUDirect RDMA."""
    rows = jobs.healthy_rows(2, 8, 8)
    return [row | {"via": "NET/IB"} if row.get("direction") == 2 and int(row["peer"]) >= 8 else row for row in rows]


def sends_without() -> list[dict[str, Any]]:
    return [row | {"via": "NET/IB"} if row.get("direction") == 1 else row for row in jobs.healthy_rows(2, 8, 8)]


def silent(rank: int, host: int, process: Process) -> Process:
    return replace(process, hcas=tuple(replace(hca, gdr=None) for hca in process.hcas))


HOOKS: dict[str, Any] = {
    "disabled": disabled, "silent": silent, "receives_without": receives_without(), "sends_without": sends_without()
}  # fmt: skip


@examples("given", "wanted")
def test_gpudirect_that_is_off(given: jobs.Given, wanted: Wanted) -> None:
    assert shown(GdrOffInLog().judge(jobs.of_row(given, **HOOKS)), wanted) == wanted


@examples("given", "wanted")
def test_gpudirect_that_nccl_leaves_out_for_the_distance(given: jobs.Given, wanted: Wanted) -> None:
    assert shown(GdrTooFarInLog().judge(jobs.of_row(given, **HOOKS)), wanted) == wanted
