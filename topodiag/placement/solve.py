"""A map from ranks to slots that keeps the heaviest groups on the fastest links.

Units of ranks that belong together (the families of the heaviest demands that still fit into a node) are laid into
nodes in an order in which neighbours are near; what no node can hold whole is split over what is left; then a local
search on the cost model exchanges ranks. Deterministic under a seed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from topodiag.model.cluster import Assignment, Cluster, Demand, Ints
from topodiag.model.errors import TopodiagError
from topodiag.placement.local_search import improve
from topodiag.placement.order import heaviest_first, labels, node_order, rank_order
from topodiag.placement.price import PlacementCost, price_placement, spans_of


class NoRoomError(TopodiagError):
    """More ranks than usable GPUs."""


@dataclass(frozen=True, slots=True)
class Split:
    """Groups of a dimension that lie on more nodes than their size needs: how many of how many, one of them with its
    nodes, and why it could not be otherwise."""

    dimension: str
    groups: int
    of: int
    example: tuple[int, ...]
    nodes: tuple[str, ...]
    why: str


@dataclass(frozen=True, slots=True)
class Solution:
    """The map found, its price beside the bound, and every split that remains. `moves` were made by local search."""

    assignment: Assignment
    cost: PlacementCost
    splits: tuple[Split, ...]
    moves: int


def solve(
    cluster: Cluster, demands: Sequence[Demand], world: int, *, seed: int = 0, tries: int | None = None
) -> Solution:
    """A slot for every rank of a job of `world` ranks. `tries` bounds the local search (None: by size). Raises
    NoRoomError."""
    if world > cluster.free:
        raise NoRoomError(
            f"{world} ranks do not fit on {cluster.free} usable GPUs of {cluster.nodes} nodes",
            hint="take in more nodes, or ask for fewer ranks",
        )
    first = pack(cluster, demands, world)
    made, moves = improve(cluster, heaviest_first(demands), first, seed=seed, tries=tries)
    return Solution(made, price_placement(cluster, demands, made), _splits(cluster, demands, made), moves)


def pack(cluster: Cluster, demands: Sequence[Demand], world: int) -> Assignment:
    """Units into nodes, first fit in the nodes' order; what is left over is split over what is left."""
    order = rank_order(world, demands)
    units = _units(cluster, demands, order)
    nodes = node_order(cluster, world)
    free = {int(node): np.flatnonzero(cluster.usable[node]).tolist() for node in nodes}
    slot = np.full(world, -1, np.int64)
    left: list[Ints] = []
    open_nodes = [int(node) for node in nodes]
    start = 0
    for unit in units:
        while start < len(open_nodes) and not free[open_nodes[start]]:
            start += 1
        home = next((node for node in open_nodes[start : start + _LOOK] if len(free[node]) >= len(unit)), None)
        if home is None:
            home = next((node for node in open_nodes[start + _LOOK :] if len(free[node]) >= len(unit)), None)
        if home is None:
            left.append(unit)
            continue
        for rank in unit.tolist():
            slot[rank] = home * cluster.slots + free[home].pop(0)
    _fill(cluster, left, free, slot)
    return Assignment(slot)


def _fill(cluster: Cluster, left: Sequence[Ints], free: dict[int, list[int]], slot: Ints) -> None:
    """Units that no node can hold, into what is left: each within one group of the innermost level where that has room,
    over as few nodes and in as equal shares as there are, because the smallest share is the way for all."""
    level = cluster.levels[0].group if cluster.levels else np.zeros(cluster.nodes, np.int64)
    for unit in left:
        shares = max((_shares(nodes, len(unit)) for nodes in _fragments(level, free)), key=_worth, default=[])
        if sum(count for _, count in shares) < len(unit):
            every = [(node, len(slots)) for node, slots in free.items() if slots]
            shares = _shares(every, len(unit))
        ranks = iter(unit.tolist())
        for node, count in shares:
            for _ in range(count):
                slot[next(ranks)] = node * cluster.slots + free[node].pop(0)


def _fragments(level: Ints, free: dict[int, list[int]]) -> list[list[tuple[int, int]]]:
    """(node, free GPUs) of each group of the innermost level."""
    found: dict[int, list[tuple[int, int]]] = {}
    for node, slots in free.items():
        if slots:
            found.setdefault(int(level[node]), []).append((node, len(slots)))
    return list(found.values())


def _shares(nodes: Sequence[tuple[int, int]], size: int) -> list[tuple[int, int]]:
    """How many ranks of a unit each of the fewest nodes takes, as equal as they can; less than `size` in all where
    there is no room."""
    largest = sorted(nodes, key=lambda each: -each[1])
    count, room = 0, 0
    while count < len(largest) and room < size:
        room += largest[count][1]
        count += 1
    chosen = sorted(largest[:count], key=lambda each: each[1])
    made, rest = [], min(size, room)
    for place, (node, have) in enumerate(chosen):
        take = min(have, rest // (len(chosen) - place))
        made.append((node, take))
        rest -= take
    return made


def _worth(shares: Sequence[tuple[int, int]]) -> tuple[int, int, int]:
    """Whole units first, then few nodes, then equal shares."""
    return sum(n for _, n in shares), -len(shares), min((n for _, n in shares), default=0)


_LOOK = 64
"""Nodes looked at before all the others: units of one family stay near one another, and packing stays linear."""


def _units(cluster: Cluster, demands: Sequence[Demand], order: Ints) -> list[Ints]:
    """Runs of the order that should share a node: the largest families that fit into one."""
    most = int(cluster.usable.sum(axis=1).max(initial=0))
    chosen: Ints = np.arange(len(order), dtype=np.int64)
    for family in labels(len(order), heaviest_first(demands)):
        if np.bincount(family).max() > most:
            break
        chosen = family
    if np.array_equal(chosen, np.arange(len(order))) and demands and most:
        # Even the heaviest groups are larger than a node: whole nodes of them.
        first = labels(len(order), heaviest_first(demands)[:1])
        families = _runs(first[0][order], order) if first else [order]
        return [part for family in families for part in np.array_split(family, range(most, len(family), most))]
    return _runs(chosen[order], order)


def _runs(family: Ints, order: Ints) -> list[Ints]:
    cuts = np.flatnonzero(family[1:] != family[:-1]) + 1
    return np.split(order, cuts)


def _splits(cluster: Cluster, demands: Sequence[Demand], made: Assignment) -> tuple[Split, ...]:
    found: list[Split] = []
    for demand in demands:
        if demand.size < 2 or not len(demand.groups) or not demand.keep_together:
            continue
        need = -(-demand.size // max(cluster.slots, 1))
        spans = spans_of(cluster, demand.groups, made)
        wide = np.flatnonzero(spans.nodes > need)
        if not wide.size:
            continue
        ranks = demand.groups[wide[0]]
        where = np.unique(cluster.node_of(made.slot[ranks])).tolist()
        names = tuple(cluster.names[node] for node in where)
        why = _why(cluster, demand, need)
        found.append(Split(demand.dimension, int(wide.size), len(demand.groups), tuple(ranks.tolist()), names, why))
    return tuple(found)


def _why(cluster: Cluster, demand: Demand, need: int) -> str:
    free = cluster.usable.sum(axis=1)
    if need == 1:
        room = int((free // demand.size).sum())
        if room < len(demand.groups):
            groups = "1 group" if len(demand.groups) == 1 else f"{len(demand.groups)} groups"
            return (
                f"{groups} of {demand.size} need a node with {demand.size} free GPUs each, and the free GPUs leave room"
                f" for {room}: the rest is fragments"
            )
    return "another group that costs more takes the place"
