"""NET001 and NET002: sockets instead of RDMA, and interfaces and addresses that lead to no other node."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.checks import jobs, nodes
from tests.checks.excerpts import found
from tests.checks.wanted import Wanted, expect, shown
from tests.tables import examples
from topodiag.checks.network.interfaces import unreached
from topodiag.checks.network.interfaces.check import WrongInterface
from topodiag.checks.network.sockets import SocketsInsteadOfRdma
from topodiag.model.devices import NicRole
from topodiag.model.finding import Severity, Status
from topodiag.model.job import Communicator, Job, Process
from topodiag.model.node import Node
from topodiag.model.provenance import Topic

SOCKET = "NET/Socket"


def only_sockets(rank: int, host: int, process: Process) -> Process:
    return replace(process, hcas=(), network="Socket")


def second(rank: int, host: int, process: Process) -> Process:
    return only_sockets(rank, host, process) if host == 1 else process


def silent(rank: int, host: int, process: Process) -> Process:
    return replace(process, network="")


def ofi(provider: str) -> Callable[[int, int, Process], Process]:
    message = jobs.message("ofi", f"NET/OFI Selected Provider is {provider} (found 1 nics)")
    return lambda rank, host, process: replace(process, network="AWS Libfabric", messages=(message,), hcas=())


@examples("given", "wanted")
def test_sockets_between_nodes(given: jobs.Given, wanted: Wanted) -> None:
    hooks = {"only_sockets": only_sockets, "second": second, "silent": silent, "ofi": ofi}
    assert shown(SocketsInsteadOfRdma().judge(jobs.of_row(given, **hooks)), wanted) == wanted


def with_setting(name: str, value: str) -> Job:
    job = jobs.job(via=SOCKET, process=only_sockets)
    return replace(job, processes=tuple(replace(p, settings={name: jobs.given(name, value)}) for p in job.processes))


@examples("name", "value", "severity")
def test_a_setting_says_that_rdma_devices_are_there_where_it_names_them(
    name: str, value: str, severity: Severity
) -> None:
    expect(SocketsInsteadOfRdma().judge(with_setting(name, value)), severity=severity.name)


MACHINES: dict[str, Callable[[Node], Node]] = {
    "with NICs": lambda node: node,
    "with NICs of management": lambda node: replace(
        node, nics=tuple(replace(nic, role=NicRole.MANAGEMENT) for nic in node.nics)
    ),
    "without NICs": lambda node: replace(node, nics=(), topics=node.topics | {Topic.PCI}),
}


@examples("given", "captured", "machine", "wanted")
def test_sockets_beside_captures(given: jobs.Given, captured: list[str], machine: str, wanted: Wanted) -> None:
    """A job over sockets that lists no device, beside captures of some of its nodes."""
    job = jobs.of_row({"via": SOCKET, "process": "only_sockets", **given}, only_sockets=only_sockets)
    machines = {host: MACHINES[machine](replace(nodes.hgx_h100(), host=f"node-{host}")) for host in captured}
    assert shown(SocketsInsteadOfRdma().judge(replace(job, machines=machines)), wanted) == wanted


def over(interface: str) -> Callable[[int, int, Process], Process]:
    return lambda rank, host, process: replace(only_sockets(rank, host, process), bootstrap=f"{interface}:10.0.0.2<0>")


@pytest.mark.parametrize(("name", "told"), [("ib0", True), ("ibp12s0", True), ("ibs3f1", True), ("eth0", False),
                                            ("ibgw", False), ("enp3s0", False)])  # fmt: skip
def test_a_bootstrap_over_ipoib_is_a_trace_of_rdma_hardware(name: str, told: bool) -> None:
    (finding,) = SocketsInsteadOfRdma().judge(jobs.job(via=SOCKET, process=over(name))).findings
    assert (finding.severity is Severity.WARNING) is told
    assert (f"although {name} is a port of an InfiniBand device" in finding.message) is told


# --- NET002: interfaces and addresses that lead to no other node


LOOPED = "RuntimeError: Gloo connectFullMesh failed with [pair.cc:152] refused, remote=[{}]:26117 (rank=1, size={})"


def on(interface: str) -> Callable[[int, int, Process], Process]:
    return lambda rank, host, process: replace(process, bootstrap=f"{interface}:172.17.0.1<0>")


@examples("name")
def test_an_interface_that_leads_nowhere_is_named(name: str) -> None:
    outcome = WrongInterface().judge(jobs.job(process=on(name)))
    finding = expect(outcome, severity="WARNING")
    assert name in finding.message
    assert WrongInterface().judge(jobs.job(1, process=on(name))).status is Status.NOT_APPLICABLE


def unfinished(communicator: Communicator) -> Communicator:
    return replace(communicator, completed=np.zeros(communicator.nranks, bool))


def at(*bootstraps: str) -> Callable[[int, int, Process], Process]:
    """The bootstrap of each host."""
    return lambda rank, host, process: replace(process, bootstrap=bootstraps[host])


def sockets(rank: int, host: int, process: Process) -> Process:
    """A data socket on a network of containers."""
    line = jobs.message("sockets", "NET/Socket : Using [0]eth1:172.17.0.2<0>")
    return replace(process, network="Socket", messages=(line,))


HOOKS: dict[str, Any] = {
    "on": on, "at": at, "unfinished": unfinished, "sockets": sockets
}  # fmt: skip


@examples("given", "wanted")
def test_interfaces_over_which_ranks_meet(given: jobs.Given, wanted: Wanted) -> None:
    assert shown(WrongInterface().judge(jobs.of_row(given, **HOOKS)), wanted) == wanted


@examples("first", "second")
def test_an_address_that_leads_to_no_other_node_is_an_error_where_ranks_do_not_meet(first: str, second: str) -> None:
    outcome = WrongInterface().judge(jobs.job(process=at(first, second), world=unfinished))
    finding = expect(outcome, severity="ERROR", message="*leads to no other node*")
    assert finding.where.nodes[0] == "n0"
    assert WrongInterface().judge(jobs.job(process=at(first, second))).status is Status.CLEAN


@examples("first", "second")
def test_an_address_that_may_be_right_is_left_alone(first: str, second: str) -> None:
    job = jobs.job(process=at(first, second), world=unfinished)
    assert not any("leads to no other node" in finding.message for finding in WrongInterface().judge(job).findings)


def _piece(interface: str, data: str = "veth7a:169.254.60.11<0> [1]eth0:10.20.0.5<0>") -> list[str]:
    findings = found(
        "NET002",
        f"b0f1:61:61 [0] NCCL INFO Bootstrap : Using {interface}",
        "b0f1:61:98 [0] NCCL INFO NET/IB : No device found.",
        f"b0f1:61:98 [0] NCCL INFO NET/Socket : Using [0]{data}",
        "b0f1:61:98 [0] NCCL INFO Using network Socket",
    )
    return [finding.message for finding in findings]


def test_a_piece_that_meets_over_an_interface_of_its_own_host_is_told_as_a_possibility() -> None:
    assert _piece("veth7a:169.254.60.11<0>") == [
        "b0f1 meets its peers over veth7a, which other nodes do not reach, though eth0 is there"
    ]


def test_a_piece_with_no_other_interface_or_with_a_usual_one_is_left_alone() -> None:
    assert not _piece("veth7a:169.254.60.11<0>", "veth7a:169.254.60.11<0>")
    assert not _piece("eth0:10.20.0.5<0>")


@examples("value", "why")
def test_gloo_without_its_interface_names_the_variable_and_what_is_wrong_with_its_value(value: str, why: str) -> None:
    (finding,) = found("NET002", f"[rank3]: RuntimeError: [enforce fail] Unable to find address for: {value}")
    assert f"no interface {value} (GLOO_SOCKET_IFNAME)" in finding.message
    assert why in finding.message


@pytest.mark.parametrize("remote", ["10.2.7.9", "10.127.0.1", "2001:db8::7"])
def test_gloo_that_is_refused_at_an_address_of_the_network_is_not_over_loopback(remote: str) -> None:
    assert not found("NET002", LOOPED.format(remote, 16))


def test_the_addresses_of_a_process_are_asked_for_once_however_many_errors_there_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(unreached, "addresses_of", lambda process: asked.append(process.host) or set())
    storm = jobs.job(2, 4, events=[jobs.event("other", f"error {number}") for number in range(100)])
    assert list(unreached.by_own_bridge(WrongInterface(), storm)) == []
    assert len(asked) == len(storm.processes)
