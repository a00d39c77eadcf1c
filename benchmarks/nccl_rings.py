"""Rings and trees over nodes: which rank follows which in every channel, and the double binary tree of nodes with the
chain inside each. No command asks for them: a job's log prints them, and shows by them that the search is NCCL's.

Rules of src/graph/connect.cc (ncclTopoPreset, ncclTopoPostset, connectRings), src/graph/rings.cc and
src/graph/trees.cc. Ranks are those of the communicator; -1 is no rank.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from topodiag.model.nccl_versions import Feature, has
from topodiag.nccl.connect.communicator import CommNode, Communicator
from topodiag.nccl.connect.fuse import NVLS_ID, RING_ID, TREE_ID
from topodiag.nccl.graph.graph import SPLIT_TREE, TREE

NONE = -1
_ARITY = 3
"""NCCL_MAX_TREE_ARITY (src/include/device.h): a rank has at most three children."""


@dataclass(frozen=True)
class NodeOrders:
    """One node as NCCL counts nodes: its ranks (of the communicator, ascending) and their order in each channel that
    its own search found. `heads` are the ranks at the head of its NVLS channels."""

    ranks: tuple[int, ...]
    rings: tuple[tuple[int, ...], ...]
    trees: tuple[tuple[int, ...], ...]
    heads: tuple[int, ...] = ()
    tree_pattern: int = 0
    ring_cross_nic: int = 0


def orders_of(node: CommNode, minor: int) -> NodeOrders:
    """A node's channels in ranks of the communicator."""
    numbers = dict(zip(node.domain.local, node.ranks, strict=True))
    ring, tree = node.graphs[RING_ID], node.graphs[TREE_ID]
    heads = node.heads(minor) if NVLS_ID in node.graphs else ()
    return NodeOrders(
        ranks=node.ranks,
        rings=tuple(tuple(numbers[step] for step in order) for order in ring.intra[: ring.channels]),
        trees=tuple(tuple(numbers[step] for step in order) for order in tree.intra[: tree.channels]),
        heads=tuple(numbers[head] for head in heads),
        tree_pattern=tree.pattern,
        ring_cross_nic=ring.cross_nic,
    )


def all_orders(comm: Communicator) -> tuple[NodeOrders, ...]:
    return tuple(orders_of(node, comm.minor) for node in comm.nodes)


def rings_of(comm: Communicator) -> tuple[tuple[int, ...], ...]:
    """The ring of every runtime channel: ranks in order, from rank 0."""
    ring = comm.shape.graphs[RING_ID]
    numbers = connect_rings(all_orders(comm), ring.channels, minor=comm.minor, cross_nic=ring.cross_nic)
    return tuple(numbers[channel % ring.channels] for channel in comm.repeats)


def trees_of(comm: Communicator) -> tuple[Mapping[int, TreePlace], ...]:
    """Every rank's place in the tree of every runtime channel."""
    places = connect_trees(all_orders(comm), comm.shape.graphs[RING_ID].channels)
    return tuple(places[channel] for channel in comm.repeats)


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


@dataclass(frozen=True)
class Branch:
    """A node's place in a binary tree of nodes. `is_child` is 0 where it is its parent's first child, else 1."""

    parent: int
    child0: int
    child1: int
    is_child: int = 0


@dataclass(frozen=True)
class TreePlace:
    """A rank's place in the tree of one channel: its parent and its three possible children."""

    up: int
    down: tuple[int, int, int]


def btree(count: int, index: int) -> Branch:
    """The place of `index` in the binary tree of `count` nodes whose root is 0 (ncclGetBtree)."""
    bit = 1
    while bit < count and not bit & index:
        bit <<= 1
    if index == 0:
        return Branch(NONE, NONE, bit >> 1 if count > 1 else NONE)
    parent = (index ^ bit) | (bit << 1)
    if parent >= count:
        parent = index ^ bit
    low = bit >> 1
    child0 = index - low if low else NONE
    step = low
    while step and index + step >= count:
        step >>= 1
    return Branch(parent, child0, index + step if step else NONE, 0 if index < parent else 1)


def double_tree(count: int, index: int) -> tuple[Branch, Branch]:
    """The place of a node in both trees: the second is the first one shifted (odd count) or mirrored (even count), so
    that a leaf of one carries traffic in the other (ncclGetDtree)."""
    first = btree(count, index)
    if count % 2:
        other, moved = btree(count, (index - 1) % count), [(place + 1) % count for place in range(count)]
    else:
        other, moved = btree(count, count - 1 - index), [count - 1 - place for place in range(count)]

    def back(place: int) -> int:
        return NONE if place == NONE else moved[place]

    return first, Branch(back(other.parent), back(other.child0), back(other.child1), other.is_child)


def _ends(node: NodeOrders, channel: int) -> Branch:
    """The ranks of a node by which its tree goes on: to the node above, and to those below."""
    order = node.trees[channel]
    second = order[1] if len(order) > 1 else order[0]
    return Branch(
        parent=order[0],
        child0=order[0] if node.tree_pattern == TREE else second,
        child1=second if node.tree_pattern == SPLIT_TREE else order[0],
    )


def connect_trees(nodes: Sequence[NodeOrders], channels: int) -> tuple[dict[int, TreePlace], ...]:
    """Every rank's place in the trees of 2 * `channels` channels: the first tree on channel c, the second on
    c + `channels` (connectTrees)."""
    branches = [double_tree(len(nodes), index) for index in range(len(nodes))]
    places: list[dict[int, TreePlace]] = []
    for which in (0, 1):
        for channel in range(channels):
            ends = [_ends(node, channel) for node in nodes]
            places.append({})
            for index, node in enumerate(nodes):
                places[-1].update(_places(node.trees[channel], ends, index, branches[index][which]))
    return tuple(places)


def _places(order: Sequence[int], ends: Sequence[Branch], index: int, branch: Branch) -> dict[int, TreePlace]:
    up = {rank: order[i - 1] if i else NONE for i, rank in enumerate(order)}
    down = {rank: [order[i + 1]] if i + 1 < len(order) else [] for i, rank in enumerate(order)}
    mine = ends[index]
    if branch.parent != NONE:
        above = ends[branch.parent]
        up[mine.parent] = above.child0 if branch.is_child == 0 else above.child1
    if branch.child0 != NONE:
        down[mine.child0].append(ends[branch.child0].parent)
    if branch.child1 != NONE:
        down[mine.child1].append(ends[branch.child1].parent)
    return {rank: TreePlace(up[rank], _three(down[rank])) for rank in order}


def _three(ranks: Sequence[int]) -> tuple[int, int, int]:
    first, second, third = (*ranks, *[NONE] * _ARITY)[:_ARITY]
    return first, second, third
