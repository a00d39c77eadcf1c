"""Local search on the cost model: ranks change places, guided by the groups that a step waits for.

What changes places are single ranks, fragments (the ranks of one of the heaviest groups in a node), all ranks of two
nodes, or two groups; or a fragment takes free GPUs. What is minimised is the time that a step waits for, and of equal
times the sum over all groups, so that a move that mends one of several slowest groups counts. A move is priced by the
groups that it touches, and one that makes a step a little longer is taken too, ever less so, to come out of a dead end.
Deterministic under a seed.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from topodiag.model.cluster import Assignment, Cluster, Demand, Ints
from topodiag.placement.price import Floats, price_placement, rows_of, span_time_us, spans_of

TRIES_PER_RANK = 8
MOST_TRIES = 4_000
MEAN = 0.3
SLACK = 0.003
"""Share by which a move at the start may make a step longer; it falls to nothing."""
_MEAN = 1e-3
"""Weight of the mean over groups beside the slowest: it only decides between equals."""


class _RunningPrice:
    """The price of an assignment, kept up to date move by move."""

    def __init__(self, cluster: Cluster, demands: Sequence[Demand], slot: Ints) -> None:
        self.cluster = cluster
        self.slot = slot.copy()
        self.rows = [rows_of(demand) for demand in demands]
        sizes = [rows.shape[-1] for rows in self.rows]
        self.span_us = cache(lambda number, *span: span_time_us(cluster, demands[number], sizes[number], *span))
        self.demands = list(demands)
        self.owners = [_owners(rows, slot.size) for rows in self.rows]
        self.times = [self._times(number, np.arange(len(rows))) for number, rows in enumerate(self.rows)]

    def _times(self, number: int, which: Ints) -> Floats:
        rows = self.rows[number][which]
        if not rows.size:
            return np.zeros(len(which))
        spans = spans_of(self.cluster, rows, Assignment(self.slot))
        spelt = np.stack([spans.nodes, spans.least, spans.level, spans.on_rail], axis=1).tolist()
        return np.array([self.span_us(number, *span) for span in spelt])

    def value(self) -> tuple[float, float]:
        """What a step waits for, and what all groups take beside it."""
        waited = mean = 0.0
        for demand, times in zip(self.demands, self.times, strict=True):
            if times.size:
                waited += demand.waited_us(float(times.max()))
                mean += demand.urgency * float(times.mean())
        return waited, mean

    def change(self, ranks: Ints, slots: Ints) -> list[tuple[int, Ints, Floats]]:
        """Ranks take these slots; what is needed to take it back."""
        self.slot[ranks] = slots
        undo = []
        for number, owners in enumerate(self.owners):
            which = np.unique(np.concatenate([owners[rank] for rank in ranks.tolist()]))
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
    seed: int = 0,
    tries: int | None = None,
    enough_us: float = 0.0,
) -> Assignment:
    """The best of the assignments that so many moves (None: by size) lead through from `start`; `start` where its step
    takes no longer than `enough_us`, the bound."""
    if not demands or price_placement(cluster, demands, start).step_us <= enough_us * (1 + 1e-9):
        return start
    if tries is None:
        tries = min(TRIES_PER_RANK * start.ranks, MOST_TRIES)
    state = _RunningPrice(cluster, demands, start.slot)
    moves = _Moves(state, np.random.default_rng(seed))
    best, mean = state.value()
    value, best = best + MEAN * mean, best + _MEAN * mean
    kept = start.slot.copy()
    for number in range(tries):
        move = moves.draw()
        if move is None:
            continue
        ranks, slots = move
        before = state.slot[ranks].copy()
        undo = state.change(ranks, slots)
        step, mean = state.value()
        if step + MEAN * mean < value * (1 + SLACK * (1 - number / tries) ** 2):
            value = step + MEAN * mean
            if step + _MEAN * mean < best * (1 - 1e-12):
                best, kept = step + _MEAN * mean, state.slot.copy()
        else:
            state.slot[ranks] = before
            state.undo(undo)
    return Assignment(kept)


class _Moves:
    """Draws moves: ranks, and the slots that they take."""

    def __init__(self, state: _RunningPrice, generator: np.random.Generator) -> None:
        self.state, self.cluster, self.generator = state, state.cluster, generator
        self.usable = [np.flatnonzero(row) for row in state.cluster.usable]

    def one_of(self, several: Ints) -> int:
        return int(several[int(self.generator.integers(several.size))])

    def draw(self) -> tuple[Ints, Ints] | None:
        """A move of a rank of a group that the others wait for, None where the draw came to nothing."""
        state = self.state
        number = int(self.generator.integers(len(state.rows)))
        times = state.times[number]
        if not times.size:
            return None
        row = state.rows[number][self.one_of(np.flatnonzero(times == times.max()))]
        one = self.one_of(row)
        nodes = self.cluster.node_of(state.slot)
        # Half of the time to where others of the group are already.
        near = self.generator.integers(2)
        target = int(nodes[self.one_of(row)]) if near else int(self.generator.integers(self.cluster.nodes))
        if target == nodes[one]:
            return None
        there = np.flatnonzero(nodes == target)
        here = np.flatnonzero(nodes == nodes[one])
        kind = int(self.generator.integers(5))
        if kind == 0:
            row_of = state.rows[number]
            other = row_of[int(self.generator.integers(len(row_of)))]
            if np.isin(row, other).any():
                return None
            return np.concatenate([row, other]), np.concatenate([state.slot[other], state.slot[row]])
        some, others = np.asarray([one]), there[:0]
        if kind == 1 and there.size:
            others = np.asarray([self.one_of(there)])
        elif kind == 2 and there.size:
            some, others = self.fragment(one, here), self.fragment(self.one_of(there), there)
        elif kind == 3:
            some, others = here, there
        elif kind == 4:
            some = self.fragment(one, here)
        return self.placed(some, here, others, there, target)

    def fragment(self, rank: int, here: Ints) -> Ints:
        """The ranks of the rank's group of the heaviest demand that are in its node."""
        owners = self.state.owners[0][rank]
        if not owners.size:
            return np.asarray([rank])
        nodes: Ints = np.intersect1d(self.state.rows[0][owners[0]], here)
        return nodes

    def placed(self, some: Ints, here: Ints, others: Ints, there: Ints, target: int) -> tuple[Ints, Ints] | None:
        """Some of the ranks here go to another node, and others of those there come back; both take the GPUs that the
        others leave, and free ones. None where these are too few."""
        slot = self.state.slot
        home = int(self.cluster.node_of(slot[some[:1]])[0])
        slots = []
        for ranks, node, leaving, present in ((some, target, others, there), (others, home, some, here)):
            free = np.setdiff1d(node * self.cluster.slots + self.usable[node], slot[present])
            into = np.concatenate([slot[leaving], free])
            if into.size < ranks.size:
                return None
            slots.append(np.sort(into[: ranks.size]))
        return np.concatenate([some, others]), np.concatenate(slots)
