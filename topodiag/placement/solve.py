"""A map from ranks to slots that keeps the heaviest groups on the fastest links.

Units of ranks that belong together (the families of the heaviest demands that still fit into a node) are laid into
nodes in an order in which neighbours are near; what no node can hold whole is split over what is left; then a local
search on the cost model exchanges ranks, and those of a node take its GPUs by rail. Deterministic under a seed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from topodiag.lazy import dataclass
from topodiag.model.cluster import Assignment, Cluster, Demand, Ints, PlaceMap
from topodiag.model.finding import Finding, Severity, Where
from topodiag.model.layout import BY_NAME
from topodiag.placement.bound import step_bound_us
from topodiag.placement.exchange import nodes_by_first_rank
from topodiag.placement.groups import Talk
from topodiag.placement.local_search import improve
from topodiag.placement.pack import FEWER_RANKS, layings
from topodiag.placement.price import PlacementCost, domains_of, heaviest_first, price_placement, rail_level
from topodiag.placement.rails import on_rails
from topodiag.placement.seats import check_room
from topodiag.words.units import fold_hosts, fold_labels

OTHERS = 12
"""Further layings of a small job that are turned to their rails."""
SMALL = 16
"""Ranks up to which the local search starts from every laying: of so few ranks the cheapest one is often a dead end."""
_ALIKE = 1e-9
"""Share by which the times of two maps differ that are the same."""


@dataclass(frozen=True, slots=True)
class Split:
    """Groups of a dimension that lie in more NVLink domains (nodes, where a domain is one) than their size needs: how
    many of how many, one of them with its nodes, and why it could not be otherwise."""

    dimension: str
    groups: int
    of: int
    example: tuple[int, ...]
    nodes: tuple[str, ...]
    why: str


@dataclass(frozen=True, slots=True)
class Solution:
    """The map found, its price beside the bound, and every split that remains."""

    assignment: Assignment
    cost: PlacementCost
    splits: tuple[Split, ...]
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
    is never worse than `at_most`. On each node ranks take GPUs in their order, as launchers number them, where rails
    make no other order faster. Raises SeatError."""
    check_room(cluster, world)
    real = heaviest_first(demands)

    def by_rail(laid: Assignment) -> Assignment:
        return on_rails(cluster, real, in_order(cluster, laid))

    bound = step_bound_us(cluster, demands, world)
    laid, *others = layings(cluster, demands, world, enough_us=bound)
    starts = [by_rail(laid)]
    if rail_level(cluster) > 0 and world <= FEWER_RANKS:
        starts += [by_rail(other) for other in others[:OTHERS]]
    if at_most is not None:
        starts.insert(0, at_most)
    first = min(starts, key=lambda start: _step_us(cluster, demands, start))
    more = others if world <= SMALL and _step_us(cluster, demands, first) > bound * (1 + _ALIKE) else ()
    improved = [improve(cluster, real, start, seed=seed, tries=tries, enough_us=bound) for start in (first, *more)]
    assignment = min(improved, key=lambda assignment: _step_us(cluster, demands, assignment))
    best = min((by_rail(assignment), assignment), key=lambda assignment: _step_us(cluster, demands, assignment))
    if _step_us(cluster, demands, best) >= _step_us(cluster, demands, first) * (1 - _ALIKE):
        # Moves that gain nothing only jumble the order of nodes, and rings then go back and forth between leaves.
        best = first
    cost = price_placement(cluster, demands, best)
    return Solution(best, cost, _splits(cluster, demands, best), max(bound, cost.bound_us))


def _step_us(cluster: Cluster, demands: Sequence[Demand], assignment: Assignment) -> float:
    return price_placement(cluster, demands, assignment).step_us


def in_order(cluster: Cluster, assignment: Assignment) -> Assignment:
    """The same ranks on the same GPUs of each node, in the order of both."""
    node = cluster.node_of(assignment.slot)
    slot = np.empty(assignment.ranks, np.int64)
    slot[np.argsort(node, kind="stable")] = np.sort(assignment.slot)
    return Assignment(slot)


