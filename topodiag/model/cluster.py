"""A cluster as arrays: nodes with their GPU slots, and the levels of the network above them; and which rank runs where:
what launchers' files and logs say before anybody knows the cluster, and the canonical map of a job.

Nothing here is an object per GPU: 100,000 GPUs are a few arrays. A node is an index into `names`; a slot is
`node * slots + gpu`, where `slots` is the most GPUs that any node has. A level is a partition of the nodes: two nodes
of one group meet there. Levels go from the innermost (an NVLink domain) to the outermost (the whole fabric), and each
one is coarser than the one before.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field

import numpy as np
import numpy.typing as npt

from topodiag.lazy import dataclass
from topodiag.model.errors import InputError

LEAST_EXPOSED = 0.1
"""Share of hidden traffic that a search for a placement counts all the same."""

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Level:
    """One level of the network. `group[node]` is the number of the group that a node belongs to.

    `alpha_us` is the latency of a message that has to go up to this level, `gbs` what one GPU can send through it
    while all GPUs below send (GB/s, one direction, oversubscription taken off). `kind`: `nvlink`, `leaf`, `rack`,
    `spine`, `group` (dragonfly), `fabric`.
    """

    kind: str
    group: Ints
    alpha_us: float
    gbs: float
    names: tuple[str, ...] = ()
    """Names of the groups by number, () where they have none."""
    oversubscription: float = 1.0
    source: str = ""
    """Where the figures come from, for the reader."""

    @property
    def groups(self) -> int:
        return int(self.group.max()) + 1 if self.group.size else 0

    def group_name(self, number: int) -> str:
        """The name of a group, its number where it has none."""
        return (self.names[number] if number < len(self.names) else "") or f"{self.kind} {number + 1}"


@dataclass(frozen=True, slots=True)
class Cluster:
    """The machines at hand. `usable[node, gpu]` is False for a slot that is taken, broken, or that the node lacks.

    `rails` is the number of rails of the fabric (GPU i of every node on rail i modulo rails), 0 where it has none.
    `inside_alpha_us` and `inside_gbs` are two GPUs of one node (NVLink or PCIe). `nvlink_domain[node]` numbers the
    NVLink domain of each node; racks of NVL72 share one number. `switch`: the GPUs of a node share a switch that
    reduces (NVLink SHARP).
    """

    names: tuple[str, ...]
    usable: Bools
    nvlink_domain: Ints
    levels: tuple[Level, ...]
    inside_alpha_us: float
    inside_gbs: float
    rails: int = 0
    gpu: str = ""
    system: str = ""
    sources: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    switch: bool = False

    @property
    def nodes(self) -> int:
        return len(self.names)

    @property
    def slots(self) -> int:
        """Slots per node."""
        return int(self.usable.shape[1]) if self.usable.ndim == 2 else 0

    @property
    def free(self) -> int:
        """Usable GPUs in all."""
        return int(self.usable.sum())

    def free_slots(self) -> Ints:
        """The usable slots, node by node."""
        return np.flatnonzero(self.usable.ravel())

    def node_of(self, slots: Ints) -> Ints:
        return slots // max(self.slots, 1)

    def gpu_of(self, slots: Ints) -> Ints:
        return slots % max(self.slots, 1)

    def level_between(self, a: Ints, b: Ints) -> Ints:
        """How far apart two nodes are: 0 the same node, k the k-th level (from 1) at which they meet first, and one
        more than the last where they never do. Arrays of node indices of any equal shape."""
        far = np.full(np.broadcast_shapes(a.shape, b.shape), len(self.levels) + 1, np.int64)
        for number in range(len(self.levels), 0, -1):
            group = self.levels[number - 1].group
            far[group[a] == group[b]] = number
        far[a == b] = 0
        return far


@dataclass(frozen=True, slots=True)
class Assignment:
    """Which rank sits on which slot: `slot[rank]`, -1 for a rank without one. Always with the cluster it is of."""

    slot: Ints

    @property
    def ranks(self) -> int:
        return int(self.slot.size)


@dataclass(frozen=True, slots=True)
class Demand:
    """The groups of one dimension and what each rank of a group sends in a step.

    `groups` has one row of world ranks per group; all rows are of one length (families of unequal groups are several
    demands). `collective` is one of the cost model's (`all_reduce`, `all_to_all`, `send_recv`, ...), `bytes` the size
    of one call as nccl-tests counts it, `calls` how many in a step. `exposed` is the share that is not hidden behind
    compute. `keep_together` says that the group belongs inside one NVLink domain where it fits. No more than
    `beside_us` of compute can hide it, however long it takes; each us that is waited for makes a step longer by
    `stretch` (a pipeline's idle time grows with its stages).
    """

    dimension: str
    groups: Ints
    collective: str = "all_reduce"
    bytes: float = 0.0
    calls: float = 1.0
    exposed: float = 1.0
    keep_together: bool = False
    why: str = ""
    beside_us: float = math.inf
    stretch: float = 1.0

    @property
    def size(self) -> int:
        return int(self.groups.shape[1]) if self.groups.ndim == 2 else 0

    @property
    def talks(self) -> bool:
        """Whether any rank sends to another one."""
        return self.size > 1 and len(self.groups) > 0

    def waited_us(self, call_us: float) -> float:
        """What a step waits for calls of so many us each."""
        total = call_us * self.calls
        return self.stretch * max(total * self.exposed, total - self.beside_us)

    @property
    def urgency(self) -> float:
        """What a search counts each us of a call with. Traffic that compute hides is not for nothing: of two places
        the nearer one leaves more room."""
        return self.calls * self.stretch * max(self.exposed, LEAST_EXPOSED)


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
