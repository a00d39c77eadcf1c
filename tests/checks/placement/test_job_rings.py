"""PLC007 of a job: the way of rings through nodes."""

from __future__ import annotations

from dataclasses import replace

from tests.checks import jobs
from topodiag.checks.placement.job_rings import RingReturns
from topodiag.model.finding import Status
from topodiag.model.job import Job


def with_ring(*ring: int, nodes: int = 2, hosts: int = 2, gpus: int = 4) -> Job:
    return jobs.job(hosts, gpus, world=lambda communicator: replace(communicator, rings={0: ring}, nodes=nodes))


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
