"""Checks of jobs on pieces of logs, as people paste them: processes without ranks, communicators or connections."""

from __future__ import annotations

from dataclasses import replace

from tests.checks import jobs
from topodiag.checks.env.job import CostlySettingInLog
from topodiag.checks.gpudirect.job import GdrOffInLog
from topodiag.checks.host.job import NicOnOtherSocket
from topodiag.checks.interface import JobCheck
from topodiag.checks.network.channels import SearchCollapsed
from topodiag.checks.network.interfaces.check import WrongInterface
from topodiag.checks.network.plugin import PluginNotLoaded
from topodiag.checks.network.sockets import SocketsInsteadOfRdma
from topodiag.checks.p2p.shm import ShmInsteadOfP2p
from topodiag.checks.topo.job_tree import DeviceTwice, GpuShortOfNvlinks, GuessedTopology
from topodiag.evidence.nccl_log.rebuild.process import process_of
from topodiag.model.connections import no_connections
from topodiag.model.finding import Confidence, Finding, Severity, Status
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


def test_interfaces_listed_after_no_device_mean_sockets() -> None:
    assert said("n0", NO_HCA, SOCKETS).network == "Socket"
    assert not said("n0", SOCKETS).network


def test_one_process_without_rdma_device_is_told_as_information() -> None:
    [finding] = found(SocketsInsteadOfRdma(), piece(said("n0", NO_HCA, SOCKETS)))
    assert finding.severity is Severity.INFO
    assert "found no RDMA device" in finding.message
    assert not found(SocketsInsteadOfRdma(), piece(said("n0", SOCKETS)))


def test_link_local_here_and_another_network_there_is_an_error() -> None:
    local = said("n0", ("bootstrap", "Bootstrap : Using ib0:fe80::a288:c203:d2:aaf2%ib0<0>"))
    other = said("n1", ("bootstrap", "Bootstrap : Using bond0:192.0.2.8<0>"))
    [finding] = found(WrongInterface(), piece(local, other))
    assert (finding.severity, finding.where.nodes) == (Severity.ERROR, ("n0",))
    assert not found(WrongInterface(), piece(local, replace(local, host="n1")))


def test_the_interface_of_old_versions_counts_as_that_of_the_bootstrap() -> None:
    loopback = said("n0", ("bootstrap", "NET : Using interface lo:127.0.0.1<0>"))
    [finding] = found(WrongInterface(), piece(loopback, said("n1")))
    assert finding.where.nics == ("lo",)


def test_a_node_without_a_route_is_told_and_a_refused_connection_is_not() -> None:
    process = said("n0", ("bootstrap", "Bootstrap : Using eth0:192.0.2.8<0>"))
    text = "Net : Connect to 192.0.2.9<54263> failed : No route to host"
    event = jobs.event("connect", text, pid=7, details={"peer": "192.0.2.9<54263>"})
    [finding] = found(WrongInterface(), piece(process, events=(event,)))
    assert "cannot reach 192.0.2.9<54263> over eth0" in finding.message
    text = "Net : Connect to 192.0.2.9<54263> failed : Connection refused"
    refused = jobs.event("connect", text, pid=7, details={"peer": "192.0.2.9<54263>"})
    assert not found(WrongInterface(), piece(process, events=(refused,)))
    started = replace(jobs.job(2, 1), events=(event,))
    assert not found(WrongInterface(), started)


def test_a_plugin_that_gave_up_is_told_less_surely_where_nccls_own_search_is_not_seen() -> None:
    event = jobs.event("plugin", "NET/OFI aws-ofi-nccl initialization failed", pid=7)
    [finding] = found(PluginNotLoaded(), piece(said("n0", NO_HCA), events=(event,)))
    assert "does not start" in finding.message
    assert finding.confidence is Confidence.HIGH
    [report] = found(PluginNotLoaded(), piece(said("n0"), events=(event,)))
    assert report.confidence is Confidence.MEDIUM
    other = replace(said("n0"), network="AWS Libfabric")
    assert not found(PluginNotLoaded(), piece(other, events=(event,))), "a plugin carries the traffic after all"


