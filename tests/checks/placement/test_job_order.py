"""PLC006 and PLC007: the order of ranks, and the way of rings through nodes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tests.checks import jobs
from topodiag.checks.placement.job_order import RankOrder, RingReturns
from topodiag.model.dimensions import Role
from topodiag.model.finding import Confidence, Severity, Status
from topodiag.model.job import Communicator, Job


def dealt(job: Job) -> Job:
    """The same ranks, dealt to the hosts in turn."""
    hosts = job.hosts
    return replace(job, ranks=tuple(replace(rank, host=hosts[rank.rank % len(hosts)]) for rank in job.ranks))


def tensor_groups(sure: Confidence, role: Role = Role.TP) -> list[Communicator]:
    return [Communicator(1 + at, 4, np.arange(4 * at, 4 * at + 4), role=role, role_sure=sure) for at in range(4)]


def test_ranks_in_blocks_are_in_order() -> None:
    assert RankOrder().judge(jobs.job()).status is Status.CLEAN


def test_ranks_dealt_in_turn_are_told_at_level_info() -> None:
    [finding] = RankOrder().judge(dealt(jobs.job())).findings
    assert finding.severity is Severity.INFO
    assert finding.message == "consecutive world ranks alternate between 2 nodes of 8 GPUs"


def test_groups_of_consecutive_ranks_make_it_a_warning_unless_plc001_has_it() -> None:
    other = RankOrder().judge(dealt(jobs.job(communicators=tensor_groups(Confidence.LOW, Role.OTHER))))
    assert other.findings[0].severity is Severity.WARNING
    told = RankOrder().judge(dealt(jobs.job(communicators=tensor_groups(Confidence.HIGH))))
    assert told.findings[0].severity is Severity.INFO


def test_one_gpu_per_node_has_no_order_to_judge() -> None:
    assert RankOrder().judge(jobs.job(4, 1)).status is Status.NOT_APPLICABLE


def test_with_ranks_missing_the_order_is_unknown() -> None:
    job = jobs.job()
    assert RankOrder().judge(replace(job, ranks=job.ranks[:5])).status is Status.UNKNOWN


def with_ring(*ring: int, nodes: int = 2, hosts: int = 2, gpus: int = 4) -> Job:
    return jobs.job(hosts, gpus, world=lambda made: replace(made, rings={0: ring}, nodes=nodes))


def test_a_ring_that_visits_each_node_once_is_clean() -> None:
    assert RingReturns().judge(with_ring(0, 1, 2, 3, 4, 5, 6, 7)).status is Status.CLEAN


def test_a_ring_that_comes_back_to_a_node_is_told_with_its_share() -> None:
    [finding] = RingReturns().judge(with_ring(0, 1, 4, 5, 2, 3, 6, 7)).findings
    assert "1 of 1 ring of" in finding.message
    assert finding.cost.share == 0.5


def test_a_ring_shown_in_part_says_nothing() -> None:
    assert RingReturns().judge(with_ring(0, 4, 1, 5)).status is Status.NOT_APPLICABLE


def test_other_nodes_than_hosts_are_left_alone() -> None:
    assert RingReturns().judge(with_ring(0, 1, 4, 5, 2, 3, 6, 7, nodes=4)).status is not Status.FINDING


def test_without_rings_the_answer_is_unknown_and_names_the_subsystem() -> None:
    outcome = RingReturns().judge(jobs.job())
    assert outcome.status is Status.UNKNOWN
    assert "GRAPH" in outcome.why
