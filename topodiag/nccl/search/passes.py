"""Whether so many channels of a tree get past the GPUs at all, by the place that each GPU has in a channel.

A channel passes every GPU once: as its first, which it enters from a NET, as one in the middle, or as its last. A tree
leaves to a NET where it has begun, over the same links as to the next GPU: what it takes there it takes together. So a
GPU that is cheap as the last of one channel has to be dear in another, which sums over all links do not see. (A ring
enters and leaves each GPU once: of it they see all.)

What one channel takes of a link is one piece, and pieces are counted as `bounds.weighed` does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain, combinations, product

from topodiag.lazy import dataclass
from topodiag.nccl.graph.graph import BALANCED_TREE, TREE, Link, SearchGraph, Vertex
from topodiag.nccl.search.bounds import weighed
from topodiag.nccl.search.follow import Roads, Way, amounts
from topodiag.nccl.search.trial import Rules, leaving_speed

_BETWEEN, _IN, _OUT = range(3)
"""What a way is for: from GPU to GPU, from a NET to a GPU, from a GPU to a NET."""

_Place = tuple[int, int | None, tuple[int, ...]]
"""How many GPUs of a channel have it, by what it enters there, and by what it goes on."""

_Ways = tuple[Sequence[Way | None], Sequence[Way | None], Sequence[Way | None]]
"""By purpose."""

_Taken = tuple[int, ...]
"""What a channel takes of each of a GPU's own links, thousandths of GB/s."""

_Row = tuple[int, tuple[tuple[int, ...], ...]]
"""The weight that a link has room for, and by place the weights of what a channel may take of it there."""


@dataclass(frozen=True, slots=True)
class _GpuLinks:
    """The links into or out of one GPU: what is free on each, and by purpose the ways that begin or end there, one of
    each sort, with how often they use each link, by kind of use."""

    free: tuple[int, ...]
    ways: tuple[tuple[tuple[Way, tuple[tuple[int, ...], ...]], ...], ...]

    def takes(self, purpose: int, speed: float, limit: int, rules: Rules) -> set[_Taken]:
        """What ways may take that go no further than a type."""
        each_takes = amounts(speed)
        numbers = {
            tuple(sum(count * take for count, take in zip(uses, each_takes, strict=True)) for uses in used)
            for way, used in self.ways[purpose]
            if rules.allow(way, limit)
        }
        return {taken for taken in numbers if self.holds(taken)}

    def holds(self, taken: _Taken) -> bool:
        return all(each <= free for each, free in zip(taken, self.free, strict=True))


class Passes:
    """The GPUs of a system, all of whose links are free."""

    def __init__(self, roads: Roads) -> None:
        self.system, self.kind_within, gpus = roads.system, roads.kind_within, roads.system.gpus
        start = {id(link): vertex for vertex in roads.system for link in vertex.links}
        fields = list(roads.fields())
        kinds: dict[object, tuple[_GpuLinks, _GpuLinks]] = {}
        for gpu, vertex in enumerate(gpus):
            others = [at for at in range(len(gpus)) if at != gpu]
            body = roads.body(vertex)
            entries: _Ways = ([roads.gpu_gpu[at][gpu] for at in others], [row[gpu] for row in roads.net_gpu], [])
            exits: _Ways = ([roads.gpu_gpu[gpu][at] for at in others], [], roads.gpu_net[gpu])
            into = _own(roads, [pair for pair in fields if pair[0].remote is body], entries)
            out_of = _own(roads, [pair for pair in fields if _begins(start, pair[0], body)], exits)
            kinds.setdefault((_said(into), _said(out_of)), (into, out_of))
        self.kinds = list(kinds.values())
        self._known: dict[object, bool] = {}

    def hold(self, trial: SearchGraph, count: int) -> bool:
        """Whether so many channels of a trial may get past all GPUs; False is certain."""
        if trial.pattern not in (TREE, BALANCED_TREE) or len(self.system.gpus) < 2:
            return True
        types = self.kind_within(trial.type_intra), self.kind_within(trial.type_inter)
        key = trial.pattern, trial.bw_intra, trial.bw_inter, *types, count
        if key not in self._known:
            self._known[key] = self._hold(trial, count)
        return self._known[key]

    def _hold(self, trial: SearchGraph, count: int) -> bool:
        places = _places(trial.pattern, len(self.system.gpus), self.system.inter)
        times = [how_many for how_many, _, _ in places]
        for into, out_of in self.kinds:
            options = list(self._options(into, out_of, places, trial))
            rows = [
                row
                for at, free in enumerate((*into.free, *out_of.free))
                for row in _rows(free, [[taken[at] for taken in option] for option in options], count)
            ]
            pairs = rows if len(self.kinds) == 1 else []
            if not all(_one_holds(pair, count) for pair in _pairs(rows)):
                return False
            if not all(_all_hold(pair, count, times) for pair in _pairs(pairs)):
                return False
        return True

    def _options(
        self, into: _GpuLinks, out_of: _GpuLinks, places: Sequence[_Place], trial: SearchGraph
    ) -> Iterator[list[_Taken]]:
        """By place, all that a channel may take of a GPU's links there."""
        rules = Rules(self.system, trial)
        speeds = trial.bw_intra, trial.bw_inter, leaving_speed(trial)
        limits = trial.type_intra, trial.type_inter, trial.type_inter
        ends = [into.takes(purpose, speeds[purpose], limits[purpose], rules) for purpose in (_BETWEEN, _IN)]
        begins = [out_of.takes(index, speeds[index], limits[index], rules) for index in range(3)]
        for _, entry, exits in places:
            entered = ends[entry] if entry is not None else {(0,) * len(into.free)}
            left = {
                tuple(map(sum, zip((0,) * len(out_of.free), *parts, strict=True)))
                for parts in product(*(begins[each] for each in exits))
            }
            yield [(*one, *other) for one in entered for other in left if out_of.holds(other)]


