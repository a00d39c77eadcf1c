"""What the attempts of a graph search share: the speeds that are tried, the steps that they may take, the best graph so
far, what ways cost at a speed, and what is better.

After ncclTopoFollowPath and ncclTopoCompareGraphs (src/graph/search.cc).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import field
from functools import cache

from topodiag.lazy import dataclass
from topodiag.model.nccl_versions import ByVersion, Feature, has, is_rubin, path_types
from topodiag.nccl.graph.graph import BALANCED_TREE, SPLIT_TREE, TREE, SearchGraph, System
from topodiag.nccl.numbers import single
from topodiag.nccl.search.follow import Roads, Route, Step, Steps
from topodiag.words.own_data import own_data

PERFECT = -1
"""Time left of an attempt that filled all channels it was asked for: nothing better is possible."""

Visits = dict[int, tuple[int, int]]
"""By state and place: the steps that a visit took, and the fewest hops with which it was made."""


@dataclass(slots=True)
class Memory:
    """The visits of one attempt: to the start of a channel, and to GPUs within one."""

    channels: dict[object, Visits] = field(default_factory=dict)
    gpus: dict[object, Visits] = field(default_factory=dict)


def keep(graph: SearchGraph, trial: SearchGraph, orders: list[list[int]], ends: list[list[int]]) -> None:
    """Makes a trial that is better than all before the best graph, with its GPUs by channel and the NETs in and out
    (indices)."""
    graph.pattern, graph.cross_nic, graph.same_channels = trial.pattern, trial.cross_nic, trial.same_channels
    graph.min_channels, graph.max_channels = trial.min_channels, trial.max_channels
    graph.bw_intra, graph.bw_inter = trial.bw_intra, trial.bw_inter
    graph.type_intra, graph.type_inter = trial.type_intra, trial.type_inter
    graph.channels, graph.intra, graph.inter = len(orders), orders, ends


class Rules:
    """Which ways an attempt may follow, by their types."""

    def __init__(self, system: System, trial: SearchGraph) -> None:
        self.dis = path_types(system.minor).dis
        self.checks_no_hops = system.has(Feature.NO_HOPS_FOLLOWED)
        self.follows_apart = not system.has(Feature.APART_NOT_FOLLOWED)
        self.tree = trial.pattern in (BALANCED_TREE, TREE, SPLIT_TREE)

    def allow(self, way: Route, limit: int) -> bool:
        """Whether a path is of no further type than the limit."""
        if way.hops == 0 and not self.checks_no_hops:
            return True
        if way.type >= self.dis and not self.follows_apart:
            return False
        return way.type <= limit and not (self.tree and way.back > limit)


def leaving_speed(trial: SearchGraph) -> float:
    """What a channel takes of each NET by which it leaves, GB/s: a balanced tree counts half of it on each of its first
    two GPUs."""
    return single(trial.bw_inter / 2) if trial.pattern == BALANCED_TREE else trial.bw_inter


class Tables:
    """What the ways of a system cost in an attempt, by its speeds and types; None where it may not or cannot go. Equal
    tables of a system's attempts are one: read only."""

    def __init__(self, roads: Roads, trial: SearchGraph) -> None:
        self.rules = Rules(roads.system, trial)
        leaving, intra, inter = leaving_speed(trial), trial.type_intra, trial.type_inter
        self.gpu_gpu = self._steps(roads, roads.gpu_gpu, trial.bw_intra, intra)
        self.net_gpu = self._steps(roads, roads.net_gpu, trial.bw_inter, inter)
        self.gpu_net = self._steps(roads, roads.gpu_net, leaving, inter)

    def _steps(self, roads: Roads, ways: Sequence[Sequence[Route | None]], bandwidth: float, limit: int) -> Steps:
        key = id(ways), bandwidth, roads.kind_within(limit), self.rules.tree
        known = roads.tables.get(key)
        if known is None:
            known = roads.tables[key] = [[self.step(way, bandwidth, limit) for way in row] for row in ways]
        return known

    def step(self, way: Route | None, bandwidth: float, limit: int) -> Step | None:
        """What following a path takes, None where types forbid it."""
        if way is None or not self.rules.allow(way, limit):
            return None
        return way.step(bandwidth)


def bar(trial: SearchGraph, graph: SearchGraph, minor: int) -> float:
    """The bandwidth that a trial must exceed; once crossing NICs had to be worth 15 %."""
    product = single(graph.channels * graph.bw_intra)
    if has(minor, Feature.CROSSING_NOT_WEIGHED):
        return product
    return single(product * single(1.0 - (graph.cross_nic - trial.cross_nic) * 0.15))


TOTAL_BUDGET = ByVersion({18: 5 << 16, 19: 1 << 19})
"""Steps that all attempts of one search may take together once there is a solution."""
TIMEOUT = 1 << 14
TIMEOUT_SAME_CHANNELS = 1 << 8
TIMEOUT_PCI_ORDER = 1 << 10
"""Steps of one attempt; with equal channels; of the PCI order from a NET, which has a clock of its own."""


RCCL_LADDER = tuple(
    single(speed)
    for speed in (48.0, 24.0, 20.0, 18.0, 15.0, 12.0, 10.0, 9.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.4, 1.2, 0.24, 0.12)
)
"""RCCL 2.21.5, within a node and between nodes (src/graph/search.cc)."""


@cache
def ladder(minor: int, sm: int, inter: bool) -> tuple[float, ...]:
    """GB/s per channel for the least compute capability among the GPUs, in single precision, falling (speeds.toml)."""
    generation = "blackwell" if sm >= 100 else "hopper" if sm >= 90 else "before_hopper"
    if is_rubin(sm, minor):
        generation = "rubin"
    speeds = ByVersion(own_data("nccl/search/speeds")[generation]["inter" if inter else "intra"])
    return tuple(single(speed) for speed in speeds[minor])


Attempt = Callable[[SearchGraph, SearchGraph, int], int]
"""Makes an attempt with a trial, the best graph and a time; returns the time left."""


class Budget:
    """Steps left; attempts that were put aside count with all their time as long as they are not made."""

    def __init__(self, steps: int) -> None:
        self.steps = steps
        self._aside: deque[tuple[SearchGraph, SearchGraph, int]] = deque()
        self._left = 0
        self._doubted = False
        self._at = 0

    def put_aside(self, trial: SearchGraph, best: SearchGraph, time: int) -> None:
        """An attempt is not made; `time` was taken off for it."""
        self._aside.append((trial.copy(), best.copy(), time))
        self._left += time

    def is_spent(self) -> bool:
        """Whether NCCL ends the search here. Where that depends on attempts that were put aside, `was_spent` tells."""
        self._doubted, self._at = self.steps < 0, self.steps
        return self.steps + self._left < 0

    def was_spent(self, attempt: Attempt) -> bool:
        """Whether NCCL ended the search when `is_spent` was asked last; makes as many attempts as that takes."""
        while self._doubted and self._at < 0 <= self._at + self._left:
            trial, best, time = self._aside.popleft()  # the fastest: at their speed little fits, and they end soon
            self._left -= time
            gained = attempt(trial, best, time)
            self.steps += gained
            self._at += gained
        return self._doubted and self._at < 0
