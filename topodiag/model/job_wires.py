"""The wires between nodes that a job's log shows in use: the kind of network, how many NICs a node gave, their rate."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import fsum
from typing import TYPE_CHECKING

from topodiag.lazy import dataclass
from topodiag.model.devices import NicPort, NicRole, ports_of
from topodiag.words.units import grouped

if TYPE_CHECKING:
    from topodiag.model.job import Hca, Job, Process  # numpy is slow to load, and a run without a log needs none

_NETWORKS = (("socket", "sockets"), ("cxi", "slingshot"), ("libfabric", "cloud"), ("ofi", "cloud"), ("ib", "rdma"))
"""Words in the names of NCCL's networks, and what they are to an expectation."""
UNKNOWN_INTERFACE_GBPS = 10.0
"""What NCCL takes an interface for whose speed the kernel does not tell (NCCL 2.28, src/transport/net_socket.cc,
ncclNetSocketGetSpeed: 10000 Mb/s)."""


@dataclass(frozen=True, slots=True)
class Wires:
    """`kind`: rdma, cloud, slingshot, sockets, None where the log does not say. `nics` are (count of a node, Gb/s of
    each), None where a rate is missing or the rates differ."""

    kind: str | None
    nics: tuple[int, float] | None


def wires_of(jobs: Iterable[Job]) -> Wires:
    """Of the process that lists most NICs: the best that any node showed."""
    processes = [process for job in jobs for process in job.processes]
    if not processes:
        return Wires(None, None)
    most = max(processes, key=lambda process: len(process.hcas))
    network = next((process.network for process in processes if process.network), "")
    kind = "slingshot" if any(hca.name.startswith("cxi") for hca in most.hcas) else _kind_of(network)
    speeds = {hca.speed_mbps for hca in most.hcas}
    speed = speeds.pop() if len(speeds) == 1 else None
    return Wires(kind, (len(most.hcas), speed / 1000) if speed else None)


def nics_of(process: Process) -> dict[int, Hca]:
    """The network devices by their number in connections: virtual NICs, and the ports that are part of none."""
    joined = {port for nic in process.vnics for port in ports_of(nic.name)}
    hcas = {hca.index: hca for hca in process.hcas if hca.name not in joined}
    return hcas | {nic.index: nic for nic in process.vnics}


def _kind_of(name: str) -> str | None:
    return next((kind for word, kind in _NETWORKS if word in name.lower()), None)


def seen_kind(jobs: Iterable[Job]) -> str:
    """The kind of network that logs show in use: by connections (`NET/IB/0`), else by what NCCL chose. "" where they
    show none, or several."""
    jobs = tuple(jobs)
    used = {name for job in jobs for comm in job.communicators for name in comm.transports if name.startswith("NET/")}
    chosen = {process.network for job in jobs for process in job.processes if process.network}
    kinds = {kind for name in used or chosen if (kind := _kind_of(name)) is not None}
    return kinds.pop() if len(kinds) == 1 else ""


def interface_gbps(job: Job) -> float:
    """Gb/s of a node's interfaces as NCCL reckons them; what it takes one for where the log does not print it."""
    return socket_gbs(job) * 8 or UNKNOWN_INTERFACE_GBPS


def socket_gbs(job: Job) -> float:
    """GB/s that NCCL reckons for one node's interfaces, 0 if it did not print them."""
    systems = (system for communicator in job.communicators[:1] for system in communicator.systems.values())
    nets = ([net for net in system.of_kind("NET") if not net.guid.strip("0x")] for system in systems)
    return max((fsum(net.speed_gbs or 0.0 for net in own) for own in nets), default=0.0)


def hosts_on_sockets(job: Job) -> tuple[str, ...]:
    """The hosts of a job over several nodes whose processes took sockets, or found no RDMA device."""
    choosing = (process for process in job.processes if process.network or process.said("no hca"))
    chosen = grouped((process.host, process.network.lower()) for process in choosing)
    on_sockets = tuple(host for host, names in chosen.items() if {*names} <= {"socket", ""})
    return on_sockets if len(job.hosts) > 1 else ()


def nics_up(job: Job, hosts: Sequence[str]) -> dict[str, list[NicPort]]:
    """By host, the active ports of RDMA NICs for the job's traffic that the capture of its machine shows."""
    nic_ports: dict[str, list[NicPort]] = {}
    for host in hosts:
        machine = job.machines.get(host)
        nics = machine.nics if machine is not None else ()
        ports = [port for nic in nics if nic.role is NicRole.COMPUTE and nic.rdma_name for port in nic.ports
                 if port.state.value == "ACTIVE"]  # fmt: skip
        if ports:
            nic_ports[host] = ports
    return nic_ports
