"""How many channels an attempt of the search can find at most, from what is free on links, without searching.

A channel takes bandwidth from links: on its way in from a NET, from GPU to GPU, and out to a NET. Of any set of links
all channels together can take no more than is free there, and each takes at least what the cheapest ways take there.
An attempt that cannot find a better graph need not be searched: it leaves nothing behind but the time it had left.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, reduce
from math import gcd
from operator import or_

from topodiag.lazy import dataclass
from topodiag.nccl.graph.graph import BALANCED_TREE, RING, Link, SearchGraph, Vertex
from topodiag.nccl.numbers import single
from topodiag.nccl.search.bounds import Choice, by_pairs, undercut
from topodiag.nccl.search.escapes import Escapes, Part
from topodiag.nccl.search.follow import Roads, Way, amounts, uses_of
from topodiag.nccl.search.passes import Passes
from topodiag.nccl.search.trial import Rules, bar, leaving_speed

_BETWEEN, _IN, _OUT = range(3)
"""What ways are for: from GPU to GPU, from a NET to a GPU, from a GPU to a NET."""

_MOST_GPUS = 32
"""The ways of a larger system are too many to sort for the few attempts that it takes."""

_Link = tuple[int, tuple[tuple[int, int], ...]]
"""Thousandths of GB/s free on a link, and the purposes and kinds of use with which any way uses it."""
_Counted = tuple[tuple[_Link, int], ...]
"""How many links of a set are alike."""


@dataclass(frozen=True, slots=True)
class _Sort:
    """Ways that are alike here: one of them, and by set of links how many of its links they use, by kind of use."""

    way: Way
    used: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class _Port:
    """The NETs of one port: their room in whole GB/s, and their ways to GPUs, one of each sort."""

    room: int
    ways: tuple[Way, ...]


@dataclass(frozen=True, slots=True)
class _Gate:
    """The links into a GPU, or out of it, and the ways that begin or end there: purpose, one of each sort, its uses."""

    links: _Counted
    sorts: tuple[tuple[int, Way, tuple[int, ...]], ...]


@dataclass(frozen=True, slots=True)
class _Least:
    """The fewest hops of some ways, by set of links the least that one takes there, and what those take that none
    undercuts; thousandths of GB/s."""

    hops: int
    costs: list[int]
    ways: tuple[tuple[int, ...], ...]


class _Set:
    """Some links: the bits of their fields, and how many of them are alike."""

    def __init__(self) -> None:
        self.bits = 0
        self._counts: Counter[_Link] = Counter()

    def add(self, bits: int, link: _Link) -> None:
        self.bits |= bits
        self._counts[link] += 1

    def items(self) -> _Counted:
        return tuple(sorted(self._counts.items()))

    def widest(self) -> int:
        """The most that any of them carries, in thousandths of GB/s."""
        return max(free for free, _ in self._counts)


class Ceiling:
    """The bound of one system, all of whose links are free."""

    def __init__(self, roads: Roads) -> None:
        system, self.roads = roads.system, roads
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
        links = list(_links(roads, ways))
        sets: dict[tuple[object, ...], _Set] = {}
        for link, bits, what in links:
            sets.setdefault((start[id(link)].kind, link.remote.kind, link.type), _Set()).add(bits, what)
        self.sets = [one.items() for one in sets.values()]
        self.widest = [one.widest() for one in sets.values()]
        self.sorts = [_sorts(way, [one.bits for one in sets.values()]) for way in ways]
        self.ports = list(_ports(roads))
        self.into = self._gates(roads, links, lambda link: link.remote, into=True)
        self.out_of = self._gates(roads, links, lambda link: start[id(link)], into=False)
        self._known: dict[object, tuple[int, int]] = {}
        self._entered: dict[tuple[int, int, bool], int] = {}
        self._free: dict[tuple[float, float, float], list[int]] = {}
        self._least: dict[tuple[int, float, int, bool], _Least | None] = {}

    def may_improve(self, trial: SearchGraph, best: SearchGraph, *, closely: bool = False) -> bool:
        """Whether an attempt could find a better graph than the best; False is certain. `closely` looks longer."""
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
                return not closely or self._holds(trial, count)
        return False

    @cached_property
    def passes(self) -> Passes:
        return Passes(self.roads)

    @cached_property
    def escapes(self) -> Escapes:
        return Escapes(self.roads)

    def _holds(self, trial: SearchGraph, count: int) -> bool:
        """Whether so many channels may fit by what takes longer to tell."""
        rules = Rules(self.system, trial)
        return self.passes.hold(trial, count) and self.escapes.hold(self._parts(trial), rules, count)

    def most(self, trial: SearchGraph) -> tuple[int, int]:
        """Channels at most, and the hops of each at least."""
        most, hops = trial.max_channels, 0
        rules, leaving = Rules(self.system, trial), leaving_speed(trial)
        parts = self._parts(trial)
        if self.system.inter:
            most = min(most, self._entries(trial, rules))
        taken = [0] * len(self.sets)
        choices: list[Choice] = []
        for purpose, times, speed, limit in parts:
            least = self._cheapest(purpose, speed, limit, rules)
            if least is None:
                return 0, 0
            hops += times * least.hops
            taken = [all_of + times * count for all_of, count in zip(taken, least.costs, strict=True)]
            choices.append((times, least.ways))
        free = self._free_at(trial.bw_intra, trial.bw_inter, leaving)
        most = min([most, *(room // need for room, need in zip(free, taken, strict=True) if need)])
        most = by_pairs(free, choices, most)
        return min(most, self._through_each(trial, rules, [speed for _, _, speed, _ in parts])), hops

    def _parts(self, trial: SearchGraph) -> list[Part]:
        """What a channel is made of."""
        inter = self.system.inter
        steps = self.gpus if trial.pattern == RING and not inter and self.gpus > 1 else self.gpus - 1
        parts: list[Part] = [(_BETWEEN, steps, trial.bw_intra, trial.type_intra)] if steps else []
        if inter:
            exits = 2 if trial.pattern == BALANCED_TREE and self.gpus > 1 else 1
            parts.append((_IN, 1, trial.bw_inter, trial.type_inter))
            parts.append((_OUT, exits, leaving_speed(trial), trial.type_inter))
        return parts

    def _through_each(self, trial: SearchGraph, rules: Rules, speeds: Sequence[float]) -> int:
        """How many channels get to every GPU, and in a ring on from it: each channel does so once, from a GPU or a
        NET, to a GPU or a NET."""
        ring, most = trial.pattern == RING, trial.max_channels
        if self.gpus < 2 or not (ring or self.system.inter):
            return most
        takes = [amounts(speed) for speed in speeds]
        limits = _limits(trial)
        for gate in (*self.into, *(self.out_of if ring else ())):
            open_ways = [sort for sort in gate.sorts if sort[0] < len(takes) and rules.allow(sort[1], limits[sort[0]])]
            need = min((_cost(used, takes[purpose]) for purpose, _, used in open_ways), default=0)
            if not open_ways:
                return 0
            if need:
                room = sum(count * _room(link, takes) for link, count in gate.links)
                most = min(most, room // need)
        return most

    def _gates(
        self, roads: Roads, links: Sequence[tuple[Link, int, _Link]], end: Callable[[Link], Vertex], into: bool
    ) -> list[_Gate]:
        """Of all GPUs, those that are alike once."""
        gates: dict[object, _Gate] = {}
        for gpu, vertex in enumerate(self.system.gpus):
            mine = _Set()
            for link, bits, what in links:
                if end(link) is roads.body(vertex):
                    mine.add(bits, what)
            if into:
                between, nets = [row[gpu] for at, row in enumerate(roads.gpu_gpu) if at != gpu], roads.net_gpu
                ways = [*((_BETWEEN, way) for way in between), *((_IN, row[gpu]) for row in nets)]
            else:
                between = [way for at, way in enumerate(roads.gpu_gpu[gpu]) if at != gpu]
                ways = [*((_BETWEEN, way) for way in between), *((_OUT, way) for way in roads.gpu_net[gpu])]
            sorts: dict[object, tuple[int, Way, tuple[int, ...]]] = {}
            for purpose, way in ways:
                if way is not None:
                    used = tuple((fields & mine.bits).bit_count() for fields in way.uses)
                    sorts.setdefault((purpose, way.type, way.back, way.hops == 0, used), (purpose, way, used))
            gates.setdefault((mine.items(), frozenset(sorts)), _Gate(mine.items(), tuple(sorts.values())))
        return list(gates.values())

    def _cheapest(self, purpose: int, speed: float, limit: int, rules: Rules) -> _Least | None:
        """What the ways of a purpose take at least; None where types allow none."""
        key = purpose, speed, self.kind_within(limit), rules.tree
        if key not in self._least:
            each_takes = amounts(speed)
            allowed = [
                sort
                for sort in self.sorts[purpose]
                if rules.allow(sort.way, limit) and self._is_wide(sort.used, each_takes)
            ]
            costs = {tuple(_cost(used, each_takes) for used in sort.used) for sort in allowed}
            hops = min((sort.way.hops for sort in allowed), default=0)
            least = [min(column) for column in zip(*costs, strict=True)]
            self._least[key] = _Least(hops, least, undercut(costs)) if allowed else None
        return self._least[key]

    def _is_wide(self, used: Sequence[Sequence[int]], takes: Sequence[int]) -> bool:
        """Whether a way, by its uses of each set of links, asks of no link more than the widest of them carries."""
        return not any(
            count and take > widest
            for counts, widest in zip(used, self.widest, strict=True)
            for count, take in zip(counts, takes, strict=True)
        )

    def _entries(self, trial: SearchGraph, rules: Rules) -> int:
        """How many channels come in through all NETs at most."""
        speed = int(trial.bw_inter)
        if speed <= 0:
            return trial.max_channels
        key = speed, self.kind_within(trial.type_inter), rules.tree
        if key not in self._entered:
            open_ports = (port for port in self.ports if any(rules.allow(way, trial.type_inter) for way in port.ways))
            self._entered[key] = sum(max(0, port.room // speed) for port in open_ports)
        return self._entered[key]

    def _free_at(self, between: float, entering: float, leaving: float) -> list[int]:
        """By set of links what can be taken there at all, in thousandths of GB/s: of each link a multiple of what
        divides all that may be taken of it."""
        key = between, entering, leaving
        known = self._free.get(key)
        if known is None:
            takes = [amounts(speed) for speed in key]
            known = self._free[key] = [sum(count * _room(link, takes) for link, count in links) for links in self.sets]
        return known


def _limits(trial: SearchGraph) -> tuple[int, int, int]:
    """The furthest types of ways, by their purpose."""
    return trial.type_intra, trial.type_inter, trial.type_inter


def _cost(used: Sequence[int], takes: Sequence[int]) -> int:
    """What a way takes of a set of links, by how many it uses of each kind."""
    (a, b, c, d), (e, f, g, h) = used, takes  # asked a hundred thousand times
    return a * e + b * f + c * g + d * h


def _room(link: _Link, takes: Sequence[Sequence[int]]) -> int:
    """What can be taken of a link at all: a multiple of what divides all that may be taken of it."""
    free, uses = link
    part = gcd(*(takes[purpose][kind] for purpose, kind in uses if purpose < len(takes)))
    return free // part * part if part else free


def _links(roads: Roads, ways: Sequence[Sequence[Way]]) -> Iterator[tuple[Link, int, _Link]]:
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


def _sorts(ways: Sequence[Way], masks: Sequence[int]) -> list[_Sort]:
    """One way of each sort."""
    sorts: dict[tuple[object, ...], _Sort] = {}
    for way in ways:
        used = uses_of(way, masks)
        sorts.setdefault((way.type, way.back, way.hops, used), _Sort(way, used))
    return list(sorts.values())


def _ports(roads: Roads) -> Iterator[_Port]:
    ports: dict[tuple[int, int], list[int]] = {}
    for net in roads.system.nets:
        ports.setdefault((net.asic, net.port), []).append(net.index)
    for nets in ports.values():
        ways = (way for net in nets for way in roads.net_gpu[net] if way is not None)
        yield _Port(
            max(roads.room[net] for net in nets),
            tuple({(way.type, way.back, way.hops): way for way in ways}.values()),
        )
