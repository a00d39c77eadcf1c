"""Rings over nodes: which rank follows which in every channel.

Rules of src/graph/connect.cc (ncclTopoPostset, connectRings) and src/graph/rings.cc.
"""

from __future__ import annotations

from collections.abc import Sequence

from topodiag.model.nccl_features import Feature, has
from topodiag.nccl.connect.fuse import NodeOrders


def swaps_channels(node: NodeOrders, index: int, nodes: int, channels: int, *, minor: int, cross_nic: int) -> bool:
    """Whether a node takes channels 2k and 2k+1 in exchanged order, so that a ring that crosses NICs comes back on the
    rail it left on. `cross_nic` is the ring's value that all ranks agreed on.
    """
    if index % 2 == 0 or channels % 2 or not has(minor, Feature.NODES_SWAP_CHANNELS):
        return False
    if has(minor, Feature.SWAP_BY_OWN_CROSS_NIC):
        return node.ring_cross_nic == 2
    if has(minor, Feature.SWAP_BY_CROSS_NIC_2):
        return cross_nic == 2
    return cross_nic != 0 and (has(minor, Feature.ODD_NODES_SWAP_TOO) or nodes % 2 == 0)


def connect_rings(
    nodes: Sequence[NodeOrders], channels: int, *, minor: int, cross_nic: int
) -> tuple[tuple[int, ...], ...]:
    """Every search channel's ring as ranks in order, beginning at rank 0. A node is entered at the first rank of its
    order and left at the last; nodes follow each other by their number."""
    swapped = [
        swaps_channels(node, index, len(nodes), channels, minor=minor, cross_nic=cross_nic)
        for index, node in enumerate(nodes)
    ]
    rings: list[tuple[int, ...]] = []
    for channel in range(channels):
        ring = [rank for node, swap in zip(nodes, swapped, strict=True) for rank in node.rings[channel ^ int(swap)]]
        start = ring.index(0) if 0 in ring else 0
        rings.append((*ring[start:], *ring[:start]))
    return tuple(rings)
