"""Which NIC a GPU's traffic between nodes leaves by: connections beside the host's print and its list of devices."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

import numpy as np

from topodiag.checks.shared.job.evidence import between_nodes, gpu_of, host_name, nic_side, rdma, views
from topodiag.lazy import dataclass, regex
from topodiag.model.connections import distinct
from topodiag.model.devices import ports_of
from topodiag.model.job import Hca, Job
from topodiag.model.job_wires import nics_of
from topodiag.model.nccl_view import NcclSystem, SystemDevice

_HEX = regex(r"[0-9a-f]{1,8}")


def nics_by_host(job: Job) -> dict[str, dict[int, Hca]]:
    """The RDMA devices of each host by their number in connections: virtual NICs instead of their ports."""
    made: dict[str, dict[int, Hca]] = defaultdict(dict)
    for process in job.processes:
        for number, nic in nics_of(process).items():
            if rdma(nic):
                made[process.host].setdefault(number, nic)
    return dict(made)


@dataclass(frozen=True, slots=True)
class NicUse:
    """What a GPU sends or receives by one NIC, both as the host's print has them: the first such entry, how many, the
    world rank (-1 unknown), the names of the host's NICs by vertex where a line has them."""

    entry: int
    entries: int
    host: str
    world: int
    system: NcclSystem
    gpu: SystemDevice
    net: SystemDevice
    names: Mapping[str, str]

    @property
    def ports(self) -> tuple[str, ...]:
        """The ports of the NIC, () unknown."""
        return ports_of(self.names[self.net.name]) if self.net.name in self.names else ()


def nic_uses(job: Job, *, send_recv: bool) -> Iterator[NicUse]:
    """Traffic between nodes by GPU and NIC, without PXN; `send_recv`: also what is not for collectives. A use may come
    again, further down in the log."""
    conns = job.connections
    view = {
        key: system for key, system in views(job).items() if system.of_kind("GPU") and system.of_kind("NET")
    }  # fmt: skip
    listed = nics_by_host(job)
    names = {
        key: {net.name: listed[key[1]][dev].name for net in system.of_kind("NET")
              if (dev := _number(net)) in listed.get(key[1], {})}
        for key, system in view.items()
    }  # fmt: skip
    for batch in conns.batches() if view else ():
        wanted = between_nodes(batch) & (batch.proxy < 0) & (batch.net_dev >= 0)
        at = np.flatnonzero(wanted if send_recv else wanted & (batch.conn != 1))
        side = nic_side(batch, at)
        columns = (batch.comm[at], side.host, side.rank, batch.net_dev[at])
        first, counts = distinct(*columns)
        lists = (column[first].tolist() for column in (at, *columns, side.world))
        for count, (entry, comm, host, rank, dev, world) in zip(counts.tolist(), zip(*lists, strict=True), strict=True):
            place = comm, host_name(conns, host)
            system = view.get(place)
            gpu, net = (gpu_of(system, rank), net_of(system, dev)) if system else (None, None)
            if system and gpu and net:
                yield NicUse(batch.first + entry, count, place[1], world, system, gpu, net, names[place])


def net_of(system: NcclSystem, net_dev: int) -> SystemDevice | None:
    """The NET vertex of a device of connection lines."""
    found = [net for net in system.of_kind("NET") if _number(net) == net_dev]
    return found[0] if len(found) == 1 else None


def _number(net: SystemDevice) -> int:
    """The number of a NET in connections: its id has it in hexadecimal. -1 for another id."""
    digits = net.id.rpartition("-")[2]
    return int(digits, 16) if _HEX.fullmatch(digits) else -1
