"""NCCL's graph search: which channels it finds for rings, trees, CollNet and NVLS, at which speed and over which paths.

After ncclTopoCompute (src/graph/search.cc) and the order of calls in initTransportsRank (src/init.cc).
An outer loop relaxes types, patterns and speed until an attempt succeeds, then tries to go faster again.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from topodiag.lazy import dataclass
from topodiag.model.nccl_enums import Graph
from topodiag.model.nccl_versions import DIRECT_RANKS, MAX_CHANNELS, NVLS_RANKS, Feature, path_types
from topodiag.nccl.graph.bandwidths import is_amd
from topodiag.nccl.graph.graph import BALANCED_TREE, COLLNET_DIRECT, NVLS, RING, SPLIT_TREE, TREE, SearchGraph, System
from topodiag.nccl.numbers import single
from topodiag.nccl.search.attempt import attempt
from topodiag.nccl.search.candidates import Guide
from topodiag.nccl.search.ceiling import Ceiling
from topodiag.nccl.search.follow import Roads, kinds_of
from topodiag.nccl.search.heads import attempt_heads
from topodiag.nccl.search.trial import (
    PERFECT,
    RCCL_LADDER,
    TIMEOUT,
    TIMEOUT_SAME_CHANNELS,
    TOTAL_BUDGET,
    Budget,
    ladder,
)
from topodiag.nccl.settings import Settings

_FRAMES_PER_CHANNEL = 8
_SPARE_FRAMES = 2000


def search_graphs(
    system: System, settings: Settings, *, nvls: bool = True, collnet: bool = False
) -> tuple[SearchGraph, ...]:
    """The graphs that one rank finds, as NCCL searches them: ring, tree, CollNet chain and direct, NVLS.

    NVLS is searched where `nvls` says that the ranks support it; it may find no channel. Raises RejectedError where
    NCCL would give up.
    """
    with deep(len(system.gpus), MAX_CHANNELS[system.minor]):
        return tuple(_graphs(system, settings, nvls, collnet))


def _graphs(system: System, settings: Settings, nvls: bool, collnet: bool) -> Iterator[SearchGraph]:
    search = Search(system, settings)
    most = MAX_CHANNELS[system.minor]
    ring = search.compute(SearchGraph(Graph.RING, RING, min_channels=1, max_channels=most // 2))
    count = ring.channels
    yield ring
    yield search.compute(SearchGraph(Graph.TREE, BALANCED_TREE, min_channels=count, max_channels=count))
    if collnet:
        yield search.compute(
            SearchGraph(Graph.COLLNET_CHAIN, TREE, coll_net=True, min_channels=count, max_channels=count)
        )
    if collnet and system.has(Feature.COLLNET_DIRECT_SEARCH):
        yield search.compute(
            SearchGraph(Graph.COLLNET_DIRECT, COLLNET_DIRECT, coll_net=True, min_channels=1, max_channels=most)
        )
    if nvls:
        yield search.compute(SearchGraph(Graph.NVLS, NVLS, min_channels=1, max_channels=most))


@contextmanager
def deep(gpus: int, channels: int) -> Iterator[None]:
    """The search nests over all steps of all channels."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, (gpus + _FRAMES_PER_CHANNEL) * channels + _SPARE_FRAMES))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


@dataclass(slots=True)
class _Limits:
    """What the search of one graph keeps to: types from and to, cross NIC, speeds."""

    cross_nic: int
    min_intra: int
    max_intra: int
    min_inter: int
    max_inter: int
    speeds: tuple[float, ...]
    same: int