def _places(pattern: int, gpus: int, inter: bool) -> list[_Place]:
    """The places of a channel, after the order in which an attempt follows its ways."""
    entry, leaves = (_IN, (_OUT,)) if inter else (None, ())
    first: _Place = (1, entry, (_BETWEEN, *leaves))
    if pattern == TREE:
        return [first, (gpus - 2, _BETWEEN, (_BETWEEN,)), (1, _BETWEEN, ())]
    if gpus == 2:
        return [first, (1, _BETWEEN, leaves)]
    return [first, (1, _BETWEEN, (_BETWEEN, *leaves)), (gpus - 3, _BETWEEN, (_BETWEEN,)), (1, _BETWEEN, ())]


def _rows(free: int, taken: Sequence[Sequence[int]], count: int) -> Iterator[_Row]:
    """A link as it is, and by weights of pieces; only such rows as may bind so many channels."""
    pieces = sorted({piece for numbers in taken for piece in numbers if piece})
    weights: list[Callable[[int], int]] = [int]
    weights += [weighed(free, piece) for piece in pieces if 2 * piece <= free]
    for weight in weights:
        costs = tuple(tuple(weight(piece) for piece in numbers) for numbers in taken)
        if count * max(chain.from_iterable(costs), default=0) > weight(free):
            yield weight(free), costs


def _pairs(rows: Sequence[_Row]) -> Iterator[tuple[_Row, _Row]]:
    yield from ((row, row) for row in rows)
    yield from combinations(rows, 2)


def _trades(points: Sequence[tuple[int, int]]) -> set[tuple[int, int]]:
    """The weights of two rows at which two options cost the same, and each row alone."""
    pairs = {(1, 0), (0, 1)}
    for (a, b), (c, d) in combinations(points, 2):
        if (a - c) * (b - d) < 0:
            pairs.add((abs(b - d), abs(a - c)))
    return pairs


def _points(pair: tuple[_Row, _Row]) -> list[set[tuple[int, int]]]:
    """By place, what its options weigh in both rows."""
    return [set(zip(one, other, strict=True)) for one, other in zip(pair[0][1], pair[1][1], strict=True)]


def _one_holds(pair: tuple[_Row, _Row], count: int) -> bool:
    """Whether so many channels get past one GPU, each at the place that suits it."""
    (free, _), (more, _) = pair
    points = sorted(set().union(*_points(pair)))
    return bool(points) and all(
        count * min(w * a + v * b for a, b in points) <= w * free + v * more for w, v in _trades(points)
    )


def _all_hold(pair: tuple[_Row, _Row], count: int, times: Sequence[int]) -> bool:
    """Whether they get past all GPUs, which are alike, with every place taken as often as a channel has it."""
    (free, _), (more, _) = pair
    points = [(often, pairs) for often, pairs in zip(times, _points(pair), strict=True) if often]
    if not all(pairs for _, pairs in points):
        return False
    gpus = sum(times)
    return all(
        count * sum(often * min(w * a + v * b for a, b in pairs) for often, pairs in points)
        <= gpus * (w * free + v * more)
        for w, v in _trades(sorted(set().union(*(pairs for _, pairs in points))))
    )


def _begins(start: dict[int, Vertex], link: Link, body: Vertex) -> bool:
    return start[id(link)] is body


def _own(roads: Roads, links: Sequence[tuple[Link, int]], ways: Sequence[Sequence[Way | None]]) -> _GpuLinks:
    masks = [bits for _, bits in links]
    sorts: list[tuple[tuple[Way, tuple[tuple[int, ...], ...]], ...]] = []
    for one in ways:
        found: dict[object, tuple[Way, tuple[tuple[int, ...], ...]]] = {}
        for way in one:
            if way is not None:
                used = tuple(tuple((fields & mask) // (mask & -mask) for fields in way.uses) for mask in masks)
                found.setdefault((way.type, way.back, way.hops == 0, used), (way, used))
        sorts.append(tuple(found.values()))
    return _GpuLinks(tuple((roads.start & mask) // (mask & -mask) for mask in masks), tuple(sorts))


def _said(own: _GpuLinks) -> object:
    """What is the same of GPUs whose links and ways are alike."""
    ways = (frozenset((way.type, way.back, way.hops == 0, used) for way, used in way) for way in own.ways)
    return own.free, tuple(ways)
