"""Checks of jobs on pieces of logs, as people paste them: processes without ranks, communicators or connections."""

from dataclasses import replace
from typing import Any

from tests.checks import jobs
from tests.checks.wanted import Wanted, expect, shown
from tests.tables import examples
from topodiag.checks.env.job import CostlySettingInLog
from topodiag.checks.gpudirect.job import GdrOffInLog
from topodiag.checks.host.job import NicOnOtherSocket
from topodiag.checks.interface import JobCheck
from topodiag.checks.network.channels import SearchCollapsed
from topodiag.checks.network.interfaces.check import WrongInterface
from topodiag.checks.network.plugin import PluginNotLoaded
from topodiag.checks.network.sockets import SocketsInsteadOfRdma
from topodiag.checks.p2p.job import ShmInsteadOfP2p
from topodiag.checks.topo.job import DeviceTwice, GpuShortOfNvlinks, GuessedTopology
from topodiag.evidence.nccl_log.rebuild.process import process_of
from topodiag.model.connections import no_connections
from topodiag.model.finding import Finding, Status
from topodiag.model.job import Event, Job, Process
from topodiag.model.nccl_view import Graph, NcclSystem


def piece(*processes: Process, events: tuple[Event, ...] = ()) -> Job:
    return replace(
        jobs.job(1, 1),
        world_size=-1,
        ranks=(),
        communicators=(),
        processes=processes,
        connections=no_connections(),
        events=events,
        hosts=tuple(sorted({process.host for process in processes})),
        unplaced=tuple(range(len(processes))),
        subsystems=frozenset({"INIT"}),
    )


def said(host: str, *lines: tuple[str, str], pid: int = 7) -> Process:
    return process_of(host, pid, [(kind, text, jobs.origin(text), 1) for kind, text in lines], {})


def found(check: JobCheck, job: Job) -> list[Finding]:
    return list(check.judge(job).findings)


NO_HCA = ("no hca", "NET/IB : No device found.")
SOCKETS = ("sockets", "NET/Socket : Using [0]ens5:192.0.2.112<0>")


CHECKS = {
    check.__name__: check
    for check in (
        CostlySettingInLog, GdrOffInLog, SocketsInsteadOfRdma, WrongInterface, PluginNotLoaded, ShmInsteadOfP2p,
        GuessedTopology,
    )
}  # fmt: skip


@examples("check", "processes", "events", "wanted")
def test_a_piece_of_a_job(check: str, processes: list[Any], events: list[Any] | None, wanted: Wanted) -> None:
    """Each process by its host, the kinds and texts of its lines, and the network that it uses."""
    made = [
        replace(said(host, *(tuple(line) for line in lines)), **({"network": network[0]} if network else {}))
        for host, lines, *network in processes
    ]
    told = tuple(jobs.event(kind, text, pid=7, **(more[0] if more else {})) for kind, text, *more in events or ())
    assert shown(CHECKS[check]().judge(piece(*made, events=told)), wanted) == wanted


def test_interfaces_listed_after_no_device_mean_sockets() -> None:
    assert said("n0", NO_HCA, SOCKETS).network == "Socket"
    assert not said("n0", SOCKETS).network


def test_a_job_that_came_up_has_a_route() -> None:
    text = "Net : Connect to 192.0.2.9<54263> failed : No route to host"
    event = jobs.event("connect", text, pid=7, details={"peer": "192.0.2.9<54263>"})
    assert not found(WrongInterface(), replace(jobs.job(2, 1), events=(event,)))


def test_notes_of_the_topology_alone_are_information() -> None:
    for text in ("Topology detection : could not read /sys/devices/pci0000:03/max_link_speed, ignoring",
                 "Could not find real path of /sys/class/pci_bus/0000:4f/../../0000:4f:00.0"):  # fmt: skip
        noted = said("n0", ("topo note", text))
        finding = expect(found(GuessedTopology(), piece(noted)), severity="INFO")
        bare = jobs.system(gpus=1, nics=1)
        without = replace(bare, devices={name: device for name, device in bare.devices.items() if device.kind != "PCI"})
        assert found(GuessedTopology(), piece(replace(noted, system=without))) == [finding]
        assert not found(GuessedTopology(), piece(replace(noted, system=bare)))


def test_a_sender_with_gdr_and_a_receiver_without_is_one_node_without_gdr() -> None:
    rows = [
        {"comm": -1, "rank": 0, "peer": 1, "via": "NET/IB/GDRDMA", "direction": 1, "host": 0, "peer_host": -1},
        {"comm": -1, "rank": 0, "peer": 1, "via": "NET/IB", "direction": 2, "host": -1, "peer_host": 1},
    ]
    job = replace(piece(said("n0"), said("n1")), connections=jobs.connections(rows, ("n0", "n1"), 1))
    expect(found(GdrOffInLog(), job), nodes=("n1",))


def printed(system: NcclSystem, *graphs: Graph) -> Process:
    return replace(said("n0"), system=system, graphs=graphs)


def with_nvlink(system: NcclSystem, gpu: str, gbs: float) -> NcclSystem:
    links = tuple(replace(link, gbs=gbs) if link.kind == "NVL" and link.a == gpu else link for link in system.links)
    return replace(system, links=links)


def test_a_gpu_short_of_nvlinks_is_seen_in_a_print_without_communicator() -> None:
    system = jobs.system()
    assert GpuShortOfNvlinks().judge(piece(printed(system))).status is Status.CLEAN
    gpu = system.of_kind("GPU")[3].name
    outcome = found(GpuShortOfNvlinks(), piece(printed(with_nvlink(system, gpu, 247.2))))
    expect(outcome, severity="ERROR", nodes=("n0",), gpus=(gpu,), ranks=())


def test_a_nic_that_is_there_twice_is_seen_in_a_print_without_communicator() -> None:
    system = jobs.system()
    first, second, *_ = system.of_kind("NET")
    devices = {**system.devices, second.name: replace(second, guid="77"), first.name: replace(first, guid="77")}
    [finding] = found(DeviceTwice(), piece(printed(replace(system, devices=devices))))
    assert first.name in finding.message


def test_a_collapsed_search_is_seen_in_a_print_without_communicator() -> None:
    inside = (("GPU/0-10000", "GPU/0-20000"),)
    slow = jobs.graph(channels=2, bw_intra=12.0, bw_inter=12.0, type_intra="SYS", orders=inside)
    [finding] = found(SearchCollapsed(), piece(printed(jobs.system(), slow)))
    assert "2 x 12 GB/s where the NVLinks have 370.8" in finding.message
    over_net = (("NET/0-0", "GPU/0-10000", "NET/0-0"),)
    assert not found(SearchCollapsed(), piece(printed(jobs.system(), jobs.graph(orders=over_net))))
    assert SearchCollapsed().judge(piece(printed(jobs.system(), jobs.graph()))).status is not Status.FINDING


def test_a_nic_of_the_other_socket_is_seen_in_a_print_without_communicator() -> None:
    far = jobs.system(gpus=8, nics=4)  # the NICs of a machine of eight slots: all below the first CPU
    row = {"comm": -1, "rank": 7, "peer": 9, "via": "NET/IB", "net_dev": 1, "direction": 1, "host": 0, "peer_host": -1}
    job = replace(piece(printed(far)), connections=jobs.connections([row], ("n0",), 8))
    expect(found(NicOnOtherSocket(), job), severity="INFO")
