"""What a placement costs: every group of every dimension by the nodes it spans, the level at which they meet, and the
rails that it can keep to.

Vectorised over groups: a group's price depends only on how many nodes it spans, on the fewest of its ranks in one node,
on how many of these stay on a rail, and on the level; of these there are few different ones however many groups there
are. Times in us, one step.

Rails part at the innermost level of the network: there a rail is a switch of its own, and further out all rails meet. A
group whose members are on other rails in one node than in the next has two ways, and takes the faster: over the level
above, or, where its nodes share some rails, over NVLink to the members on those and out by their NICs alone (NCCL v2.28
src/graph/paths.cc, PXN: only GPUs of the communicator's own ranks stand in for one another).

Demands are taken from the heaviest down. The ranks that the heaviest one joins are blocks; those that the two heaviest
join are families of blocks, and so on: laid side by side (placement/pack.py), every group of a grid layout lies as
compactly as its dimension deserves, and any other groups do too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from math import fsum

import numpy as np
import numpy.typing as npt

from topodiag.cost.collectives import Link
from topodiag.cost.spread import Spread, fastest
from topodiag.cost.tiers import SWITCH_US
from topodiag.lazy import dataclass
from topodiag.model.cluster import Assignment, Cluster, Demand, Ints

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Spans:
    """Where the groups of a demand lie, one entry per group: nodes spanned, fewest members in one of them, the level at
    which all meet (0 one node, k the k-th level of the cluster, one more where they meet nowhere), and how many of
    `least` ways out of a node stay on their rail (all, where the group does not meet where rails part)."""

    nodes: Ints
    least: Ints
    level: Ints
    on_rail: Ints


@dataclass(frozen=True, slots=True)
class DemandCost:
    """The price of one demand: `each_us` of one call per group, `step_us` what the slowest group adds to a step, and
    `bound_us` the same for the best place that any group of this size could have in the cluster."""

    demand: Demand
    spans: Spans
    each_us: Floats
    step_us: float
    bound_us: float

    @property
    def slowest(self) -> int:
        """The number of the group that the others wait for; the first of several."""
        return int(self.each_us.argmax()) if self.each_us.size else -1


@dataclass(frozen=True, slots=True)
class PlacementCost:
    """All demands. `step_us` is communication that a step waits for, `bound_us` the least that it could be."""

    demands: tuple[DemandCost, ...]

    @property
    def step_us(self) -> float:
        return fsum(demand.step_us for demand in self.demands)

    @property
    def bound_us(self) -> float:
        return fsum(demand.bound_us for demand in self.demands)


def spans_of(cluster: Cluster, groups: Ints, assignment: Assignment) -> Spans:
    """Where groups (one row of ranks each) lie under an assignment in which all their ranks have a slot."""
    nodes = np.sort(cluster.node_of(assignment.slot[groups]), axis=1)
    rows, size = nodes.shape
    starts = np.ones((rows, size), bool)
    starts[:, 1:] = nodes[:, 1:] != nodes[:, :-1]
    first = np.flatnonzero(starts.ravel())
    lengths = np.diff(np.append(first, rows * size))
    owner = first // size
    least = np.full(rows, size, np.int64)
    np.minimum.at(least, owner, lengths)
    count = np.bincount(owner, minlength=rows).astype(np.int64)
    level = _levels(cluster, nodes)
    on_rail = least.copy()
    parting = np.flatnonzero(level == rail_level(cluster)) if cluster.rails > 1 else np.zeros(0, np.int64)
    if parting.size:
        on_rail[parting] = _on_rail(cluster, assignment.slot[groups[parting]], least[parting])
    return Spans(count, least, level, on_rail)


def rail_level(cluster: Cluster) -> int:
    """The level at which rails are switches of their own: the innermost of the network; -1 where there are no rails."""
    network = (number for number, level in enumerate(cluster.levels, start=1) if level.kind != "nvlink")
    return next(network, -1) if cluster.rails > 1 else -1


def _on_rail(cluster: Cluster, slots: Ints, least: Ints) -> Ints:
    """Of `least` ways, those by rails that a group has in all its NVLink domains; `slots` one row per group."""
    rails = cluster.rails
    domain = np.unique(cluster.nvlink_domain[cluster.node_of(slots)], return_inverse=True)[1].reshape(slots.shape)
    domains = int(domain.max()) + 1
    row = np.arange(len(slots), dtype=np.int64)[:, None]
    keys, members = np.unique((row * domains + domain) * rails + cluster.gpu_of(slots) % rails, return_counts=True)
    first = np.flatnonzero(np.diff(keys // rails, prepend=-1))
    spanned = np.bincount(keys[first] // rails // domains, minlength=len(slots))
    fewest = np.full(len(slots), slots.shape[1], np.int64)
    np.minimum.at(fewest, keys[first] // rails // domains, np.add.reduceat(members, first))
    by_rail = keys // rails // domains * rails + keys % rails
    seen = np.bincount(by_rail, minlength=len(slots) * rails).reshape(-1, rails)
    shared = np.full(len(slots) * rails, slots.shape[1], np.int64)
    np.minimum.at(shared, by_rail, members)
    common = np.where(seen == spanned[:, None], shared.reshape(-1, rails), 0).sum(axis=1)
    # A domain of several nodes has more ways than the node with the fewest: the same share of them.
    return np.where(common >= fewest, least, np.where(common > 0, np.maximum(least * common // fewest, 1), 0))


def _levels(cluster: Cluster, nodes: Ints) -> Ints:
    """The level at which all nodes of each (sorted) row meet."""
    levels = np.full(len(nodes), len(cluster.levels) + 1, np.int64)
    for number in range(len(cluster.levels), 0, -1):
        group = cluster.levels[number - 1].group[nodes]
        levels[(group == group[:, :1]).all(axis=1)] = number
    levels[nodes[:, 0] == nodes[:, -1]] = 0
    return levels


def pairs_of(groups: Ints) -> Ints:
    """Neighbours in each row, as rows of two: what a pipeline's stages send over."""
    left, right = groups[:, :-1].ravel(), groups[:, 1:].ravel()
    return np.stack([left, right], axis=1) if left.size else np.zeros((0, 2), np.int64)


