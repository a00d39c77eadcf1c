"""What the GPUs of a host find, searched once for all hosts that are alike.

A host (or a clique of hosts in one NVLink domain) falls into domains of GPUs that reach each other without the network;
each domain builds its system and searches in it. Results are kept for a bounded number of distinct hosts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache

from topodiag.lazy import dataclass
from topodiag.model.nccl_enums import Graph
from topodiag.model.nccl_tree import Element
from topodiag.model.nccl_versions import path_types
from topodiag.nccl.graph import vnics
from topodiag.nccl.graph.attach import HostTree, ranks_by_number
from topodiag.nccl.graph.domains import build_system
from topodiag.nccl.graph.graph import RejectedError, SearchGraph, System
from topodiag.nccl.graph.nearest import local_cpu, local_nets
from topodiag.nccl.prediction import PredictedGraph
from topodiag.nccl.search.follow import Roads
from topodiag.nccl.search.search import search_graphs
from topodiag.nccl.settings import Settings
from topodiag.nccl.topo.numbered import numbered

_NVLS_SM = 90
"""Compute capability since which GPUs can multicast."""
_KEPT = 16
"""Distinct questions whose systems and graphs are kept: under 1 MB for a node of 8 GPUs, 20 MB for a rack of 72."""

HostRanks = tuple[tuple[str, int], ...]
"""Bus ids as in the file, and the ranks on them, counted from 0 over the hosts of one domain."""


@dataclass(frozen=True, slots=True, eq=False)
class Domain:
    """GPUs of a host (or of a clique of hosts) that reach each other, and what the search found for them.

    `system` and `graphs` count ranks from 0 in the order of the host's members; both are to be read only.
    """

    local: tuple[int, ...]
    system: System
    graphs: tuple[SearchGraph, ...]


_NAMES = ("NCCL_NETDEVS_POLICY", "NCCL_TOPO_SCATTER_START_NET", *vnics.SETTINGS)


def _asked(settings: Settings) -> Settings:
    """What systems and searches ask for, and nothing else: jobs that differ in what NCCL decides later are searched
    once."""
    values = {name: settings.values[name] for name in _NAMES if name in settings.values}
    return replace(settings, values=values, nvls_enable=True, ll128_c2c=True, pat_enable=2)


def searched_domains(
    hosts: tuple[tuple[Element, HostRanks | None], ...], count: int, *, minor: int, others: bool, settings: Settings
) -> tuple[Domain, ...]:
    """The domains of `count` ranks on hosts of one clique; ranks None: all GPUs of the file, in its order.

    `others`: the communicator has ranks elsewhere. Raises RejectedError where NCCL would not start.
    """
    trees = numbered([tree for tree, _ in hosts])
    alike = tuple((tree, ranks) for tree, (_, ranks) in zip(trees, hosts, strict=True))
    return _searched(alike, count, minor=minor, others=others, settings=_asked(settings))


def surely_searched(tree: Element, count: int, *, minor: int, settings: Settings) -> bool:
    """Whether the systems of one host alone show, before any search, that none can make NCCL give up.

    A search, and what follows it, gives up for want of a way: from a GPU to a NET or its CPU, to or from an NVSwitch,
    or back along a link. Where all are there it starts, whatever is found. Raises RejectedError where NCCL refuses to
    build a system.
    """
    hosts = ((tree, ranks_by_number(tree)),)
    systems = list(_systems(hosts, count, minor=minor, others=False, settings=_asked(settings)))
    return bool(systems) and all(_has_every_way(system, settings) for _, system in systems)


def _has_every_way(system: System, settings: Settings) -> bool:
    if system.inter and not system.nets:
        return False
    try:
        roads = Roads(system)
        for gpu in range(len(system.gpus)):
            local_cpu(system, gpu)
            if system.nets:
                local_nets(system, gpu, settings.values.get("NCCL_NETDEVS_POLICY", ""))
    except RejectedError:
        return False
    return None not in (*roads.nvs_gpu, *roads.gpu_nvs)


@lru_cache(maxsize=_KEPT)
def _searched(
    hosts: tuple[tuple[Element, HostRanks | None], ...], count: int, *, minor: int, others: bool, settings: Settings
) -> tuple[Domain, ...]:
    domains: list[Domain] = []
    for local, system in _systems(hosts, count, minor=minor, others=others, settings=settings):
        collnet = settings.collnet_enable and any(net.coll for net in system.nets)
        nvls = bool(system.nvs) and min(gpu.sm for gpu in system.gpus) >= _NVLS_SM
        domains.append(Domain(local, system, search_graphs(system, settings, nvls=nvls, collnet=collnet)))
    return tuple(domains)


def _systems(
    hosts: tuple[tuple[Element, HostRanks | None], ...], count: int, *, minor: int, others: bool, settings: Settings
) -> Iterator[tuple[tuple[int, ...], System]]:
    """Each domain's ranks and its system, in the order of their first ranks."""
    seen: set[int] = set()
    for rank in range(count):
        if rank in seen:
            continue
        system = _built(hosts, count + int(others), minor=minor, settings=settings, me=rank)
        local = tuple(sorted(gpu.rank for gpu in system.gpus))
        if rank not in local:
            continue  # The same bus id twice in a file: NCCL loses the second GPU.
        seen.update(local)
        yield local, system


@lru_cache(maxsize=_KEPT)
def _built(
    hosts: tuple[tuple[Element, HostRanks | None], ...], nranks: int, *, minor: int, settings: Settings, me: int
) -> System:
    """Kept, as whether a file is refused and what is found on it are asked one after the other."""
    trees = [HostTree(tree, None if ranks is None else dict(ranks), index) for index, (tree, ranks) in enumerate(hosts)]
    return build_system(trees, minor=minor, settings=settings, nranks=nranks, me=me)


def first_system(tree: Element, count: int, *, minor: int, settings: Settings) -> System:
    """The system of rank 0 on one host alone, to be read only. Raises RejectedError where NCCL refuses to build it."""
    return _built(((tree, ranks_by_number(tree)),), count, minor=minor, settings=_asked(settings), me=0)


# --- a graph in the words of NCCL's own log and dump ------------------------------------------------------------------


def describe(system: System, graph: SearchGraph) -> PredictedGraph:
    """A graph with the labels of its vertices: per channel the NET in, the GPUs, the NET out. NVLS lists heads only."""
    labels = {gpu.rank: gpu.label for gpu in system.gpus}
    names = path_types(system.minor).names

    def channel(index: int) -> tuple[str, ...]:
        ranks = graph.intra[index][: 1 if graph.id == Graph.NVLS else None]
        ends = [f"NET/{net >> 56:x}-{net & (1 << 56) - 1:x}" for net in graph.inter[index]] if system.inter else []
        return (*ends[:1], *(labels[rank] for rank in ranks), *ends[1:])

    return spelt(graph, names, tuple(channel(index) for index in range(graph.channels)))


def spelt(graph: SearchGraph, names: Sequence[str], orders: tuple[tuple[str, ...], ...] = ()) -> PredictedGraph:
    """A graph with the names of its path types, and without the digits that single precision adds: 2.4, not
    2.4000000953674316."""
    return PredictedGraph(
        id=graph.id,
        pattern=graph.pattern,
        cross_nic=graph.cross_nic,
        channels=graph.channels,
        bw_intra=round(graph.bw_intra, 4),
        bw_inter=round(graph.bw_inter, 4),
        type_intra=names[graph.type_intra],
        type_inter=names[graph.type_inter],
        same_channels=graph.same_channels,
        orders=orders,
    )
