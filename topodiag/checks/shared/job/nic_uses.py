"""Which NIC a GPU's traffic between nodes leaves by, and NICs of a job's hosts that another job or a capture shows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from string import hexdigits

import numpy as np

from topodiag.checks.shared.job import logs
from topodiag.lazy import dataclass
from topodiag.model.connections import distinct
from topodiag.model.devices import NicRole, ports_of
from topodiag.model.finding import Cost, Where
from topodiag.model.job import GivenSetting, Hca, Job
from topodiag.model.job_wires import nics_of
from topodiag.model.nccl_view import NcclSystem, SystemDevice
from topodiag.words.units import grouped, in_gbs


def nics_by_host(job: Job) -> dict[str, dict[int, Hca]]:
    """The RDMA devices of each host by their number in connections: virtual NICs instead of their ports."""
    hcas: dict[str, dict[int, Hca]] = defaultdict(dict)
    for process in job.processes:
        for number, nic in nics_of(process).items():
            if logs.rdma(nic):
                hcas[process.host].setdefault(number, nic)
    return dict(hcas)


@dataclass(frozen=True, slots=True)
class NicUse:
    """What a GPU sends or receives by one NIC, both as the host's print has them: the first such entry, how many, the
    world rank (-1 unknown), the names of the host's NICs by vertex where a line has them. `label`: of the GPU."""

    entry: int
    entries: int
    host: str
    world: int
    system: NcclSystem
    gpu: SystemDevice
    net: SystemDevice
    names: Mapping[str, str]
    label: str

    @property
    def ports(self) -> tuple[str, ...]:
        """The ports of the NIC, () unknown."""
        return ports_of(self.names[self.net.name]) if self.net.name in self.names else ()


def nic_uses(job: Job, *, send_recv: bool) -> Iterator[NicUse]:
    """Traffic between nodes by GPU and NIC, without PXN; `send_recv`: also what is not for collectives. A use may come
    again, further down in the log."""
    conns = job.connections
    view = {
        key: system for key, system in logs.views(job).items() if system.of_kind("GPU") and system.of_kind("NET")
    }  # fmt: skip
    listed = nics_by_host(job)
    names = {
        key: {net.name: listed[key[1]][dev].name for net in system.of_kind("NET")
              if (dev := _number(net)) in listed.get(key[1], {})}
        for key, system in view.items()
    }  # fmt: skip
    for batch in conns.batches() if view else ():
        wanted = logs.between_nodes(batch) & (batch.proxy < 0) & (batch.net_dev >= 0)
        at = np.flatnonzero(wanted if send_recv else wanted & (batch.conn != 1))
        side = logs.nic_side(batch, at)
        columns = (batch.comm[at], side.host, side.rank, batch.net_dev[at])
        first, counts = distinct(*columns)
        lists = (column[first].tolist() for column in (at, *columns, side.world))
        for count, (entry, comm, host, rank, dev, world) in zip(counts.tolist(), zip(*lists, strict=True), strict=True):
            place = comm, logs.host_name(conns, host)
            system = view.get(place)
            gpu, net = (logs.gpu_of(system, rank), net_of(system, dev)) if system else (None, None)
            if system and gpu and net:
                label = logs.gpu_word(job, world) or gpu.name
                yield NicUse(batch.first + entry, count, place[1], world, system, gpu, net, names[place], label)


def where_used(uses: Sequence[NicUse]) -> Where:
    """The ranks, GPUs and NICs of uses of one host."""
    ports = tuple(sorted({port for use in uses for port in use.ports}))
    ranks = tuple(sorted({use.world for use in uses} - {-1}))
    return Where((uses[0].host,), tuple(dict.fromkeys(use.label for use in uses)), ports, ranks)


def net_of(system: NcclSystem, net_dev: int) -> SystemDevice | None:
    """The NET vertex of a device of connection lines."""
    devices = [net for net in system.of_kind("NET") if _number(net) == net_dev]
    return devices[0] if len(devices) == 1 else None


def _number(net: SystemDevice) -> int:
    """The number of a NET in connections: its id has it in hexadecimal. -1 for another id."""
    digits = net.id.rpartition("-")[2]
    return int(digits, 16) if 0 < len(digits) <= 8 and set(digits) <= set(hexdigits) else -1


@dataclass(frozen=True, slots=True)
class FewerThanOthers:
    """`hosts` on which this job lists `kept` where another job lists `more`, or where their captures show `more` up:
    `captured`. `filters` are the settings of NCCL_IB_HCA that leave NICs out."""

    hosts: tuple[str, ...]
    kept: tuple[Hca, ...]
    more: tuple[Hca, ...]
    filters: tuple[GivenSetting, ...]
    captured: bool = False


