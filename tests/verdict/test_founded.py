"""How well each cause is founded, and what speaks against it: never more certain than the evidence."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.checks import jobs
from tests.verdict.judged import LOG, measured, running, seen, verdict
from tests.verdict.test_order import found
from topodiag.model.case import Case
from topodiag.model.finding import Confidence, Cost, Follows, Severity, Where
from topodiag.model.identity import Host, Identity
from topodiag.model.node import Node
from topodiag.model.result import Result
from topodiag.model.verdict import CauseStatus
from topodiag.verdict.judge import judge

# -- how well a cause is founded --


def test_what_was_read_on_the_machine_is_established() -> None:
    [cause] = verdict(seen("NVL001", cost=Cost(1.0, 0.3)), case=running()).causes
    assert cause.status is CauseStatus.ESTABLISHED


@pytest.mark.parametrize("check", ["BEN001", "NET006", "NET007", "NET008", "NIC005", "TOP004", "NET001", "JOB001"])
def test_an_effect_that_is_seen_without_its_cause_is_never_established(check: str) -> None:
    [cause] = verdict(seen(check, line=LOG, cost=Cost(1.0, 0.3)), case=running()).causes
    assert cause.status is not CauseStatus.ESTABLISHED


def test_an_effect_whose_message_names_the_setting_is_established() -> None:
    text = "n0: NCCL_IB_HCA=mlx5_0 leaves 1 of 8 NICs"
    [cause] = verdict(seen("NET003", message=text, cost=Cost(1.0, 0.3)), case=running()).causes
    assert cause.status is CauseStatus.ESTABLISHED


def test_a_note_that_a_job_follows_from_is_never_established() -> None:
    note, below = seen("HST006", Severity.INFO), seen("JOB006", line=LOG)
    above = Follows("HST006", note.message, "it lasted as long")
    [cause] = judge(Result(findings=(note, replace(below, follows=above))), running()).causes
    assert (cause.finding.id, cause.status) == ("HST006", CauseStatus.LIKELY)


def test_a_missing_nic_that_a_capture_of_the_node_shows_is_established() -> None:
    lost = seen("NIC005", cost=Cost(50.0, 0.125))
    bare, captured = running(), replace(running(), nodes=(Node("n0"),))
    assert verdict(replace(lost, evidence=(LOG,)), case=captured).causes[0].status is CauseStatus.LIKELY
    assert verdict(lost, case=bare).causes[0].status is CauseStatus.LIKELY
    assert verdict(lost, case=captured).causes[0].status is CauseStatus.ESTABLISHED


@pytest.mark.parametrize("kind", ["watchdog", "timeout", "peer closed", "connect"])
def test_a_first_error_that_only_waited_for_somebody_is_a_hypothesis(kind: str) -> None:
    case = Case(jobs=(jobs.job(2, events=[jobs.event(kind, kind)]),))
    assert verdict(seen("JOB005", line=LOG), case=case).causes[0].status is CauseStatus.HYPOTHESIS


@pytest.mark.parametrize(
    ("confidence", "status"),
    [
        (Confidence.HIGH, CauseStatus.ESTABLISHED),
        (Confidence.MEDIUM, CauseStatus.LIKELY),
        (Confidence.LOW, CauseStatus.HYPOTHESIS),
    ],
)
def test_a_cause_is_no_surer_than_its_finding(confidence: Confidence, status: CauseStatus) -> None:
    [cause] = verdict(seen("PCI001", confidence=confidence, cost=Cost(1.0, 0.3)), case=running()).causes
    assert cause.status is status


def test_a_cause_without_a_line_of_evidence_is_not_established() -> None:
    assert verdict(found("PCI001")).causes[0].status is CauseStatus.LIKELY


# -- what speaks against a cause --


def test_a_port_that_nccl_lists_was_up_when_the_job_began() -> None:
    down = seen("NIC001", cost=Cost(50.0, 0.125))
    down = replace(down, where=Where(nodes=("n0",), nics=("mlx5_3",)))
    [cause] = verdict(down, case=running()).causes
    assert [line.text for line in cause.contradicted_by] == ["NET/IB : Using [3]mlx5_3:1/IB"]
    assert cause.status is CauseStatus.LIKELY
    [finding] = verdict(replace(down, where=Where(nodes=("n0",), nics=("mlx5_9",))), case=running()).causes
    assert not finding.contradicted_by


def test_ranks_that_use_rdma_clear_sockets() -> None:
    sockets = seen("NET001", line=LOG, cost=Cost(1.0, 0.9))
    [cause] = verdict(sockets, case=running()).causes
    assert cause.contradicted_by
    assert cause.status is CauseStatus.HYPOTHESIS
    [cause] = verdict(sockets, case=running(via="NET/Socket/0")).causes
    assert not cause.contradicted_by


def test_gpudirect_that_is_on_for_every_device_clears_its_absence() -> None:
    [cause] = verdict(seen("GDR001", line=LOG, cost=Cost(1.0, 0.5)), case=running()).causes
    assert cause.contradicted_by


def test_a_setting_in_a_file_that_keeps_nccl_from_rdma_is_not_in_force_where_rdma_is_used() -> None:
    written = seen("ENV001", settings=(("NCCL_IB_DISABLE", None),), cost=Cost(1.0, 0.9))
    [cause] = verdict(written, case=running()).causes
    assert cause.contradicted_by
    assert cause.status is CauseStatus.LIKELY


def test_a_normal_run_on_the_same_machines_speaks_against_what_would_slow_them() -> None:
    slow = seen("PCI001", cost=Cost(30.0, 0.5))
    [cause] = verdict(slow, case=running(), benchmarks=(measured(),)).causes
    assert [str(line) for line in cause.contradicted_by] == ["all_reduce.txt:1"]
    assert cause.status is CauseStatus.LIKELY
    [cause] = verdict(slow, case=running(), benchmarks=(measured(hosts=("n1", "n2")),)).causes
    assert not cause.contradicted_by


def test_a_normal_run_says_nothing_of_what_it_does_not_meet() -> None:
    limit = seen("HST001")
    [cause] = verdict(limit, case=running(), benchmarks=(measured(),)).causes
    assert not cause.contradicted_by


# -- captures of another time --


def of_another_boot(*hosts: str) -> Case:
    case = running()
    told = tuple(Host(host, stale="booted after the last line of the job") for host in hosts)
    return replace(case, identity=Identity(told))


def test_a_state_that_only_a_capture_of_another_boot_shows_is_a_hypothesis() -> None:
    down = seen("NIC001", cost=Cost(50.0, 0.125))
    assert verdict(down, case=of_another_boot("n0")).causes[0].status is CauseStatus.HYPOTHESIS
    assert verdict(down, case=of_another_boot("n1")).causes[0].status is CauseStatus.ESTABLISHED


def test_a_state_of_another_boot_whose_consequence_the_job_met_is_likely() -> None:
    down, fewer = seen("NIC001", cost=Cost(50.0, 0.125)), seen("NET003", line=LOG, cost=Cost(50.0, 0.125))
    [cause] = verdict(down, fewer, case=of_another_boot("n0")).causes
    assert (cause.finding.id, cause.status) == ("NIC001", CauseStatus.LIKELY)


def test_what_the_log_shows_as_well_needs_no_capture() -> None:
    down = seen("NIC001", line=LOG, cost=Cost(50.0, 0.125))
    assert verdict(down, case=of_another_boot("n0")).causes[0].status is CauseStatus.ESTABLISHED


def test_how_a_machine_is_built_no_boot_changes() -> None:
    built = seen("NUM001", cost=Cost(1.0, 0.3))
    assert verdict(built, case=of_another_boot("n0")).causes[0].status is CauseStatus.ESTABLISHED
