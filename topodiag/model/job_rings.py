"""The rings of a communicator: which channels share one, what each of its hops goes over, and in which words; and which
hosts of a job NVLink joins."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from topodiag.lazy import dataclass
from topodiag.model.job import Communicator, Job
from topodiag.words.joined import Sets
from topodiag.words.units import neighbours

UNSAID = "?"
"""The transport of a hop that no line tells: NCCL 2.22 and later connect when an operation first needs it."""

_Hops = dict[tuple[int, int], list[tuple[int, str, int]]]
"""By sender and receiver, ranks of the communicator: mask of channels, transport, rank whose NIC PXN uses."""


@dataclass(frozen=True, slots=True)
class Ring:
    """One order of ranks (of the communicator) over the same transports, and the channels that have it. `vias[i]` is
    what the hop after `ring[i]` goes over; there are as many as ranks where the ring is closed, else one less."""

    ring: tuple[int, ...]
    vias: tuple[str, ...]
    channels: tuple[int, ...]

    @property
    def closed(self) -> bool:
        return len(self.vias) == len(self.ring) and len(self.ring) > 0


def hosts_along(
    comm: Communicator, ring: Sequence[int], hosts: Mapping[int, str]
) -> tuple[list[int], list[str], list[list[int]]]:
    """Ranks of the world along a ring, -1 for one that is not known; their hosts; places of neighbours on one host."""
    world = [int(comm.ranks[rank]) if 0 <= rank < len(comm.ranks) else -1 for rank in ring]
    homes = [hosts.get(rank, "?") for rank in world]
    return world, homes, neighbours(range(len(homes)), key=lambda at: homes[at])


def rings_of(job: Job, comm: Communicator) -> list[Ring]:
    """The different rings of a communicator, by their first channel."""
    hops = _hops(job, comm)
    alike: dict[tuple[tuple[int, ...], tuple[str, ...]], list[int]] = {}
    for channel, ring in sorted(comm.rings.items()):
        closed = len(ring) == comm.nranks
        pairs = list(zip(ring, [*ring[1:], *ring[:1]] if closed else ring[1:], strict=False))
        vias = tuple(_via(hops, a, b, channel) for a, b in pairs)
        alike.setdefault((ring, vias), []).append(channel)
    return [Ring(ring, vias, tuple(channels)) for (ring, vias), channels in alike.items()]


def _hops(job: Job, comm: Communicator) -> _Hops:
    """What the log shows of the communicator's hops, and of no other pair of its ranks: those may be a thousand times
    as many. What a receiver prints counts where the sender left no line."""
    wanted = np.unique([a * comm.nranks + b for ring in comm.rings.values() for a, b in _pairs(ring)])
    sent: _Hops = {}
    received: _Hops = {}
    for batch in job.connections.batches():
        at = np.flatnonzero((batch.comm == comm.index) & (batch.conn != 1))
        at = at[np.isin(batch.rank[at].astype(np.int64) * comm.nranks + batch.peer[at], wanted)]
        columns = (batch.rank, batch.peer, batch.direction, batch.channels, batch.proxy)
        lists = (column[at].tolist() for column in columns)
        for i, (rank, peer, direction, channels, proxy) in zip(at.tolist(), zip(*lists, strict=True), strict=True):
            hops = received if direction == 2 else sent
            hops.setdefault((rank, peer), []).append((channels, batch.label(i), proxy))
    return {pair: entries[:1] for pair, entries in received.items()} | sent


def _pairs(ring: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Neighbours, the last and the first too."""
    return zip(ring, [*ring[1:], *ring[:1]], strict=True)


def _via(hops: _Hops, a: int, b: int, channel: int) -> str:
    """What a hop goes over in this channel, `?` where no line says it."""
    entries = hops.get((a, b), [])
    bit = min(channel, 63)
    for mask, label, proxy in entries:
        if mask >> bit & 1:
            return _short(label) + (f" PXN {proxy}" if proxy >= 0 else "")
    return UNSAID


def _short(label: str) -> str:
    """`NET/IB/0/GDRDMA/Shared` as `NET/IB/0 GDR`."""
    if not is_net(label):
        return bare_transport(label)
    device = next((part for part in label.split("/")[2:] if part.isdigit()), "")
    return bare_transport(label) + (f"/{device}" if device else "") + (" GDR" if uses_gdr(label) else "")


def domains(job: Job) -> Mapping[str, str]:
    """The NVLink domain of each host, named after one host of it.

    Hosts that reach each other by P2P or shared memory are one domain: trays of a rack (MNNVL), or containers of one
    machine with names of their own. So are the hosts of a communicator that NCCL counts as one node.
    """
    known = dict.fromkeys([*job.hosts, *(rank.host for rank in job.ranks)])
    sets = Sets[str]()

    def join(a: str, b: str) -> None:
        if a in known and b in known:
            low, high = sorted((sets.root(a), sets.root(b)))
            sets.join(high, low)

    hosts, flows = job.connections.hosts, job.connections.flows
    near = [at for at, via in enumerate(job.connections.vias) if via.startswith(("P2P", "SHM", "direct shared"))]
    if near and len(hosts) > 1:
        across = (flows.host >= 0) & (flows.peer_host >= 0) & (flows.host != flows.peer_host) & np.isin(flows.via, near)
        for a, b in zip(flows.host[across].tolist(), flows.peer_host[across].tolist(), strict=True):
            join(hosts[a], hosts[b])
    for communicator in job.communicators:
        if communicator.nodes == 1 and len(communicator.hosts) > 1:
            for host in communicator.hosts[1:]:
                join(communicator.hosts[0], host)
    return {host: sets.root(host) for host in known}


def bare_transport(label: str) -> str:
    """`NET/IB/3/GDRDMA/Shared` as `NET/IB`: without device, GPUDirect RDMA and sharing of connections."""
    return "/".join(part for part in label.split("/") if not (part.isdigit() or part.startswith(("GDRDMA", "Shared"))))


def uses_gdr(label: str) -> bool:
    return any(part.startswith("GDRDMA") for part in label.split("/"))


def is_net(label: str) -> bool:
    return label.startswith(("NET/", "COLLNET/"))


def short_transport(label: str) -> str:
    """`P2P/CUMEM/read` as `P2P`, `NET/IB/3/GDRDMA` as `IB+GDR`: for a cell."""
    parts = bare_transport(label).split("/")
    word = parts[1] if parts[0] == "NET" and len(parts) > 1 else parts[0]
    return f"{word}+GDR" if uses_gdr(label) else word
