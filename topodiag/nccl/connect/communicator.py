"""A communicator of any ranks on any hosts, as NCCL sets it up: nodes, agreed graphs, channel counts.

Every rank builds the system of the GPUs that it reaches and searches there; ranks then agree (`fuse`) and number the
nodes by the first GPU of their first ring (src/init.cc, initTransportsRank; src/graph/connect.cc). Equal hosts are
searched once. Not modelled: communicators that share their parent's resources, several processes on one GPU, and an
NCCL that differs between ranks. benchmarks/nccl_rings.py joins rings and trees over nodes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from topodiag.lazy import dataclass
from topodiag.model.nccl_enums import CpuArch, CpuVendor
from topodiag.model.nccl_tree import Element
from topodiag.model.nccl_versions import DIRECT_RANKS, Feature, has
from topodiag.nccl.connect.channels import (
    ChannelStep,
    least_net_bw,
    limits,
    nvls_channels,
    nvls_possible,
    p2p_channels,
    per_peer_of_rank,
    runtime_channels,
)
from topodiag.nccl.connect.fuse import COLLNET_ID, DIRECT_ID, NVLS_ID, TREE_ID, fuse
from topodiag.nccl.graph.attach import count_gpus, ranks_by_number
from topodiag.nccl.graph.graph import CommShape, RejectedError, SearchGraph, System, Vertex
from topodiag.nccl.numbers import bus_id
from topodiag.nccl.prediction import Channels
from topodiag.nccl.search.searched import Domain, HostRanks, searched_domains
from topodiag.nccl.settings import Settings
from topodiag.words.units import grouped

_COLLNET_NODES = 2
_MNNVL = "NCCL_MNNVL_ENABLE"
"""NCCL_COLLNET_NODE_THRESHOLD (src/init.cc)."""


@dataclass(frozen=True, slots=True)
class Member:
    """A rank of a communicator: its host, by index, and its GPU's bus id."""

    rank: int
    host: int
    bus_id: str


@dataclass(frozen=True, slots=True, eq=False)
class CommNode:
    """A node as NCCL counts nodes: its ranks of the communicator, ascending, and what they found."""

    ranks: tuple[int, ...]
    domain: Domain
    graphs: Mapping[int, SearchGraph]
    """Those that count, by SearchGraph.id: no NVLS where NCCL does not try it."""

    def heads(self, minor: int) -> list[int]:
        """The ranks of its domain at the head of its NVLS channels."""
        nvls = self.graphs[NVLS_ID]
        heads = [order[0] for order in nvls.intra[: nvls.channels]]
        return list(dict.fromkeys(heads)) if has(minor, Feature.DISTINCT_HEADS) else heads


@dataclass(frozen=True, slots=True, eq=False)
class Communicator:
    """A communicator as NCCL sets it up. `nodes` in NCCL's numbering; `node_of[rank]` indexes them.

    `channels` is what rank 0 prints. `repeats[c]` is the channel, of twice the search channels, that runtime channel c
    repeats; `steps` how there came to be so many.
    """

    minor: int
    nodes: tuple[CommNode, ...]
    node_of: Mapping[int, int]
    shape: CommShape
    channels: Channels
    repeats: tuple[int, ...]
    steps: tuple[ChannelStep, ...]

    def node(self, rank: int) -> CommNode:
        return self.nodes[self.node_of[rank]]


def communicator(
    trees: Sequence[Element],
    members: Sequence[Member],
    *,
    minor: int,
    settings: Settings,
    cliques: Sequence[int] | None = None,
    own: Sequence[Settings] | None = None,
) -> Communicator:
    """Set up a communicator. `trees` by host, `members` one for every rank from 0; `cliques[host]` equal for hosts in
    one NVLink domain that spans hosts (MNNVL), None when there is none. `own` are the settings with which each host
    searches, where they are not those of all.

    Raises RejectedError with NCCL's words where it would not start.
    """
    groups = _grouped(members, _cliques(len(trees), members, cliques, minor, settings))
    pairs: list[tuple[tuple[int, ...], Domain]] = []
    alike: dict[tuple[tuple[tuple[int, int], HostRanks], ...], tuple[Domain, ...]] = {}
    by_host = own or (settings,) * len(trees)
    known = {id(tree): tree for tree in trees}
    spelt = {key: _bus_ids(tree) for key, tree in known.items()}
    spelling = [spelt[id(tree)] for tree in trees]
    for group in groups:
        hosts = _hosts_of(group, spelling)
        # Trees are compared once by what they are; hosts that share one are told apart by which it is.
        kind = tuple(((id(trees[place]), id(by_host[place])), ranks) for place, ranks in hosts)
        if kind not in alike:
            alike[kind] = searched_domains(
                tuple((trees[place], ranks) for place, ranks in hosts),
                len(group),
                minor=minor,
                others=len(group) < len(members),
                settings=by_host[group[0].host],
            )
        pairs += [(tuple(group[local].rank for local in domain.local), domain) for domain in alike[kind]]
    if has(minor, Feature.NET_COUNTS_MATCH):
        _same_nets(pairs, settings)
    return _communicator(pairs, minor=minor, settings=settings, many_hosts=len(groups) > 1)