class Search:
    """All graphs of one system; the compiled paths are shared."""

    def __init__(self, system: System, settings: Settings) -> None:
        self.system, self.settings = system, settings
        self.minor, self.has = system.minor, system.has
        self.types = path_types(self.minor)
        self.roads = Roads(system)
        self.guide = Guide(system, self.roads, settings.values.get("NCCL_NETDEVS_POLICY", ""))
        devices = system.nodes["DEV"] if system.has(Feature.GPU_DEVICES) else system.gpus
        self.devices = len(devices)
        self.sm = min((device.sm for device in devices), default=0)
        cpu = system.cpus[0] if system.cpus else None
        self.amd = cpu is not None and is_amd(cpu)
        self.inter = system.inter or (system.rccl and bool(system.nets))  # RCCL: also in a node that keeps its NETs
        self.intra_types = kinds_of(self.roads.gpu_gpu)
        self.inter_types = kinds_of([*self.roads.gpu_net, *self.roads.net_gpu])
        latencies = {net.latency for net in system.nets}
        # visits leave all as it was, unless a NET's bandwidth is forgotten or the last latency seen matters
        self.repeatable = len(latencies) < 2 and not any(self.guide.lost)
        self.ceiling = Ceiling(self.roads) if self.repeatable else None

    def compute(self, graph: SearchGraph) -> SearchGraph:
        """Fills a graph in and returns it. Raises RejectedError."""
        limits = self._limits(graph)
        if graph.pattern == NVLS and (not self.system.nvs or self.sm < 90):
            return graph
        self._bounds(graph)
        self._search(graph, limits)
        if graph.channels == 0 and not graph.coll_net and graph.pattern != NVLS:
            self._fall_back(graph)
        else:
            graph.intra = [[self.system.gpus[gpu].rank for gpu in order] for order in graph.intra]
            graph.inter = [[self.guide.ids[net] for net in ends] for ends in graph.inter]
        if not self.has(Feature.DOUBLED_BEFORE_PASS_2):
            self._duplicate(graph)
        return graph

    def _limits(self, graph: SearchGraph) -> _Limits:
        types, several = self.types, len(self.system.gpus) > 1
        crossing = self._cross_nic(graph)
        if self.has(Feature.TYPES_FROM_PATHS):
            limits = _Limits(crossing, types.loc, types.sys, types.pix, types.sys, (), 1)
            if several:
                limits.min_intra, limits.max_intra = self._range("GPU")
            if self.inter:
                limits.min_inter, limits.max_inter = self._range("NET")
                limits.max_intra = limits.max_inter
            if self.sm < 90 and not self.has(Feature.TREES_BOUND_BY_PXN):
                limits.max_inter = types.sys
        else:
            least = types.nvl if several else types.loc
            limits = _Limits(crossing, least, types.sys, types.pix, types.sys, (), 1)
        limits.speeds = RCCL_LADDER if self.system.rccl else ladder(self.minor, self.sm, self.inter)
        limits.same = 0 if graph.pattern == NVLS else 1
        graph.cross_nic = 1 if self._starts_crossed(crossing) else 0
        graph.bw_intra = graph.bw_inter = graph.latency_inter = 0.0
        graph.type_intra, graph.type_inter = limits.min_intra, limits.min_inter
        graph.channels, graph.same_channels = 0, limits.same
        return limits

    def _cross_nic(self, graph: SearchGraph) -> int:
        if len(self.system.nets) < 2 or graph.pattern not in (RING, BALANCED_TREE, SPLIT_TREE):
            return 0
        if not self.has(Feature.CROSS_NIC_2):
            return 1 if self.settings.cross_nic else 0
        return self.settings.cross_nic

    def _starts_crossed(self, crossing: int) -> bool:
        if self.has(Feature.CROSS_NIC_2):
            return crossing == 1
        # the parameter itself, whatever the pattern
        return self.settings.cross_nic not in (0, 2)

    def _range(self, kind: str) -> tuple[int, int]:
        """Least and greatest path type from a GPU (ncclTopoGetGpuMinPath, ncclTopoGetGpuMaxPath)."""
        numbers = [
            path.type
            for gpu in self.system.gpus
            for index, path in enumerate(gpu.paths.get(kind, ()))
            if kind != "GPU" or index != gpu.index
        ]
        return min([self.types.sys, *numbers]), max([self.types.loc, *numbers])

    def _bounds(self, graph: SearchGraph) -> None:
        gpus = len(self.system.gpus)
        bounded = self.has(Feature.HEADS_WITHIN_ARITY)
        if graph.pattern == NVLS and self.has(Feature.NVLS_BY_SPEED):
            graph.max_channels = min(NVLS_RANKS, gpus) if bounded else gpus
        if graph.pattern == COLLNET_DIRECT:
            graph.max_channels = min(DIRECT_RANKS, gpus) if bounded else gpus
        if gpus == 1 and graph.pattern != RING:
            graph.pattern = TREE
        if graph.pattern == NVLS and not self.inter:
            if not bounded:
                graph.max_channels = gpus
            graph.min_channels = graph.max_channels
        if graph.pattern == RING and self._split() and graph.max_channels > 1 and graph.min_channels == 1:
            graph.min_channels = 2

    def _split(self) -> bool:
        """Two groups of GPUs with NVLink inside and none between (ncclTopoSplitNvLink)."""
        if not self.has(Feature.SPLIT_NVLINK):
            return False
        gpus = self.system.gpus
        domain = list(range(len(gpus)))
        for gpu in gpus:
            for peer in range(gpu.index + 1, len(gpus)):
                if gpu.paths["GPU"][peer].type == self.types.nvl:
                    domain[peer] = domain[gpu.index]
        return sum(domain.count(group) > 1 for group in set(domain)) == 2

    def _total(self, graph: SearchGraph) -> float:
        count, total = self.devices, self.system.total_bw
        if count == 1 and not self.has(Feature.ONE_GPU_TOTAL_BW):
            return float("inf")  # NCCL divides by zero
        if count > 1 and graph.pattern != RING:
            return single(total * (count / (count - 1)))
        return total

    def _first_speed(self, graph: SearchGraph, speeds: tuple[float, ...]) -> int:
        """Where to begin: at the fastest speed that the links and the least number of channels allow."""
        total = self._total(graph)
        holds = (speed <= self.system.max_bw and single(speed * graph.min_channels) <= total for speed in speeds)
        return next((at for at, held in enumerate(holds) if held), len(speeds) - 1)

    # Complexity 22: ncclTopoCompute goes back to its label `search` from several places, whose order decides.
    def _search(self, graph: SearchGraph, limits: _Limits) -> None:
        """The outer loop, in two passes."""
        system, speeds = self.system, limits.speeds
        last = len(speeds) - 1
        index = self._first_speed(graph, speeds)
        trial = replace(graph)
        trial.bw_intra = trial.bw_inter = speeds[index]
        if self.inter and self.guide.errors_end_search:
            self.guide.nets(trial.type_inter)  # each attempt asks for them; those in vain are not made here
        amd = self.amd and self.has(Feature.AMD_KEEPS_SAME_CHANNELS)
        budget = Budget(TOTAL_BUDGET[self.minor])
        known: dict[object, int] = {}

        def searched(trial: SearchGraph, best: SearchGraph, time: int) -> int:
            return self._attempt(trial, best, time, known)

        while True:
            vain = self._is_vain(trial, graph)
            if not vain and budget.was_spent(searched):
                break
            most = TIMEOUT_SAME_CHANNELS if trial.same_channels else TIMEOUT
            budget.steps -= most
            time = 0 if vain else searched(trial, graph, most)
            if time == PERFECT or single(graph.channels * graph.bw_inter) >= system.total_bw:
                break
            if trial.same_channels and not (amd and trial.type_intra == self.types.sys):
                trial.same_channels = 0
                continue
            if vain:
                budget.put_aside(trial, graph, most)
            trial.same_channels = limits.same
            budget.steps += time
            if graph.channels and budget.is_spent():
                break
            if self._relaxed(trial, graph, limits):
                continue
            if index < last and (graph.channels == 0 or single(speeds[index + 1] / graph.bw_inter) > 0.49):
                index += 1
                trial.bw_intra = trial.bw_inter = speeds[index]
                continue
            break
        if self.has(Feature.DOUBLED_BEFORE_PASS_2):
            self._duplicate(graph)
        self._faster(graph, limits)

    def _is_vain(self, trial: SearchGraph, best: SearchGraph) -> bool:
        """Whether an attempt surely finds nothing better."""
        if self.ceiling is None or trial.pattern in (NVLS, COLLNET_DIRECT):
            return False
        return not self.ceiling.may_improve(trial, best)

    def _relaxed(self, trial: SearchGraph, graph: SearchGraph, limits: _Limits) -> bool:
        """The next combination of pattern, types and cross NIC at the same speed; False after the last."""
        relaxed = graph.channels > 0
        stops_apart = self.has(Feature.APART_NOT_FOLLOWED)
        if self.sm >= 90 and trial.pattern == BALANCED_TREE:
            trial.pattern = TREE
            return True
        trial.pattern = graph.pattern
        most = trial.type_inter if self.inter else limits.max_intra
        if trial.type_intra < most and (not relaxed or trial.type_intra < graph.type_intra):
            trial.type_intra += 1
            if trial.type_intra < self.types.dis or not stops_apart:
                return True
        trial.type_intra = limits.min_intra
        if (
            self.inter
            and trial.type_inter < limits.max_inter
            and (not relaxed or trial.type_inter < graph.type_inter or trial.type_inter < self.types.pxn)
        ):
            trial.type_inter += 1
            if trial.type_inter < self.types.dis or not stops_apart:
                return True
        trial.type_inter = limits.min_inter
        if self._may_cross(trial, graph, limits):
            trial.cross_nic = 2 if self.has(Feature.CROSS_NIC_IN_PAIRS) else 1
            return True
        trial.cross_nic = 1 if limits.cross_nic == 1 and self.has(Feature.CROSS_NIC_2) else 0
        return False

    def _may_cross(self, trial: SearchGraph, graph: SearchGraph, limits: _Limits) -> bool:
        if trial.cross_nic != 0:
            return False
        if not self.has(Feature.CROSS_NIC_2):
            return limits.cross_nic != 0
        any_pattern = not self.has(Feature.CROSS_NIC_IN_PAIRS)
        return limits.cross_nic == 2 and (any_pattern or graph.pattern in (RING, BALANCED_TREE))

    def _faster(self, graph: SearchGraph, limits: _Limits) -> None:
        """Pass 2: more speed with the channels found."""
        speeds = limits.speeds
        trial = replace(graph)
        index = next((i for i, speed in enumerate(speeds) if speed <= graph.bw_inter), len(speeds) - 1)
        trial.bw_intra = trial.bw_inter = speeds[index]
        trial.min_channels = graph.channels
        time = PERFECT
        known: dict[object, int] = {}
        while time != 0 and index > 0:
            if graph.pattern == RING:
                if not self.has(Feature.RINGS_IN_PASS_2):
                    break
                index -= 1
                trial.bw_intra = trial.bw_inter = speeds[index]
            elif (
                graph.pattern == NVLS
                and self.has(Feature.NVLS_BY_SPEED)
                and trial.bw_inter == graph.bw_inter
                and trial.bw_inter < trial.bw_intra * 2
            ):
                trial.min_channels = trial.max_channels = graph.channels
                index -= 1
                trial.bw_inter = speeds[index]
            elif trial.bw_intra == graph.bw_intra and trial.bw_intra < trial.bw_inter * 2:
                index -= 1
                trial.bw_intra = speeds[index]
            else:
                break
            # rings go on to more speed until the time is over, trees only from what is better
            faster = speeds[: index + 1] if graph.pattern == RING else ()
            if self._is_vain(trial, graph) and all(
                self._is_vain(replace(trial, bw_intra=speed, bw_inter=speed), graph) for speed in faster
            ):
                break
            time = self._attempt(trial, graph, TIMEOUT_SAME_CHANNELS if trial.same_channels else TIMEOUT, known)

    def _attempt(self, trial: SearchGraph, best: SearchGraph, time: int, known: dict[object, int]) -> int:
        """One attempt, unless it was made before under other limits that come to the same."""
        if trial.pattern in (NVLS, COLLNET_DIRECT):
            return attempt_heads(self.guide, trial, best, time, self.repeatable)
        key = (
            *(trial.pattern, trial.cross_nic, trial.same_channels, trial.bw_intra, trial.bw_inter),
            max((kind for kind in self.intra_types if kind <= trial.type_intra), default=-1),
            max((kind for kind in self.inter_types if kind <= trial.type_inter), default=-1),
        )
        if self.repeatable and key in known:
            return known[key]
        known[key] = attempt(self.guide, trial, best, time, self.repeatable)
        return known[key]

    def _duplicate(self, graph: SearchGraph) -> None:
        """Twice the channels with half the speed, where single ones are fast (ncclTopoDupChannels)."""
        count = graph.channels
        if count == 0 or graph.pattern == NVLS or graph.bw_intra < 25:
            return
        if self.sm > 80 and graph.bw_intra < 50 and count > 4:
            return
        more = min(2 * count, graph.max_channels)
        graph.intra = [list(order) for order in (graph.intra + graph.intra)[:more]]
        graph.inter = [list(ends) for ends in (graph.inter + graph.inter)[:more]]
        parts = -(-more // count)
        graph.bw_intra, graph.bw_inter = single(graph.bw_intra / parts), single(graph.bw_inter / parts)
        graph.channels = more

    def _fall_back(self, graph: SearchGraph) -> None:
        """One slow channel over all GPUs in their order, where nothing was found. From 2.29 on it looks for its NICs,
        and NCCL gives up where there is none: a file without NICs is loaded all the same, since a communicator adds
        those of its plugin, at least the one of sockets (NET/0-0)."""
        graph.intra = [[gpu.rank for gpu in self.system.gpus]]
        graph.channels = 1
        graph.bw_intra = graph.bw_inter = single(0.1)
        graph.type_intra = graph.type_inter = self.types.sys
        graph.inter = [[0, 0]]
        if self.has(Feature.FALL_BACK_WITH_NETS) and self.system.nets:
            ends = [self.guide.nets(-1, gpu)[:1] for gpu in (0, len(self.system.gpus) - 1)]
            graph.inter = [[self.guide.ids[net] for end in ends for net in end]]
