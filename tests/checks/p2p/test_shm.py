"""P2P001 and P2P002: how GPUs of one node talk."""

from dataclasses import replace
from typing import Any

import pytest

from tests.checks import jobs
from tests.checks.wanted import Wanted, shown
from tests.tables import examples
from topodiag.checks.p2p.job import P2pSwitchedOff, ShmInsteadOfP2p
from topodiag.checks.registry import Subject, check_of
from topodiag.model.devices import Gpu, NvLink
from topodiag.model.finding import Severity, Status
from topodiag.model.job import Process
from topodiag.model.nccl_enums import PathType
from topodiag.model.nccl_view import NcclSystem
from topodiag.model.node import Node
from topodiag.model.provenance import known

SHM = "SHM/direct/direct"
OFF = "P2P is disabled between connected GPUs 1 and 0. You can repress this message with NCCL_IGNORE_DISABLED_P2P=1."


def over_shm() -> list[dict[str, object]]:
    return [row | {"via": SHM} if row["via"] == jobs.INTRA else row for row in jobs.healthy_rows(1, 8, 8)]


def test_pairs_that_the_driver_refuses_are_a_warning() -> None:
    job = jobs.job(1, rows=over_shm(), systems=jobs.pcie, messages=[jobs.message("p2p off", OFF)])
    refused, rest = ShmInsteadOfP2p().judge(job).findings
    assert (refused.severity, refused.where.ranks) == (Severity.WARNING, (0,))
    assert "driver refuses" in refused.message
    assert rest.severity is Severity.INFO


def one_switch(host: int, system: NcclSystem) -> NcclSystem:
    """All GPUs below one switch."""
    flat = jobs.pcie(host, system)
    paths = {pair: PathType.PIX if len(set(pair)) > 1 else kind for pair, kind in flat.paths.items()}
    return replace(flat, paths=paths)


def refused(rank: int, host: int, process: Process) -> Process:
    """A value that NCCL does not take."""
    return replace(process, settings={"NCCL_P2P_DISABLE": jobs.given("NCCL_P2P_DISABLE", "1", "invalid")})


HOOKS: dict[str, Any] = {"over_shm": over_shm(), "one_switch": one_switch, "refused": refused}


@examples("check", "given", "wanted")
def test_peers_of_a_job(check: str, given: jobs.Given, wanted: Wanted) -> None:
    assert shown(check_of(Subject.JOB, check)().judge(jobs.of_row(given, **HOOKS)), wanted) == wanted


def test_the_log_of_one_rank_shows_how_many_the_node_has() -> None:
    job = jobs.job(2, 8, settings={"NCCL_P2P_DISABLE": "1"}, world=jobs.of_first(1))
    run = replace(job, ranks=job.ranks[:1])
    assert P2pSwitchedOff().judge(run).status is Status.FINDING


def captured(*links: NvLink) -> Node:
    return Node("n0", gpus=tuple(Gpu(at, jobs.bus_id(at), nvlinks=links) for at in range(8)))


@pytest.mark.parametrize(
    ("link", "severity"),
    [
        (NvLink(0, known("active"), remote_type=known("switch")), Severity.WARNING),
        (NvLink(0, known("inactive"), remote_type=known("switch")), Severity.INFO),
        (NvLink(0, known("active"), remote_type=known("cpu")), Severity.INFO),
    ],
)
def test_links_that_a_capture_shows_up_speak_against_a_log_without_them(link: NvLink, severity: Severity) -> None:
    job = replace(jobs.job(1, rows=over_shm(), systems=jobs.pcie), machines={"n0": captured(link)})
    assert {finding.severity for finding in ShmInsteadOfP2p().judge(job).findings} == {severity}
