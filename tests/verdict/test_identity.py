"""Who is who: every name of a machine leads to it, and a name that may be of several leads to none."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tests.checks import jobs
from tests.checks.nodes import read
from tests.checks.wanted import matches
from tests.tables import examples
from tests.verdict.machines import bare, capture, kernel_log, on, xid
from topodiag.model.bench import BenchDevice, BenchRun
from topodiag.model.case import Case
from topodiag.model.devices import NetDev
from topodiag.model.identity import Host, Identity, Tie
from topodiag.model.job import Job, Process
from topodiag.model.node import Node
from topodiag.model.rank_hosts import RankHosts
from topodiag.model.ras import RasAnswer, RasProcess
from topodiag.verdict.identity import identify


def who(*evidence: Node | Job | BenchRun | RankHosts | Tie) -> Identity:
    """The identities that these parts of one case give."""
    fields = {"nodes": Node, "jobs": Job, "runs": BenchRun, "layouts": RankHosts, "ties": Tie}
    return identify(Case(**{name: tuple(part for part in evidence if isinstance(part, kind))
                            for name, kind in fields.items()}))  # type: ignore[arg-type]  # fmt: skip


def host(identity: Identity, name: str) -> Host:
    (node,) = [node for node in identity.hosts if node.name == name]
    return node


def at(address: str) -> Job:
    """A job of two containers, the first with this address."""

    def process(rank: int, host: str, process: Process) -> Process:
        return replace(process, bootstrap=f"eth0:{address if rank < 8 else '10.9.9.9'}<0>")

    return on(jobs.job(process=process, systems=lambda *_: None), "3f2a77c1", "77aa01bc")  # type: ignore[arg-type]


def layout(*hosts: str) -> RankHosts:
    return RankHosts("hostfile", hosts, np.arange(len(hosts)), np.full(len(hosts), -1))


def with_gids(name: str, *gids: str) -> Node:
    """A capture whose first port has these GIDs."""
    node = capture(name)
    port = replace(node.nics[0].ports[0], gids=read(gids))
    return replace(node, nics=(replace(node.nics[0], ports=(port,)), *node.nics[1:]))


def with_addresses(node: Node, **interfaces: str) -> Node:
    """The node with interfaces that have these addresses, `eth0="10.0.0.5 fd00::5"`."""
    net_devs = (NetDev(name, addresses=read(tuple(told.split()))) for name, told in interfaces.items())
    return replace(node, netdevs=tuple(net_devs))


def tool(name: str, **interfaces: str) -> Node:
    """`ip addr` of a host, and nothing else of it."""
    return with_addresses(Node(name), **interfaces)


def bridged() -> Job:
    """A job of two containers whose first meets over a bridge of its host."""

    def process(rank: int, _: str, process: Process) -> Process:
        bridge = "br-5f00aa00aa01:172.18.0.1<0>" if rank < 8 else "eth0:10.9.9.9<0>"
        return replace(process, bootstrap=bridge, addresses=("172.18.0.1",) if rank < 8 else ())

    return on(jobs.job(process=process, systems=lambda *_: None), "c1", "c2")  # type: ignore[arg-type]


def translated() -> Job:
    """A job of two containers behind one address."""
    return on(jobs.job(process=lambda _, __, process: replace(process, bootstrap="eth0:10.5.0.1<0>")), "c1", "c2")


def printing(*guids: str) -> Job:
    """A job of two hosts whose system dumps print these GUIDs of their first adapter."""

    def systems(number: int, system: object) -> object:
        nets = {name: replace(each, guid=guids[number]) if each.kind == "NET" and each.id == "0-0" else each
                for name, each in system.devices.items()}  # type: ignore[attr-defined]  # fmt: skip
        return replace(system, devices=nets)  # type: ignore[type-var]

    job = jobs.job(systems=systems, process=lambda _, __, process: replace(process, bootstrap=""))  # type: ignore[arg-type]
    return on(job, "pod-a", "pod-b")


EVIDENCE: dict[str, Callable[..., Node | Job | BenchRun | RankHosts | Tie]] = {
    "capture": capture,
    "addresses": lambda name, **interfaces: with_addresses(capture(name), **interfaces),
    "gids": with_gids,
    "tool": tool,
    "log": lambda *hosts: bare(list(hosts)),
    "other log": lambda *hosts: replace(bare(list(hosts)), name="other"),
    "job": lambda *hosts: on(jobs.job(len(hosts)), *hosts),
    "at": at,
    "bridged": bridged,
    "translated": translated,
    "printing": printing,
    "kernel log": lambda host: kernel_log(host, xid(12.0)),
    "hostfile": layout,
    "tie": lambda names, why="": Tie(tuple(names), why),
}


def part_of(told: list[Any]) -> Node | Job | BenchRun | RankHosts | Tie:
    kind, *arguments = told
    named = arguments.pop() if arguments and isinstance(arguments[-1], dict) else {}
    return EVIDENCE[kind](*arguments, **named)


def is_one(identity: Identity, one: str, other: str) -> bool:
    """Whether both names are known to be of one machine."""
    return identity.name(one).lower() == identity.name(other).lower()


@examples("evidence", "wanted")
def test_who_is_who(evidence: list[list[Any]], wanted: dict[str, Any]) -> None:
    """By the `names` to which others lead, names of the `same` machine and of `other` ones; all `hosts`, the `sources`
    of each, why it is tied to a name; what is said of `conflicts`."""
    identity = who(*map(part_of, evidence))
    hosts = {node.name: node for node in identity.hosts}
    shown = {
        "names": {name: identity.name(name) for name in wanted.get("names", ())},
        "same": [pair for pair in wanted.get("same", ()) if is_one(identity, *pair)],
        "other": [pair for pair in wanted.get("other", ()) if not is_one(identity, *pair)],
        "hosts": [node.name for node in identity.hosts],
        "sources": {name: list(hosts[name].sources) for name in wanted.get("sources", ())},
        "ties": [tie for tie in wanted.get("ties", ()) if matches(hosts[tie[0]].ties[tie[1]], tie[2])],
        "conflicts": [conflict.text for conflict in identity.conflicts],
        "conflicts of": [conflict.subject for conflict in identity.conflicts],
    }
    assert {name: value if matches(shown[name], value) else shown[name] for name, value in wanted.items()} == wanted


def test_containers_of_two_jobs_with_one_address_are_not_one_machine() -> None:
    one, other = at("10.1.2.3"), on(at("10.1.2.3"), "x0", "x1")
    assert not is_one(who(one, replace(other, name="other")), "3f2a77c1", "x0")


def answer(**pids: Sequence[int]) -> RasAnswer:
    """An answer of RAS from hosts that it knows by address: `a1=(..)` is 10.0.0.1 with these processes."""
    silent = tuple(RasProcess(f"10.0.0.{name[1:]}", pid) for name, several in pids.items() for pid in several)
    return RasAnswer("ras.txt", silent=silent)


def test_hosts_that_ras_knows_by_address_are_those_of_the_log_with_these_processes() -> None:
    job = bare(["n1", "n2"])
    own = {process.host: process.pid for process in job.processes}
    assert own["n1"] != own["n2"]
    asked = replace(job, ras=(answer(a1=[own["n1"]], a2=[own["n2"]], a3=[7]),))
    identity = who(asked)
    assert (identity.name("10.0.0.1"), identity.name("10.0.0.2"), identity.name("10.0.0.3")) == ("n1", "n2", "10.0.0.3")


def test_processes_of_containers_that_have_the_same_pids_on_each_host_tie_no_address() -> None:
    job = bare(["n1", "n2"])
    job = replace(job, processes=tuple(replace(process, pid=1) for process in job.processes[:1]))
    identity = who(replace(job, ras=(answer(a1=[1], a2=[1]),)))
    assert identity.name("10.0.0.1") == "10.0.0.1"


def test_hosts_of_ras_alone_are_the_captures_with_these_addresses() -> None:
    job = replace(bare([]), processes=(), hosts=(), ras=(answer(a1=[1], a2=[1]),))
    node = with_addresses(capture("gpu-7"), eth0="10.0.0.2")
    assert who(node, job).name("10.0.0.2") == "gpu-7"


def test_the_machine_bears_its_own_name_before_that_of_a_pod_a_run_or_a_hostfile() -> None:
    tie = Tie(("node-a", "worker-0"))
    run = BenchRun("all_reduce", (), devices=(BenchDevice(0, "worker-0", 0, bus_id="0000:10:00.0"),))
    identity = who(capture("node-a"), run, layout("node-a", "node-b"), tie)
    assert [(node.name, node.sources) for node in identity.hosts] == [
        ("node-a", ("bundle", "nccl-tests", "hostfile")),
        ("node-b", ("hostfile",)),
    ]


def test_the_order_of_the_evidence_changes_no_identity() -> None:
    parts = (capture("n1", serial=1), capture("n2", serial=2), capture("host-5fd2a9c07b"))
    job = printing("0x08c0eb0300010000", "0x08c0eb0300020000")
    assert who(*parts, job) == who(*parts[::-1], job)


def up(host: str, seconds: float) -> Node:
    node = capture(host, serial=1)
    return replace(node, os=replace(node.os, uptime_s=read(seconds)))


def test_a_host_says_when_it_booted_by_its_last_capture() -> None:
    assert host(who(up("n1", 3600.0)), "n1").boot == "2025-10-09 08:00:00"


def of_boot(node: Node, boot: str) -> Node:
    return replace(node, boot=read(boot))


def test_the_id_of_the_boot_tells_two_boots_apart_whatever_the_clock_says() -> None:
    early, late = up("n1#1", 3600.0), up("n1#2", 3700.0)
    assert who(of_boot(early, "a-1"), of_boot(late, "a-1")).conflicts == ()
    identity = who(of_boot(early, "a-1"), of_boot(late, "b-2"))
    assert [conflict.text for conflict in identity.conflicts] == [
        "its captures are of two boots: counters began anew between them"
    ]
    clock_was_set = who(of_boot(up("n1#1", 3600.0), "a-1"), of_boot(up("n1#2", 360_000.0), "a-1"))
    assert clock_was_set.conflicts == ()


def test_what_was_captured_in_one_boot_is_one_machine_whatever_it_calls_itself() -> None:
    when = read("2025-10-09T09:00:00Z")
    pod, node = Node("worker-0", time=when), replace(capture("n1", serial=1), time=when)
    assert len(who(of_boot(node, "a-1"), of_boot(pod, "b-2")).hosts) == 2
    identity = who(of_boot(node, "a-1"), of_boot(pod, "a-1"))
    assert len(identity.hosts) == 1
    assert identity.hosts[0].ties["worker-0"] == "both were captured in one boot"


def test_captures_of_two_boots_of_one_machine_are_said() -> None:
    identity = who(up("n1#1", 3600.0), up("n1#2", 360_000.0))
    assert host(identity, "n1").boot == "2025-10-09 08:00:00"
    assert [conflict.text[:31] for conflict in identity.conflicts] == ["its captures are of two boots, "]
    assert who(up("n1#1", 3600.0), up("n1#2", 3700.0)).conflicts == ()
