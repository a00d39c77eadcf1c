"""PLC007 of a job: the way of rings through nodes."""

from dataclasses import replace

from tests.checks import jobs
from tests.checks.wanted import Wanted, expect, shown
from tests.tables import examples
from topodiag.checks.placement.job_rings import RingReturns
from topodiag.model.job import Job


def with_ring(*ring: int, nodes: int = 2, hosts: int = 2, gpus: int = 4) -> Job:
    return jobs.job(hosts, gpus, world=lambda communicator: replace(communicator, rings={0: ring}, nodes=nodes))


@examples("ring", "nodes", "wanted")
def test_rings_that_come_back_to_a_node(ring: list[int], nodes: int, wanted: Wanted) -> None:
    assert shown(RingReturns().judge(with_ring(*ring, nodes=nodes)), wanted) == wanted


def test_without_rings_the_answer_is_unknown_and_names_the_subsystem() -> None:
    expect(RingReturns().judge(jobs.job()), status="unknown", why="*GRAPH*")
