"""A layout judged: where each group lies, what that costs in a step, and what the same slots could give.

Three prices stand beside each other. That of the layout; that of a map which packs the groups into the same slots, so
that it can be had; and the bound, the best place that a group of this size could have if it were alone. What a layout
loses is told against the map, never against the bound: groups of different dimensions compete for nodes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from math import fsum

import numpy as np

from topodiag.cost.step import FEW_NODES, MATTERS, MATTERS_MUCH
from topodiag.lazy import dataclass
from topodiag.model.cluster import Assignment, Cluster, Demand, Ints
from topodiag.model.errors import TopodiagError
from topodiag.placement.declared import DeclaredRanks
from topodiag.placement.groups import Talk
from topodiag.placement.pack import pack
from topodiag.placement.price import (
    DemandCost,
    Floats,
    PlacementCost,
    domains_of,
    heaviest_first,
    price_demand,
    price_placement,
    span_time_us,
)
from topodiag.placement.rails import on_rails
from topodiag.placement.solve import in_order, solve
from topodiag.words.units import percent

SEARCHED = 256
"""Ranks up to which the map to compare with is also improved by local search."""
ALIKE_US = 1e-6
ALIKE = 1e-9
"""Share by which times differ that are the same."""


class AuditError(TopodiagError):
    """A layout that is none: a rank without a slot, two ranks on one GPU, a rank on a GPU that is not there."""


@dataclass(frozen=True)
class DimensionAudit:
    """One dimension. `now`, `best`: its collectives under the layout and under the map to compare with; all have the
    same groups. `domains` and `best_domains`: NVLink domains that each group spans under the two."""

    dimension: str
    now: tuple[DemandCost, ...]
    best: tuple[DemandCost, ...]
    domains: Ints
    best_domains: Ints

    @property
    def demand(self) -> Demand:
        return self.now[0].demand

    @property
    def groups(self) -> Ints:
        return self.demand.groups

    @cached_property
    def group_us(self) -> Floats:
        """What each group would make a step wait, were it the slowest."""
        return _group_us(self.now, len(self.groups))

    @property
    def step_us(self) -> float:
        return fsum(cost.step_us for cost in self.now)

    @property
    def best_us(self) -> float:
        return fsum(cost.step_us for cost in self.best)

    @property
    def bound_us(self) -> float:
        return fsum(cost.bound_us for cost in self.now)

    @property
    def levels(self) -> Ints:
        """The level at which each group meets: 0 in a node, k the k-th level of the cluster."""
        return self.now[0].spans.level

    @property
    def slowest(self) -> int:
        """The group that the others wait for."""
        return int(self.group_us.argmax())

    @cached_property
    def split(self) -> Ints:
        """The groups that span more NVLink domains than the map to compare with shows to be necessary: all that are
        wider than the narrowest, where the map has fewer such groups; none otherwise."""
        if not self.demand.keep_together:
            return np.zeros(0, np.int64)
        least = int(min(self.domains.min(), self.best_domains.min()))
        wide = np.flatnonzero(self.domains > least)
        return wide if wide.size > int((self.best_domains > least).sum()) else np.zeros(0, np.int64)


@dataclass(frozen=True, slots=True)
class Misplacement:
    """A group that lies worse than it could: what a step waits for it, and what it would at its place in the map."""

    dimension: str
    group: int
    ranks: tuple[int, ...]
    nodes: tuple[str, ...]
    level: str
    now_us: float
    best_us: float


@dataclass(frozen=True, slots=True)
class Exchange:
    """The worst that could happen: two ranks that change places, the dimension that suffers most, and by how much a
    step becomes longer."""

    ranks: tuple[int, int]
    nodes: tuple[str, str]
    dimension: str
    group: int
    lost_us: float
    dimension_us: tuple[float, float]
    """(before, after) of that dimension."""


@dataclass(frozen=True)
class Audit:
    """A layout with its prices. `best` is the map to compare with, on the same slots; `worst` the group that lies
    worst, None where none could lie better; `could` the exchange that would hurt most; `declared` a launcher's file
    compared with this layout, where the layout is that of a job that ran."""

    cluster: Cluster
    talk: Talk
    assignment: Assignment
    best: Assignment
    dimensions: tuple[DimensionAudit, ...]
    worst: Misplacement | None
    could: Exchange | None
    name: str = "the layout"
    declared: DeclaredRanks | None = None

    @property
    def waited_us(self) -> float:
        """Communication that a step waits for."""
        return fsum(dimension.step_us for dimension in self.dimensions)

    @property
    def best_us(self) -> float:
        """The same under the map to compare with; the layout itself where that is no better."""
        return min(fsum(dimension.best_us for dimension in self.dimensions), self.waited_us)

    @property
    def step_us(self) -> float:
        """The whole step; communication alone where nothing says what is computed."""
        return self.waited_us + (self.talk.base_us or 0.0)

    @property
    def gain(self) -> float:
        """Throughput to regain, as a share: 0.3 is 30 %. Of communication alone where compute is not known."""
        best = self.best_us + (self.talk.base_us or 0.0)
        return self.step_us / best - 1 if best > 0 else 0.0

    def lost(self, dim: DimensionAudit) -> float:
        """Share of a step that a dimension loses, below 0 where the map would take from it."""
        return (dim.step_us - dim.best_us) / self.step_us if self.step_us > 0 else 0.0

    @property
    def nodes(self) -> int:
        """Nodes that the job uses."""
        return int(np.unique(self.cluster.node_of(self.assignment.slot)).size)

    @property
    def hardly_matters(self) -> str:
        """Why topology hardly matters to this job, "" where it does."""
        used = self.cluster.node_of(self.assignment.slot)
        if np.unique(self.cluster.nvlink_domain[used]).size == 1:
            return "all ranks share one node or NVLink domain: there is no placement to get wrong"
        if not self.dimensions:
            return "no group of ranks talks in this layout"
        if self.talk.base_us is None or self.gain >= MATTERS or self._spread_out():
            return ""
        at_stake = max(self.gain, self.could.lost_us / self.step_us if self.could is not None and self.step_us else 0.0)
        if at_stake <= 0:
            return f"no other place of any rank would make a {self.talk.unit} shorter or longer"
        if at_stake < MATTERS:
            return f"the worst single misplacement would cost {percent(at_stake)} of a step: compute carries it"
        one_switch = self.cluster.levels and np.unique(self.cluster.levels[0].group[used]).size == 1
        if self.nodes < FEW_NODES and one_switch and at_stake < MATTERS_MUCH:
            return f"fewer than {FEW_NODES} nodes under one switch"
        return ""

    def _spread_out(self) -> bool:
        """Whether a group that must stay together is spread over domains for more than MATTERS of a step."""
        more = fsum(
            dimension.step_us - fsum(whole_us(self.cluster, cost.demand) for cost in dimension.now)
            for dimension in self.dimensions
            if dimension.demand.keep_together
        )
        return more > MATTERS * self.step_us

    def instead_of(self, dim: DimensionAudit) -> list[str]:
        """The dimensions that must stay together and of which the map to compare with splits more groups."""
        return [
            other.dimension
            for other in self.dimensions
            if other is not dim and other.demand.keep_together
            and int((other.best_domains > 1).sum()) > int((other.domains > 1).sum())
        ]  # fmt: skip

    def level_name(self, level: int) -> str:
        return level_name(self.cluster, level)


def whole_us(cluster: Cluster, demand: Demand) -> float:
    """What a step would wait for a group of this size in one node, were there a node so large."""
    size = 2 if demand.collective == "send_recv" else demand.size
    return demand.waited_us(span_time_us(cluster, demand, size, 1, size, 0))


def level_name(cluster: Cluster, level: int) -> str:
    """`node`, the kind of a level, or `apart` where nothing joins the nodes."""
    if level == 0:
        return "node"
    return cluster.levels[level - 1].kind if level <= len(cluster.levels) else "apart"


def audit(cluster: Cluster, talk: Talk, assignment: Assignment, *, name: str = "the layout") -> Audit:
    """Judge a layout. Raises AuditError."""
    check(cluster, talk, assignment)
    demands = [demand for demand in talk.demands if demand.talks]
    now = price_placement(cluster, demands, assignment)
    best_map = compare_with(cluster, talk, assignment)
    best = price_placement(cluster, demands, best_map)
    dimensions = tuple(_dimensions(cluster, assignment, best_map, now, best))
    if best.step_us >= now.step_us * (1 - ALIKE) and not any(dimension.split.size for dimension in dimensions):
        # The layout is as good: what the other map gives to one dimension it takes from another. It stays the map to
        # compare rails with, which cost nothing where a group meets further out than they part.
        dimensions = tuple(_dimensions(cluster, assignment, assignment, now, now))
    worst = _worst(cluster, assignment, dimensions)
    could = _could(cluster, assignment, dimensions)
    return Audit(cluster, talk, assignment, best_map, dimensions, worst, could, name)


def check(cluster: Cluster, talk: Talk, assignment: Assignment) -> None:
    """Raise AuditError for a layout that is none."""
    slot = assignment.slot
    if slot.size != talk.world:
        raise AuditError(f"the layout places {slot.size} ranks, and the job has {talk.world}", hint="correct either")
    without = np.flatnonzero((slot < 0) | (slot >= cluster.nodes * cluster.slots))
    if without.size:
        raise AuditError(f"{without.size} of {slot.size} ranks have no GPU, as rank {without[0]}")
    order = np.argsort(slot, kind="stable")
    twice = np.flatnonzero(np.diff(slot[order]) == 0)
    if twice.size:
        a, b = (int(order[twice[0] + step]) for step in (0, 1))
        node, gpu = divmod(int(slot[a]), cluster.slots)
        raise AuditError(f"ranks {a} and {b} are both on GPU {gpu} of {cluster.names[node]}")
    taken = np.flatnonzero(~cluster.usable.ravel()[slot])
    if taken.size:
        node, gpu = divmod(int(slot[taken[0]]), cluster.slots)
        raise AuditError(f"rank {taken[0]} is on GPU {gpu} of {cluster.names[node]}, which is not there to be used")


def compare_with(cluster: Cluster, talk: Talk, assignment: Assignment) -> Assignment:
    """A map of the same ranks on the same slots that packs the groups, the innermost first, and keeps them on rails."""
    usable = np.zeros(cluster.usable.size, bool)
    usable[assignment.slot] = True
    own = replace(cluster, usable=usable.reshape(cluster.usable.shape))
    if talk.world <= SEARCHED:
        return solve(own, talk.demands, talk.world).assignment
    return on_rails(own, heaviest_first(talk.demands), in_order(own, pack(own, talk.demands, talk.world)))


def _dimensions(
    cluster: Cluster, assignment: Assignment, best_map: Assignment, now: PlacementCost, best: PlacementCost
) -> Iterator[DimensionAudit]:
    for name in dict.fromkeys(demand.demand.dimension for demand in now.demands):
        mine = tuple(demand for demand in now.demands if demand.demand.dimension == name)
        theirs = tuple(demand for demand in best.demands if demand.demand.dimension == name)
        groups = mine[0].demand.groups
        yield DimensionAudit(
            name, mine, theirs, domains_of(cluster, groups, assignment), domains_of(cluster, groups, best_map)
        )


def _group_us(costs: Sequence[DemandCost], groups: int) -> Floats:
    times = np.zeros(groups)
    for cost in costs:
        different, which = np.unique(cost.each_us, return_inverse=True)
        waited = np.asarray([cost.demand.waited_us(us) for us in different.tolist()])
        times += waited[which.ravel()]
    return times


def names_of(cluster: Cluster, assignment: Assignment, ranks: Ints) -> tuple[str, ...]:
    """The nodes of these ranks, in the ranks' order."""
    nodes = cluster.node_of(assignment.slot[ranks]).tolist()
    return tuple(dict.fromkeys(cluster.names[node] for node in nodes))


