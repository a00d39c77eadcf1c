"""What sources say against each other of one machine, and captures of another time than the job's."""

from dataclasses import replace

from tests.checks import jobs
from tests.checks.nodes import read
from tests.verdict.machines import NOON, capture, inited, on
from topodiag.model.identity import Identity, Tie
from topodiag.model.job import Job, Process
from topodiag.model.node import Node
from topodiag.model.result import Case
from topodiag.verdict.contradictions import contradictions, with_ages
from topodiag.verdict.identity import identify

DAY = 86400.0


def only_sockets(rank: int, host: str, process: Process) -> Process:
    return replace(process, hcas=(), network="Socket")


def seen(job: Job, *nodes: Node, ties: tuple[Tie, ...] = ()) -> Case:
    case = Case(nodes=nodes, jobs=(job,), ties=ties)
    identity = with_ages(case, identify(case))
    by_name = {identity.name(node.host): node for node in nodes}
    machines = {host: by_name[identity.name(host)] for host in job.hosts if identity.name(host) in by_name}
    return replace(case, identity=identity, jobs=(replace(job, machines=machines),))


def test_nics_that_are_up_beside_a_job_on_sockets_are_the_contradiction_with_both_lines() -> None:
    job = jobs.job(via="NET/Socket", process=only_sockets)
    [first, second] = contradictions(seen(job, capture("n0"), capture("n1")))
    assert (first.subject, second.subject, first.check) == ("n0", "n1", "NET001")
    assert "shows 8 RDMA NICs up, and the job on it uses sockets" in first.text
    assert len(first.evidence) == 2


def test_what_a_pod_shows_is_told_of_its_node() -> None:
    job = on(jobs.job(via="NET/Socket", process=only_sockets), "worker-0", "worker-1")
    [conflict] = contradictions(seen(job, capture("node-a"), ties=(Tie(("node-a", "worker-0")),)))
    assert conflict.subject == "node-a"


def test_a_job_over_rdma_contradicts_nothing() -> None:
    assert contradictions(seen(jobs.job(), capture("n0"), capture("n1"))) == ()


def test_a_job_of_one_node_needs_no_network() -> None:
    assert contradictions(seen(jobs.job(1, via="NET/Socket", process=only_sockets), capture("n0"))) == ()


def test_a_gpu_that_the_job_used_and_the_capture_lacks_is_said() -> None:
    node = capture("n0")
    node = replace(node, gpus=tuple(gpu for gpu in node.gpus if gpu.index != 4))
    [conflict] = contradictions(seen(jobs.job(1), node))
    assert conflict.text == f"the job used the GPU at {jobs.bus_id(4)}, and its capture does not have it"


def aged(taken: str, uptime_s: float) -> Identity:
    node = capture("n0", time=read(taken))
    node = replace(node, os=replace(node.os, uptime_s=read(uptime_s)))
    return seen(jobs.job(world=inited(NOON, NOON)), node).identity


def test_a_capture_of_a_boot_after_the_job_says_that_its_states_are_of_another_boot() -> None:
    identity = aged("2025-10-12T09:00:00Z", 3600.0)
    (host,) = [host for host in identity.hosts if host.name == "n0"]
    assert "after the last line of the job" in host.stale
    assert "of another boot" in identity.conflicts[-1].text


def test_a_capture_from_before_the_job_says_so() -> None:
    assert "before the job" in aged("2025-10-01T09:00:00Z", DAY).conflicts[-1].text


def test_a_capture_within_what_zones_can_be_off_is_taken_as_it_is() -> None:
    assert aged("2025-10-09T19:00:00Z", 60.0).conflicts == ()
    assert aged("2025-10-09T02:00:00Z", DAY).conflicts == ()


def test_a_capture_after_the_job_in_the_same_boot_is_as_good_as_one_during_it() -> None:
    assert aged("2025-10-20T09:00:00Z", 30 * DAY).conflicts == ()
