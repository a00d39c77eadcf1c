"""GDR001 and GDR002 by logs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tests.checks import jobs
from topodiag.checks.gpudirect.job import GdrOffInLog
from topodiag.checks.gpudirect.job_distance import GdrTooFarInLog
from topodiag.model.finding import Severity, Status
from topodiag.model.job import Process

FAR = "GPU Direct RDMA Disabled for GPU 0 / HCA 0 (distance 8 > 5)"


def disabled(*hosts: int) -> Callable[[int, int, Process], Process]:
    def hook(rank: int, host: int, process: Process) -> Process:
        off = tuple(replace(hca, gdr=False) for hca in process.hcas)
        return replace(process, hcas=off) if host in hosts else process

    return hook


def test_enabled_devices_are_clean() -> None:
    assert GdrOffInLog().judge(jobs.job()).status is Status.CLEAN


def test_disabled_devices_are_an_error_with_the_cost_for_a_nic() -> None:
    (finding,) = GdrOffInLog().judge(jobs.job(via="NET/IB", process=disabled(0, 1))).findings
    assert finding.severity is Severity.ERROR
    assert finding.cost.gbs_lost == 26
    assert finding.where.nodes == ("n0", "n1")
    assert any("nvidia-peermem" in step for step in finding.fix)


def test_one_node_without_it_is_named_beside_those_with_it() -> None:
    (finding,) = GdrOffInLog().judge(jobs.job(process=disabled(1))).findings
    assert finding.where.nodes == ("n1",)
    assert "on on n0" in finding.message


def test_pcie_machines_get_a_warning_since_cards_may_be_unable() -> None:
    job = jobs.job(process=disabled(0, 1), systems=lambda host, system: jobs.system(host, nvlink_gbs=0))
    assert GdrOffInLog().judge(job).findings[0].severity is Severity.WARNING


def test_one_node_sockets_or_no_devices_leave_nothing_to_judge() -> None:
    assert GdrOffInLog().judge(jobs.job(1, process=disabled(0))).status is Status.NOT_APPLICABLE
    assert GdrOffInLog().judge(jobs.job(via="NET/Socket")).status is Status.NOT_APPLICABLE
    assert GdrOffInLog().judge(jobs.job(nics=0)).status is Status.NOT_APPLICABLE


def silent(rank: int, host: int, process: Process) -> Process:
    return replace(process, hcas=tuple(replace(hca, gdr=None) for hca in process.hcas))


def test_connections_with_gdrdma_show_that_it_is_on_where_no_line_says() -> None:
    assert GdrOffInLog().judge(jobs.job(process=silent)).status is Status.CLEAN
    assert GdrOffInLog().judge(jobs.job(process=silent, via="NET/IB")).status is Status.UNKNOWN


def test_a_node_whose_receives_lack_it_beside_one_whose_have_it_is_told_without_a_line_of_devices() -> None:
    rows = [row | {"via": "NET/IB"} if row.get("direction") == 2 and int(row["peer"]) >= 8 else row
            for row in jobs.healthy_rows(2, 8, 8)]  # fmt: skip
    (finding,) = GdrOffInLog().judge(jobs.job(process=silent, rows=rows)).findings
    assert finding.where.nodes == ("n1",)
    assert finding.severity is Severity.ERROR


def test_connections_without_it_for_distance_are_told() -> None:
    outcome = GdrTooFarInLog().judge(jobs.job(via="NET/IB", messages=[jobs.message("gdr pair", FAR)]))
    assert outcome.findings[0].where.nodes == ("n0", "n1")
    assert "distance 8 where NCCL goes up to 5" in outcome.findings[0].observed


def test_far_pairs_that_no_connection_uses_are_no_fault() -> None:
    assert GdrTooFarInLog().judge(jobs.job(messages=[jobs.message("gdr pair", FAR)])).status is Status.CLEAN


def test_sends_alone_without_it_follow_the_rule_for_reads() -> None:
    rows = [row | {"via": "NET/IB"} if row.get("direction") == 1 else row for row in jobs.healthy_rows(2, 8, 8)]
    assert GdrTooFarInLog().judge(jobs.job(rows=rows)).status is Status.CLEAN


def test_off_altogether_is_the_other_check_and_no_reason_is_unknown() -> None:
    assert GdrTooFarInLog().judge(jobs.job(via="NET/IB", process=disabled(0, 1))).status is Status.CLEAN
    assert GdrTooFarInLog().judge(jobs.job(via="NET/IB")).status is Status.UNKNOWN


def test_a_level_that_was_set_is_left_to_the_settings() -> None:
    job = jobs.job(via="NET/IB", messages=[jobs.message("gdr pair", FAR)], settings={"NCCL_NET_GDR_LEVEL": "PIX"})
    assert GdrTooFarInLog().judge(job).status is Status.CLEAN


def test_distance_is_no_question_without_rdma() -> None:
    assert GdrTooFarInLog().judge(jobs.job(1)).status is Status.NOT_APPLICABLE
    assert GdrTooFarInLog().judge(jobs.job(via="NET/Socket")).status is Status.NOT_APPLICABLE
    assert GdrTooFarInLog().judge(jobs.job(rows=[])).status is Status.UNKNOWN


def test_a_plugin_that_says_it_goes_without_is_believed() -> None:
    event = jobs.event("plugin", "NET/OFI GDR disabled on GDR-supported instance type p4d.24xlarge")
    [finding] = GdrOffInLog().judge(jobs.job(events=[event])).findings
    assert finding.severity is Severity.WARNING
    assert "p4d.24xlarge" in finding.message
    assert GdrOffInLog().judge(jobs.job(events=[jobs.event("plugin", "NET/OFI GDR enabled")])).status is Status.CLEAN
