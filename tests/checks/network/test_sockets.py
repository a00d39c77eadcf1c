"""NET001 and NET002: sockets instead of RDMA, and interfaces that lead nowhere."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.checks import jobs, nodes
from tests.checks.wanted import Wanted, shown
from tests.tables import examples
from topodiag.checks.network.sockets import SocketsInsteadOfRdma
from topodiag.model.devices import NicRole
from topodiag.model.finding import Confidence, Severity
from topodiag.model.job import Communicator, Job, Process
from topodiag.model.topics import Topic

SOCKET = "NET/Socket"


def only_sockets(rank: int, host: int, process: Process) -> Process:
    return replace(process, hcas=(), network="Socket")


def half(communicator: Communicator) -> Communicator:
    """The log of one node of two."""
    ranks = communicator.ranks.copy()
    ranks[8:] = -1
    return replace(communicator, ranks=ranks, nodes=2)


def second(rank: int, host: int, process: Process) -> Process:
    return only_sockets(rank, host, process) if host == 1 else process


def silent(rank: int, host: int, process: Process) -> Process:
    return replace(process, network="")


def ofi(provider: str) -> Callable[[int, int, Process], Process]:
    message = jobs.message("ofi", f"NET/OFI Selected Provider is {provider} (found 1 nics)")
    return lambda rank, host, process: replace(process, network="AWS Libfabric", messages=(message,), hcas=())


@examples("given", "wanted")
def test_sockets_between_nodes(given: jobs.Given, wanted: Wanted) -> None:
    hooks = {"only_sockets": only_sockets, "half": half, "second": second, "silent": silent, "ofi": ofi}
    assert shown(SocketsInsteadOfRdma().judge(jobs.of_row(given, **hooks)), wanted) == wanted


def with_setting(name: str, value: str) -> Job:
    job = jobs.job(via=SOCKET, process=only_sockets)
    return replace(job, processes=tuple(replace(p, settings={name: jobs.given(name, value)}) for p in job.processes))


@examples("name", "value", "severity")
def test_a_setting_says_that_rdma_devices_are_there_where_it_names_them(
    name: str, value: str, severity: Severity
) -> None:
    (finding,) = SocketsInsteadOfRdma().judge(with_setting(name, value)).findings
    assert finding.severity is severity


@pytest.mark.parametrize(("name", "value"), [("NCCL_IB_DISABLE", "1"), ("NCCL_NET", "Socket")])
def test_a_setting_that_forbids_rdma_is_named_and_is_no_fault_where_no_rdma_device_is_known(
    name: str, value: str
) -> None:
    wanted: Wanted = {"severity": "INFO", "message": f"*{name}={value}*", "fix": f"*{name}*"}
    assert shown(SocketsInsteadOfRdma().judge(with_setting(name, value)), wanted) == wanted


def beside_nics(**changes: object) -> Job:
    job = jobs.job(via=SOCKET, process=only_sockets, **changes)  # type: ignore[arg-type]
    return replace(job, machines={host: replace(nodes.hgx_h100(), host=f"node-{host}") for host in job.hosts})


def test_sockets_on_machines_whose_captures_show_nics_up_are_an_error_with_the_containers_remedy() -> None:
    (finding,) = (
        SocketsInsteadOfRdma()
        .judge(beside_nics(messages=[jobs.message("no hca", "NET/IB : No device found.")]))
        .findings
    )
    assert finding.severity is Severity.ERROR
    assert (
        finding.message == "sockets carry the traffic, although n0, n1 have 8 RDMA NICs up, and NCCL finds none of them"
    )
    assert finding.fix[0].startswith("give the container the RDMA devices of its node")
    assert any(line.source == "made" for line in finding.evidence), "the port's line of the capture"


def test_a_setting_that_forbids_rdma_is_named_before_the_container() -> None:
    (finding,) = SocketsInsteadOfRdma().judge(beside_nics(settings={"NCCL_IB_DISABLE": "1"})).findings
    assert finding.message == "NCCL_IB_DISABLE=1: sockets, although n0, n1 have 8 RDMA NICs up"
    assert not any("container the RDMA" in step for step in finding.fix)


def test_nics_of_the_capture_that_are_down_or_not_for_the_job_are_no_trace_of_rdma() -> None:
    job = beside_nics()
    ports = {host: replace(node, nics=tuple(replace(nic, role=NicRole.MANAGEMENT) for nic in node.nics))
             for host, node in job.machines.items()}  # fmt: skip
    (finding,) = SocketsInsteadOfRdma().judge(replace(job, machines=ports)).findings
    assert (finding.severity, finding.confidence) == (Severity.INFO, Confidence.LOW)


def test_only_captures_of_all_nodes_without_an_adapter_for_rdma_leave_nothing_open() -> None:
    job = beside_nics()
    bare = {host: replace(node, nics=(), told=node.told | {Topic.PCI}) for host, node in job.machines.items()}
    (finding,) = SocketsInsteadOfRdma().judge(replace(job, machines=bare)).findings
    assert (finding.severity, finding.confidence) == (Severity.INFO, Confidence.HIGH)
    (finding,) = SocketsInsteadOfRdma().judge(replace(job, machines={"n0": bare["n0"]})).findings
    assert finding.confidence is Confidence.LOW


def over(interface: str) -> Callable[[int, int, Process], Process]:
    return lambda rank, host, process: replace(only_sockets(rank, host, process), bootstrap=f"{interface}:10.0.0.2<0>")


@pytest.mark.parametrize(("name", "told"), [("ib0", True), ("ibp12s0", True), ("ibs3f1", True), ("eth0", False),
                                            ("ibgw", False), ("enp3s0", False)])  # fmt: skip
def test_a_bootstrap_over_ipoib_is_a_trace_of_rdma_hardware(name: str, told: bool) -> None:
    (finding,) = SocketsInsteadOfRdma().judge(jobs.job(via=SOCKET, process=over(name))).findings
    assert (finding.severity is Severity.WARNING) is told
    assert (f"although {name} is a port of an InfiniBand device" in finding.message) is told
