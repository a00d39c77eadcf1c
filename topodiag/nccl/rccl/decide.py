"""RCCL's decisions on equal nodes of one topology: paths, graphs, channels. Its tuning is not followed.

After initTransportsRank (src/init.cc), ncclTopoCompute (src/graph/search.cc), ncclTopoPostset (src/graph/connect.cc)
and ncclTopoComputeP2pChannels (src/graph/paths.cc) of RCCL 2.21.5.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache

from topodiag.lazy import dataclass
from topodiag.model.nccl_enums import Graph
from topodiag.model.nccl_tree import Element
from topodiag.model.nccl_versions import path_types
from topodiag.nccl.connect.channels import to_remote
from topodiag.nccl.graph.attach import HostTree, count_gpus
from topodiag.nccl.graph.bandwidths import INTEL, X86, xgmi_bandwidth
from topodiag.nccl.graph.domains import build_system
from topodiag.nccl.graph.graph import BALANCED_TREE, RING, RejectedError, SearchGraph, System, Vertex
from topodiag.nccl.graph.paths import path_table
from topodiag.nccl.graph.xgmi import all_by_xgmi
from topodiag.nccl.numbers import power_of_two, single
from topodiag.nccl.prediction import Channels, PredictedGraph, Prediction
from topodiag.nccl.rccl.match import Match, counts_as_rome, match
from topodiag.nccl.rccl.models import orders_of
from topodiag.nccl.search.search import Search, deep
from topodiag.nccl.search.searched import describe
from topodiag.nccl.settings import Settings, read_settings

VERSION = "2.21.5"
MINOR = 21
MOST_CHANNELS = 128
"""MAXCHANNELS (src/include/device.h)."""
CHANNEL_LIMIT = 16
_PARTITIONED = (80, 20, 38)
"""Compute units of a partition of an MI300: such a GPU has as many channels at most (src/graph/connect.cc)."""
_XGMI = {"NVL": "XGMI"}
"""RCCL's names of path types."""


@dataclass(frozen=True)
class Decided:
    """A node's system and graphs, and what decided them."""

    system: System
    ring: SearchGraph
    tree: SearchGraph
    by: Match | None
    through_nets: bool = False
    """Whether rings on one node go through NICs."""


@lru_cache(maxsize=64)
def predict_rccl(tree: Element, nodes: int, env: tuple[tuple[str, str], ...]) -> Prediction:
    """RCCL 2.21.5 on so many nodes like this one, with the NCCL_ and RCCL_ variables of `env`. Raises RejectedError."""
    answer = decided(tree, nodes=nodes, env=dict(env))
    system = answer.system
    return Prediction(
        version=VERSION,
        nodes=nodes,
        accepted=True,
        max_bw=round(system.max_bw, 4),
        total_bw=round(system.total_bw, 4),
        paths={
            start: {end: (hops, gbs, _XGMI.get(kind, kind)) for end, (hops, gbs, kind) in ends.items()}
            for start, ends in path_table(system).items()
        },
        graphs=tuple(_in_its_words(describe(system, graph)) for graph in (answer.ring, answer.tree)),
        channels=_channels(answer, nodes),
        ranks=len(system.gpus) * nodes,
        nccl_nodes=nodes,
        library="RCCL",
        decided_by=_decided_by(answer.by),
    )


def _decided_by(by: Match | None) -> str:
    if by is None:
        return "the search"
    if by.decided_by == "rome" and by.model is not None:
        return f"the known set of rings {by.model.index} ({by.model.name})"
    return {"chordal": "the rings of eight GPUs with six links each", "4p4h": "the rings of four hives of four"}[
        by.decided_by
    ]


def _in_its_words(graph: PredictedGraph) -> PredictedGraph:
    near, far = (_XGMI.get(kind, kind) for kind in (graph.type_intra, graph.type_inter))
    return replace(graph, type_intra=near, type_inter=far)


