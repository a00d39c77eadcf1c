"""What several checks of jobs ask of the logs: who crossed nodes over what, which NICs were listed, which settings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from topodiag.checks.interface import MAX_EVIDENCE, hosts_word
from topodiag.checks.shared.job.text import world_of
from topodiag.lazy import dataclass
from topodiag.model.connections import Connections, Ints, Mask, summed
from topodiag.model.finding import Coverage, Finding
from topodiag.model.job import Communicator, Event, GivenSetting, Hca, Job, Process
from topodiag.model.nccl_enums import PathType
from topodiag.model.nccl_view import GPU_LINKS, Graph, NcclSystem, SystemDevice
from topodiag.model.provenance import Origin
from topodiag.words.units import grouped

NEAR = PathType.PXB
"""Farthest path below one PCIe switch hierarchy: where NCCL uses P2P and GPUDirect RDMA by default on any processor."""

OVER_PCI = frozenset({"PIX", "PXB", "PHB", "SYS", "P2C"})
"""Types of paths between GPUs that no NVLink carries."""


MAX_CLIMB = 64
"""Parents that are followed in a printed tree, so that a broken one cannot hold us."""


def most(values: Iterable[int]) -> int:
    """The most frequent value, the larger of two that tie; 0 without any."""
    counted = Counter(values)
    return max(counted, key=lambda value: (counted[value], value), default=0)


def multi_node(job: Job) -> bool:
    """Whether the job has traffic between nodes: more than one host, or a log of some ranks in which NCCL counts more
    than one node. Not where all of them are one NVLink domain."""
    world = job.world
    if world is not None and world.nodes >= 1:
        return world.nodes > 1 and (len(job.hosts) > 1 or len(world.known) < world.nranks)
    return len(job.hosts) > 1


def piece(job: Job) -> bool:
    """Whether the logs are a piece that does not say on how many nodes the job ran."""
    world = job.world
    if world is None or world.inferred:
        return True
    # Before 2.4 ranks that are not the first print little with their rank: their processes are all there.
    whole = len(job.hosts) == 1 and len(job.processes) == world.nranks and len(job.communicators) == 1
    return world.nodes < 0 and len(world.known) < world.nranks and not whole


def one_node(job: Job) -> str:
    """Why a job tells nothing of the network: it has no traffic between nodes, and its logs are no piece of one."""
    return "" if multi_node(job) or piece(job) else "no traffic between nodes"


def only_sockets(job: Job) -> bool:
    """Whether every process that says its network says sockets."""
    return {process.network.lower() for process in job.processes if process.network} == {"socket"}


def by_host(job: Job) -> dict[str, list[tuple[int, Process]]]:
    """Processes with their index, by host, hosts in the job's order."""
    groups = grouped((process.host, (number, process)) for number, process in enumerate(job.processes))
    return {host: groups[host] for host in dict.fromkeys((*job.hosts, *groups)) if host in groups}


def rdma(hca: Hca) -> bool:
    """Whether a listed device is an RDMA one: NET/Socket lists its interfaces with the same words."""
    return hca.link_layer.lower() != "socket" and not is_interface(hca.name)


def is_interface(name: str) -> bool:
    return name.startswith(("eth", "lo", "docker", "br-", "veth", "virbr", "bond", "wlan", "team")) or name == ""


def unopened(job: Job) -> Iterator[tuple[Event, str]]:
    """Lines that say that a node has an RDMA device which the job may not open, with the device."""
    lines = (event for event in job.events if event.host and "unopened" in event.details)
    return ((event, event.details["unopened"]) for event in lines)