def test_refused_pairs_need_no_ranks() -> None:
    text = "P2P is disabled between connected GPUs 0 and 2. You can repress this message"
    [finding] = found(ShmInsteadOfP2p(), piece(said("n0", ("p2p off", text))))
    assert finding.severity is Severity.WARNING


def test_settings_of_unknown_machines_are_information() -> None:
    costly = {"NCCL_CUMEM_ENABLE": "0", "NCCL_IBEXT_DISABLE": "1", "NCCL_P2P_DISABLE": "1", "NCCL_P2P_LEVEL": "LOC"}
    for name, value in costly.items():
        process = said("n0", ("setting", f"{name} set by environment to {value}{'.' if value.isdecimal() else ''}"))
        [finding] = found(CostlySettingInLog(), piece(process))
        assert finding.severity is Severity.INFO


def test_notes_of_the_topology_alone_are_information() -> None:
    for text in ("Topology detection : could not read /sys/devices/pci0000:03/max_link_speed, ignoring",
                 "Could not find real path of /sys/class/pci_bus/0000:4f/../../0000:4f:00.0"):  # fmt: skip
        noted = said("n0", ("topo note", text))
        [finding] = found(GuessedTopology(), piece(noted))
        assert finding.severity is Severity.INFO
        bare = jobs.system(gpus=1, nics=1)
        without = replace(bare, devices={name: device for name, device in bare.devices.items() if device.kind != "PCI"})
        assert found(GuessedTopology(), piece(replace(noted, system=without))) == [finding]
        assert not found(GuessedTopology(), piece(replace(noted, system=bare)))


def test_interfaces_without_a_device_are_no_gap_of_the_topology() -> None:
    text = "Could not find real path of /sys/class/net/lo/device"
    assert not found(GuessedTopology(), piece(said("n0", ("topo note", text))))


def test_a_path_that_nccl_warns_of_is_a_gap_of_the_topology() -> None:
    text = "Could not find real path of /sys/class/pci_bus/fffffff/../../fffffff:ffff"
    [finding] = found(GuessedTopology(), piece(said("n0"), events=(jobs.event("other", text, pid=7),)))
    assert finding.where.nodes == ("n0",)


def test_a_sender_with_gdr_and_a_receiver_without_is_one_node_without_gdr() -> None:
    rows = [
        {"comm": -1, "rank": 0, "peer": 1, "via": "NET/IB/GDRDMA", "direction": 1, "host": 0, "peer_host": -1},
        {"comm": -1, "rank": 0, "peer": 1, "via": "NET/IB", "direction": 2, "host": -1, "peer_host": 1},
    ]
    job = replace(piece(said("n0"), said("n1")), connections=jobs.connections(rows, ("n0", "n1"), 1))
    [finding] = found(GdrOffInLog(), job)
    assert finding.where.nodes == ("n1",)


def test_devices_without_gdr_are_told_for_a_piece_of_a_job() -> None:
    process = said("n0", ("hcas", "NET/IB : Using [0]mlx5_0:1/RoCE [RO]; OOB bond0:198.51.100.10<0>"),
                   ("gdr hca", "NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_0'"))  # fmt: skip
    [finding] = found(GdrOffInLog(), piece(process))
    assert finding.where.nics == ("mlx5_0",)


def printed(system: NcclSystem, *graphs: Graph) -> Process:
    return replace(said("n0"), system=system, graphs=graphs)


def with_nvlink(system: NcclSystem, gpu: str, gbs: float) -> NcclSystem:
    links = tuple(replace(link, gbs=gbs) if link.kind == "NVL" and link.a == gpu else link for link in system.links)
    return replace(system, links=links)


def test_a_gpu_short_of_nvlinks_is_seen_in_a_print_without_communicator() -> None:
    system = jobs.system()
    assert GpuShortOfNvlinks().judge(piece(printed(system))).status is Status.CLEAN
    gpu = system.of_kind("GPU")[3].name
    [finding] = found(GpuShortOfNvlinks(), piece(printed(with_nvlink(system, gpu, 247.2))))
    assert (finding.severity, finding.where.nodes, finding.where.gpus) == (Severity.ERROR, ("n0",), (gpu,))
    assert finding.where.ranks == ()


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
    [finding] = found(NicOnOtherSocket(), job)
    assert finding.severity is Severity.INFO
