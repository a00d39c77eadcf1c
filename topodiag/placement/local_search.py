"""Local search on the cost model: ranks change places, one pair at a time, as long as a step becomes shorter.

What is minimised is the time that a step waits for, and of equal times the sum over all groups, so that a move that
mends one of several slowest groups counts. A move is priced by the groups that it touches. Deterministic under a seed.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from topodiag.model.cluster import Assignment, Cluster, Demand, Ints
from topodiag.placement.price import Floats, pairs_of, price_placement, span_time_us, spans_of
from topodiag.placement.small_search import STARTS, search

SMALL = 16
"""Ranks up to which all exchanges are tried, from several starts (placement/small_search.py)."""
TRIES_PER_RANK = 8
MOST_TRIES = 4_000
_MEAN = 1e-3
"""Weight of the mean over groups beside the slowest: it only decides between equals."""


class _Priced:
    """The price of an assignment, kept up to date move by move."""

    def __init__(self, cluster: Cluster, demands: Sequence[Demand], slot: Ints) -> None:
        self.cluster = cluster
        self.slot = slot.copy()
        self.known: dict[tuple[int, int, int, int], float] = {}
        self.rows = [pairs_of(d.groups) if d.collective == "send_recv" else d.groups for d in demands]
        self.demands = list(demands)
        self.owners = [_owners(rows, slot.size) for rows in self.rows]
        self.times = [self._times(number, np.arange(len(rows))) for number, rows in enumerate(self.rows)]

    def _times(self, number: int, which: Ints) -> Floats:
        rows = self.rows[number][which]
        if not rows.size:
            return np.zeros(len(which))
        spans = spans_of(self.cluster, rows, Assignment(self.slot))
        made = np.empty(len(which))
        for place, (nodes, least, level) in enumerate(
            zip(spans.nodes.tolist(), spans.least.tolist(), spans.level.tolist(), strict=True)
        ):
            key = (number, nodes, least, level)
            if key not in self.known:
                kind = (rows.shape[1], nodes, least, level)
                self.known[key] = span_time_us(self.cluster, self.demands[number], *kind)
            made[place] = self.known[key]
        return made

    def value(self) -> float:
        found = 0.0
        for demand, times in zip(self.demands, self.times, strict=True):
            if times.size:
                found += demand.waited_us(float(times.max())) + _MEAN * demand.urgency * float(times.mean())
        return found

    def exchange(self, one: int, other: int) -> list[tuple[int, Ints, Floats]]:
        """Ranks change places; what is needed to take it back."""
        self.slot[one], self.slot[other] = self.slot[other], self.slot[one]
        return self._retime((one, other))

    def _retime(self, ranks: Sequence[int]) -> list[tuple[int, Ints, Floats]]:
        undo = []
        for number, owners in enumerate(self.owners):
            which = np.unique(np.concatenate([owners[rank] for rank in ranks]))
            if which.size:
                undo.append((number, which, self.times[number][which].copy()))
                self.times[number][which] = self._times(number, which)
        return undo

    def undo(self, kept: list[tuple[int, Ints, Floats]]) -> None:
        for number, which, times in kept:
            self.times[number][which] = times


def _owners(rows: Ints, world: int) -> list[Ints]:
    """The rows that hold each rank."""
    flat = rows.ravel()
    order = np.argsort(flat, kind="stable")
    cuts = np.searchsorted(flat[order], np.arange(world + 1))
    numbers = order // rows.shape[1] if rows.ndim == 2 and rows.shape[1] else order
    return [numbers[cuts[rank] : cuts[rank + 1]] for rank in range(world)]


def improve(
    cluster: Cluster,
    demands: Sequence[Demand],
    start: Assignment,
    *,
    others: Sequence[Assignment] = (),
    seed: int = 0,
    tries: int | None = None,
    enough_us: float = 0.0,
) -> tuple[Assignment, int]:
    """The best assignment found from `start`, or for a job of few ranks from any of the others, and how many moves led
    to it; `start` where its step takes no longer than `enough_us`, the bound."""
    if not demands or price_placement(cluster, demands, start).step_us <= enough_us * (1 + 1e-9):
        return start, 0
    if start.ranks > SMALL:
        generator = np.random.default_rng(seed)
        limit = min(TRIES_PER_RANK * start.ranks, MOST_TRIES) if tries is None else tries
        return _wander(cluster, demands, start, generator, limit)
    starts = STARTS if tries is None else tries
    return search(cluster, demands, (start, *others), seed=seed, starts=starts)


def _wander(
    cluster: Cluster, demands: Sequence[Demand], start: Assignment, generator: np.random.Generator, tries: int
) -> tuple[Assignment, int]:
    """Exchanges of ranks of the slowest groups with others, drawn at random."""
    state = _Priced(cluster, demands, start.slot)
    value, moves = state.value(), 0
    for _ in range(tries):
        number = int(generator.integers(len(state.rows)))
        times = state.times[number]
        if not times.size or times.max() == times.min():
            continue
        slow = np.flatnonzero(times == times.max())
        row = state.rows[number][slow[int(generator.integers(slow.size))]]
        one = int(row[int(generator.integers(row.size))])
        other = int(generator.integers(start.ranks))
        if cluster.node_of(state.slot[one]) == cluster.node_of(state.slot[other]):
            continue
        kept = state.exchange(one, other)
        new = state.value()
        if new < value * (1 - 1e-12):
            value, moves = new, moves + 1
        else:
            state.slot[one], state.slot[other] = state.slot[other], state.slot[one]
            state.undo(kept)
    return Assignment(state.slot), moves
