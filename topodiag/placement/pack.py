"""Groups laid into the nodes, innermost first: seats for the heaviest groups, then families of them side by side.

Seats (placement/shares.py) are of the fastest class that has enough of them. Families (the groups that the next
heaviest demands join) are then laid first fit into the groups of each level, from the outermost in, and broken into
smaller ones only where none has the room. Linear in seats, up to sorting. The demands' order by weight is a guess, so
a few orders are laid and the cheapest is kept.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import permutations

import numpy as np

from topodiag.lazy import dataclass
from topodiag.model.cluster import Assignment, Cluster, Demand, Ints
from topodiag.placement.price import by_family, heaviest_first, labels, price_placement
from topodiag.placement.shares import Seats, classes, make_seats

FEW_RANKS = 2048
"""Ranks up to which every order of up to four demands is laid, and the classes after the fastest too."""
FEWER_RANKS = 256
"""Ranks up to which leaves are left out of account too, and pieces of groups are laid side by side."""
MOST_TILED = 4
"""Demands up to which that is done."""
PIECES = (2, 3, 4)
MORE_CLASSES = 3

Known = dict[tuple[object, ...], "Seats | None"]
"""Seats by what decides them: orders that begin alike ask for the same again."""


def pack(cluster: Cluster, demands: Sequence[Demand], world: int) -> Assignment:
    """The cheapest of the layings. The cluster has at least `world` usable GPUs."""
    return layings(cluster, demands, world)[0]


def layings(cluster: Cluster, demands: Sequence[Demand], world: int, *, enough_us: float = 0.0) -> list[Assignment]:
    """All that are tried, the cheapest first, rails aside: those are a matter of GPUs within nodes, which come last
    (placement/rails.py). No pieces are laid where a step takes no longer than `enough_us` without."""
    real = heaviest_first(demands)
    # Two collectives of the same groups are laid as one.
    families: dict[bytes, Demand] = {}
    for demand in real:
        families.setdefault(demand.groups.tobytes(), demand)
    several = list(families.values())
    flat = replace(cluster, rails=0)
    priced: dict[bytes, tuple[float, Assignment]] = {}
    known: Known = {}

    def lay(order: Sequence[Demand], on: Cluster, classes_tried: int) -> None:
        groups = labels(world, order)
        for extra in range(classes_tried):
            laid = _laid(cluster, on, order, groups, world, extra, known)
            if laid is None:
                return
            where = cluster.node_of(laid.slot).tobytes()
            if where not in priced:
                priced[where] = price_placement(flat, real, laid).step_us, laid

    for order in _orders(several, world, cluster.slots):
        lay(order, cluster, MORE_CLASSES if world <= FEW_RANKS else 1)
        if world <= FEWER_RANKS:
            # As if there were no leaves: a job that fewer nodes hold may be faster on these, wherever they are.
            lay(order, replace(cluster, levels=()), MORE_CLASSES)
    best = min((took for took, _ in priced.values()), default=0.0)
    if world <= FEWER_RANKS and len(several) <= MOST_TILED and best > enough_us * (1 + 1e-9):
        for order in _tilings(several):
            lay(order, cluster, 1)
    ordered = sorted(priced.values(), key=lambda pair: pair[0])
    return [laid for _, laid in ordered] or [Assignment(cluster.free_slots()[:world])]


def _tilings(demands: Sequence[Demand]) -> Iterator[Sequence[Demand]]:
    """Orders that begin with pieces of groups: a node then holds a few ranks of each of several dimensions."""
    for one, other in permutations(demands, 2):
        rest = [demand for demand in demands if demand is not one and demand is not other]
        for begin in (one, *_pieces(one)):
            for piece in _pieces(other):
                yield [begin, piece, *rest, one, other]
                yield [begin, piece, other, one, *rest]
                for third in (piece for demand in rest for piece in _pieces(demand)):
                    yield [begin, piece, third, one, other, *rest]


def _pieces(demand: Demand) -> Iterator[Demand]:
    return (_in_pieces(demand, length) for length in PIECES if length < demand.size)


def _in_pieces(demand: Demand, length: int) -> Demand:
    """The same groups in pieces of neighbours, as equal as can be and no longer."""
    parts = np.array_split(np.arange(demand.size), -(-demand.size // length))
    wide = len(parts[0])
    # Rows are of one length: a shorter piece names its last rank twice.
    columns = np.stack([np.append(part, part[-1:])[:wide] if len(part) < wide else part for part in parts])
    return replace(demand, groups=demand.groups[:, columns].reshape(-1, wide))


def _orders(demands: Sequence[Demand], world: int, slots: int) -> Iterator[Sequence[Demand]]:
    """Orders to try: one that belongs inside a domain stays first, unless the job is small."""
    if not demands:
        return
    if world <= FEW_RANKS and len(demands) <= 4:
        yield from permutations(demands)
        return
    yield demands
    if len(demands) > 2:
        yield [demands[0], *demands[:0:-1]]
    together = [demand for demand in demands if demand.keep_together]
    for first in together:
        if first is not demands[0]:
            yield [first, *(demand for demand in demands if demand is not first)]
        for second in together:
            # Two that no node holds together: a node of whole groups of the first and a piece of the second.
            if second is not first and first.size < slots < first.size * second.size:
                rest = [demand for demand in demands if demand is not first and demand is not second]
                yield [first, _in_pieces(second, slots // first.size), second, *rest]


def _laid(  # noqa: PLR0917 - one laying, spelt out
    cluster: Cluster, on: Cluster, order: Sequence[Demand], orders: Sequence[Ints], world: int, extra: int, known: Known
) -> Assignment | None:
    """Every rank into a slot, by the `extra`-th class after the fastest that has the room, in an order as if the
    cluster were `on`."""
    ranks = np.lexsort([np.arange(world, dtype=np.int64), *orders])
    units = np.split(ranks, np.flatnonzero(np.diff(orders[0][ranks])) + 1)
    free = cluster.usable.sum(axis=1).astype(np.int64)
    slot = np.full(world, -1, np.int64)
    slots = _FreeSlots(cluster)
    sizes = sorted({len(unit) for unit in units}, reverse=True)
    for size in sizes:
        mine = [unit for unit in units if len(unit) == size]
        later = extra if size == sizes[0] else 0
        key = (order[0].collective, order[0].bytes, size, len(mine), later, free.tobytes())
        if key not in known:
            known[key] = _enough(cluster, free, order[0], mine, later)
        seats = known[key]
        if seats is None:
            return None
        first = np.asarray([unit[0] for unit in mine], np.int64)
        families = [np.arange(len(mine), dtype=np.int64), *(label[first] for label in orders[1:])]
        for unit, seat in zip(mine, _arrange(on, seats, families).tolist(), strict=True):
            start = 0
            for node, share in seats.parts[seat]:
                slot[unit[start : start + share]] = slots.take(node, share)
                free[node] -= share
                start += share
    return Assignment(slot)


class _FreeSlots:
    """The usable slots of each node that are not taken yet, in the order of its GPUs."""

    def __init__(self, cluster: Cluster) -> None:
        self.slots = cluster.free_slots()
        self.next = np.concatenate([[0], np.cumsum(cluster.usable.sum(axis=1))[:-1]]).astype(np.int64)

    def take(self, node: int, count: int) -> Ints:
        start = int(self.next[node])
        self.next[node] += count
        return self.slots[start : start + count]


def _enough(cluster: Cluster, free: Ints, demand: Demand, units: Sequence[Ints], extra: int) -> Seats | None:
    """A seat for each unit, and maybe more, of the fastest class that has so many; None past the last class."""
    size, count = len(units[0]), len(units)
    allowed = classes(cluster, demand, size)

    @cache
    def seats(number: int) -> Seats:
        return make_seats(cluster, free, size, allowed[number], count)

    first = bisect_left(range(len(allowed) - 1), True, key=lambda number: len(seats(number)) >= count) + extra
    return seats(first) if first < len(allowed) and len(seats(first)) >= count else None


@dataclass(slots=True)
class _Arranging:
    regions: list[Ints]
    """By level, 0 the node: the region of each seat."""
    families: Sequence[Ints]
    """From single units up: the family of each unit."""
    seat: Ints


def _arrange(cluster: Cluster, seats: Seats, families: Sequence[Ints]) -> Ints:
    """The seat of each unit."""
    node = seats.node
    regions = [node, *(level.group[node] for level in cluster.levels)]
    work = _Arranging(regions, families, np.full(len(families[0]), -1, np.int64))
    split = np.asarray([len(parts) > 1 for parts in seats.parts], np.int64)
    # Whole seats first, then in physical order.
    _lay(work, np.arange(len(families[0]), dtype=np.int64), np.lexsort([node, split]), len(regions) - 1)
    return work.seat


def _lay(work: _Arranging, units: Ints, seats: Ints, level: int) -> None:
    for inner in range(level + 1):
        # The innermost region that holds it all; of several the smallest, which leaves the larger ones whole.
        _, which, room = np.unique(work.regions[inner][seats], return_inverse=True, return_counts=True)
        enough = np.flatnonzero(room >= len(units))
        if enough.size:
            level, seats = inner - 1, seats[which == enough[room[enough].argmin()]]
            break
    if level < 0:
        work.seat[units] = seats[: len(units)]
        return
    members = by_family(seats, work.regions[level])
    room = np.asarray([len(part) for part in members], np.int64)
    places = np.argsort(-room, kind="stable")
    for place, mine in zip(places.tolist(), _first_fit(work.families, units, room[places]), strict=True):
        if mine.size:
            _lay(work, mine, members[place], level - 1)


def _first_fit(families: Sequence[Ints], units: Ints, room: Ints) -> list[Ints]:
    """Units for each place: the coarsest families that fit, and finer ones of those that do not."""
    left = room.tolist()
    shared: list[list[Ints]] = [[] for _ in left]
    for family in families[::-1]:
        if not units.size:
            break
        start: dict[int, int] = {}
        """By size, the first place that may still have room for it: room only falls."""
        rest: list[Ints] = []
        for run in by_family(units, family):
            place = start.get(len(run), 0)
            while place < len(left) and left[place] < len(run):
                place += 1
            start[len(run)] = place
            if place == len(left):
                rest.append(run)
                continue
            left[place] -= len(run)
            shared[place].append(run)
        units = np.sort(np.concatenate(rest)) if rest else units[:0]
    return [np.sort(np.concatenate(runs)) if runs else units[:0] for runs in shared]
