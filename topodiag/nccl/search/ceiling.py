"""How many channels an attempt of the search can find at most, from what is free on links, without searching.

A channel takes bandwidth from links: on its way in from a NET, from GPU to GPU, and out to a NET. Of any set of links
all channels together can take no more than is free there, and each takes at least what the cheapest ways take there.
An attempt that cannot find a better graph need not be searched: it leaves nothing behind but the time it had left.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import reduce
from math import gcd
from operator import or_

from topodiag.lazy import dataclass
from topodiag.nccl.graph.graph import BALANCED_TREE, RING, Link, SearchGraph
from topodiag.nccl.numbers import single
from topodiag.nccl.search.follow import Roads, Route, amounts
from topodiag.nccl.search.trial import Rules, bar, leaving_speed

_BETWEEN, _IN, _OUT = range(3)
"""What ways are for: from GPU to GPU, from a NET to a GPU, from a GPU to a NET."""

_MOST_GPUS = 32
"""The ways of a larger system are too many to sort for the few attempts that it takes."""

_Link = tuple[int, tuple[tuple[int, int], ...]]
"""Thousandths of GB/s free on a link, and the purposes and kinds of use with which any way uses it."""


@dataclass(frozen=True, slots=True)
class _Sort:
    """Ways that are alike here: one of them, and by set of links how many of its links they use, by kind of use."""

    way: Route
    used: tuple[tuple[int, ...], ...]


class _Set:
    """Links whose ends are of the same kinds: the bits of their fields, how many of them are alike, and the most that
    any of them carries, in thousandths of GB/s."""

    def __init__(self) -> None:
        self.bits = self.widest = 0
        self.counts: Counter[_Link] = Counter()

    def add(self, bits: int, link: _Link) -> None:
        self.bits |= bits
        self.widest = max(self.widest, link[0])
        self.counts[link] += 1


class Ceiling:
    """The bound of one system, all of whose links are free."""

    def __init__(self, roads: Roads) -> None:
        system = roads.system
        self.system, self.gpus, self.kind_within = system, len(system.gpus), roads.kind_within
        self.knows = self.gpus <= _MOST_GPUS
        if not self.knows:
            return
        ways = (
            [way for a, row in enumerate(roads.gpu_gpu) for b, way in enumerate(row) if way is not None and a != b],
            [way for row in roads.net_gpu for way in row if way is not None],
            [way for row in roads.gpu_net for way in row if way is not None],
        )
        start = {id(link): vertex for vertex in system for link in vertex.links}
        sets: dict[tuple[object, ...], _Set] = {}
        for link, bits, what in _links(roads, ways):
            sets.setdefault((start[id(link)].kind, link.remote.kind, link.type), _Set()).add(bits, what)
        self.sets = list(sets.values())
        self.sorts = [_sorts(way, [one.bits for one in self.sets]) for way in ways]
        self._known: dict[object, tuple[int, int]] = {}
        self._least: dict[tuple[int, float, int, bool], tuple[int, list[int]] | None] = {}

    def may_improve(self, trial: SearchGraph, best: SearchGraph) -> bool:
        """Whether an attempt could find a better graph than the best; False is certain."""
        if not self.knows:
            return True
        key = (
            *(trial.pattern, trial.bw_intra, trial.bw_inter, trial.max_channels),
            *(self.kind_within(trial.type_intra), self.kind_within(trial.type_inter)),
        )
        if key not in self._known:
            self._known[key] = self.most(trial)
        channels, hops = self._known[key]
        limit = bar(trial, best, self.system.minor)
        alike = (best.pattern, best.cross_nic) == (trial.pattern, trial.cross_nic)
        for count in range(max(1, trial.min_channels), channels + 1):
            value = single(count * trial.bw_intra)
            if value > limit or (value == limit and alike and trial.hops + count * hops < best.hops):
                return True
        return False

    def most(self, trial: SearchGraph) -> tuple[int, int]:
        """Channels at most, and the hops of each at least."""
        rules, hops = Rules(self.system, trial), 0
        taken = [0] * len(self.sets)
        for purpose, times, speed, limit in self._parts(trial):
            least = self._cheapest(purpose, speed, limit, rules)
            if least is None:
                return 0, 0
            hops += times * least[0]
            taken = [all_of + times * count for all_of, count in zip(taken, least[1], strict=True)]
        takes = [amounts(speed) for speed in (trial.bw_intra, trial.bw_inter, leaving_speed(trial))]
        free = [sum(count * _room(link, takes) for link, count in links.counts.items()) for links in self.sets]
        return min([trial.max_channels, *(room // need for room, need in zip(free, taken, strict=True) if need)]), hops

    def _parts(self, trial: SearchGraph) -> Iterator[tuple[int, int, float, int]]:
        """What a channel is made of: the purpose of ways, how many it has, GB/s of each, and the furthest type."""
        inter = self.system.inter
        steps = self.gpus if trial.pattern == RING and not inter and self.gpus > 1 else self.gpus - 1
        if steps:
            yield _BETWEEN, steps, trial.bw_intra, trial.type_intra
        if inter:
            exits = 2 if trial.pattern == BALANCED_TREE and self.gpus > 1 else 1
            yield _IN, 1, trial.bw_inter, trial.type_inter
            yield _OUT, exits, leaving_speed(trial), trial.type_inter

    def _cheapest(self, purpose: int, speed: float, limit: int, rules: Rules) -> tuple[int, list[int]] | None:
        """The fewest hops of the ways of a purpose, and by set of links the least that one takes there, in thousandths
        of GB/s; None where types allow none, or links are too narrow for all."""
        key = purpose, speed, self.kind_within(limit), rules.tree
        if key not in self._least:
            takes = amounts(speed)
            allowed = [
                sort for sort in self.sorts[purpose] if rules.allow(sort.way, limit) and self._is_wide(sort, takes)
            ]
            costs = [[_cost(used, takes) for used in sort.used] for sort in allowed]
            hops = min((sort.way.hops for sort in allowed), default=0)
            self._least[key] = (hops, [min(column) for column in zip(*costs, strict=True)]) if allowed else None
        return self._least[key]

    def _is_wide(self, sort: _Sort, takes: Sequence[int]) -> bool:
        """Whether ways ask of no link more than the widest of its set carries."""
        return not any(
            count and take > links.widest
            for counts, links in zip(sort.used, self.sets, strict=True)
            for count, take in zip(counts, takes, strict=True)
        )


def _cost(used: Sequence[int], takes: Sequence[int]) -> int:
    """What a way takes of a set of links, by how many it uses of each kind."""
    (a, b, c, d), (e, f, g, h) = used, takes  # asked a hundred thousand times
    return a * e + b * f + c * g + d * h


def _room(link: _Link, takes: Sequence[Sequence[int]]) -> int:
    """What can be taken of a link at all: a multiple of what divides all that may be taken of it."""
    free, uses = link
    part = gcd(*(takes[purpose][kind] for purpose, kind in uses))
    return free // part * part if part else free


def _links(roads: Roads, ways: Sequence[Sequence[Route]]) -> Iterator[tuple[Link, int, _Link]]:
    """Every link that a way uses: the bits of its field, and what it is here."""
    used = {
        (purpose, kind): reduce(or_, (way.uses[kind] for way in one), 0)
        for purpose, one in enumerate(ways)
        for kind in range(4)
    }
    for link, bits in roads.fields():
        uses = tuple(key for key, fields in used.items() if fields & bits)
        if uses:
            yield link, bits, ((roads.start & bits) // (bits & -bits), uses)


def _sorts(ways: Sequence[Route], masks: Sequence[int]) -> list[_Sort]:
    """One way of each sort. A link that a way uses twice counts once or more often."""
    sorts: dict[tuple[object, ...], _Sort] = {}
    for way in ways:
        used = tuple(tuple((fields & mask).bit_count() for fields in way.uses) for mask in masks)
        sorts.setdefault((way.type, way.back, way.hops, used), _Sort(way, used))
    return list(sorts.values())
