"""A lower bound on the communication of a step that no placement can beat, under the same cost model.

Each demand by itself: no class of seats (placement/shares.py) in which the free GPUs hold all its groups is faster. And
together: where every rank brings at least m ranks of its own group of the heaviest demand into its node, a node has
room for at most its free GPUs over m ranks of a group that meets each of those in one rank. Holes are counted, not
averaged, so the bound holds for the nodes at hand.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from topodiag.model.cluster import Cluster, Demand, Ints
from topodiag.placement.order import heaviest_first, labels
from topodiag.placement.price import span_time_us
from topodiag.placement.shares import Class, classes, regions, usable


def step_bound_us(cluster: Cluster, demands: Sequence[Demand], world: int) -> float:
    """The least that a step of `world` ranks must wait for, in us; 0 without demands."""
    real = heaviest_first(demands)
    if not real:
        return 0.0
    first, rest = real[0], real[1:]
    most = int(cluster.usable.sum(axis=1).max(initial=0))
    if first.collective == "send_recv":
        return sum(_alone(cluster, each, most) for each in real)
    family = labels(world, [first])[0]
    crossing = [_crosses(each, family) for each in rest]
    found = float("inf")
    for allowed in classes(cluster, first, first.size):
        if not _room(cluster, first, allowed, most):
            continue
        smallest = min((least for least in allowed.least if least), default=first.size)
        took = _slowest(cluster, first, allowed)
        for each, crosses in zip(rest, crossing, strict=True):
            took += _alone(cluster, each, most // smallest if crosses else most)
        found = min(found, took)
    return found if found < float("inf") else sum(_alone(cluster, each, most) for each in real)


def _crosses(demand: Demand, family: Ints) -> bool:
    """Whether every group has at most one rank of each family."""
    found = np.sort(family[demand.groups], axis=1)
    return not bool((found[:, 1:] == found[:, :-1]).any())


def _alone(cluster: Cluster, demand: Demand, per_node: int) -> float:
    """One demand by itself, with at most `per_node` ranks of a group in one node; us in a step."""
    if demand.collective == "send_recv":
        return _neighbours(cluster, demand, per_node)
    for allowed in classes(cluster, demand, demand.size):
        if _room(cluster, demand, allowed, per_node):
            return _slowest(cluster, demand, allowed)
    return 0.0


def _slowest(cluster: Cluster, demand: Demand, allowed: Class) -> float:
    """The slowest group that a class allows, in us of a step."""
    whole = 0.0
    if demand.size <= int(cluster.usable.sum(axis=1).max(initial=0)):
        whole = span_time_us(cluster, demand, demand.size, 1, demand.size, 0)
    took = allowed.time_us if allowed.least else whole
    return demand.waited_us(took)


def _room(cluster: Cluster, demand: Demand, allowed: Class, per_node: int) -> bool:
    """Whether the free GPUs could hold all groups so; where it is False none can."""
    size, groups = demand.size, len(demand.groups)
    free = cluster.usable.sum(axis=1).astype(np.int64)
    if not allowed.least:
        return size <= per_node and int((free // size).sum()) >= groups
    able = [(level, least) for level, least in enumerate(allowed.least) if 0 < least <= per_node]
    if not able:
        return False
    region = regions(cluster)[able[-1][0]]
    least = min(least for _, least in able)
    taken = np.asarray([usable(have, size, least) for have in range(int(free.max(initial=0)) + 1)], np.int64)[free]
    count = int(region.max(initial=0)) + 1
    room = np.bincount(region, weights=taken, minlength=count).astype(np.int64)
    # One group takes no more than `per_node` of any node.
    one = np.bincount(region, weights=np.minimum(taken, per_node), minlength=count)
    return int((room // size)[one >= size].sum()) >= groups


def _neighbours(cluster: Cluster, demand: Demand, per_node: int) -> float:
    """Two stages that follow one another: in one node, else in two of the innermost level that has two."""
    if per_node > 1:
        return demand.waited_us(span_time_us(cluster, demand, 2, 1, 2, 0))
    have = cluster.usable.any(axis=1)
    times = [
        span_time_us(cluster, demand, 2, 2, 1, number)
        for number, region in enumerate(regions(cluster), start=1)
        if np.bincount(region[have], minlength=1).max() > 1
    ]
    return demand.waited_us(min(times, default=0.0))
