"""A map from ranks to slots that keeps the heaviest groups on the fastest links.

Units of ranks that belong together (the families of the heaviest demands that still fit into a node) are laid into
nodes in an order in which neighbours are near; what no node can hold whole is split over what is left; then a local
search on the cost model exchanges ranks. Deterministic under a seed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from topodiag.model.cluster import Assignment, Cluster, Demand
from topodiag.model.errors import TopodiagError
from topodiag.placement.bound import step_bound_us
from topodiag.placement.local_search import improve
from topodiag.placement.order import heaviest_first
from topodiag.placement.pack import pack
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
    bound_us: float
    """What no placement on these nodes can beat, all demands together (placement/bound.py)."""

    @property
    def gap(self) -> float:
        """How far above the bound, as a share of it; 0 where nothing is waited for."""
        return self.cost.step_us / self.bound_us - 1 if self.bound_us > 0 else 0.0


def solve(
    cluster: Cluster,
    demands: Sequence[Demand],
    world: int,
    *,
    seed: int = 0,
    tries: int | None = None,
    at_most: Assignment | None = None,
) -> Solution:
    """A slot for every rank of a job of `world` ranks. `tries` bounds the local search (None: by size). What is found
    is never worse than `at_most`. On each node ranks take GPUs in their order, as launchers number them. Raises
    NoRoomError."""
    if world > cluster.free:
        raise NoRoomError(
            f"{world} ranks do not fit on {cluster.free} usable GPUs of {cluster.nodes} nodes",
            hint="take in more nodes, or ask for fewer ranks",
        )
    first = pack(cluster, demands, world)
    if at_most is not None and _step_us(cluster, demands, at_most) < _step_us(cluster, demands, first):
        first = at_most
    bound = step_bound_us(cluster, demands, world)
    made, moves = improve(cluster, heaviest_first(demands), first, seed=seed, tries=tries, enough_us=bound)
    made = in_order(cluster, made)
    cost = price_placement(cluster, demands, made)
    return Solution(made, cost, _splits(cluster, demands, made), moves, max(bound, cost.bound_us))


def _step_us(cluster: Cluster, demands: Sequence[Demand], assignment: Assignment) -> float:
    return price_placement(cluster, demands, assignment).step_us


def in_order(cluster: Cluster, assignment: Assignment) -> Assignment:
    """The same ranks on the same GPUs of each node, in the order of both."""
    node = cluster.node_of(assignment.slot)
    slot = np.empty(assignment.ranks, np.int64)
    slot[np.argsort(node, kind="stable")] = np.sort(assignment.slot)
    return Assignment(slot)


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
