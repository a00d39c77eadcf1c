"""Whether so many channels fit through links that are alike, where only few of their ways go around these links.

Without GPUDirect every channel goes up to the CPU twice: from its NIC, and from its GPU. A NIC that sits at the CPU
itself spares the first, but there are two of them, with room for a channel each. So of any links, here all those from a
PCI switch to a CPU, each channel takes what most ways take there, but for as many ways around them as fit elsewhere.
What a way takes of a link is one piece, and pieces are counted as `bounds.weighed` does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from math import fsum

from topodiag.lazy import dataclass
from topodiag.nccl.search.bounds import weighed
from topodiag.nccl.search.follow import Roads, Way, amounts, uses_of
from topodiag.nccl.search.trial import Rules

Part = tuple[int, int, float, int]
"""What a channel is made of: the purpose of a way (`ceiling`), how many it has, GB/s, and the furthest type."""

_Pieces = tuple[tuple[int, ...], ...]
"""By set of links the pieces that a way takes there, thousandths of GB/s."""

_MOST_COSTS = 3
"""Of what ways take of a link so many different weights are tried as that of most ways."""


@dataclass(frozen=True, slots=True)
class _LinkKind:
    """Links of one kind with one bandwidth: how many, what is free on each, and the bits of their fields."""

    count: int
    free: int
    bits: int


class Escapes:
    """The links of a system, all of which are free."""

    def __init__(self, roads: Roads) -> None:
        self.system, self.kind_within = roads.system, roads.kind_within
        start = {id(link): vertex for vertex in roads.system for link in vertex.links}
        pairs: dict[object, list[tuple[int, int]]] = {}
        for link, bits in roads.fields():
            free = (roads.start & bits) // (bits & -bits)
            pairs.setdefault((start[id(link)].kind, link.remote.kind, link.type, free), []).append((free, bits))
        self.sets = [
            _LinkKind(len(entries), entries[0][0], sum(bits for _, bits in entries)) for entries in pairs.values()
        ]
        between = [[way for at, way in enumerate(row) if at != gpu] for gpu, row in enumerate(roads.gpu_gpu)]
        self.sorts = [list(self._sorts(ways)) for ways in (between, roads.net_gpu, roads.gpu_net)]
        self._known: dict[object, bool] = {}

    def _sorts(self, ways: Sequence[Sequence[Way | None]]) -> Iterator[tuple[Way, _Pieces]]:
        """One way of each sort, and how many links of each set it uses, by kind of use."""
        masks = [alike.bits for alike in self.sets]
        sorts: dict[object, tuple[Way, _Pieces]] = {}
        for way in (way for row in ways for way in row if way is not None):
            used = uses_of(way, masks)
            sorts.setdefault((way.type, way.back, way.hops == 0, used), (way, used))
        yield from sorts.values()

    def hold(self, parts: Sequence[Part], rules: Rules, count: int) -> bool:
        """Whether so many channels of these parts may fit; False is certain."""
        key = (*((*part[:3], self.kind_within(part[3])) for part in parts), rules.tree, count)
        if key not in self._known:
            self._known[key] = self._hold(parts, rules, count)
        return self._known[key]

    def _hold(self, parts: Sequence[Part], rules: Rules, count: int) -> bool:
        times = [count * part for _, part, _, _ in parts]
        ways = [list(self._allowed(part, rules)) for part in parts]
        if not all(ways):
            return False
        for at, links in enumerate(self.sets):
            most = [max(sum(way[at]) for way in way) for way in ways]
            # a weight is at most twice the piece's share of the link
            if 2 * sum(often * count for often, count in zip(times, most, strict=True)) <= links.count * links.free:
                continue
            pieces = {piece for numbers in ways for way in numbers for piece in way[at]}
            for part in {links.free // 2, *(piece for piece in pieces if 2 * piece <= links.free)} - {0}:
                if not self._fits(at, times, ways, weighed(links.free, part)):
                    return False
        return True

    def _allowed(self, part: Part, rules: Rules) -> Iterator[_Pieces]:
        """The ways that the types allow, and for which the links are wide enough: the pieces that each takes."""
        purpose, _, speed, limit = part
        takes = amounts(speed)
        for way, used in self.sorts[purpose]:
            if rules.allow(way, limit):
                pieces = tuple(
                    tuple(take for uses, take in zip(numbers, takes, strict=True) for _ in range(uses))
                    for numbers in used
                )
                if all(max(numbers, default=0) <= links.free for numbers, links in zip(pieces, self.sets, strict=True)):
                    yield pieces

    def _fits(
        self, at: int, times: Sequence[int], ways: Sequence[Sequence[_Pieces]], weight: Callable[[int], int]
    ) -> bool:
        """Whether the links of one set have room, by the weights of pieces."""
        links = self.sets[at]
        room = links.count * weight(links.free)
        costs = [[sum(map(weight, way[at])) for way in way] for way in ways]
        tried = product(*(sorted(set(cost), reverse=True)[:_MOST_COSTS] for cost in costs))
        return all(
            sum(often * cost for often, cost in zip(times, usual, strict=True))
            <= room + self._saved(at, usual, costs, ways)
            for usual in tried
        )

    def _saved(
        self,
        at: int,
        usual: Sequence[int],
        costs: Sequence[Sequence[int]],
        ways: Sequence[Sequence[_Pieces]],
    ) -> float:
        """What is spared at most by ways that take less than usual: each goes over another set, by the room there."""
        least: dict[int, int] = {}
        gains: dict[int, int] = {}
        for whole, of_part, own in zip(usual, costs, ways, strict=True):
            for cost, way in zip(of_part, own, strict=True):
                if cost >= whole:
                    continue
                around = [other for other, pieces in enumerate(way) if other != at and any(pieces)]
                if not around:
                    return float("inf")
                through = min(around, key=lambda other: self._uses(other, max(way[other])))
                least[through] = min(max(way[through]), least.get(through, max(way[through])))
                gains[through] = max(whole - cost, gains.get(through, 0))
        return fsum(gain * self._uses(other, least[other]) for other, gain in gains.items())

    def _uses(self, at: int, piece: int) -> int:
        """How many pieces the links of a set hold."""
        return self.sets[at].count * (self.sets[at].free // piece)
