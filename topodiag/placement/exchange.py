"""The smallest exchange that puts things in order: which few ranks, or nodes, sit where others should."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from topodiag.model.cluster import Assignment, Cluster, Ints

MOST = 64
"""Positions out of order beyond which no exchange is told: the order as a whole is another one."""


def exchanges(labels: Sequence[int] | Ints, most: int = MOST) -> list[tuple[int, int]]:
    """Pairs of positions whose labels, exchanged pair by pair, leave the labels of each kind side by side. `labels[n]`
    is the kind of position n. The runs stay in the order of their middles, or of their first members, whichever
    moves fewer labels. [] where nothing is out of order, and where more than `most` positions are."""
    held = np.asarray(labels, dtype=np.int64)
    if not held.size:
        return []
    which = np.unique(held, return_inverse=True)[1]
    counts = np.bincount(which)
    position = np.argsort(which, kind="stable")  # of each kind in turn, in order
    start = np.cumsum(counts) - counts
    # Twice the median, which orders as the median does.
    first, middle = position[start], position[start + (counts - 1) // 2] + position[start + counts // 2]
    targets = [np.repeat(order, counts[order]) for order in (np.argsort(middle, kind="stable"), np.argsort(first))]
    target = min(targets, key=lambda order: int((order != which).sum()))
    return _pairs(which, target) if int((target != which).sum()) <= most else []


def _pairs(held: Ints, wanted: Ints) -> list[tuple[int, int]]:
    """Exchanges that turn `held` into `wanted`; both hold each label equally often. An exchange that settles two
    positions is taken before one that settles one."""
    waiting: dict[int, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    open_at = np.flatnonzero(held != wanted).tolist()
    for place in reversed(open_at):
        waiting[int(held[place])][int(wanted[place])].append(place)
    now = held.copy()
    pairs: list[tuple[int, int]] = []
    for place in open_at:
        if now[place] == wanted[place]:
            continue
        has, wants = int(now[place]), int(wanted[place])
        waiting[has][wants].remove(place)
        givers = waiting[wants]
        goal = has if givers[has] else next(rank for rank, places in givers.items() if places)
        other = givers[goal].pop()
        now[place], now[other] = now[other], now[place]
        if now[other] != wanted[other]:
            waiting[int(now[other])][int(wanted[other])].append(other)
        pairs.append((place, other))
    return pairs


def nodes_by_first_rank(cluster: Cluster, assignment: Assignment) -> Ints:
    """The nodes of a layout in the order of their first ranks, which is NCCL's order of them."""
    nodes, first = np.unique(cluster.node_of(assignment.slot), return_index=True)
    ordered: Ints = nodes[np.argsort(first)]
    return ordered


def with_nodes_exchanged(cluster: Cluster, assignment: Assignment, pairs: Sequence[tuple[int, int]]) -> Assignment:
    """The layout after all ranks of each pair of nodes changed places, GPU by GPU."""
    node, gpu = cluster.node_of(assignment.slot), cluster.gpu_of(assignment.slot)
    becomes = np.arange(cluster.nodes)
    for one, other in pairs:
        becomes[[one, other]] = becomes[[other, one]]
    # becomes[n] is the node whose ranks node n takes over; ranks need the way back.
    goes = np.empty_like(becomes)
    goes[becomes] = np.arange(cluster.nodes)
    return Assignment(goes[node] * cluster.slots + gpu)