def hcas_by_host(job: Job) -> dict[str, dict[str, Hca]]:
    """RDMA ports that the processes of a host listed, by name and port. Hosts that said nothing of theirs are absent;
    a host that said `No device found` has none."""
    hcas: dict[str, dict[str, Hca]] = {}
    for host, group in by_host(job).items():
        seen: dict[str, Hca] = {}
        for _, process in group:
            for hca in process.hcas:
                port = f"{hca.name}:{hca.port}"
                known = seen.get(port)  # processes of a host list the same, so that this tells most at once
                if (known is None or (hca.gdr is not None and known.gdr is None)) and rdma(hca):
                    seen[port] = hca
        if seen or any(process.said("no hca") for _, process in group):
            hcas[host] = seen
    return hcas


def with_cut_lists(job: Job) -> set[str]:
    """Hosts of which no process lists its RDMA ports to the end: what is not there may have stood behind."""
    whole = {process.host for process in job.processes if process.hcas and not process.hcas_cut}
    return {process.host for process in job.processes if process.hcas_cut} - whole


def settings_of(job: Job, *names: str) -> dict[str, list[tuple[int, GivenSetting]]]:
    """Settings in force by name, each with the indexes of the processes; those that NCCL refused are left out."""
    own = ((name, number, process.settings.get(name)) for number, process in enumerate(job.processes) for name in names)
    return grouped((name, (number, given)) for name, number, given in own if given and given.how != "invalid")


def prints_settings(process: Process) -> bool:
    """Whether a process prints what NCCL reads of its environment."""
    return any(given.how == "environment" for given in process.settings.values())


def world_ranks(job: Job, processes: Iterable[int]) -> list[int]:
    """World ranks that ran in these processes, in order."""
    wanted = set(processes)
    return [rank.rank for rank in job.ranks if rank.process in wanted]


def ranks_on(job: Job, hosts: Iterable[str]) -> list[int]:
    wanted = set(hosts)
    return [rank.rank for rank in job.ranks if rank.host in wanted]


def local_ranks(job: Job) -> Mapping[str, int]:
    return Counter(rank.host for rank in job.ranks)


