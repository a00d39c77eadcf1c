"""A lower bound on the communication of a step that no placement can beat, under the same cost model.

The heaviest demand takes each class of seats in turn (placement/shares.py). Beside it every other demand takes the
fastest class that can be had at once with it and with the others, by counting (placement/room.py):

- the free GPUs hold all groups of the demand so;
- where every rank of it has m ranks of its own group in its node, no share of the heaviest is more than its node
  over m, and those shares still hold all groups of the heaviest;
- ranks joined by demands that meet within a level lie in one region of it, so the regions hold as many of these
  families as there are.

The cheapest of all such choices bounds the step. Holes are counted, not averaged, so it holds for the nodes at hand.
Rails only add to a price and are left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from math import fsum

import numpy as np

from topodiag.lazy import dataclass
from topodiag.model.cluster import Cluster, Demand, Ints
from topodiag.placement.price import heaviest_first, labels, span_time_us
from topodiag.placement.room import most_groups
from topodiag.placement.shares import Class, classes, regions
from topodiag.placement.worth import WHOLE, worths

TOGETHER = 5
"""Demands, from the heaviest, that are looked at together; what others take at least is added."""

MOST_ROWS = 512
"""Rows of a grid in a region up to which shares of it are counted: more waste next to nothing."""


@dataclass(frozen=True, slots=True)
class _Choice:
    """A class that a demand may take: it meets within `level`, each rank has at least `least` of its group in its node,
    and a step waits for `us`."""

    allowed: Class
    level: int
    least: int
    us: float


def _chosen(allowed: Class, size: int, us: float) -> _Choice:
    level = max((at for at, least in enumerate(allowed.least, start=1) if least), default=0)
    return _Choice(allowed, level, min([size for size in allowed.least if size], default=size), us)


def step_bound_us(cluster: Cluster, demands: Sequence[Demand], world: int) -> float:
    """The least that a step of `world` ranks must wait for, in us; 0 without demands."""
    real = heaviest_first(demands)
    if not real:
        return 0.0
    single_us = fsum(_Bound(cluster, (demand,), world).step_us() for demand in real[TOGETHER:])
    return single_us + _Bound(cluster, tuple(real[:TOGETHER]), world).step_us()


class _Bound:
    def __init__(self, cluster: Cluster, demands: tuple[Demand, ...], world: int) -> None:
        self.cluster, self.world = cluster, world
        # Seats are told for groups, not for the pairs of a pipeline: one of groups comes first where there is any.
        self.demands = tuple(sorted(demands, key=lambda demand: demand.collective == "send_recv"))
        self.free = cluster.usable.sum(axis=1).astype(np.int64)
        self.most = int(self.free.max(initial=0))
        self.outermost = len(cluster.levels) + 1
        self.families: dict[tuple[int, ...], Ints] = {}
        self.fitting: dict[tuple[int, tuple[int, ...], Class], bool] = {}
        self.crossed: dict[tuple[int, ...], bool] = {}
        self.most_held: dict[tuple[int, Class, int, int | None, int], int] = {}

    def step_us(self) -> float:
        first, *rest = self.demands
        best = float("inf")
        for choice in self.choices(first):
            if choice.us >= best or not self.fits(0, choice):
                continue
            others = [list(self.compatible(choice, number)) for number in range(1, len(rest) + 1)]
            if all(others):
                best = min(best, self.cheapest(choice, others, best - choice.us) + choice.us)
        return best if best < float("inf") else 0.0

    def cheapest(self, first: _Choice, others: Sequence[Sequence[_Choice]], below: float) -> float:
        """The least that the others take beside the first, where it is `below`."""
        least = [min(option.us for option in options) for options in others]
        best = below

        def search(taken: tuple[_Choice, ...], us: float) -> None:
            nonlocal best
            if us + fsum(least[len(taken) :]) >= best:
                return
            if len(taken) == len(others):
                if self.together((first, *taken)):
                    best = us
                return
            for option in others[len(taken)]:
                search((*taken, option), us + option.us)

        search((), 0.0)
        return best

    def choices(self, demand: Demand) -> Iterator[_Choice]:
        """All that a demand could take, were it alone."""
        cluster, size = self.cluster, demand.size
        if demand.collective == "send_recv":
            for level in range(self.outermost + 1):
                us = demand.waited_us(span_time_us(cluster, demand, 2, 2 if level else 1, 1 if level else 2, level))
                yield _Choice(Class((1,) * level) if level else Class(), level, 1 if level else size, us)
            return
        whole = span_time_us(cluster, demand, size, 1, size, 0) if size <= self.most else 0.0
        for allowed in classes(cluster, demand, size):
            yield _chosen(allowed, size, demand.waited_us(allowed.time_us if allowed.least else whole))

    def fits(self, number: int, choice: _Choice, *, copies: int = 1, largest: int | None = None) -> bool:
        """Whether the free GPUs hold all groups of a demand so."""
        demand = self.demands[number]
        if demand.collective == "send_recv":
            # Neighbours that meet within a level, one after the other: the whole row lies in one region of it.
            return int((self.room(choice.level) // demand.size).sum()) >= len(demand.groups)
        return self.most_of(number, choice.allowed, copies, largest) >= len(demand.groups)

    def most_of(
        self, number: int, allowed: Class, copies: int = 1, largest: int | None = None, rows: int = 1
    ) -> int:  # fmt: skip
        """The most groups of a demand that the free GPUs hold."""
        key = (number, allowed, copies, largest, rows)
        if key not in self.most_held:
            groups = most_groups(
                self.cluster, self.demands[number].size, allowed,
                level=self.outermost, copies=copies, largest=largest, rows=rows,
            )  # fmt: skip
            self.most_held[key] = int(groups.sum())
        return self.most_held[key]

    def compatible(self, first: _Choice, number: int) -> Iterator[_Choice]:
        """What another demand can take beside the first; of what joins as much, the fastest only."""
        demand = self.demands[number]
        crosses = self.crossing[number]
        seen: set[tuple[int, int]] = set()
        for full in sorted(self.choices(demand), key=lambda choice: choice.us):
            choice = self.trimmed(full, demand, first) if crosses else full
            if any(level >= choice.level and least <= choice.least for level, least in seen):
                continue
            largest = max(self.most // first.least, 1) if crosses else None
            if not self.fits(number, choice, largest=largest):
                continue
            copies = min(choice.least, demand.size)
            if crosses and copies > 1 and not self.fits(0, first, copies=copies):
                continue
            seen.add((choice.level, choice.least))
            yield choice

    def trimmed(self, choice: _Choice, demand: Demand, first: _Choice) -> _Choice:
        """A choice without the levels at which no group can lie of a demand that crosses the first: no region is wide
        enough, or with so many of its ranks in a node there are as many copies of the shares of all groups of the first
        that it meets, and no room for these."""
        if demand.collective == "send_recv":
            return choice
        ways = np.minimum(self.free, max(self.most // first.least, 1))
        kept = []
        for region, least in zip(regions(self.cluster), choice.allowed.least, strict=False):
            wide = int(np.bincount(region, weights=ways).max()) >= demand.size
            kept.append(least if least and wide and self.most_of(0, first.allowed, least) >= demand.size else 0)
        allowed = Class(tuple(kept) if any(kept) else (), choice.allowed.time_us)
        return _chosen(allowed, demand.size, choice.us)

    @cached_property
    def crossing(self) -> list[bool]:
        """By demand, whether it crosses the first."""
        return [self.crosses_family(number, (0,)) for number in range(len(self.demands))]

    def together(self, taken: tuple[_Choice, ...]) -> bool:
        """Whether what the choices join fits into the nodes, and into the regions of each level."""
        if not self.nodes_hold(taken):
            return False
        for level in range(self.outermost):
            inside = tuple(number for number, choice in enumerate(taken) if choice.level <= level)
            key = (level, inside, taken[0].allowed)
            if inside and key not in self.fitting:
                self.fitting[key] = self.regions_hold(level, inside, taken[0])
            if inside and not self.fitting[key]:
                return False
        return True

    def nodes_hold(self, taken: tuple[_Choice, ...]) -> bool:
        """Whether nodes hold the shares of the first with all that others keep in a node beside each of its ranks, as
        many times over as those ask for that have several ranks in each node."""
        inside = tuple(number for number, choice in enumerate(taken) if number and not choice.level)
        if not all(self.crossing[number] for number in inside):
            inside = ()
        rows = self.grids(inside)[0] if inside else 1
        if not rows:
            return True
        copies = max(
            (min(choice.least, self.demands[number].size) for number, choice in enumerate(taken)
             if number and number not in inside and self.crosses_family(number, (0, *inside))), default=1
        )  # fmt: skip
        if rows == 1 and copies == 1:
            return True
        return self.most_of(0, taken[0].allowed, copies, rows=rows) * rows >= len(self.demands[0].groups)

    def crosses_family(self, number: int, inside: tuple[int, ...]) -> bool:
        """Whether each group of a demand has at most one rank of each family that others join, and all ranks of these
        are in one."""
        key = (number, *inside)
        if key not in self.crossed:
            demand = self.demands[number]
            family = labels(self.world, [self.demands[size] for size in inside])[-1]
            families = np.sort(family[demand.groups], axis=1)
            distinct = not bool((families[:, 1:] == families[:, :-1]).any())
            self.crossed[key] = distinct and bool(np.isin(self.demands[0].groups, demand.groups).all())
        return self.crossed[key]

    def regions_hold(self, level: int, inside: tuple[int, ...], first: _Choice) -> bool:
        """Whether the families that demands join fit into the regions of a level."""
        sizes, counts = self.family_sizes(inside)
        free = self.room(level)
        for size in sizes.tolist():
            if int((free // size).sum()) < int(counts[sizes >= size].sum()):
                return False
        demand = self.demands[0]
        if demand.collective == "send_recv" or not level:
            return True
        if 0 in inside:
            # Whole groups of the first, as many in a region as it has seats.
            seats = most_groups(self.cluster, demand.size, first.allowed, level=level)
            return all(
                int((seats // (size // demand.size)).sum()) >= int(counts[sizes >= size].sum())
                for size in sizes.tolist()
                if size % demand.size == 0
            )
        return self.shares_hold(level, inside, first, free)

    def shares_hold(self, level: int, inside: tuple[int, ...], first: _Choice, free: Ints) -> bool:
        """The same where groups of the first may lie in several regions, but the families of the others may not. In a
        grid of both a region that holds a share of one group holds as large a share of all groups of its grid."""
        size = self.demands[0].size
        across, grids = self.grids(inside)
        if not across or not all(self.crossing[number] for number in inside):
            return True
        later = next((size for size in first.allowed.least[level:] if size), 0)
        rows = free // across
        if not later or int(rows.max(initial=0)) > MOST_ROWS:
            return True
        room = min(
            int(np.asarray(worth.node, np.int64)[rows].sum())
            for worth in worths(size, min(later, size // 2), int(rows.max(initial=0)))
        )  # fmt: skip
        return room // WHOLE >= grids

    def grids(self, inside: tuple[int, ...]) -> tuple[int, int]:
        """The size of the families that these demands join, and how many grids they form with groups of the first;
        (0, 0) where they form none."""
        across, _ = self.family_sizes(inside)
        grids, counts = self.family_sizes((0, *inside))
        if across.size != 1 or grids.size != 1 or int(grids[0]) != self.demands[0].size * int(across[0]):
            return 0, 0
        return int(across[0]), int(counts.sum())

    def family_sizes(self, inside: tuple[int, ...]) -> tuple[Ints, Ints]:
        """(size, how many of it) of the families that these demands join, without ranks that none joins."""
        if inside not in self.families:
            family = labels(self.world, [self.demands[number] for number in inside])[-1]
            self.families[inside] = np.bincount(np.bincount(family, minlength=self.world)).astype(np.int64)
        counts = self.families[inside]
        sizes: Ints = np.flatnonzero(counts[2:]) + 2
        return sizes, counts[sizes]

    def room(self, level: int) -> Ints:
        """Free GPUs by region of a level."""
        room: Ints = self.free
        if level:
            room = np.bincount(regions(self.cluster)[level - 1], weights=self.free).astype(np.int64)
        return room