def _worst(cluster: Cluster, assignment: Assignment, dimensions: Sequence[DimensionAudit]) -> Misplacement | None:
    """The group that loses most against the slowest of its dimension in the map."""

    def slowest_us(dimension: DimensionAudit) -> float:
        return float(dimension.group_us[dimension.slowest])

    worst = max(dimensions, key=lambda dimension: slowest_us(dimension) - dimension.best_us, default=None)
    if worst is None or slowest_us(worst) - worst.best_us <= ALIKE_US:
        return None
    ranks = worst.groups[worst.slowest]
    return Misplacement(
        worst.dimension, worst.slowest, tuple(ranks.tolist()), names_of(cluster, assignment, ranks),
        level_name(cluster, int(worst.levels[worst.slowest])), slowest_us(worst), worst.best_us,
    )  # fmt: skip


def _could(cluster: Cluster, assignment: Assignment, dimensions: Sequence[DimensionAudit]) -> Exchange | None:
    """The exchange of two ranks that would lengthen a step most, among one rank of every dimension's first group and
    a rank at every distance, at the same and at another place in its node."""
    exchange: Exchange | None = None
    nodes = cluster.node_of(assignment.slot)
    gpus = cluster.gpu_of(assignment.slot)
    tried: set[tuple[int, int]] = set()
    for dimension in dimensions:
        one = int(dimension.groups[0, 0])
        far = cluster.level_between(np.full(nodes.shape, nodes[one]), nodes)
        far[dimension.groups[0]] = 0  # within its group a rank may sit anywhere
        for level in np.unique(far[far > 0]).tolist():
            for alike in (True, False):
                there = np.flatnonzero((far == level) & ((gpus == gpus[one]) == alike))
                tried |= {(one, int(other)) for other in there[:1]}
    for one, other in sorted(tried):
        candidate = _exchanged(cluster, assignment, dimensions, one, other)
        if candidate is not None and (exchange is None or candidate.lost_us > exchange.lost_us + ALIKE_US):
            exchange = candidate
    return exchange


def _exchanged(
    cluster: Cluster, assignment: Assignment, dimensions: Sequence[DimensionAudit], one: int, other: int
) -> Exchange | None:
    slot = assignment.slot.copy()
    slot[one], slot[other] = slot[other], slot[one]
    moved = Assignment(slot)
    lost, most, where = 0.0, 0.0, None
    for dim in dimensions:
        touched = np.flatnonzero(((dim.groups == one) | (dim.groups == other)).any(axis=1))
        if not touched.size:
            continue
        after = fsum(
            max(price_demand(cluster, replace(cost.demand, groups=dim.groups[touched]), moved).step_us, cost.step_us)
            for cost in dim.now
        )
        more = after - dim.step_us
        lost += more
        if more > most:
            hurt = touched[(dim.groups[touched] == one).any(axis=1)]
            most, where = more, (dim, int(hurt[0] if hurt.size else touched[0]), after)
    if where is None:
        return None
    dim, group, after = where
    names = cluster.names[int(cluster.node_of(slot[[other]])[0])], cluster.names[int(cluster.node_of(slot[[one]])[0])]
    return Exchange((one, other), names, dim.dimension, group, lost, (dim.step_us, after))
