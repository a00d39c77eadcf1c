"""Verdicts: what contradicts a cause, one node, and jobs that a scheduler lists."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from fixtures.whole.case import nccl_start, text
from tests.checks import jobs
from tests.checks.nodes import read
from tests.tables import examples
from tests.verdict.machines import NOON, capture, inited, kernel_log, on, xid
from topodiag.api import diagnose
from topodiag.model.devices import Gpu, NetDev
from topodiag.model.job import Job, Process
from topodiag.model.node import Node
from topodiag.model.provenance import Topic
from topodiag.model.result import Case, Identity, Tie
from topodiag.model.verdict import State
from topodiag.verdict.contradictions import contradictions, with_ages
from topodiag.verdict.identity import identify
from topodiag.verdict.one_node import merged
from topodiag.verdict.scene import Scene

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


@examples("taken", "uptime_s", "conflict", "stale")
def test_a_capture_tells_of_the_boot_and_the_time_of_the_job_or_of_others(
    taken: str, uptime_s: float, conflict: str, stale: str
) -> None:
    identity = aged(taken, uptime_s)
    assert conflict in "".join(each.text for each in identity.conflicts[-1:])
    assert bool(identity.conflicts) == bool(conflict)
    assert stale in next(host.stale for host in identity.hosts if host.name == "n0")


# --- verdicts of one node, and the scene of a case


BOOT = 1_760_000_400.0 - 360_000.0


def test_the_events_of_a_kernel_log_go_into_the_capture_of_its_host() -> None:
    (node,) = merged([capture("n1"), kernel_log("n1.site", xid(NOON))])
    assert [event.code for event in node.events] == [79]
    assert Topic.KERNEL_LOG in node.topics


Events = dict[str, list[tuple[float, int]]]


@examples("captures", "logs", "hosts", "events")
def test_captures_and_kernel_logs_of_one_machine_are_one_node(
    captures: Events, logs: Events, hosts: list[str], events: list[tuple[float, int]] | None
) -> None:
    """By their hosts the events of each, in seconds since the boot and with their codes, which a log tells by the time
    of the wall; the hosts that are left, and the events of the first one in the order of their times."""
    parts = [capture(host, events=tuple(xid(*event) for event in own)) for host, own in captures.items()]
    parts += [kernel_log(host, *(xid(BOOT + at, code) for at, code in own)) for host, own in logs.items()]
    nodes = merged(parts)
    assert [node.host for node in nodes] == hosts
    told = sorted((event.time_s - BOOT * (event.time_s > BOOT), event.code) for event in nodes[0].events)
    assert events is None or told == events


def interfaces(host: str, **addresses: str) -> Node:
    return Node(host, netdevs=tuple(NetDev(name, addresses=read((each,))) for name, each in addresses.items()))


def test_interfaces_alone_go_into_the_capture_of_their_host_which_loses_its_number() -> None:
    (node,) = merged([capture("n1#1", netdevs=(NetDev("eth0", mtu=read(9000)),)), interfaces("n1#2", eth0="10.0.0.5")])
    assert node.host == "n1"
    assert [(netdev.name, netdev.mtu.value, netdev.addresses.value) for netdev in node.netdevs] == [
        ("eth0", 9000, ("10.0.0.5",))
    ]


def test_a_kernel_log_under_the_address_of_a_machine_goes_into_its_capture_under_the_name() -> None:
    names = {"10.0.0.5": "n1"}
    parts = [kernel_log("10.0.0.5", xid(1.0)), interfaces("n1", eth0="10.0.0.5"), capture("10.0.0.5")]
    (node,) = merged(parts, lambda name: names.get(name, name))
    assert (node.host, len(node.events), len(node.netdevs)) == ("n1", 1, 1 + len(capture("n1").netdevs))


# --- what rules ask of a case: which machines it shows


@pytest.mark.parametrize(
    ("node", "shown"),
    [
        pytest.param(Node("out", nameless=True), False, id="rows of a program alone"),
        pytest.param(Node("out", nameless=True, topics=frozenset({Topic.GPUS})), True, id="a text that shows its GPUs"),
        pytest.param(Node("out", nameless=True, gpus=(Gpu(0),)), True, id="a text of its GPUs in rows"),
        pytest.param(Node("n0"), True, id="a host that is named"),
    ],
)
def test_rows_in_a_text_of_a_program_are_no_machine(node: Node, *, shown: bool) -> None:
    assert Scene(Case(nodes=(node,))).captured == ({node.host} if shown else frozenset())


# --- What a scheduler says of nodes counts for those on which the job runs, and for no other; what an MPI says of its
# node in passing, where no job works on below it


HOSTS = ["gpu01", "gpu02", "gpu03", "gpu04"]
STEPS = [f"step {step} loss {4 - step / 900:.3f} 410 ms/step" for step in range(300)]
WAITED = [
    f"[rank{rank}]:[E407 11:51:0{rank % 10}.400 ProcessGroupNCCL.cpp:616] [Rank {rank}] Watchdog caught collective"
    " operation timeout: WorkNCCL(SeqNum=8142, OpType=ALLREDUCE, NumelIn=40960, NumelOut=40960, Timeout(ms)=600000)"
    f" ran for {600031 + rank} milliseconds before timing out."
    for rank in range(32)
    if rank // 8 != 2
]
SINFO = """\
PARTITION AVAIL  TIMELIMIT  NODES  STATE NODELIST
train*       up 7-00:00:00      1 {state:>6} gpu03
train*       up 7-00:00:00      3  alloc gpu[01-02,04]
debug        up    1:00:00      1  down* gpu09
"""


def node(name: str, state: str, reason: str) -> str:
    why = f"   Reason={reason} [slurm@2026-04-07T11:41:30]\n" if reason else ""
    return (
        f"NodeName={name} Arch=x86_64 CoresPerSocket=48\n   Gres=gpu:h100:8(S:0-1)\n"
        f"   State={state} ThreadsPerCore=2 TmpDisk=0 Weight=1\n   Partitions=train\n{why}\n"
    )


@examples("waits", "sinfo", "nodes", "first")
def test_a_node_that_is_held_leads_where_the_job_runs_on_it(
    tmp_path: Path, waits: bool | None, sinfo: str | None, nodes: list[list[str]] | None, first: list[str] | None
) -> None:
    """`sinfo` with this state of gpu03, or `scontrol show node` of `nodes`: the name, the state and the reason."""
    listed = SINFO.format(state=sinfo) if sinfo else "".join(node(*each) for each in nodes or ())
    tmp_path.joinpath("train.log").write_text(text(nccl_start(HOSTS, 8), iter(STEPS), iter(WAITED if waits else [])))
    tmp_path.joinpath("nodes.txt").write_text(listed)
    answer = diagnose(str(tmp_path))
    causes = [[cause.finding.id, *cause.finding.where.nodes] for cause in answer.verdict.causes]
    assert causes[:1] == ([first] if first else [])
    facts = [machine for machine in json.loads(answer.to_json())["facts"]["nodes"] if machine["scheduled"]]
    assert facts[0]["scheduled"][0]["state"]


LOST = [
    f"{host}:91{rank:02d}:93{rank:02d} [{rank}] NCCL WARN"
    " socketProgress: Connection closed by remote peer gpu03<41000>\n"
    for host in ("gpu01", "gpu02", "gpu04")
    for rank in range(8)
]


@examples("more", "nodes")
def test_a_node_that_only_its_peers_name_is_of_the_job(tmp_path: Path, more: str, nodes: list[tuple[str, ...]]) -> None:
    (tmp_path / "job.log").write_text("".join(LOST) + more)
    (tmp_path / "sinfo.txt").write_text(SINFO.format(state="down*"))
    down = [finding for finding in diagnose([str(tmp_path)]).findings if "scheduler" in finding.message]
    assert [finding.where.nodes for finding in down] == nodes


NO_PORT = (
    "WARNING: There is at least non-excluded one OpenFabrics device found,\n"
    "but there are no active ports detected (or Open MPI was unable to use them)."
)


@pytest.mark.parametrize(
    ("lines", "state", "first"),
    [
        ([NO_PORT, *STEPS], State.UNKNOWN, []),
        ([*STEPS, NO_PORT], State.AT_RISK, ["NIC001"]),
        ([NO_PORT, *STEPS[:1]], State.AT_RISK, ["NIC001"]),
    ],
    ids=["the job works on below", "below the work", "one line that a buffer held"],
)
def test_what_an_mpi_says_of_its_ports_in_passing_counts_where_no_job_works_on(
    tmp_path: Path, lines: list[str], state: State, first: list[str]
) -> None:
    tmp_path.joinpath("train.log").write_text("\n".join([*lines, ""]))
    answer = diagnose(str(tmp_path)).verdict
    assert (answer.state, [cause.finding.id for cause in answer.causes][:1]) == (state, first)
