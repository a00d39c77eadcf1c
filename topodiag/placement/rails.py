"""Ranks on rails: which GPU of its node each rank takes, so that groups between nodes keep to their rails.

Nodes and levels stay as they are. Only groups that would make a step wait longer than it must for other reasons are
looked at; in their nodes two ranks change GPUs, or one takes a free GPU, as long as fewer ways leave their rail.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from itertools import islice, product
from math import fsum

import numpy as np

from topodiag.lazy import dataclass
from topodiag.model.cluster import Assignment, Cluster, Demand
from topodiag.placement.price import price_placement, rail_level, rows_of, span_time_us, spans_of
from topodiag.placement.shares import Class, make_seats
from topodiag.words.units import grouped

DEPTH, BREADTH = 3, 8
"""How far a group that took another's rail may push it on, and how many ways to do so are tried."""
TRIES, TRIES_PER_GROUP, RANKS_PER_TRY = 2_000, 20, 16
"""Groups mended on the way, in all; those of many ranks count as several."""
EXCHANGES = 64
"""Exchanges with other groups that one tries."""

SEATS = 8
"""Empty seats that a group without rails is offered."""
MOST_OPTIONS = 24
"""Ways to bring a group to one rail that are looked at."""

Change = tuple[tuple[int, int], ...]
"""Ranks with their new slots; whoever is there takes the old ones."""


@dataclass(frozen=True, slots=True)
class _Row:
    """A group that rails matter to: the number of its demand, its ranks, the fewest of them in a node, how many ways
    must stay on a rail for no step to wait for it, and what a step loses for it else."""

    demand: int
    ranks: tuple[int, ...]
    least: int
    need: int
    lost_us: float


def on_rails(cluster: Cluster, demands: Sequence[Demand], start: Assignment) -> Assignment:
    """The same ranks in the same nodes, on GPUs that cost no more; `start` where nothing is gained."""
    if rail_level(cluster) < 1:
        return start
    real = [demand for demand in demands if demand.talks]
    rows = [row for number, demand in enumerate(real) for row in _rows(cluster, demand, number, start)]
    work = _Turning(cluster, rows, start)
    if not work.off:
        return start
    work.turn()
    assignment = Assignment(np.asarray(work.slot, np.int64))
    before, after = (price_placement(cluster, demands, assignment).step_us for assignment in (start, assignment))
    return assignment if after < before * (1 - 1e-12) else start


def _rows(cluster: Cluster, demand: Demand, place: int, start: Assignment) -> Iterable[_Row]:
    """The groups of a demand for which a step would wait longer off their rails than for any that is on."""
    groups = rows_of(demand)
    spans = spans_of(cluster, groups, start)
    kinds, which = np.unique(np.stack([spans.nodes, spans.least, spans.level], axis=1), axis=0, return_inverse=True)
    size = groups.shape[1]
    straight = max(span_time_us(cluster, demand, size, *kind) for kind in kinds.tolist())
    parting = rail_level(cluster)
    for number, (nodes, least, level) in enumerate(kinds.tolist()):
        if level != parting:
            continue
        times = [span_time_us(cluster, demand, size, nodes, least, level, index) for index in range(least + 1)]
        need = next(on_rail for on_rail, time in enumerate(times) if time <= straight * (1 + 1e-12))
        if need:
            lost = demand.urgency * (times[0] - straight)
            for row in groups[which.ravel() == number].tolist():
                yield _Row(place, tuple(row), least, need, lost)