def ranks_per_node(job: Job) -> int:
    """Ranks on the fullest node: as seen, or by NCCL's own count of nodes where only some ranks left a log."""
    seen = max(max(local_ranks(job).values(), default=0), 2 * meets_inside(job))
    world = job.world
    if world is None or world.nodes < 1 or len(world.known) >= world.nranks:
        return seen
    return max(seen, -(-world.nranks // world.nodes))


def meets_inside(job: Job) -> bool:
    """Whether NCCL shows two GPUs of one node, whatever ranks left a log: shared memory reaches no other node, and the
    GPUs to which NCCL refuses peer-to-peer are all of its own node."""
    connections = job.connections
    shared = [at for at, via in enumerate(connections.vias) if transport_kind(via) == "SHM"]
    return bool(shared and np.isin(connections.flows.via, shared).any()) or any(True for _ in said_by(job, "p2p off"))


def transport_kind(via: str) -> str:
    """The transport without its details: P2P, SHM, NET/IB, NET/Socket, NET/AWS Libfabric."""
    parts = via.split("/")
    return "/".join(parts[:2]) if parts[0] == "NET" else parts[0]


def between_nodes(conns: Connections) -> Mask:
    """Entries over the network between two hosts."""
    across: Mask = conns.over(_over_network) & ((conns.host < 0) | (conns.host != conns.peer_host))
    return across


def inside_nodes(conns: Connections) -> Mask:
    """Entries between two ranks of one host; shared memory says so by itself, whatever is known of the peer."""
    known = (conns.host >= 0) & (conns.host == conns.peer_host)
    unnamed = (conns.host < 0) | (conns.peer_host < 0)
    inside: Mask = (known | (unnamed & conns.over(lambda via: via.startswith("SHM")))) & (conns.rank != conns.peer)
    return inside


def _over_network(via: str) -> bool:
    return via.startswith("NET/")


@dataclass(frozen=True, slots=True)
class NetUse:
    """Entries between nodes whose NIC is one of `host` ("" unknown): how many, and the number of the first."""

    host: str
    via: str
    direction: int
    entries: int
    first: int


def net_uses(conns: Connections) -> list[NetUse]:
    """By host of the NIC, via and direction, in the order of the log."""
    flows = conns.flows
    over = np.array([_over_network(via) for via in conns.vias] or [False], bool)[flows.via]
    chosen = np.flatnonzero(over & ((flows.host < 0) | (flows.host != flows.peer_host)))
    side = np.where(flows.direction == 2, flows.peer_host, flows.host)[chosen]
    columns = (side, flows.via[chosen], flows.direction[chosen])
    counted = summed(columns, flows.entries[chosen], flows.lines[chosen], flows.first[chosen])
    return [
        NetUse(host_name(conns, host), conns.vias[via], direction, entries, first)
        for host, via, direction, entries, _, first in zip(*(column.tolist() for column in counted), strict=True)
    ]


def host_name(conns: Connections, number: int) -> str:
    return conns.hosts[number] if 0 <= number < len(conns.hosts) else ""


@dataclass(frozen=True, slots=True)
class NicSide:
    """The side whose NIC some entries name, the sender's, or the receiver's of receive lines: index of the host,
    communicator rank and world rank, one of each per entry."""

    host: Ints
    rank: Ints
    world: Ints


def nic_side(conns: Connections, at: Ints) -> NicSide:
    received = conns.direction[at] == 2
    return NicSide(
        np.where(received, conns.peer_host[at], conns.host[at]),
        np.where(received, conns.peer[at], conns.rank[at]),
        np.where(received, conns.world_peer[at], conns.world[at]),
    )


@dataclass(frozen=True, slots=True)
class SystemPrint:
    """NCCL's print of one host. Its ranks are those of `communicator`, None where the log does not say which."""

    host: str
    system: NcclSystem
    graphs: tuple[Graph, ...]
    communicator: Communicator | None

    def world_rank(self, gpu: SystemDevice) -> int:
        """The world rank of a GPU vertex, -1 unknown."""
        return world_of(self.communicator, gpu.rank) if self.communicator is not None else -1


def prints(job: Job) -> Iterator[SystemPrint]:
    """One print per host: that of the first communicator that made it, the world's if it did, else of a process."""
    done: set[str] = set()
    for communicator in job.communicators:
        for host, system in communicator.systems.items():
            if host not in done:
                done.add(host)
                yield SystemPrint(host, system, communicator.graphs.get(host, ()), communicator)
    for process in job.processes:
        if process.system is not None and process.host not in done:
            done.add(process.host)
            yield SystemPrint(process.host, process.system, process.graphs, None)


def ranks_and_labels(job: Job, printed: SystemPrint, names: Iterable[str]) -> tuple[list[int], list[str]]:
    """The world ranks on these GPUs of a print, as far as they are known, and the GPUs' labels."""
    worlds = {name: printed.world_rank(printed.system.devices[name]) for name in names}
    labels = [gpu_word(job, world) or name for name, world in worlds.items()]
    return [world for world in worlds.values() if world >= 0], labels


def topology_file(job: Job) -> tuple[str, Origin | None]:
    """The topology file of the job and the line that names it, "" without one."""
    for line in said_by(job, "topo file"):
        if "Loading topology" in line.text:
            return line.text.rpartition("file ")[2].strip(), line.origin
    for given in settings_of(job, "NCCL_TOPO_FILE").values():
        return given[0][1].value, given[0][1].origin
    return "", None


def views(job: Job) -> dict[tuple[int, str], NcclSystem]:
    """Systems by index of the communicator and host, for the ranks of its connections. Where the log names no
    communicator at all, its connections and its prints are of the same one, -1."""
    if job.communicators:
        return {(comm.index, host): system for comm in job.communicators for host, system in comm.systems.items()}
    return {(-1, system_print.host): system_print.system for system_print in prints(job)}


def gpu_of(system: NcclSystem, rank: int) -> SystemDevice | None:
    return next((gpu for gpu in system.of_kind("GPU") if gpu.rank == rank), None)


def cpu_of(system: NcclSystem, device: SystemDevice) -> str:
    """The CPU vertex that a device hangs below, "" if the print does not say."""
    for _ in range(MAX_CLIMB):
        if device.kind == "CPU":
            return device.name
        above = system.devices.get(device.parent)
        if above is None:
            return ""
        device = above
    return ""


def nvlink_gbs(system: NcclSystem) -> dict[str, float]:
    """GB/s of NVLink by GPU, 0 for one without."""
    rates = {gpu.name: 0.0 for gpu in system.of_kind("GPU")}
    for link in system.links:
        if link.kind in GPU_LINKS and link.a in rates:
            rates[link.a] += link.gbs
    return rates


def pcie_gbs(system: NcclSystem) -> list[float]:
    """GB/s of the PCIe link of each GPU; a tree prints it at the vertex above."""
    gpus = {gpu.name for gpu in system.of_kind("GPU")}
    return [link.gbs for link in system.links if link.kind == "PCI" and link.b in gpus]


def path_between(system: NcclSystem, a: str, b: str) -> PathType | None:
    return system.paths.get((a, b), system.paths.get((b, a)))


def gpu_word(job: Job, world_rank: int) -> str:
    """`GPU3` by its number on its node; "" when the log does not say."""
    rank = job.by_rank.get(world_rank)
    if rank is None:
        return ""
    number = rank.nvml_dev if rank.nvml_dev >= 0 else rank.cuda_dev
    return f"GPU{number}" if number >= 0 else ""


@dataclass(frozen=True, slots=True)
class Line(Event):
    """A message of a process, or of a communicator: `process` -1, no host."""

    process: int = -1


def said_by(job: Job, *kinds: str) -> Iterator[Line]:
    """Messages of these kinds: of each those of processes, by index, then those of communicators."""
    for kind in kinds:
        for number, message in job.messages.get(kind, ()):
            process, details = job.processes[number], message.details
            yield Line(
                kind, message.text, process.host, process.pid, level="INFO", details=details, origin=message.origin,
                process=number,
            )  # fmt: skip
        for message in (message for communicator in job.communicators for message in communicator.messages):
            if message.kind == kind:
                yield Line(kind, message.text, "", level="INFO", details=message.details, origin=message.origin)


def named_by(job: Job, fact: str, *kinds: str) -> Iterator[Line]:
    """Messages of these kinds that say or name a fact (evidence/nccl_log/grammar/facts.toml)."""
    return (line for line in said_by(job, *kinds) if fact in line.details)


def fold(findings: Sequence[Finding]) -> list[Finding]:
    """Findings of single nodes, `node: text`, that say the same of several nodes made into one; costs are a node's."""
    texts = ((finding.message.partition(": ")[2], finding) for finding in findings)
    groups = grouped(((finding.severity, text, finding.where.gpus), finding) for text, finding in texts)
    return [_folded(text, group) for (_, text, _), group in groups.items()]


def _folded(text: str, group: Sequence[Finding]) -> Finding:
    first = group[0]
    if len(group) == 1:
        return first
    coverage = first.coverage
    if coverage is not None and any(finding.coverage is not coverage for finding in group):
        parts = [finding.coverage for finding in group if finding.coverage is not None]
        coverage = Coverage(sum(part.seen for part in parts), sum(part.total for part in parts), coverage.what)
    where = replace(
        first.where,
        nodes=tuple(dict.fromkeys(node for finding in group for node in finding.where.nodes)),
        ranks=tuple(sorted({rank for finding in group for rank in finding.where.ranks})),
        nics=tuple(dict.fromkeys(nic for finding in group for nic in finding.where.nics)),
    )
    return replace(
        first,
        message=f"{hosts_word(where.nodes)}: {text}",
        where=where,
        coverage=coverage,
        evidence=tuple(dict.fromkeys(place for finding in group for place in finding.evidence[:2]))[:MAX_EVIDENCE],
        confidence=min(finding.confidence for finding in group),
    )
