"""Which rank runs on which host: what launchers' files and logs say before anybody knows the cluster, and the canonical
map of a job, with the GPU of each rank and the groups that it is in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

import numpy as np

from topodiag.lazy import dataclass
from topodiag.model.cluster import Assignment, Cluster, Ints
from topodiag.model.errors import InputError


@dataclass(frozen=True, slots=True)
class RankHosts:
    """The host of every rank as an index into `hosts` (distinct names in the order of their first rank), and its GPU,
    -1 where nobody says. `whole` says that each host stands for all its free GPUs: then there is one entry per host.
    `notes` are sentences on what was taken for granted."""

    name: str
    hosts: tuple[str, ...]
    host: Ints
    gpu: Ints
    whole: bool = False
    notes: tuple[str, ...] = ()

    @property
    def ranks(self) -> int:
        return int(self.host.size)


def ranks_on(name: str, hosts: list[str], gpus: list[int] | None = None, *, whole: bool = False) -> RankHosts:
    """One entry per rank. Raises InputError for none at all."""
    if not hosts:
        raise InputError(name, "names no hosts")
    index = {host: number for number, host in enumerate(dict.fromkeys(hosts))}
    at = np.asarray([index[host] for host in hosts], np.int64)
    gpu = np.full(len(hosts), -1, np.int64) if gpus is None else np.asarray(gpus, np.int64)
    return RankHosts(name, tuple(index), at, gpu, whole)


@dataclass(frozen=True)
class PlaceMap:
    """`host[rank]` is an index into `hosts` (distinct, in the order of their first rank), `gpu[rank]` the GPU's number
    on it, -1 where it is not known. `groups[dimension][rank]` numbers the rank's group, -1 for none. `levels[i]` are
    the groups of the network that the job's hosts lie in, innermost first, as (kind, number of them). `rail[rank]` is
    the rail of the rank's GPU, -1 where it is not known; empty where the fabric has none."""

    hosts: tuple[str, ...]
    host: Ints
    gpu: Ints
    groups: Mapping[str, Ints] = field(default_factory=dict)
    levels: tuple[tuple[str, int], ...] = ()
    rail: Ints = field(default_factory=lambda: np.zeros(0, np.int64))

    @property
    def ranks(self) -> int:
        return int(self.host.size)

    @property
    def per_host(self) -> Ints:
        """Ranks of each host."""
        return np.bincount(self.host, minlength=len(self.hosts)).astype(np.int64)

    @property
    def local(self) -> Ints:
        """The place of each rank among those of its host, in the order of ranks: what launchers call its local rank."""
        order = np.argsort(self.host, kind="stable")
        starts = np.cumsum(self.per_host) - self.per_host
        slots = np.empty(self.ranks, np.int64)
        slots[order] = np.arange(self.ranks) - starts[self.host[order]]
        return slots

    @property
    def consecutive(self) -> bool:
        """Whether the ranks of every host follow one another, as launchers number them that fill host by host."""
        return int((self.host[1:] != self.host[:-1]).sum()) + 1 == len(self.hosts)


def map_of(cluster: Cluster, assignment: Assignment, groups: Mapping[str, Ints] | None = None) -> PlaceMap:
    """The map that an assignment is; every rank has a slot."""
    node = cluster.node_of(assignment.slot)
    used, first = np.unique(node, return_index=True)
    order = used[np.argsort(first)]
    index = np.zeros(cluster.nodes, np.int64)
    index[order] = np.arange(order.size)
    hosts, gpu = tuple(cluster.names[row] for row in order.tolist()), cluster.gpu_of(assignment.slot)
    levels = tuple((level.kind, int(np.unique(level.group[used]).size)) for level in cluster.levels)
    rail = gpu % cluster.rails if cluster.rails > 1 else np.zeros(0, np.int64)
    return PlaceMap(hosts, index[node], gpu, dict(groups or {}), levels, rail)
