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
from topodiag.model.cluster import RankHosts
from topodiag.model.devices import NetDev
from topodiag.model.identity import Identity, Tie
from topodiag.model.job import Job, Process
from topodiag.model.node import Node
from topodiag.model.ras import RasAnswer, RasProcess
from topodiag.model.result import Case
from topodiag.verdict.identity import identify


def who(*evidence: Node | Job | BenchRun | RankHosts | Tie) -> Identity:
    """The identities that these parts of one case give."""
    fields = {"nodes": Node, "jobs": Job, "runs": BenchRun, "layouts": RankHosts, "ties": Tie}
    return identify(Case(**{name: tuple(part for part in evidence if isinstance(part, kind))
                            for name, kind in fields.items()}))  # type: ignore[arg-type]  # fmt: skip


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


def up(host: str, seconds: float, boot: str = "") -> Node:
    """A capture that was taken so long after the boot of its machine, perhaps with the id of that boot."""
    node = capture(host, serial=1)
    node = replace(node, os=replace(node.os, uptime_s=read(seconds)))
    return replace(node, boot=read(boot)) if boot else node


def in_pod(name: str, boot: str) -> Node:
    """A capture from inside a pod, which shows the boot and nothing else of the machine."""
    return Node(name, time=read("2025-10-09T09:00:00Z"), boot=read(boot))


def asked_by_ras(job: Job, **pids: Sequence[int]) -> Job:
    """The job with an answer of RAS from hosts that it knows by address: `a1=[..]` is 10.0.0.1 with these processes."""
    silent = tuple(RasProcess(f"10.0.0.{name[1:]}", pid) for name, several in pids.items() for pid in several)
    return replace(job, ras=(RasAnswer("ras.txt", silent=silent),))


def in_containers(job: Job) -> Job:
    """The log of the first process of a job, which is the first in its container."""
    return replace(job, processes=(replace(job.processes[0], pid=1),))


def bench(host: str) -> BenchRun:
    return BenchRun("all_reduce", (), devices=(BenchDevice(0, host, 0, bus_id="0000:10:00.0"),))


EVIDENCE: dict[str, Callable[..., Node | Job | BenchRun | RankHosts | Tie]] = {
    "capture": capture,
    "addresses": lambda name, **interfaces: with_addresses(capture(name), **interfaces),
    "gids": with_gids,
    "tool": tool,
    "log": lambda *hosts: bare(list(hosts)),
    "other log": lambda *hosts: replace(bare(list(hosts)), name="other"),
    "job": lambda *hosts: on(jobs.job(len(hosts)), *hosts),
    "at": at,
    "other at": lambda address: replace(on(at(address), "x0", "x1"), name="other"),
    "asked": lambda *hosts, **pids: asked_by_ras(bare(list(hosts)), **pids),
    "asked containers": lambda *hosts, **pids: asked_by_ras(in_containers(bare(list(hosts))), **pids),
    "ras": lambda **pids: asked_by_ras(replace(bare([]), processes=(), hosts=()), **pids),
    "bench": bench,
    "up": up,
    "in pod": in_pod,
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
    of each, why it is tied to a name, when it was booted; what is said of `conflicts`."""
    identity = who(*map(part_of, evidence))
    hosts = {node.name: node for node in identity.hosts}
    shown = {
        "names": {name: identity.name(name) for name in wanted.get("names", ())},
        "same": [pair for pair in wanted.get("same", ()) if is_one(identity, *pair)],
        "other": [pair for pair in wanted.get("other", ()) if not is_one(identity, *pair)],
        "hosts": [node.name for node in identity.hosts],
        "sources": {name: list(hosts[name].sources) for name in wanted.get("sources", ())},
        "ties": [tie for tie in wanted.get("ties", ()) if matches(hosts[tie[0]].ties[tie[1]], tie[2])],
        "boots": {name: hosts[name].boot for name in wanted.get("boots", ())},
        "conflicts": [conflict.text for conflict in identity.conflicts],
        "conflicts of": [conflict.subject for conflict in identity.conflicts],
    }
    assert {name: value if matches(shown[name], value) else shown[name] for name, value in wanted.items()} == wanted


def test_the_order_of_the_evidence_changes_no_identity() -> None:
    parts = (capture("n1", serial=1), capture("n2", serial=2), capture("host-5fd2a9c07b"))
    job = printing("0x08c0eb0300010000", "0x08c0eb0300020000")
    assert who(*parts, job) == who(*parts[::-1], job)