def communicator_of_files(
    tree: Element, *, nodes: int, minor: int, settings: Settings, whole: bool = False
) -> Communicator:
    """A communicator of all GPUs of `nodes` equal hosts, rank i on GPU i of the first; the hosts are one NVLink domain
    where NCCL_MNNVL_ENABLE=1 says that NCCL must find one. `whole`: the file is read in one piece, which gives the
    ranks the order of the file (attach.HostTree). Raises RejectedError."""
    ranks = None if whole else ranks_by_number(tree)
    gpus = count_gpus(tree)
    if nodes > 1 and has(minor, Feature.MNNVL) and settings.number(_MNNVL) == 1 and settings.p2p_level != 0:
        hosts = tuple((tree, _shifted(ranks, host * gpus)) for host in range(nodes))
        joined = searched_domains(hosts, gpus * nodes, minor=minor, others=False, settings=settings)
        pairs = [(domain.local, domain) for domain in joined]
        return _communicator(pairs, minor=minor, settings=settings, many_hosts=False)
    domains = searched_domains(((tree, ranks),), gpus, minor=minor, others=nodes > 1, settings=settings)
    pairs = [
        (tuple(host * gpus + local for local in domain.local), domain) for host in range(nodes) for domain in domains
    ]
    return _communicator(pairs, minor=minor, settings=settings, many_hosts=nodes > 1)


def _shifted(ranks: HostRanks | None, first: int) -> HostRanks | None:
    return None if ranks is None else tuple((bus, first + rank) for bus, rank in ranks)


def _cliques(
    hosts: int, members: Sequence[Member], cliques: Sequence[int] | None, minor: int, settings: Settings
) -> Sequence[int]:
    """By host, the hosts that form one topology: those of one clique, if the version has MNNVL and it is not off."""
    spans = len({member.host for member in members}) > 1 or settings.number(_MNNVL) == 1
    off = not has(minor, Feature.MNNVL) or settings.number(_MNNVL) == 0 or settings.p2p_level == 0
    return range(hosts) if cliques is None or not spans or off else cliques


def _grouped(members: Sequence[Member], cliques: Sequence[int]) -> list[list[Member]]:
    in_order = sorted(members, key=lambda member: member.rank)
    return list(grouped((cliques[member.host], member) for member in in_order).values())


def _bus_ids(tree: Element) -> dict[int, str]:
    """GPUs of a file: bus ids as numbers, and as the file spells them, the first of a number."""
    bus_ids: dict[int, str] = {}
    for element in tree.walk():
        written = element.get("busid") if element.tag == "pci" and element.having("gpu") else None
        if written is not None:
            bus_ids.setdefault(bus_id(written), written)
    return bus_ids


def _hosts_of(group: Sequence[Member], spelling: Sequence[Mapping[int, str]]) -> list[tuple[int, HostRanks]]:
    """The hosts of a group in the order of their first ranks, with the group's ranks, counted from 0, by bus id.
    Raises RejectedError for a GPU that its host's file lacks and for one that two ranks use."""
    hosts: dict[int, dict[str, int]] = {}
    for local, member in enumerate(group):
        written = spelling[member.host].get(bus_id(member.bus_id))
        if written is None:
            raise RejectedError(f"GPU {member.bus_id} of rank {member.rank} is not in the topology of its host")
        ranks = hosts.setdefault(member.host, {})
        if written in ranks:
            raise RejectedError(
                f"Duplicate GPU detected : rank {group[ranks[written]].rank} and rank {member.rank} both on CUDA "
                f"device {bus_id(written):x}"
            )
        ranks[written] = local
    return [(place, tuple(ranks.items())) for place, ranks in hosts.items()]


def _same_nets(pairs: Sequence[tuple[tuple[int, ...], Domain]], settings: Settings) -> None:
    """NCCL stops where ranks have different numbers of network devices (src/init.cc). A host without any has sockets,
    whose number is not known here."""
    systems = {id(domain): domain.system for _, domain in pairs}.values()
    counts = {count for system in systems for count in Counter(net.system_id for net in system.nets).values()}
    if len(counts) > 1 and not settings.number("NCCL_IGNORE_NET_MISMATCH"):
        raise RejectedError(
            f"Detected mixed local Net device counts across ranks (min {min(counts)}, max {max(counts)}). "
            "Set NCCL_IGNORE_NET_MISMATCH=1 to continue."
        )


def _communicator(
    pairs: Sequence[tuple[tuple[int, ...], Domain]], *, minor: int, settings: Settings, many_hosts: bool
) -> Communicator:
    if not pairs:
        raise RejectedError("no GPU of the communicator in the topology")
    renumbered = {old: new for new, old in enumerate(sorted(rank for ranks, _ in pairs for rank in ranks))}
    # A node is known by the first GPU of its first ring; numbers follow the rank that first names it.
    nodes = tuple(
        CommNode(tuple(renumbered[rank] for rank in ranks), domain, _counting(domain, settings, minor))
        for ranks, domain in sorted(pairs, key=lambda outlier: outlier[0][0])
    )
    return _Setup(nodes, minor, settings, many_hosts).communicator()