def rows_of(demand: Demand) -> Ints:
    """The ranks of each call: those of a group; of a pipeline two neighbours."""
    return pairs_of(demand.groups) if demand.collective == "send_recv" else demand.groups


def domains_of(cluster: Cluster, groups: Ints, assignment: Assignment) -> Ints:
    """NVLink domains that each group spans."""
    domains = np.sort(cluster.nvlink_domain[cluster.node_of(assignment.slot[groups])], axis=1)
    counts: Ints = 1 + (np.diff(domains, axis=1) != 0).sum(axis=1)
    return counts


def price_demand(cluster: Cluster, demand: Demand, assignment: Assignment) -> DemandCost:
    """One demand under an assignment. A `send_recv` demand is priced over neighbours in its rows (a pipeline)."""
    if not demand.talks:
        empty = np.zeros(0, np.int64)
        return DemandCost(demand, Spans(empty, empty, empty, empty), np.zeros(0), 0.0, 0.0)
    if demand.collective == "send_recv":
        over_pairs = spans_of(cluster, pairs_of(demand.groups), assignment)
        took = _times_by_group(cluster, demand, over_pairs, 2).reshape(len(demand.groups), demand.size - 1).max(axis=1)
        spans = spans_of(cluster, demand.groups, assignment)
    else:
        spans = spans_of(cluster, demand.groups, assignment)
        took = _times_by_group(cluster, demand, spans, demand.size)
    best = demand.waited_us(bound_us(cluster, demand))
    return DemandCost(demand, spans, took, demand.waited_us(float(took.max())), best)


def price_placement(cluster: Cluster, demands: Sequence[Demand], assignment: Assignment) -> PlacementCost:
    """All demands under an assignment."""
    return PlacementCost(tuple(price_demand(cluster, demand, assignment) for demand in demands))


def _times_by_group(cluster: Cluster, demand: Demand, spans: Spans, size: int) -> Floats:
    """One call's time per group, computed once for each kind of span."""
    columns = np.stack([spans.nodes, spans.least, spans.level, spans.on_rail], axis=1)
    kinds, which = np.unique(columns, axis=0, return_inverse=True)
    times = [span_time_us(cluster, demand, size, *map(int, kind)) for kind in kinds.tolist()]
    return np.asarray(times, np.float64)[which.ravel()]