def node_after_node(cluster: Cluster, demands: Sequence[Demand], solution: Solution) -> Solution:
    """The solution for launchers that fill one node after the other: the same GPUs, with consecutive ranks on each
    node, and the nodes in the order of the solution or of the cluster, whichever lets a step wait less."""
    node = cluster.node_of(solution.assignment.slot)
    first = nodes_by_first_rank(cluster, solution.assignment)
    laid = [_filled(solution.assignment, node, order) for order in (first, np.sort(first))]
    best = min(laid, key=lambda assignment: _step_us(cluster, demands, assignment))
    cost = price_placement(cluster, demands, best)
    return replace(solution, assignment=best, cost=cost, splits=_splits(cluster, demands, best))


def _filled(assignment: Assignment, node: Ints, order: Ints) -> Assignment:
    """Ranks in their order on the slots of the assignment, node by node in `order`, GPUs in theirs."""
    turn = np.empty(int(node.max()) + 1, np.int64)
    turn[order] = np.arange(order.size)
    return Assignment(assignment.slot[np.lexsort((assignment.slot, turn[node]))])


def _splits(cluster: Cluster, demands: Sequence[Demand], assignment: Assignment) -> tuple[Split, ...]:
    splits: list[Split] = []
    room = np.bincount(cluster.nvlink_domain, weights=cluster.usable.sum(axis=1)).astype(np.int64)
    whole = int(np.bincount(cluster.nvlink_domain).max(initial=0)) * cluster.slots
    for demand in demands:
        repeated = any(split.dimension == demand.dimension for split in splits)
        if repeated or not demand.talks or not demand.keep_together:
            continue
        need = -(-demand.size // max(whole, 1))
        wide = np.flatnonzero(domains_of(cluster, demand.groups, assignment) > need)
        if not wide.size:
            continue
        ranks = demand.groups[wide[0]]
        where = np.unique(cluster.node_of(assignment.slot[ranks])).tolist()
        names = tuple(cluster.names[node] for node in where)
        why = _why(cluster, demand, need, room)
        splits.append(Split(demand.dimension, int(wide.size), len(demand.groups), tuple(ranks.tolist()), names, why))
    return tuple(splits)


def _why(cluster: Cluster, demand: Demand, need: int, room: Ints) -> str:
    """One sentence; `room` are the free GPUs of each NVLink domain."""
    count, size = len(demand.groups), demand.size
    one = "a node" if int(np.bincount(cluster.nvlink_domain).max(initial=1)) == 1 else "an NVLink domain"
    groups = "1 group" if count == 1 else f"{count} groups"
    if need > 1:
        return f"{groups} of {size} need {need} domains each, and the free GPUs are spread over more"
    held = int((room // size).sum())
    if held < count:
        return (
            f"{groups} of {size} need {one} with {size} free GPUs each, and the free GPUs leave room for {held}: the"
            " rest is fragments"
        )
    return f"{one} has the room, but another group that costs more takes it, or the whole step would wait longer"


@dataclass(frozen=True, slots=True)
class Solved:
    """A solution with all that it is told with: the layout before it (`block` where none was given) and its price."""

    cluster: Cluster
    talk: Talk
    solution: Solution
    place: PlaceMap
    groups: dict[str, Ints]
    before: Assignment
    before_cost: PlacementCost
    before_name: str
    launcher: str = ""
    """The format of `place emit` that the map is for, "" for any."""

    @property
    def gain(self) -> float:
        """Steps per time more than before, as a share; of communication alone where compute is not known."""
        base = self.talk.base_us or 0.0
        now = base + self.solution.cost.step_us
        return (base + self.before_cost.step_us) / now - 1 if now > 0 else 0.0


def split_findings(solved: Solved) -> list[Finding]:
    """The groups that stay split in the map that was found, as the checks of a layout name them (PLC001, PLC002)."""
    return [
        Finding(
            id=_check_of(split.dimension),
            severity=Severity.WARNING,
            message=f"{split.groups} of {split.of} {split.dimension} groups stay split over NVLink domains",
            observed=f"ranks {fold_labels([str(rank) for rank in split.example])} on {fold_hosts(split.nodes)}",
            expected="each group in as few domains as its size needs",
            fix=(split.why,),
            where=Where(nodes=split.nodes, ranks=split.example),
        )
        for split in solved.solution.splits
    ]


def _check_of(dimension: str) -> str:
    """The check that speaks of a split of this dimension, or of any group that belongs together."""
    known = BY_NAME.get(dimension.split(maxsplit=1)[0])
    return (known.split_check if known is not None else "") or "PLC001"
