"""NET001 and NET002: sockets instead of RDMA, and interfaces that lead nowhere."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.checks import jobs, nodes
from tests.checks.wanted import Wanted, expect, shown
from tests.tables import examples
from topodiag.checks.network.sockets import SocketsInsteadOfRdma
from topodiag.model.devices import NicRole
from topodiag.model.finding import Severity
from topodiag.model.job import Job, Process
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