def span_time_us(  # noqa: PLR0917 - one span, spelt out
    cluster: Cluster, demand: Demand, size: int, nodes: int, least: int, level: int, on_rail: int | None = None
) -> float:
    """One call, in us, over a group of `size` that spans `nodes`, with at least `least` ranks in each, of which
    `on_rail` keep to their rail (None: all), meeting at `level`."""
    inside = Link(cluster.inside_alpha_us, cluster.inside_gbs, "inside the node")
    if nodes == 1:
        return fastest(demand.collective, Spread(1, size, inside, inside, cluster.switch), demand.bytes)[0]

    def over(outside: Link) -> float:
        # Unequal shares: the node with the fewest members has the fewest NICs for the ring that passes all.
        spread = Spread(-(-size // least), least, inside, outside, cluster.switch)
        return fastest(demand.collective, spread, demand.bytes)[0]

    link = level_link(cluster, level)
    took = over(link)
    if on_rail is None or on_rail >= least:
        return took
    across = over(_across_rails(cluster, level))
    if on_rail > 0:
        hop = Link(link.alpha_us + inside.alpha_us, link.gbs * on_rail / least, link.name)
        across = min(across, over(hop))
    return max(took, across)


def _across_rails(cluster: Cluster, level: int) -> Link:
    """What one GPU sees of the way from one rail to another: the level above; where none is known, two more switches,
    and the oversubscription of what joins the rails."""
    if level < len(cluster.levels):
        return level_link(cluster, level + 1)
    link, top = level_link(cluster, level), cluster.levels[-1]
    return Link(link.alpha_us + SWITCH_US, link.gbs / max(top.oversubscription, 1.0), link.name)


def off_rail_us(cluster: Cluster, demand: Demand, assignment: Assignment) -> float:
    """What a step waits longer for a demand because its groups do not keep to their rails."""
    with_rails = price_demand(cluster, demand, assignment).step_us
    return with_rails - price_demand(replace(cluster, rails=0), demand, assignment).step_us


def level_link(cluster: Cluster, level: int) -> Link:
    """What one GPU sees of the k-th level (from 1); past the last one, the last level stands for the way there."""
    if not cluster.levels:
        return Link(cluster.inside_alpha_us, cluster.inside_gbs, "inside the node")
    link = cluster.levels[min(level, len(cluster.levels)) - 1]
    return Link(link.alpha_us, link.gbs, link.kind)


def bound_us(cluster: Cluster, demand: Demand) -> float:
    """One call of the group that the others wait for, at best: in one node where all groups find room so, else over the
    fewest nodes of the innermost level that has the room, in equal shares."""
    size = 2 if demand.collective == "send_recv" else demand.size
    free = cluster.usable.sum(axis=1)
    per_node = int(free.max(initial=0))
    # Every group in a node of its own part: only where the free GPUs of the nodes leave room for so many.
    whole = demand.collective == "send_recv" or int((free // size).sum()) >= len(demand.groups)
    if size <= per_node and whole:
        return span_time_us(cluster, demand, size, 1, size, 0)
    per_node = min(per_node, -(-size // 2)) if size <= per_node else per_node
    nodes = -(-size // max(per_node, 1))
    roomy = [
        number
        for number, level in enumerate(cluster.levels, start=1)
        if np.bincount(level.group, weights=free).max(initial=0) >= size
    ]
    levels = roomy or [len(cluster.levels) + 1]
    return min(span_time_us(cluster, demand, size, nodes, max(size // nodes, 1), level) for level in levels)


def weight(demand: Demand) -> float:
    """What a split of this demand would cost, up to a factor: bytes that each rank sends and waits for in a step. A
    demand that belongs inside a domain comes before any other."""
    return demand.bytes * demand.urgency * (1e6 if demand.keep_together else 1.0)


def heaviest_first(demands: Sequence[Demand]) -> list[Demand]:
    """Demands with more than one rank in a group, the heaviest first; of equal ones the smaller groups."""
    real = [demand for demand in demands if demand.talks]
    return sorted(real, key=lambda demand: (-weight(demand), demand.size, demand.dimension))


def by_family(numbers: Ints, family: Ints) -> list[Ints]:
    """These numbers in parts of one family each, in the order of the families; `family` is that of every number."""
    order = numbers[np.argsort(family[numbers], kind="stable")]
    return np.split(order, np.flatnonzero(np.diff(family[order])) + 1)


def labels(world: int, demands: Sequence[Demand]) -> list[Ints]:
    """For each prefix of the demands, the family that every rank belongs to: the least rank that it is joined with."""
    family = np.arange(world, dtype=np.int64)
    return list(accumulate((demand.groups for demand in demands), _components, initial=family))[1:]


def _components(family: Ints, groups: Ints) -> Ints:
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
