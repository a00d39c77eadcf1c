"""Seats for groups: slots that hold one group each, in one node where a node has the room, else split between few.

A group of `size` ranks over several nodes is priced by its smallest share and by the level at which its nodes meet
(placement/price.py), so a seat is made for a class: shares of at least so many ranks at each level. Free GPUs that no
share of that size fits are left alone.
"""

from __future__ import annotations

from dataclasses import field

import numpy as np

from topodiag.lazy import dataclass
from topodiag.model.cluster import Cluster, Demand, Ints
from topodiag.placement.cut import TOGETHER, Cut, cuts
from topodiag.placement.price import by_family, span_time_us
from topodiag.words.units import grouped

MOST_NODES = 16
"""Nodes that a group may need at least, to be cut as well as can be."""


@dataclass(frozen=True, slots=True)
class Class:
    """What a split seat may be: `least[k]` is the smallest share of one that meets at the k-th level (from 1), 0 where
    none may; empty: no seat may be split. `time_us` is one call of the slowest seat allowed."""

    least: tuple[int, ...] = ()
    time_us: float = 0.0


@dataclass(slots=True)
class Seats:
    """Seats of one size. `parts[i]` are (node, share) of the i-th; `node[i]` is the first of its nodes."""

    size: int
    parts: list[tuple[tuple[int, int], ...]] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.parts)

    @property
    def node(self) -> Ints:
        return np.asarray([parts[0][0] for parts in self.parts], np.int64)


def regions(cluster: Cluster) -> list[Ints]:
    """For each level from 1 the group of every node; past the last level all nodes are one group."""
    return [*(level.group for level in cluster.levels), np.zeros(cluster.nodes, np.int64)]


def classes(cluster: Cluster, demand: Demand, size: int) -> list[Class]:
    """All classes, the fastest first: whole seats only, then what each longer time allows."""
    listed = [Class()]
    if size < 2:
        return listed
    most = min(int(cluster.usable.sum(axis=1).max(initial=0)), max(size // 2, 1))
    times = [
        [span_time_us(cluster, demand, size, -(-size // least), least, level) for least in range(1, most + 1)]
        for level in range(1, len(cluster.levels) + 2)
    ]
    for limit in sorted({time for row in times for time in row}):
        least = tuple(next((at for at, time in enumerate(row, start=1) if time <= limit), 0) for row in times)
        if least != listed[-1].least:
            listed.append(Class(least, limit))
    return listed


def make_seats(cluster: Cluster, free: Ints, size: int, allowed: Class, wanted: int) -> Seats:
    """Seats of a class, `wanted` of them where they are found. Groups of few nodes are cut from fragments by search
    (placement/cut.py); those of many take the largest nodes, first only where no rest is left that no later share fits,
    or not, whichever makes more. `free` are the free GPUs of each node."""
    if size <= MOST_NODES * int(free.max(initial=0)):
        return _cut(cluster, free.copy(), size, allowed)
    seats = _seats(cluster, free.copy(), size, allowed, (True, False))
    if len(seats) >= wanted or not allowed.least:
        return seats
    return max(seats, _seats(cluster, free.copy(), size, allowed, (False,)), key=len)


def _cut(cluster: Cluster, free: Ints, size: int, allowed: Class) -> Seats:
    seats = _seats_in_one_node(free, size)
    for level, least in enumerate(allowed.least):
        if not least:
            continue
        later = next((size for size in allowed.least[level + 1 :] if size), 0)
        for members in by_family(np.flatnonzero(free >= least), regions(cluster)[level]):
            _cut_region(seats, free, members.tolist(), least, later)
    return seats


def _cut_region(seats: Seats, free: Ints, members: list[int], least: int, later: int) -> None:
    """Seats over the nodes of one region, a few nodes at a time; what they leave goes to the next."""
    most = int(free[members].max(initial=0))
    together = max(TOGETHER, 2 * -(-seats.size // max(most, 1)))
    pool: list[int] = []
    start = 0
    while start < len(members):
        fresh = members[start : start + max(together - len(pool), 1)]
        start += len(fresh)
        pool = [node for node in pool if free[node] >= least] + fresh
        by_free: list[list[int]] = [[] for _ in range(most + 1)]
        for node in pool[::-1]:
            by_free[free[node]].append(node)
        counts = tuple(len(nodes) for nodes in by_free)
        last = start >= len(members)
        before = len(seats)
        for group in cuts(counts, seats.size, least, later if last else least):
            seats.parts.append(_take(free, by_free, group))
        if len(pool) >= together and len(seats) == before:
            pool = pool[together // 2 :]  # nothing came of these: others come in


def _take(free: Ints, by_free: list[list[int]], group: Cut) -> tuple[tuple[int, int], ...]:
    """The shares of one group as (node, share); a node that gives two counts once."""
    shares: dict[int, int] = {}
    for have, share in group:
        node = by_free[have].pop()
        free[node] -= share
        by_free[have - share].append(node)
        shares[node] = shares.get(node, 0) + share
    return tuple(sorted(shares.items()))


def _seats_in_one_node(free: Ints, size: int) -> Seats:
    """The seats that are in one node; `free` is what they leave."""
    seats = Seats(size)
    for node in np.flatnonzero(free >= size).tolist():
        count = int(free[node]) // size
        seats.parts.extend(((node, size),) for _ in range(count))
        free[node] -= count * size
    return seats


def _seats(cluster: Cluster, free: Ints, size: int, allowed: Class, rounds: tuple[bool, ...]) -> Seats:
    """Seats by rounds over all levels, near or far, of which each is frugal with what is left of nodes or not."""
    seats = _seats_in_one_node(free, size)
    passes = list(zip(allowed.least, regions(cluster), strict=False))
    for frugal in rounds:
        for least, region in passes:
            if least:
                for members in by_family(np.flatnonzero(free >= least), region):
                    _split(seats, free, members, least, frugal=frugal)
    return seats


def _split(seats: Seats, free: Ints, members: Ints, least: int, *, frugal: bool) -> None:
    """Seats over the nodes of one region, until none is found."""
    size = seats.size
    if int(free[members].sum()) < size:
        return
    by_free = grouped((int(free[node]), node) for node in members.tolist()[::-1])
    while True:
        shares = _many(by_free, size, least)
        if not shares or (frugal and any(0 < have - share < least for have, share in shares)):
            return  # of the GPUs left in a node no later share would fit
        parts = []
        for have, share in shares:
            node = by_free[have].pop()
            parts.append((node, share))
            free[node] -= share
        for node, _ in parts:
            by_free.setdefault(int(free[node]), []).append(node)
        seats.parts.append(tuple(sorted(parts)))


def _many(by_free: dict[int, list[int]], size: int, least: int) -> tuple[tuple[int, int], ...]:
    """The largest nodes until a group fits, in shares as equal as their free GPUs allow; none below `least`."""
    chosen: list[int] = []
    for have in sorted(by_free, reverse=True):
        if have < least or sum(chosen) >= size:
            break
        chosen += [have] * min(-(-(size - sum(chosen)) // have), len(by_free[have]))
    if sum(chosen) < size:
        return ()
    pairs, rest = [], size
    for place, have in enumerate(sorted(chosen)):
        share = min(have, rest // (len(chosen) - place))
        pairs.append((have, share))
        rest -= share
    return tuple(pairs) if pairs[0][1] >= least else ()