def decided(tree: Element, *, nodes: int, env: Mapping[str, str]) -> Decided:
    """What a node finds. Raises RejectedError."""
    settings = replace(read_settings(dict(env), MINOR), net_disable_intra=True)
    count = count_gpus(tree)
    system = build_system([HostTree(tree)], minor=MINOR, settings=settings, nranks=count * nodes, me=0)
    if not system.cpus:
        raise RejectedError("no CPU in the topology")
    by = match(system) if env.get("RCCL_MODEL_MATCHING_DISABLE", "0") in ("", "0") else None
    ring = SearchGraph(Graph.RING, RING, min_channels=1, max_channels=MOST_CHANNELS // 2)
    if by is not None:
        ring = _shared_graph(system, ring, by)
        graph = replace(ring, id=Graph.TREE, pattern=BALANCED_TREE)
        through_nets = any("N" in ring for ring in by.rings) and bool(system.nets)
        return Decided(system, ring, graph, by, through_nets)
    if counts_as_rome(system) and not system.inter:
        ring.max_channels = 2
    ring = _searched(system, settings, ring)
    least = 1 if system.nets else ring.channels
    graph = SearchGraph(Graph.TREE, BALANCED_TREE, min_channels=least, max_channels=ring.channels)
    return Decided(system, ring, _searched(system, settings, graph), None)


def _searched(system: System, settings: Settings, graph: SearchGraph) -> SearchGraph:
    with deep(len(system.gpus), graph.max_channels):
        return Search(system, settings).compute(graph)


def _shared_graph(system: System, graph: SearchGraph, by: Match) -> SearchGraph:
    """The graph of a set of rings: all have the same share of a GPU's bandwidth (parseGraph)."""
    types = path_types(system.minor)
    ranks = {gpu.dev: gpu.rank for gpu in system.gpus}
    orders = orders_of(by.rings, len(system.gpus), len(system.nets))
    graph.intra = [[ranks[by.gpus[number]] for number in order] for order in orders]
    graph.channels = len(orders)
    graph.bw_intra = graph.bw_inter = single(system.total_bw / max(1, len(orders)))
    if by.chord and system.inter:
        graph.channels = min(len(system.nets), len(orders))
        graph.intra = graph.intra[: graph.channels]
    graph.inter = [[0, 0] for _ in graph.intra]
    if system.nets:
        ids = [net.id for net in sorted(system.nets, key=lambda net: net.dev)]
        graph.inter = [[ids[c % len(ids)], ids[(c + 1) % len(ids)]] for c in range(graph.channels)]
    graph.type_intra, graph.type_inter = types.nvl if len(system.gpus) > 1 else types.loc, types.pix
    graph.same_channels = 1
    return graph


def _channels(answer: Decided, nodes: int) -> Channels:
    system = answer.system
    several = system.inter and bool(system.nets)
    count = min(answer.ring.channels, answer.tree.channels) if several else answer.ring.channels
    coll = _coll_channels(answer, count, nodes)
    p2p, per_peer = _p2p_channels(answer, coll)
    return Channels(coll, coll, 0, p2p, per_peer)


def _coll_channels(answer: Decided, count: int, nodes: int) -> int:
    gpu, single_node = answer.system.gpus[0], not answer.system.inter
    times = 2
    if single_node and gpu.gcn.startswith("gfx906") and all_by_xgmi(answer.system, 1):
        times = 4
    if gpu.gcn.startswith("gfx908"):
        times = max(4 // answer.ring.channels, 2)
    if single_node and ((answer.by is not None and answer.by.chord) or gpu.gcn.startswith("gfx90a")):
        times = 4
    if gpu.gcn.startswith("gfx90a"):
        times = max(times, 4 // answer.ring.channels)
    if answer.ring.channels > MOST_CHANNELS // 2:
        times = 1
    most = 2 * CHANNEL_LIMIT
    if gpu.gcn.startswith("gfx94"):
        most = gpu.cu if gpu.cu in _PARTITIONED else MOST_CHANNELS
    if answer.through_nets or nodes > 1:
        most = min(64, most)
    wanted = min(most // count, times) * count
    doubled = min(most, 2 * count if count <= most // 2 else count)
    return max(doubled, wanted)


def _p2p_channels(answer: Decided, coll: int) -> tuple[int, int]:
    system = answer.system
    cpu, single_node = system.cpus[0], not system.inter
    by_xgmi = all_by_xgmi(system)
    least = min([coll, *(count for gpu in system.gpus for count in _per_peer(system, gpu, coll))])
    rome = answer.by.rome if answer.by is not None else counts_as_rome(system)
    if cpu.arch == X86 and cpu.vendor == INTEL and not by_xgmi:
        return 2, 1
    if single_node and rome and not system.gdr_all and not by_xgmi:
        return 2, 2
    channels = power_of_two(least)
    if single_node and system.gpus[0].gcn.startswith("gfx94"):
        channels *= 2
    return min(power_of_two(coll), 4 * CHANNEL_LIMIT), channels


def _per_peer(system: System, gpu: Vertex, coll: int) -> list[int]:
    """Channels to every other GPU of the node, and once to a rank of another (ncclTopoGetNchannels)."""
    nvl = path_types(system.minor).nvl
    counts = []
    for peer in system.gpus:
        if peer is not gpu:
            path = peer.paths["GPU"][gpu.index]
            links = max(1, int(path.bw / xgmi_bandwidth(gpu.gcn))) if path.type == nvl else 0
            counts.append((4 if system.gpus[0].gcn.startswith("gfx94") else 2) * links or 2)
    if system.inter:
        counts.append(to_remote(system, gpu, read_settings({}, MINOR), nranks=system.nranks, total=coll))
    return counts
