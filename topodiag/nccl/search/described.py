"""A graph that the search found, in the words of NCCL's own log and dump."""

from __future__ import annotations

from dataclasses import replace

from topodiag.model.nccl_enums import Graph
from topodiag.model.nccl_versions import path_types
from topodiag.nccl.graph.graph import SearchGraph, System
from topodiag.nccl.prediction import PredictedGraph


def describe(system: System, graph: SearchGraph) -> PredictedGraph:
    """A graph with the labels of its vertices: per channel the NET in, the GPUs, the NET out. NVLS lists heads only."""
    labels = {gpu.rank: gpu.label for gpu in system.gpus}
    names = path_types(system.minor).names

    def channel(index: int) -> tuple[str, ...]:
        ranks = graph.intra[index][: 1 if graph.id == Graph.NVLS else None]
        ends = [f"NET/{net >> 56:x}-{net & (1 << 56) - 1:x}" for net in graph.inter[index]] if system.inter else []
        return (*ends[:1], *(labels[rank] for rank in ranks), *ends[1:])

    return PredictedGraph(
        id=graph.id,
        pattern=graph.pattern,
        cross_nic=graph.cross_nic,
        channels=graph.channels,
        bw_intra=graph.bw_intra,
        bw_inter=graph.bw_inter,
        type_intra=names[graph.type_intra],
        type_inter=names[graph.type_inter],
        same_channels=graph.same_channels,
        orders=tuple(channel(index) for index in range(graph.channels)),
    )


def rounded(graph: PredictedGraph) -> PredictedGraph:
    """Without the digits that single precision adds: 2.4, not 2.4000000953674316."""
    return replace(graph, bw_intra=round(graph.bw_intra, 4), bw_inter=round(graph.bw_inter, 4))
