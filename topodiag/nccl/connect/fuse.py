"""How ranks agree: every rank publishes what its search found, and all take the least of it.

Rules of src/init.cc (initTransportsRank) and src/graph/connect.cc (ncclTopoPreset). Each rank searches
in the domain it can reach, so that ranks of one domain publish the same; a domain is what NCCL counts as a node.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from topodiag.model.nccl_enums import Graph
from topodiag.model.nccl_versions import Feature, has
from topodiag.nccl.graph.graph import SearchGraph

RING_ID, TREE_ID, COLLNET_ID, NVLS_ID, DIRECT_ID = Graph


def fuse(graphs: Sequence[Mapping[int, SearchGraph]], minor: int) -> dict[int, SearchGraph]:
    """What all ranks agree on, by SearchGraph.id; `graphs` are those of each node, the node of rank 0 first. A graph
    that one node lacks, or found no channel for, is off for all. Ring and tree have one number of channels.

    The pattern stays that of rank 0, and so does crossNic before CROSS_NIC_AGREED.
    """
    fused: dict[int, SearchGraph] = {}
    crossing_agreed = has(minor, Feature.CROSS_NIC_AGREED)
    for number, own in graphs[0].items():
        same = [graph[number] for graph in graphs if number in graph]
        channels = min(graph.channels for graph in same)
        if len(same) < len(graphs) or channels == 0:
            continue
        fused[number] = replace(
            own,
            channels=channels,
            bw_intra=min(graph.bw_intra for graph in same),
            bw_inter=min(graph.bw_inter for graph in same),
            type_intra=max(graph.type_intra for graph in same),
            type_inter=max(graph.type_inter for graph in same),
            cross_nic=max(graph.cross_nic for graph in same) if crossing_agreed else own.cross_nic,
            same_channels=min(graph.same_channels for graph in same),
        )
    if RING_ID in fused and TREE_ID in fused:
        channels = min(fused[RING_ID].channels, fused[TREE_ID].channels)
        for number in (RING_ID, TREE_ID):
            fused[number] = replace(fused[number], channels=channels)
    return fused