def fewer_than_others(job: Job, peers: Sequence[Job]) -> FewerThanOthers | None:
    """None where no other job of these hosts lists more, and no capture shows more. A host that is down or a NIC that
    was lost between two jobs would show so too: only where a setting of this job names the NICs it is the job."""
    filters = tuple(given for _, given in logs.settings_of(job, "NCCL_IB_HCA").get("NCCL_IB_HCA", []))
    if not filters:
        return None
    shorter: dict[str, tuple[tuple[Hca, ...], tuple[Hca, ...]]] = {}
    cut = logs.with_cut_lists(job)
    mine = {host: hcas for host, hcas in logs.hcas_by_host(job).items() if host not in cut}
    for host, hcas in mine.items():
        for peer in peers:
            theirs = logs.hcas_by_host(peer).get(host, {})
            if {hca.name for hca in hcas.values()} < {hca.name for hca in theirs.values()}:
                shorter[host] = tuple(hcas.values()), tuple(theirs.values())
    if captured := not shorter:
        beside = ((host, _beside_capture(job, host, hcas)) for host, hcas in mine.items())
        shorter = {host: sides for host, sides in beside if sides is not None}
    if not shorter:
        return None
    kept, more = next(iter(shorter.values()))
    return FewerThanOthers(tuple(shorter), kept, more, filters, captured)


def short_of_captures(job: Job, listed: Mapping[str, Mapping[str, Hca]]) -> list[FewerThanOthers]:
    """Hosts that list fewer NICs than their captures show up, those with the same ones together. None where a setting
    names NICs, or where the job has a part of the GPUs: its container may rightly have a part of the NICs."""
    if logs.settings_of(job, "NCCL_IB_HCA"):
        return []
    beside = ((host, _beside_capture(job, host, hcas)) for host, hcas in listed.items())
    short = [(host, sides) for host, sides in beside if sides is not None]
    whole = [(host, sides) for host, sides in short if ranks_of(job, host) >= len(job.machines[host].gpus) > 0]
    alike = grouped((tuple(hca.name for side in sides for hca in side), (host, sides)) for host, sides in whole)
    return [FewerThanOthers(tuple(h for h, _ in own), *own[0][1], (), captured=True) for own in alike.values()]


def cost_of_fewer(have: int, want: int, nics: Iterable[Hca]) -> Cost:
    """What nodes lose that use fewer of these NICs than they could; the share alone where no line says their rate."""
    speed = max((hca.speed_mbps or 0 for hca in nics), default=0) / 8000
    text = f"{want - have} x {in_gbs(speed)} of each node" if speed else ""
    return Cost((want - have) * speed or None, 1 - have / want, text)


def ranks_of(job: Job, host: str) -> int:
    """Ranks of a host: those seen, or as many as a node has where only some left a log."""
    world = job.world
    partial = world is not None and len(world.known) < world.nranks
    return logs.ranks_per_node(job) if partial else logs.local_ranks(job).get(host, 0)


def port_names(hcas: Sequence[Hca]) -> set[str]:
    """The names of the ports, also of those that a virtual NIC joins: `mlx5_0+mlx5_1`."""
    return {name for hca in hcas for name in hca.name.split("+")}


def _beside_capture(job: Job, host: str, hcas: Mapping[str, Hca]) -> tuple[tuple[Hca, ...], tuple[Hca, ...]] | None:
    """What the job lists, and what the capture of the host shows up for the traffic of jobs; None where that is no
    more. Only NICs of the rate and the link layer of those in use: others may be there for storage."""
    machine = job.machines.get(host)
    mine = tuple(hcas.values())
    if machine is None or not mine:
        return None
    up = tuple(
        Hca(number, nic.rdma_name, port.number, speed_mbps=int(port.rate_gbps.value * 1000), origin=port.state.origin)
        for number, nic in enumerate(machine.nics)
        for port in nic.ports[:1]
        if nic.rdma_name and nic.role is NicRole.COMPUTE and port.state.value == "ACTIVE" and port.rate_gbps.value
    )
    names = port_names(mine)
    speeds = {hca.speed_mbps for hca in mine} - {None} or {hca.speed_mbps for hca in up if hca.name in names}
    alike = tuple(hca for hca in up if hca.speed_mbps in speeds)
    return (mine, alike) if names < {hca.name for hca in alike} else None
