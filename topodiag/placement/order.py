"""Ranks in an order in which those that talk most stand together, and nodes in an order in which neighbours are near.

Demands are taken from the heaviest down. The ranks that the heaviest one joins are blocks; those that the two heaviest
join are families of blocks, and so on: sorting by these labels, the lightest first, lays every group of a grid layout
as compactly as its dimension deserves, and works for any other groups too.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from topodiag.model.cluster import Cluster, Demand, Ints


def weight(demand: Demand) -> float:
    """What a split of this demand would cost, up to a factor: bytes that each rank sends and waits for in a step. A
    demand that belongs inside a domain comes before any other."""
    return demand.bytes * demand.urgency * (1e6 if demand.keep_together else 1.0)


def heaviest_first(demands: Sequence[Demand]) -> list[Demand]:
    """Demands with more than one rank in a group, the heaviest first; of equal ones the smaller groups."""
    real = [demand for demand in demands if demand.size > 1 and len(demand.groups)]
    return sorted(real, key=lambda demand: (-weight(demand), demand.size, demand.dimension))


def labels(world: int, demands: Sequence[Demand]) -> list[Ints]:
    """For each prefix of the demands, the family that every rank belongs to: the least rank that it is joined with."""
    family = np.arange(world, dtype=np.int64)
    made: list[Ints] = []
    for demand in demands:
        family = _joined(family, demand.groups)
        made.append(family)
    return made


def _joined(family: Ints, groups: Ints) -> Ints:
    """Families after all members of each group are joined: connected components, by least labels passed on."""
    current = family.copy()
    while True:
        lowest = current[groups].min(axis=1)
        after = current.copy()
        np.minimum.at(after, groups.ravel(), np.repeat(lowest, groups.shape[1]))
        # A family whose representative was joined to a lower one follows it.
        after = after[after]
        least = np.full(len(after), len(after), np.int64)
        np.minimum.at(least, family, after)
        after = np.minimum(after, least[family])
        if np.array_equal(after, current):
            return after
        current = after


def rank_order(world: int, demands: Sequence[Demand]) -> Ints:
    """All ranks, those that talk most side by side."""
    made = labels(world, heaviest_first(demands))
    keys = [np.arange(world, dtype=np.int64), *made]
    return np.lexsort(keys)


def node_order(cluster: Cluster, wanted: int) -> Ints:
    """The nodes with free GPUs in the order in which they should be filled: as few groups of the outermost levels as
    hold `wanted` GPUs, and inside each the same again; physical order where that does not matter."""
    free = cluster.usable.sum(axis=1).astype(np.int64)
    nodes = np.flatnonzero(free)
    return _chosen(cluster, nodes, free, wanted, len(cluster.levels))


def _chosen(cluster: Cluster, nodes: Ints, free: Ints, wanted: int, level: int) -> Ints:
    if level == 0:
        # Whole nodes first: a fragment is of use to a job that needs less.
        return nodes[np.argsort(-free[nodes], kind="stable")]
    group = cluster.levels[level - 1].group[nodes]
    _, which = np.unique(group, return_inverse=True)
    room = np.bincount(which, weights=free[nodes]).astype(np.int64)
    enough = np.flatnonzero(room >= wanted)
    if enough.size:
        best = int(enough[room[enough].argmin()])  # the smallest that holds it all leaves the larger ones whole
        rest = [place for place in np.argsort(-room, kind="stable").tolist() if place != best]
        order = [best, *rest]
    else:
        order = np.argsort(-room, kind="stable").tolist()
    left = wanted
    parts: list[Ints] = []
    for place in order:
        members = nodes[which == place]
        parts.append(_chosen(cluster, members, free, max(min(left, int(room[place])), 0), level - 1))
        left -= int(room[place])
    return np.concatenate(parts) if parts else nodes