def _counting(domain: Domain, settings: Settings, minor: int) -> dict[int, SearchGraph]:
    nvls = nvls_possible(settings, len(domain.local), minor)
    return {graph.id: graph for graph in domain.graphs if nvls or graph.id != NVLS_ID}


@dataclass(frozen=True, slots=True)
class _Setup:
    """What the steps after the search share."""

    nodes: tuple[CommNode, ...]
    minor: int
    settings: Settings
    many_hosts: bool

    @property
    def kinds(self) -> tuple[CommNode, ...]:
        """One node of each kind, that of rank 0 first."""
        comm_nodes: dict[int, CommNode] = {}
        for node in self.nodes:
            comm_nodes.setdefault(id(node.domain), node)
        return tuple(comm_nodes.values())

    def communicator(self) -> Communicator:
        kinds, first = self.kinds, self.nodes[0]
        fused = fuse([node.graphs for node in kinds], self.minor)
        if not self._collnet(fused):
            fused = {number: graph for number, graph in fused.items() if number not in (COLLNET_ID, DIRECT_ID)}
        heads = min(len(node.heads(self.minor)) for node in kinds) if NVLS_ID in fused else 0
        shape, bounds = self._shape(fused, heads), limits(self.settings, self.minor)
        sm = first.domain.system.gpus[0].sm
        nvls = nvls_channels(shape, self.settings, bounds, sm=sm, many_hosts=self.many_hosts)
        late = has(self.minor, Feature.NVLS_OFF_TOO_LATE) and NVLS_ID in first.graphs
        numbers, steps = runtime_channels(shape, bounds, nvls if heads or late else 0)
        shape = replace(shape, channels=len(numbers), nvls_channels=nvls if heads else 0)
        return Communicator(
            minor=self.minor,
            nodes=self.nodes,
            node_of={rank: index for index, node in enumerate(self.nodes) for rank in node.ranks},
            shape=shape,
            channels=self._channels(shape),
            repeats=tuple(numbers),
            steps=tuple(steps),
        )

    def _gpus(self) -> list[tuple[System, Vertex]]:
        return [(node.domain.system, gpu) for node in self.kinds for gpu in node.domain.system.gpus]

    def _collnet(self, fused: Mapping[int, SearchGraph]) -> bool:
        threshold = self.settings.number("NCCL_COLLNET_NODE_THRESHOLD")
        if COLLNET_ID not in fused or len(self.nodes) < (_COLLNET_NODES if threshold is None else threshold):
            return False
        return has(self.minor, Feature.COLLNET_ANY_RANKS) or max(len(node.ranks) for node in self.nodes) <= DIRECT_RANKS

    def _channels(self, shape: CommShape) -> Channels:
        """What rank 0 prints."""
        per_peer = 0
        if has(self.minor, Feature.PEER_CHANNELS_AGREED):
            per_peer = min(per_peer_of_rank(*gpu, self.settings, shape.nranks) for gpu in self._gpus())
        # Without CollNet in the line it is 0; later versions repeat the first number.
        always = has(self.minor, Feature.COLLNET_CHANNELS_ALWAYS)
        counted = always or (shape.collnet and has(self.minor, Feature.COLLNET_CHANNELS_COUNTED))
        total, peer_channels = p2p_channels(self.nodes[0].domain.system, self.settings, shape, per_peer)
        return Channels(shape.channels, shape.channels if counted else 0, shape.nvls_channels, total, peer_channels)

    def _shape(self, fused: Mapping[int, SearchGraph], heads: int) -> CommShape:
        """Before its channels are counted."""
        own = self.nodes[0].domain.system.cpus[0]
        cpus = [cpu for node in self.kinds for cpu in node.domain.system.cpus[:1]]
        mixed = has(self.minor, Feature.MIXED_CPUS)
        gpus = self._gpus()
        sms = [gpu.sm for _, gpu in gpus]
        by_net = has(self.minor, Feature.NVLS_CHANNELS_BY_NET)
        return CommShape(
            minor=self.minor,
            nranks=sum(len(node.ranks) for node in self.nodes),
            local_ranks=tuple(len(node.ranks) for node in self.nodes),
            min_sm=min(sms),
            max_sm=max(sms),
            cpu_arch=CpuArch.MIXED if mixed and len({cpu.arch for cpu in cpus}) > 1 else own.arch,
            cpu_vendor=CpuVendor.MIXED if mixed and len({cpu.vendor for cpu in cpus}) > 1 else own.vendor,
            graphs=fused,
            channels=0,
            nvls_channels=0,
            nvs=bool(self.nodes[0].domain.system.nvs),
            max_tree_pattern=max(node.graphs[TREE_ID].pattern for node in self.kinds),
            collnet=COLLNET_ID in fused,
            nvls_heads=heads,
            min_net_gbs=min(least_net_bw(*gpu, self.settings) for gpu in gpus) if by_net else 0.0,
        )
