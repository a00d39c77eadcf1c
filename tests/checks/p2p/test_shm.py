"""P2P001 and P2P002: how GPUs of one node talk."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.checks import jobs
from topodiag.checks.p2p.shm import ShmInsteadOfP2p
from topodiag.checks.p2p.switched_off import P2pSwitchedOff
from topodiag.model.devices import Gpu, NvLink
from topodiag.model.finding import Confidence, Severity, Status
from topodiag.model.job import Communicator
from topodiag.model.nccl_enums import PathType
from topodiag.model.nccl_view import NcclSystem
from topodiag.model.node import Node
from topodiag.model.provenance import known

SHM = "SHM/direct/direct"
OFF = "P2P is disabled between connected GPUs 1 and 0. You can repress this message with NCCL_IGNORE_DISABLED_P2P=1."


def over_shm() -> list[dict[str, object]]:
    return [row | {"via": SHM} if row["via"] == jobs.INTRA else row for row in jobs.healthy_rows(1, 8, 8)]


def pcie(host: int, system: NcclSystem) -> NcclSystem:
    return jobs.system(host, nvlink_gbs=0)


def test_p2p_everywhere_is_clean() -> None:
    assert ShmInsteadOfP2p().judge(jobs.job(1)).status is Status.CLEAN


def test_shm_between_gpus_with_nvlink_is_told_with_what_it_costs() -> None:
    (finding,) = ShmInsteadOfP2p().judge(jobs.job(1, rows=over_shm())).findings
    assert finding.severity is Severity.WARNING
    assert finding.cost.gbs_lost == pytest.approx(322.8)
    assert finding.where.ranks == tuple(range(8))


def test_shm_between_host_bridges_is_ncclsown_rule_and_information() -> None:
    (finding,) = ShmInsteadOfP2p().judge(jobs.job(1, rows=over_shm(), systems=pcie)).findings
    assert finding.severity is Severity.INFO
    assert "rule" in finding.message


def test_pairs_that_the_driver_refuses_are_a_warning() -> None:
    job = jobs.job(1, rows=over_shm(), systems=pcie, messages=[jobs.message("p2p off", OFF)])
    refused, rest = ShmInsteadOfP2p().judge(job).findings
    assert refused.severity is Severity.WARNING
    assert "driver refuses" in refused.message
    assert refused.where.ranks == (0,)
    assert rest.severity is Severity.INFO


def test_gpus_below_one_switch_are_near() -> None:
    def one_switch(host: int, system: NcclSystem) -> NcclSystem:
        flat = jobs.system(host, nvlink_gbs=0)
        return replace(flat, paths={
            pair: replace(path, type=PathType.PIX) if path.hops else path for pair, path in flat.paths.items()
        })  # fmt: skip

    (finding,) = ShmInsteadOfP2p().judge(jobs.job(1, rows=over_shm(), systems=one_switch)).findings
    assert finding.severity is Severity.WARNING


def test_refusals_alone_are_told_where_no_connection_is_seen() -> None:
    (finding,) = ShmInsteadOfP2p().judge(jobs.job(1, rows=[], messages=[jobs.message("p2p off", OFF)])).findings
    assert "1 pair of GPU0-1" in finding.message


def test_a_setting_explains_shm() -> None:
    job = jobs.job(1, rows=over_shm(), settings={"NCCL_P2P_DISABLE": "1"})
    assert ShmInsteadOfP2p().judge(job).status is Status.CLEAN


def test_shm_without_paths_is_told_as_a_note_and_nodes_without_connections_are_unknown() -> None:
    (finding,) = ShmInsteadOfP2p().judge(jobs.job(1, rows=over_shm(), systems=lambda h, s: None)).findings
    assert (finding.severity, finding.confidence) == (Severity.INFO, Confidence.LOW)
    assert ShmInsteadOfP2p().judge(jobs.job(1, rows=[])).status is Status.UNKNOWN


def test_gpus_that_no_operation_joined_are_told_as_such_and_not_as_a_lack_of_logging() -> None:
    job = jobs.job(1, rows=[], nccl_versions=("2.28.9",))
    assert "no operation used a connection inside a node" in ShmInsteadOfP2p().judge(job).why
    for other in (replace(job, nccl_versions=("2.21.5",)), replace(job, subsystems=frozenset({"INIT"}))):
        assert "NCCL_DEBUG_SUBSYS=" in ShmInsteadOfP2p().judge(other).why


def test_one_gpu_on_each_node_has_no_peer() -> None:
    assert ShmInsteadOfP2p().judge(jobs.job(2, 1)).status is Status.NOT_APPLICABLE
    assert P2pSwitchedOff().judge(jobs.job(2, 1, settings={"NCCL_P2P_DISABLE": "1"})).status is Status.NOT_APPLICABLE


@pytest.mark.parametrize(("name", "value"), [("NCCL_P2P_DISABLE", "1"), ("NCCL_P2P_LEVEL", "loc")])
def test_a_setting_that_switches_nvlink_off_is_an_error(name: str, value: str) -> None:
    (finding,) = P2pSwitchedOff().judge(jobs.job(1, rows=over_shm(), settings={name: value})).findings
    assert finding.severity is Severity.ERROR
    assert "NVLink is not used" in finding.message
    assert "SHM" in finding.observed


def test_where_no_pair_could_use_it_a_setting_is_information() -> None:
    job = jobs.job(1, rows=over_shm(), systems=pcie, settings={"NCCL_P2P_DISABLE": "1"})
    assert P2pSwitchedOff().judge(job).findings[0].severity is Severity.INFO


@pytest.mark.parametrize(("name", "value"), [("NCCL_P2P_DISABLE", "0"), ("NCCL_P2P_LEVEL", "SYS")])
def test_settings_that_leave_it_on_are_clean(name: str, value: str) -> None:
    assert P2pSwitchedOff().judge(jobs.job(1, settings={name: value})).status is Status.CLEAN


def test_a_value_that_nccl_refused_is_not_in_force() -> None:
    job = jobs.job(1)
    bad = {"NCCL_P2P_DISABLE": jobs.given("NCCL_P2P_DISABLE", "1", "invalid")}
    job = replace(job, processes=tuple(replace(process, settings=bad) for process in job.processes))
    assert P2pSwitchedOff().judge(job).status is Status.CLEAN


def test_a_driver_that_refuses_nvlink_peers_is_an_error() -> None:
    text = "P2P is disabled between NVLINK connected GPUs 1 and 0. This should not be the case given their connectivity"
    (finding,) = P2pSwitchedOff().judge(jobs.job(1, events=[jobs.event("other", text, rank=1)])).findings
    assert finding.severity is Severity.ERROR


def test_a_log_that_shows_no_settings_is_unknown() -> None:
    assert P2pSwitchedOff().judge(jobs.job(1, subsystems=frozenset({"COLL"}))).status is Status.UNKNOWN


def test_the_log_of_one_rank_shows_how_many_the_node_has() -> None:
    def first(communicator: Communicator) -> Communicator:
        ranks = communicator.ranks.copy()
        ranks[1:] = -1
        return replace(communicator, ranks=ranks)

    job = jobs.job(2, 8, settings={"NCCL_P2P_DISABLE": "1"}, world=first)
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
    job = replace(jobs.job(1, rows=over_shm(), systems=pcie), machines={"n0": captured(link)})
    assert {finding.severity for finding in ShmInsteadOfP2p().judge(job).findings} == {severity}
