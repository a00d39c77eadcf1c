"""The search for jobs of few ranks: exchanges of ranks or groups and moves to free GPUs, from several starts. Only the
nodes of ranks count; prices are kept by the nodes that a group lies on.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum

import numpy as np

from topodiag.model.cluster import Assignment, Cluster, Demand
from topodiag.placement.price import rows_of, span_time_us
from topodiag.words.units import grouped

STARTS = 16
"""Other starts, in turn a random one and the best found so far with some ranks exchanged."""
KICKS = 3
_LESS = 1 - 1e-12
_MEAN = 1e-3
"""Weight of the mean over groups beside the slowest: it only decides between equals."""


def search(
    cluster: Cluster, demands: Sequence[Demand], given: Sequence[Assignment], *, seed: int, starts: int = STARTS
) -> Assignment:
    """The best assignment found from any of those given or another start."""
    state = _State(cluster, demands)
    generator = np.random.default_rng(seed)
    slots = cluster.node_of(cluster.free_slots())
    best: list[int] = []
    value = float("inf")
    for number in range(-len(given), starts):
        if number < 0:
            nodes = cluster.node_of(given[number].slot).tolist()
        elif number % 2:
            nodes = list(best)
            for _ in range(KICKS):
                one, other = generator.integers(len(nodes), size=2).tolist()
                nodes[one], nodes[other] = nodes[other], nodes[one]
        else:
            nodes = generator.permutation(slots)[: len(best)].tolist()
        cost = state.descend(nodes)
        if cost < value * _LESS:
            best, value = nodes, cost
    return _seated(cluster, best)


def _seated(cluster: Cluster, nodes: Sequence[int]) -> Assignment:
    """The first free GPUs of each node, in the order of ranks."""
    free = {node: np.flatnonzero(cluster.usable[node]).tolist() for node in set(nodes)}
    return Assignment(np.asarray([node * cluster.slots + free[node].pop(0) for node in nodes], np.int64))


class _State:
    def __init__(self, cluster: Cluster, demands: Sequence[Demand]) -> None:
        self.cluster, self.demands = cluster, list(demands)
        self.rows = [rows_of(demand).tolist() for demand in demands]
        self.groups = [demand.groups.tolist() for demand in demands]
        self.owners = grouped(
            (rank, (number, place))
            for number, rows in enumerate(self.rows)
            for place, row in enumerate(rows)
            for rank in row
        )
        self.levels = [level.group.tolist() for level in cluster.levels]
        self.free = cluster.usable.sum(axis=1).tolist()
        self.known: dict[tuple[int, tuple[int, ...]], float] = {}
        self.times: list[list[float]] = []

    def took(self, number: int, nodes: Sequence[int]) -> float:
        key = (number, tuple(sorted(nodes)))
        if key not in self.known:
            counts = [key[1].count(node) for node in set(nodes)]
            level = 0 if len(counts) == 1 else self._level(nodes)
            self.known[key] = span_time_us(
                self.cluster, self.demands[number], len(nodes), len(counts), min(counts), level
            )
        return self.known[key]

    def _level(self, nodes: Sequence[int]) -> int:
        for number, group in enumerate(self.levels, start=1):
            if len({group[node] for node in nodes}) == 1:
                return number
        return len(self.levels) + 1

    def value(self) -> float:
        total = 0.0
        for demand, times in zip(self.demands, self.times, strict=True):
            total += demand.waited_us(max(times)) + _MEAN * demand.urgency * fsum(times) / len(times)
        return total

    def retime(self, nodes: Sequence[int], ranks: Sequence[int]) -> list[tuple[int, int, float]]:
        undo = []
        for number, place in {owner for rank in ranks for owner in self.owners.get(rank, ())}:
            undo.append((number, place, self.times[number][place]))
            self.times[number][place] = self.took(number, [nodes[rank] for rank in self.rows[number][place]])
        return undo

    def descend(self, nodes: list[int]) -> float:
        """Change `nodes` until no exchange and no move helps; the value reached."""
        self.times = [
            [self.took(number, [nodes[rank] for rank in row]) for row in rows] for number, rows in enumerate(self.rows)
        ]
        value, helped = self.value(), True
        while helped:
            helped = False
            for change in self._changes(nodes):
                before = [(rank, nodes[rank]) for rank, _ in change]
                for rank, node in change:
                    nodes[rank] = node
                undo = self.retime(nodes, [rank for rank, _ in change])
                new = self.value()
                if new < value * _LESS:
                    value, helped = new, True
                    break
                for rank, node in before:
                    nodes[rank] = node
                for number, place, time in undo:
                    self.times[number][place] = time
        return value

    def _changes(self, nodes: list[int]) -> list[list[tuple[int, int]]]:
        """What could be done: ranks with their new nodes."""
        swaps = [
            [(one, nodes[other]), (other, nodes[one])]
            for one in range(len(nodes))
            for other in range(one)
            if nodes[one] != nodes[other]
        ]
        room = [node for node, free in enumerate(self.free) if nodes.count(node) < free]
        swaps += [[(rank, node)] for rank in range(len(nodes)) for node in room if node != nodes[rank]]
        for groups in self.groups:
            for place, one in enumerate(groups):
                for other in groups[:place]:
                    if not set(one) & set(other):
                        pairs = list(zip(one, other, strict=True))
                        swaps.append([(a, nodes[b]) for a, b in pairs] + [(b, nodes[a]) for a, b in pairs])
                        # The end of one for the beginning of the other: both split alike.
                        half = len(one) // 2
                        pairs = list(zip(one[half:], other, strict=False))
                        swaps.append([(a, nodes[b]) for a, b in pairs] + [(b, nodes[a]) for a, b in pairs])
            # A whole group to a node, in exchange for what is there that is not of the group.
            for group in groups:
                for node in {*nodes, *room}:
                    swaps += self._gathered(nodes, group, node)
        return swaps

    def _gathered(self, nodes: list[int], group: Sequence[int], node: int) -> list[list[tuple[int, int]]]:
        outside = [rank for rank in group if nodes[rank] != node]
        there = [rank for rank, place in enumerate(nodes) if place == node and rank not in group]
        vacant = self.free[node] - nodes.count(node)
        if not outside or len(outside) < 2 or len(outside) > vacant + len(there):
            return []
        leaving = there[: max(len(outside) - vacant, 0)]
        return [
            [(rank, node) for rank in outside]
            + [(rank, nodes[left]) for rank, left in zip(leaving, outside, strict=False)]
        ]