class _Turning:
    def __init__(self, cluster: Cluster, rows: Sequence[_Row], start: Assignment) -> None:
        self.cluster = cluster
        self.rails, self.slots, self.usable = cluster.rails, cluster.slots, cluster.usable
        self.rows = rows
        self.slot: list[int] = start.slot.tolist()
        self.domain: list[int] = cluster.nvlink_domain.tolist()
        self.owners = grouped((rank, number) for number, row in enumerate(rows) for rank in row.ranks)
        self.lacking = [self.lacks(number) for number in range(len(rows))]
        self.off = sum(1 for lacks in self.lacking if lacks)
        self.rank_at = {slot: rank for rank, slot in enumerate(self.slot)} if self.off else {}
        self.log: list[tuple[int, int]] = []
        """Changes made: (rank, the slot that it left)."""
        self.tries = self.allowed = TRIES + TRIES_PER_GROUP * self.off
        self.region = cluster.levels[rail_level(cluster) - 1].group.tolist()
        self.near = grouped(
            ((row.demand, self.region[self.slot[row.ranks[0]] // self.slots]), number)
            for number, row in enumerate(rows if self.off else ())
        )
        self.idle: dict[tuple[int, int], list[tuple[tuple[int, int], ...]]] = {}
        """Seats that nobody took, by size and smallest share."""
        self.given_up: dict[int, float] = {}
        """By demand, the loss of a group that no change helps: nothing is won by groups that lose no more."""

    def turn(self) -> None:
        """Mend the groups in turn. Where one cannot be, its demand is given up, and all begins anew without regard to
        it."""
        while True:
            given_up = dict(self.given_up)
            for number in [number for number, lacks in enumerate(self.lacking) if lacks]:
                row = self.rows[number]
                if self.counts(number) and not any(way(number) for way in (self.mend, self.exchanged, self.moved)):
                    self.given_up[row.demand] = max(row.lost_us, self.given_up.get(row.demand, 0.0))
            if self.given_up == given_up:
                return
            self.undo(0)
            self.tries = self.allowed

    def counts(self, number: int) -> bool:
        row = self.rows[number]
        return row.lost_us > self.given_up.get(row.demand, 0.0)

    def mend(self, number: int, depth: int = DEPTH, settled: frozenset[int] = frozenset()) -> bool:
        """Bring a group to one more rail after the other until it lacks nothing. Where that takes a rail from another
        group, that one is mended in turn, so many times over, but none of the settled; what does not lead there is
        taken back."""
        settled |= {number}
        while self.lacking[number]:
            changes = self.changes(number, settled)
            if changes and changes[0][0] > 0:
                self.apply(changes[0][1])
                continue
            if not depth or not any(self.pushed(number, change, depth, settled) for _, change in changes[:BREADTH]):
                return False
        return True

    def changes(self, number: int, settled: frozenset[int]) -> list[tuple[float, Change]]:
        """(gain, ranks with their new slots) of what brings a group to one more rail in all its nodes and takes none
        from the settled; best first."""
        domains = grouped((self.domain[self.slot[rank] // self.slots], rank) for rank in self.rows[number].ranks)
        has = {
            name: Counter(self.slot[rank] % self.slots % self.rails for rank in mine) for name, mine in domains.items()
        }
        shared = reduce(Counter.__and__, has.values())
        pairs = []
        for rail in range(self.rails):
            without = [name for name in domains if has[name][rail] <= shared[rail]]
            options = [list(self.brought(domains[name], rail, has[name] - shared)) for name in without]
            several = product(*options) if len(options) <= 2 else [tuple(option[0] for option in options if option)]
            for change in islice(several, MOST_OPTIONS):
                if len(change) < len(without):
                    continue
                gains = self.gains(change)
                if gains.get(number, 0) > 0 and all(gains.get(node, 0) >= 0 for node in settled):
                    pairs.append((fsum(gain * self.rows[node].lost_us for node, gain in gains.items()), change))
        return sorted(pairs, key=lambda pair: -pair[0])

    def brought(self, mine: Sequence[int], rail: int, spare: Counter[int]) -> Iterable[tuple[int, int]]:
        """Ranks of a group in one domain that are on rails of no use, each with a slot of its node on a rail."""
        for rank in mine:
            node, gpu = divmod(self.slot[rank], self.slots)
            if not spare[gpu % self.rails]:
                continue
            for other in range(rail, self.slots, self.rails):
                slot = node * self.slots + other
                if self.usable[node, other] and self.rank_at.get(slot) not in mine:
                    yield rank, slot
                    break

    def pushed(self, number: int, change: Change, depth: int, settled: frozenset[int]) -> bool:
        """Whether a change leads to a better state, once the groups that it hurts are mended."""
        at, before = len(self.log), self.lacking[number]
        hurt = [node for node, gain in self.gains(change).items() if gain < 0]
        self.apply(change)
        if self.mended(hurt, depth - 1, settled) and self.lacking[number] < before:
            return True
        self.undo(at)
        return False

    def mended(self, groups: Sequence[int], depth: int, settled: frozenset[int]) -> bool:
        self.tries -= 1 + sum(len(self.rows[group].ranks) for group in groups) // RANKS_PER_TRY
        return self.tries >= 0 and all(self.mend(group, depth, settled) for group in groups)

    def exchanged(self, number: int) -> bool:
        """Whether the group keeps to its rails once its ranks in a node have changed places with as many of another
        group in another node under the same switches. For groups of the heaviest demand: others would be torn."""
        if self.rows[number].demand:
            return False
        for mine, theirs, other in islice(self.exchanges(number), EXCHANGES):
            at = len(self.log)
            self.apply(tuple((one, self.slot[two]) for one, two in zip(mine, theirs, strict=True)))
            if self.mended((number, other), 1, frozenset()):
                return True
            self.undo(at)
        return False

    def exchanges(self, number: int) -> Iterator[tuple[list[int], list[int], int]]:
        """(ranks of the group in a node, as many of another group in another node, the other group)."""
        nodes = self.by_node(number)
        for node, mine in nodes.items():
            near = self.near[self.rows[number].demand, self.region[node]]
            # Those after it first, so that not all ask the same few.
            start = bisect_right(near, number)
            for other in (*near[start:], *near[:start]):
                others = self.by_node(other)
                for their_node, theirs in others.items():
                    if their_node not in nodes and node not in others and len(mine) == len(theirs):
                        yield mine, theirs, other

    def moved(self, number: int) -> bool:
        """Whether the group keeps to its rails on GPUs that nobody took, in shares no smaller."""
        row = self.rows[number]
        if row.demand:
            return False
        key = len(row.ranks), row.least
        if key not in self.idle:
            taken = np.bincount(self.cluster.node_of(np.asarray(self.slot, np.int64)), minlength=len(self.usable))
            free = self.usable.sum(axis=1) - taken
            allowed = Class((0,) * (rail_level(self.cluster) - 1) + (row.least,))
            self.idle[key] = make_seats(self.cluster, free, key[0], allowed, SEATS).parts[:SEATS]
        for parts in self.idle[key]:
            at = len(self.log)
            ranks = iter(row.ranks)
            for node, share in parts:
                slots = (node * self.slots + gpu for gpu in np.flatnonzero(self.usable[node]).tolist())
                empty = [slot for slot in slots if slot not in self.rank_at][:share]
                self.apply(tuple(zip(islice(ranks, len(empty)), empty, strict=True)))
            if next(ranks, None) is None and self.mended((number,), 1, frozenset()):
                return True
            self.undo(at)
        return False

    def by_node(self, number: int) -> dict[int, list[int]]:
        """The ranks of a group by node."""
        return grouped((self.slot[rank] // self.slots, rank) for rank in self.rows[number].ranks)

    def undo(self, at: int) -> None:
        """Take back all changes after so many."""
        self.apply(tuple(self.log[at:][::-1]))
        del self.log[at:]

    def apply(self, change: Change) -> None:
        touched: set[int] = set()
        for rank, slot in change:
            touched |= self.touched(rank, slot)
            self.log.append((rank, self.slot[rank]))
            self.move(rank, slot)
        for node in touched:
            self.lacking[node] = self.lacks(node)

    def touched(self, rank: int, slot: int) -> set[int]:
        """The groups of a rank and of the one at a slot."""
        return {*self.owners.get(rank, ()), *self.owners.get(self.rank_at.get(slot, -1), ())}

    def gains(self, change: Change) -> dict[int, int]:
        """By group, the ways that a change brings back to their rail."""
        homes = []
        touched: set[int] = set()
        for rank, slot in change:
            touched |= self.touched(rank, slot)
            homes.append((rank, self.slot[rank]))
            self.move(rank, slot)
        gains = {node: self.lacking[node] - self.lacks(node) for node in touched if self.counts(node)}
        for rank, home in homes[::-1]:
            self.move(rank, home)
        return gains

    def move(self, rank: int, slot: int) -> None:
        home, other = self.slot[rank], self.rank_at.get(slot)
        self.slot[rank] = slot
        self.rank_at[slot] = rank
        if other is None:
            del self.rank_at[home]
        else:
            self.slot[other] = home
            self.rank_at[home] = other

    def lacks(self, number: int) -> int:
        """Ways that a group lacks on its rails."""
        row = self.rows[number]
        return max(row.need - self.on_rails(row.ranks), 0)

    def on_rails(self, ranks: Sequence[int]) -> int:
        """Ways on their rails, as `on_rail` of the price."""
        by_domain: dict[int, Counter[int]] = {}
        in_node: Counter[int] = Counter()
        for rank in ranks:
            node, gpu = divmod(self.slot[rank], self.slots)
            in_node[node] += 1
            by_domain.setdefault(self.domain[node], Counter())[gpu % self.rails] += 1
        common, least = reduce(Counter.__and__, by_domain.values()).total(), min(in_node.values())
        fewest = min(counts.total() for counts in by_domain.values())
        return least if common >= fewest else max(least * common // fewest, 1) if common else 0
