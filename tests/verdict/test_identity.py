"""Who is who: every name of a machine leads to it, and a name that may be of several leads to none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.checks import jobs
from tests.checks.nodes import read
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


def test_a_short_name_and_the_name_with_its_domain_are_one_host() -> None:
    identity = who(capture("n1.site.example"), bare(["n1", "n2"]))
    assert identity.same_machine("n1", "N1.site.example")
    assert [node.name for node in identity.hosts] == ["n1.site.example", "n2"]


def test_two_domains_that_one_source_tells_apart_are_two_hosts_and_the_short_name_is_nobodys() -> None:
    identity = who(capture("n1"), bare(["n1.a.example", "n1.b.example"]))
    assert not identity.same_machine("n1.a.example", "n1.b.example")
    assert not identity.same_machine("n1", "n1.a.example")
    assert [conflict.text for conflict in identity.conflicts] == [
        "n1 may be n1.a.example, n1.b.example: a source has both"
    ]


def test_a_pod_is_the_node_that_the_list_of_pods_says() -> None:
    tie = Tie(("gke-77", "worker-0", "10.4.1.9"), "the list of pods says so")
    identity = who(capture("gke-77"), bare(["worker-0", "worker-1"]), tie)
    assert identity.name("worker-0") == identity.name("10.4.1.9") == "gke-77"
    assert host(identity, "gke-77").ties["worker-0"] == "the list of pods says so"
    assert host(identity, "gke-77").sources == ("bundle", "log")
    assert identity.name("worker-1") == "worker-1"


def test_a_pod_name_that_ran_on_two_nodes_is_said_and_leads_to_neither() -> None:
    ties = (Tie(("n1", "worker-0")), Tie(("n2", "worker-0")))
    identity = who(capture("n1"), capture("n2"), bare(["worker-0"]), *ties)
    assert identity.name("worker-0") == "worker-0"
    assert "worker-0 ran on several nodes: n1, n2" in [conflict.text for conflict in identity.conflicts]


def test_two_pods_of_one_job_may_be_on_one_node() -> None:
    ties = (Tie(("n1", "worker-0")), Tie(("n1", "worker-1")))
    identity = who(bare(["worker-0", "worker-1"]), *ties)
    assert identity.same_machine("worker-0", "worker-1")


def test_an_address_in_the_name_of_an_instance_ties_a_container_to_it() -> None:
    identity = who(capture("ip-10-24-6-50"), at("10.24.6.50"))
    assert identity.name("3f2a77c1") == "ip-10-24-6-50"
    assert identity.name("10.24.6.50") == "ip-10-24-6-50"


def test_the_address_of_a_roce_gid_ties_a_host_to_its_capture() -> None:
    node = capture("gpu-7")
    port = replace(node.nics[0].ports[0], gids=read(("fe80::eaeb:d3ff:fe00:1", "::ffff:10.24.6.50")))
    node = replace(node, nics=(replace(node.nics[0], ports=(port,)), *node.nics[1:]))
    assert who(node, at("10.24.6.50")).name("3f2a77c1") == "gpu-7"


@pytest.mark.parametrize("address", ["172.17.0.2", "127.0.0.1", "169.254.3.4", "192.168.122.1"])
def test_addresses_that_many_machines_have_tie_nothing(address: str) -> None:
    node = capture("gpu-7")
    port = replace(node.nics[0].ports[0], gids=read((f"::ffff:{address}",)))
    node = replace(node, nics=(replace(node.nics[0], ports=(port,)), *node.nics[1:]))
    assert who(node, at(address)).name("3f2a77c1") == "3f2a77c1"


def test_containers_of_two_jobs_with_one_address_are_not_one_machine() -> None:
    one, other = at("10.1.2.3"), on(at("10.1.2.3"), "x0", "x1")
    assert not who(one, replace(other, name="other")).same_machine("3f2a77c1", "x0")


def with_addresses(node: Node, **interfaces: str) -> Node:
    """The node with interfaces that have these addresses, `eth0="10.0.0.5 fd00::5"`; `_` stands for `-` in a name."""
    net_devs = (
        NetDev(name.replace("_", "-"), addresses=read(tuple(told.split()))) for name, told in interfaces.items()
    )
    return replace(node, netdevs=tuple(net_devs))


def tool(name: str, **interfaces: str) -> Node:
    """`ip addr` of a host, and nothing else of it."""
    return with_addresses(Node(name), **interfaces)


def test_a_host_that_a_log_knows_by_its_address_is_the_capture_with_that_interface() -> None:
    node = with_addresses(capture("gpu-7"), lo="127.0.0.1", eth0="10.24.6.50", ib0="10.1.0.5")
    identity = who(node, bare(["10.1.0.5", "10.1.0.6"]))
    assert identity.name("10.1.0.5") == identity.name("10.24.6.50") == "gpu-7"
    assert host(identity, "gpu-7").sources == ("bundle", "log")
    assert identity.name("10.1.0.6") == "10.1.0.6"


def test_an_ipv6_address_in_a_hostfile_is_the_capture_with_that_interface() -> None:
    node = with_addresses(capture("gpu-7"), eth0="fd00::5")
    identity = who(node, layout("FD00:0::5", "x"))
    assert identity.name("fd00:0::5") == "gpu-7"


def test_the_address_of_any_interface_that_a_log_prints_ties_a_container_to_its_machine() -> None:
    node = with_addresses(capture("gpu-7"), eth0="10.24.6.50", ib0="10.1.0.5")
    assert who(node, at("10.1.0.5")).name("3f2a77c1") == "gpu-7"


@pytest.mark.parametrize("interface", ["docker0", "br-5f00aa00aa01", "virbr0", "cni0", "kube_ipvs0", "nodelocaldns"])
def test_the_address_of_an_interface_that_each_node_numbers_for_itself_ties_nothing(interface: str) -> None:
    node = with_addresses(capture("gpu-7"), **{interface: "172.18.0.1"})
    identity = who(node, bare(["172.18.0.1", "n2"]))
    assert not identity.same_machine("172.18.0.1", "gpu-7")


def test_a_bridge_that_a_log_meets_over_is_no_address_of_its_host() -> None:
    def process(rank: int, _: str, process: Process) -> Process:
        bridge = "br-5f00aa00aa01:172.18.0.1<0>" if rank < 8 else "eth0:10.9.9.9<0>"
        return replace(process, bootstrap=bridge, addresses=("172.18.0.1",) if rank < 8 else ())

    job = on(jobs.job(process=process, systems=lambda *_: None), "c1", "c2")  # type: ignore[arg-type]
    identity = who(tool("gpu-7", bond0="172.18.0.1"), job)
    assert not identity.same_machine("c1", "gpu-7")


@pytest.mark.parametrize("make", [capture, tool])
def test_an_address_that_two_machines_have_leads_to_neither_and_is_said_where_a_source_uses_it(make: Any) -> None:
    nodes = tuple(with_addresses(make(name), eth0=f"10.0.0.{at} 10.0.0.100") for at, name in enumerate(("n1", "n2")))
    identity = who(*nodes, layout("10.0.0.100", "10.0.0.1"))
    assert identity.name("10.0.0.100") == "10.0.0.100"
    assert identity.same_machine("10.0.0.1", "n2")
    assert not identity.same_machine("n1", "n2")
    assert [conflict.text for conflict in identity.conflicts] == [
        "10.0.0.100 may be n1, n2: each of them has that address"
    ]


def test_an_address_that_two_machines_have_is_not_worth_a_word_where_nobody_uses_it() -> None:
    nodes = tuple(with_addresses(capture(name), eth0=f"10.0.0.{at} 10.0.0.100") for at, name in enumerate(("n1", "n2")))
    identity = who(*nodes)
    assert identity.conflicts == ()
    assert identity.name("10.0.0.100") == "10.0.0.100"


def test_two_hosts_of_a_log_behind_one_translated_address_are_two() -> None:
    job = on(jobs.job(process=lambda _, __, process: replace(process, bootstrap="eth0:10.5.0.1<0>")), "c1", "c2")
    identity = who(with_addresses(capture("gpu-7"), eth0="10.5.0.1"), job)
    assert not identity.same_machine("c1", "c2")
    assert not identity.same_machine("c1", "gpu-7")


def test_a_kernel_log_that_calls_its_host_by_an_address_is_of_the_machine_that_has_it() -> None:
    identity = who(kernel_log("10.1.0.5", xid(12.0)), with_addresses(capture("gpu-7"), ib0="10.1.0.5"))
    assert [(node.name, node.sources) for node in identity.hosts] == [("gpu-7", ("bundle", "kernel log"))]


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


def test_a_pod_is_found_by_its_address_and_an_address_that_two_pods_had_is_nobodys() -> None:
    ties = (Tie(("gke-1", "w-0", "10.4.1.9", "10.4.1.7")), Tie(("gke-2", "w-1", "10.4.1.9")))
    identity = who(capture("gke-1"), capture("gke-2"), bare(["10.4.1.7", "10.4.1.9"]), *ties)
    assert identity.name("10.4.1.7") == "gke-1"
    assert identity.name("10.4.1.9") == "10.4.1.9"


def printing(*guids: str) -> Job:
    """A job of two hosts whose system dumps print these GUIDs of their first adapter."""

    def systems(number: int, system: object) -> object:
        nets = {name: replace(each, guid=guids[number]) if each.kind == "NET" and each.id == "0-0" else each
                for name, each in system.devices.items()}  # type: ignore[attr-defined]  # fmt: skip
        return replace(system, devices=nets)  # type: ignore[type-var]

    job = jobs.job(systems=systems, process=lambda _, __, process: replace(process, bootstrap=""))  # type: ignore[arg-type]
    return on(job, "pod-a", "pod-b")


def test_the_guids_of_the_system_dump_match_hosts_where_names_do_not() -> None:
    job = printing("0x08c0eb0300010000", "0x08c0eb0300020000")
    identity = who(capture("n1", serial=1), capture("n2", serial=2), job)
    assert (identity.name("pod-a"), identity.name("pod-b")) == ("n1", "n2")
    assert "GUID 0x08c0eb0300010000" in host(identity, "n1").ties["pod-a"]


def test_a_guid_that_all_machines_show_ties_none() -> None:
    job = printing("0x08c0eb0300010000", "0x08c0eb0300010000")
    identity = who(capture("n1", serial=1), capture("n2", serial=1), job)
    assert identity.name("pod-a") == "pod-a"


def test_captures_that_name_themselves_differently_are_two_machines_whatever_they_share() -> None:
    identity = who(capture("n1", serial=1), capture("n2", serial=1))
    assert not identity.same_machine("n1", "n2")


def test_two_captures_of_one_name_without_a_common_serial_are_said_to_be_two_machines() -> None:
    identity = who(capture("gpu#1", serial=1), capture("gpu#2", serial=2))
    assert [conflict.subject for conflict in identity.conflicts] == ["gpu"]
    assert len(identity.hosts) == 2


def test_two_captures_of_one_machine_are_one_host() -> None:
    identity = who(capture("gpu#1", serial=1), capture("gpu#2", serial=1))
    assert [node.name for node in identity.hosts] == ["gpu"]


def test_a_redacted_capture_is_the_only_host_that_sits_like_it_and_has_no_capture() -> None:
    hidden = capture("host-5fd2a9c07b")
    identity = who(capture("n1"), hidden, on(jobs.job(), "n1", "n2"))
    assert identity.name("host-5fd2a9c07b") == "n2"


def test_a_redacted_capture_of_one_of_two_hosts_alike_is_said_to_be_of_either_and_taken_for_none() -> None:
    identity = who(capture("host-5fd2a9c07b"), on(jobs.job(), "n1", "n2"))
    assert identity.name("host-5fd2a9c07b") == "host-5fd2a9c07b"
    (open_,) = identity.conflicts
    assert "may be of n1, n2: they are built alike" in open_.text


def test_a_capture_with_a_name_of_its_own_is_never_tied_by_its_shape() -> None:
    identity = who(capture("n9"), on(jobs.job(1), "n1"))
    assert identity.name("n9") == "n9"


def test_the_machine_bears_its_own_name_before_that_of_a_pod_a_run_or_a_hostfile() -> None:
    tie = Tie(("node-a", "worker-0"))
    run = BenchRun("all_reduce", (), devices=(BenchDevice(0, "worker-0", 0, bus_id="0000:10:00.0"),))
    identity = who(capture("node-a"), run, layout("node-a", "node-b"), tie)
    assert [(node.name, node.sources) for node in identity.hosts] == [
        ("node-a", ("bundle", "nccl-tests", "hostfile")),
        ("node-b", ("hostfile",)),
    ]


def test_what_cannot_be_mapped_keeps_its_name() -> None:
    identity = who(bare(["n1"]))
    assert identity.name("stranger") == "stranger"
    assert not identity.same_machine("stranger", "n1")


def test_a_kernel_log_that_is_named_for_a_host_is_of_that_host() -> None:
    identity = who(kernel_log("n1", xid(12.0)), bare(["n1"]))
    assert host(identity, "n1").sources == ("log", "kernel log")


def test_the_order_of_the_evidence_changes_no_identity() -> None:
    parts = (capture("n1", serial=1), capture("n2", serial=2), capture("host-5fd2a9c07b"))
    job = printing("0x08c0eb0300010000", "0x08c0eb0300020000")
    assert who(*parts, job) == who(*parts[::-1], job)


def test_localhost_joins_nothing() -> None:
    identity = who(bare(["localhost"]), replace(bare(["localhost"]), name="other"))
    assert len(identity.hosts) == 2


def test_two_jobs_on_the_same_hosts_and_gpus_are_on_the_same_machines() -> None:
    identity = who(capture("n0", serial=1), jobs.job(), jobs.job())
    assert [node.name for node in identity.hosts] == ["n0", "n1"]


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
