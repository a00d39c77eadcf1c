"""NET001, NET002, NET006 and NET007: sockets, interfaces, searches that collapsed, nodes that differ."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.checks import jobs, nodes
from tests.checks.excerpts import found
from tests.checks.wanted import Wanted, expect, shown
from tests.tables import examples
from topodiag.checks.network.channels import SearchCollapsed, judge_narrow
from topodiag.checks.network.interfaces import unreached
from topodiag.checks.network.interfaces.check import WrongInterface
from topodiag.checks.network.nodes_differ import NodesDiffer
from topodiag.checks.network.sockets import SocketsInsteadOfRdma
from topodiag.model.devices import NicRole
from topodiag.model.finding import Finding, Outcome, Severity, Status
from topodiag.model.job import Channels, Communicator, Hca, Job, Process
from topodiag.model.nccl_view import Graph, NcclSystem
from topodiag.model.node import Node
from topodiag.model.provenance import Topic


def ring(**changes: object) -> Callable[[int, tuple[Graph, ...]], tuple[Graph, ...]]:
    return lambda host, graphs: (jobs.graph(**changes),)


def without_graphs(communicator: Communicator) -> Communicator:
    return replace(communicator, graphs={})


def without_gdr(rank: int, host: int, process: Process) -> Process:
    return replace(process, hcas=tuple(replace(hca, gdr=False) for hca in process.hcas))


@examples("given", "wanted")
def test_a_search_that_collapsed(given: jobs.Given, wanted: Wanted) -> None:
    hooks = {"ring": ring, "without_graphs": without_graphs, "without_gdr": without_gdr}
    assert shown(SearchCollapsed().judge(jobs.of_row(given, **hooks)), wanted) == wanted


def on_second(**changes: object) -> Callable[[int, int, Process], Process]:
    def hook(rank: int, host: int, process: Process) -> Process:
        def changed(hca: Hca) -> Hca:
            return replace(hca, **changes)  # type: ignore[arg-type]

        return replace(process, hcas=tuple(map(changed, process.hcas))) if host == 1 else process

    return hook


def slow_nic(rank: int, host: int, process: Process) -> Process:
    slow = jobs.hca(0, speed_mbps=100_000)
    return replace(process, hcas=(slow, *process.hcas[1:])) if host == 1 else process


def sockets_on_second(rank: int, host: int, process: Process) -> Process:
    return replace(process, network="Socket", hcas=()) if host == 1 else process


def silent(rank: int, host: int, process: Process) -> Process:
    return replace(process, network="", hcas=())


def fewer_channels(communicator: Communicator) -> Communicator:
    return replace(communicator, channels_by_rank={3: Channels(8)})


@examples("given", "wanted")
def test_nodes_that_differ(given: jobs.Given, wanted: Wanted) -> None:
    hooks = {"on_second": on_second, "slow_nic": slow_nic, "sockets_on_second": sockets_on_second, "silent": silent}
    job = jobs.of_row(given, **hooks, fewer_channels=fewer_channels)
    assert shown(NodesDiffer().judge(job), wanted) == wanted


def lost_tree(version: str = "2.27.7", pattern: int = 1, **of_ring: object) -> Finding:
    note = jobs.message("topo note", f"Could not find a path for pattern {pattern}, falling back to simple order")
    rings = ring(**{"channels": 4, "bw_intra": 24.0, "bw_inter": 24.0, **of_ring})
    plain = jobs.job(messages=[note], graphs=rings, systems=lambda host, system: jobs.system(nvlink_gbs=0))
    (finding,) = SearchCollapsed().judge(replace(plain, nccl_versions=(version,))).findings
    return finding


@pytest.mark.parametrize(
    "finding", [lost_tree("2.24.3"), lost_tree("2.29.2"), lost_tree(pattern=4), lost_tree(bw_inter=0.1), lost_tree("")]
)
def test_the_cause_is_named_only_where_that_fault_of_nccl_explains_it(finding: Finding) -> None:
    assert "simple order" in finding.message
    assert not finding.settings


@examples("text", "told")
def test_sockets_that_met_nccls_own_ib_tell_of_two_networks_from_one_nodes_log(text: str, told: str) -> None:
    outcome = NodesDiffer().judge(jobs.job(1, events=[jobs.event("mismatch", text)]))
    if told:
        finding = expect(outcome, severity="ERROR")
        assert told in finding.message
    else:
        assert outcome.status is Status.NOT_APPLICABLE


# --- NET006 by a topology file that makes links of modern GPUs Gen3: told where a file was read, silent where none was

FILE = "/opt/topo/h200.xml"


def system(pci: float = 12.0, **changes: Any) -> NcclSystem:
    nccl_system = jobs.system(**changes)
    return replace(nccl_system, links=tuple(replace(x, gbs=pci) if x.kind == "PCI" else x for x in nccl_system.links))


def told(rank: int, host: int, process: Process) -> Process:
    return replace(process, settings={**process.settings, "NCCL_TOPO_FILE": jobs.given("NCCL_TOPO_FILE", FILE)})


def loaded(rank: int, host: int, process: Process) -> Process:
    line = jobs.message("topo file", f"Loading topology file {FILE}")
    return replace(process, messages=(*process.messages, line))


def made(hook: Any = told) -> Job:
    return jobs.job(process=hook)


def narrow_in(job: Job, seen: NcclSystem) -> list[Finding]:
    return list(judge_narrow(SearchCollapsed(), job, "n0", seen, jobs.graph()))


@pytest.mark.parametrize("hook", [told, loaded])
def test_a_file_by_which_hopper_has_gen3_links_is_named(hook: Any) -> None:
    (finding,) = narrow_in(made(hook), system())
    assert FILE in finding.message
    assert "12 GB/s" in finding.message
    assert finding.message.endswith(" 48")


def test_without_a_file_it_is_a_virtual_machine_or_a_slow_link() -> None:
    assert narrow_in(jobs.job(), system()) == []


@pytest.mark.parametrize(
    "seen",
    [
        system(48.0), system(24.0), system(nvlink_gbs=240.0), system(nvlink_gbs=0.0), system(nic_gbs=12.5),
        system(nics=1), system(gpus=0),
    ],
    ids=["as built", "Gen4", "A100", "no NVLink", "slow NICs", "one NIC", "no GPU"],
)  # fmt: skip
def test_links_as_built_and_networks_that_need_no_more_are_silent(seen: NcclSystem) -> None:
    assert narrow_in(made(), seen) == []


def narrowed(job: Job) -> Outcome:
    """The job with such links in every system that it printed, and rings that fit them."""
    slow: dict[str, Any] = {"channels": 8, "bw_intra": 12.0, "bw_inter": 12.0}
    comms = tuple(
        replace(
            comm,
            systems={host: system() for host in comm.systems},
            graphs={host: tuple(replace(graph, **slow) for graph in graphs) for host, graphs in comm.graphs.items()},
        )
        for comm in job.communicators
    )
    return SearchCollapsed().judge(replace(job, communicators=comms))


def test_the_check_tells_it_once_for_all_nodes_with_what_is_lost() -> None:
    finding = expect(narrowed(made()), severity="WARNING", nodes=("n0", "n1"), gbs_lost=288.0)
    assert finding.settings == (("NCCL_TOPO_FILE", None),)
    assert FILE in finding.message


def test_the_same_figures_without_a_file_are_clean() -> None:
    assert narrowed(jobs.job()).status is Status.CLEAN


SOCKET = "NET/Socket"


def only_sockets(rank: int, host: int, process: Process) -> Process:
    return replace(process, hcas=(), network="Socket")


def second(rank: int, host: int, process: Process) -> Process:
    return only_sockets(rank, host, process) if host == 1 else process


def no_network(rank: int, host: int, process: Process) -> Process:
    return replace(process, network="")


def ofi(provider: str) -> Callable[[int, int, Process], Process]:
    message = jobs.message("ofi", f"NET/OFI Selected Provider is {provider} (found 1 nics)")
    return lambda rank, host, process: replace(process, network="AWS Libfabric", messages=(message,), hcas=())


@examples("given", "wanted")
def test_sockets_between_nodes(given: jobs.Given, wanted: Wanted) -> None:
    hooks = {"only_sockets": only_sockets, "second": second, "silent": no_network, "ofi": ofi}
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
