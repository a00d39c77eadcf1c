"""One attempt of NCCL's graph search for rings and trees: as many channels as fit at one speed, within a number of steps.

After ncclTopoSearchRec, RecNet, RecGpu and TryGpu of src/graph/search.cc (v2.18 to v2.30), step for step: what is found
depends on the order of visits and on when the time is over. Links are never given back, as a state is a value (`follow`).

A visit depends on little: the free bandwidth, the channels complete, the GPUs used, the NETs in. If the same visit was
made before and did not end the search, it takes the same number of steps again and finds nothing new, because the best
graph has only become better since. Such visits are skipped and their steps counted, which changes no result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from topodiag.cost.nccl.candidates import ANY, Guide
from topodiag.cost.nccl.follow import Roads, Step, Way
from topodiag.cost.nccl.graph import BALANCED_TREE, RING, SPLIT_TREE, TREE, RejectedError, SearchGraph
from topodiag.cost.nccl.ladders import TIMEOUT_PCI_ORDER
from topodiag.cost.nccl.numbers import single
from topodiag.cost.nccl.versions import path_types

PERFECT = -1
"""Time left of an attempt that filled all channels it was asked for: nothing better is possible."""

Visits = dict[int, tuple[int, int]]
"""By state: the steps that a visit took, and the fewest hops with which it was made."""


@dataclass(slots=True)
class Best:
    """The best graph so far; `version` counts its changes."""

    graph: SearchGraph
    version: int = 0


@dataclass(slots=True)
class Memory:
    """Visits that attempts of one kind and speed made. Only of use to the same kind again."""

    channels: dict[object, Visits] = field(default_factory=dict)
    gpus: dict[object, Visits] = field(default_factory=dict)


def copied(best: Best, trial: SearchGraph, channels: int, hops: int, latency: float) -> None:
    """Makes a trial the best graph; its channels are filled in by the caller."""
    graph = best.graph
    for name in ("pattern", "cross_nic", "min_channels", "max_channels", "bw_intra", "bw_inter", "type_intra"):
        setattr(graph, name, getattr(trial, name))
    graph.type_inter, graph.same_channels = trial.type_inter, trial.same_channels
    graph.channels, graph.hops, graph.latency_inter = channels, hops, latency
    best.version += 1


class Tables:
    """What the ways of a system cost in an attempt, by its speeds and types; None where it may not or cannot go."""

    def __init__(self, roads: Roads, trial: SearchGraph) -> None:
        self.minor = roads.system.minor
        self.dis = path_types(self.minor).dis
        self.tree = trial.pattern in (BALANCED_TREE, TREE, SPLIT_TREE)
        leaving = single(trial.bw_inter / 2) if trial.pattern == BALANCED_TREE else trial.bw_inter
        intra, inter = trial.type_intra, trial.type_inter
        self.gpu_gpu = [[self.step(way, trial.bw_intra, intra) for way in row] for row in roads.gpu_gpu]
        self.net_gpu = [[self.step(way, trial.bw_inter, inter) for way in row] for row in roads.net_gpu]
        self.gpu_net = [[self.step(way, leaving, inter) for way in row] for row in roads.gpu_net]

    def step(self, way: Way | None, bandwidth: float, limit: int) -> Step | None:
        """What following a path takes, None where types forbid it (ncclTopoFollowPath)."""
        if way is None:
            return None
        if way.hops == 0 and self.minor <= 20:
            return 0, 0
        if self.minor >= 27 and way.type >= self.dis:
            return None
        if way.type > limit or (self.tree and way.back > limit):
            return None
        return way.step(bandwidth)


def products(trial: SearchGraph, limit: int) -> list[float]:
    """Bandwidth of 0, 1, 2, ... channels, in single precision as NCCL compares it."""
    return [single(count * trial.bw_intra) for count in range(limit + 1)]


def bar(trial: SearchGraph, graph: SearchGraph, minor: int) -> float:
    """The bandwidth that a trial must exceed; up to 2.19 crossing NICs must be worth 15 % (ncclTopoCompareGraphs)."""
    product = single(graph.channels * graph.bw_intra)
    if minor >= 20:
        return product
    return single(product * single(1.0 - (graph.cross_nic - trial.cross_nic) * 0.15))


def attempt(  # noqa: C901, PLR0915 - one recursion over shared state; split, it is three times slower
    guide: Guide, trial: SearchGraph, best: Best, time: int, memory: Memory | None
) -> int:
    """Searches once with the speeds, types and limits of `trial`; improves `best`. Returns the time left.

    `memory` is None where visits may not be skipped (ones that do not leave things as they were).
    """
    roads, system, minor = guide.roads, guide.system, guide.minor
    tables = Tables(roads, trial)
    gpu_gpu, net_gpu, gpu_net = tables.gpu_gpu, tables.net_gpu, tables.gpu_net
    gpus, guard, inter, pattern = len(system.gpus), roads.guard, system.inter, trial.pattern
    same, least, most = trial.same_channels == 1, trial.min_channels, trial.max_channels
    last = gpus - 1
    back_first, back_net = -1, -1
    if inter:
        back_net = last if pattern == RING else 1 if pattern == SPLIT_TREE else 0
    elif pattern == RING:
        back_first = last
    nvs = len(system.nvs) > 0
    room, twins = roads.room, guide.twins
    speed = int(trial.bw_inter)
    product = products(trial, most)
    paired = guide.paired(trial)
    balanced = pattern == BALANCED_TREE
    replays = minor < 27
    stops = memory is not None
    """Whether nothing more happens once the time is over."""
    skipping = memory is not None and not same
    # with REPLAY the next channel depends on the order of this one: only visits that complete none can be skipped
    free = inter and not same and not replays
    dense = not guide.neighbours
    """Without an NVSwitch GPUs are met in many orders; with one they are in a row, and only its start is worth noting."""
    ended = 0
    fixed = [guide.fixed_order(gpu, pattern) for gpu in range(gpus)]
    by_net = [guide.beside(gpu, pattern) is None or minor < 21 for gpu in range(gpus)]
    bits = roads.small
    orders = [[0] * gpus for _ in range(most + 1)]
    entered = [ANY] * (most + 1)
    left = [ANY] * (most + 1)
    known: list[Visits] = [{} for _ in range(most + 1)]
    leaving_cache: dict[tuple[int, int, int, int], list[tuple[int, Step]]] = {}
    pci_order = range(gpus)
    done = 0
    order = orders[0]
    visits = known[0]
    latency = trial.latency_inter
    limit, like_best = 0.0, False

    def look() -> None:
        nonlocal limit, like_best
        limit = bar(trial, best.graph, minor)
        like_best = best.graph.pattern == pattern and best.graph.cross_nic == trial.cross_nic

    look()

    def complete(state: int, hops: int) -> None:
        nonlocal time, done, order, visits, ended
        ended += 1
        if time <= 0:
            return
        time -= 1
        done += 1
        if done >= least:
            value = product[done]
            if value > limit or (value == limit and like_best and hops < best.graph.hops):
                copied(best, trial, done, hops, latency)
                best.graph.intra = [list(channel) for channel in orders[:done]]
                best.graph.inter = [[entered[c], left[c]] for c in range(done)] if inter else []
                look()
                if done == most:
                    time = PERFECT
        if done < most and (time > 0 or not stops):
            next_channel(state, hops)
        done -= 1
        order = orders[done]
        visits = known[done]

    def next_channel(state: int, hops: int) -> None:
        nonlocal order, time, visits
        order = orders[done]
        if inter:
            from_nets(state, hops)
            return
        forced(state, hops, 0, back_net, back_first, orders[done - 1] if done else pci_order)
        if same and done:
            return
        if skipping:
            visits = known[done] = memory.gpus.setdefault(done, {})
            mine = memory.channels.setdefault(done, {})
            before = mine.get(state)
            if before is not None and hops >= before[1]:
                time = max(0, time - before[0])
                return
            began = time
        for gpu in range(gpus):
            visit(state, hops, gpu, 0, 1 << gpu, back_net, back_first)
        if skipping and time > 0:
            mine[state] = began - time, hops

    def exits(gpu: int, step: int) -> list[tuple[int, Step]]:
        odd = entered[done - 1] if paired and done & 1 else ANY
        chosen = left[done] if balanced and step != 0 else ANY
        key = gpu, entered[done], odd, chosen
        found = leaving_cache.get(key)
        if found is None:
            found = leaving_cache[key] = [
                (net, step_taken)
                for net in guide.nets(trial.type_inter, gpu)
                if guide.may_return(trial, entered[done], net, odd, chosen)
                and (step_taken := gpu_net[gpu][net]) is not None
            ]
        return found

    def forced(state: int, hops: int, step: int, to_net: int, to_first: int, way: Sequence[int]) -> None:
        """A channel along a given order: the PCI order or that of the channel before."""
        nonlocal time
        while time > 0:
            time -= 1
            gpu = way[step]
            order[step] = gpu
            if step == to_net:
                then = 1 if balanced and step == 0 else -1
                for net, (taken, count) in exits(gpu, step):
                    after = state - taken
                    if after & guard == guard:
                        left[done] = guide.same_id[net]
                        forced(after, hops + count, step, then, to_first, way)
                return
            if step < last:
                follow = gpu_gpu[gpu][way[step + 1]]
            elif step == to_first:
                follow = gpu_gpu[gpu][order[0]]
            else:
                complete(state, hops)
                return
            if follow is None:
                return
            state -= follow[0]
            if state & guard != guard:
                return
            hops += follow[1]
            if step == last:
                complete(state, hops)
                return
            step += 1

    def visit(state: int, hops: int, gpu: int, step: int, used: int, to_net: int, to_first: int) -> None:
        """A GPU at a step of a channel, and all ways on from it."""
        nonlocal time
        if time <= 0:
            return
        order[step] = gpu
        noting = skipping and (dense or step == 0)
        if noting:
            extra = order[0] if to_first != -1 else left[done] + 1 if balanced and to_net == 1 else 0
            key = state | ((used << bits | gpu) << bits | to_net + 1) << bits | extra
            mine = visits
            before = mine.get(key)
            if before is not None and hops >= before[1]:
                time = max(0, time - before[0])
                return
            began, ends = time, ended
        time -= 1
        if step == to_net:
            then = 1 if balanced and step == 0 else -1
            for net, (taken, count) in exits(gpu, step):
                after = state - taken
                if after & guard == guard:
                    left[done] = guide.same_id[net]
                    visit(after, hops + count, gpu, step, used, then, to_first)
        elif step < last:
            if to_net == -1 or not by_net[gpu]:
                choices = fixed[gpu]
                if choices is None:
                    choices = guide.with_neighbours(guide.next_gpus(gpu, used, 0, ANY, state), gpu, pattern)
            else:
                mode = 1 if to_net == step + 1 else -1
                choices = guide.next_gpus(gpu, used, mode, entered[done], state)
                if fixed[gpu] is None:
                    choices = guide.with_neighbours(choices, gpu, pattern)
            row = gpu_gpu[gpu]
            for other in choices:
                if used >> other & 1:
                    continue
                follow = row[other]
                if follow is not None:
                    after = state - follow[0]
                    if after & guard == guard:
                        visit(after, hops + follow[1], other, step + 1, used | 1 << other, to_net, to_first)
                        if time <= 0:
                            return
        elif step == to_first:
            follow = gpu_gpu[gpu][order[0]]
            if follow is not None:
                after = state - follow[0]
                if after & guard == guard:
                    complete(after, hops + follow[1])
        else:
            complete(state, hops)
        if noting and time > 0 and (free or ends == ended or done + 1 == most):
            mine[key] = began - time, hops

    def start(state: int, hops: int, net: int, gpu: int, way: Sequence[int] | None) -> None:
        follow = net_gpu[net][gpu]
        if follow is not None:
            after = state - follow[0]
            if after & guard == guard:
                if way is None:
                    visit(after, hops + follow[1], gpu, 0, 1 << gpu, back_net, back_first)
                else:
                    forced(after, hops + follow[1], 0, back_net, back_first, way)

    def from_nets(state: int, hops: int) -> None:
        """A channel that comes in through each NET in turn (ncclTopoSearchRecNet)."""
        nonlocal time, latency, visits
        try:
            nets = guide.nets(trial.type_inter)
        except RejectedError:
            return
        if skipping:
            odd = (entered[done - 1], left[done - 1]) if paired and done & 1 else None
        if free and skipping:
            kind = done, tuple(room), odd
            mine = memory.channels.get(kind)
            if mine is None:
                mine = memory.channels[kind] = {}
            before = mine.get(state)
            if before is not None and hops >= before[1]:
                time = max(0, time - before[0])
                return
            began = time
        channel = done
        count = len(nets)
        for turn in range(count):
            net = nets[(channel + turn) % count] if minor >= 19 else nets[turn]
            if trial.coll_net and system.nets[net].coll == 0:
                continue
            if room[net] < speed:
                continue
            if paired and channel & 1 and guide.same_id[net] != left[channel - 1]:
                continue
            entered[channel] = guide.same_id[net]
            latency = system.nets[net].latency
            for twin in twins[net]:
                room[twin] -= speed
            if skipping:
                kind = channel, tuple(room), odd, entered[channel]
                visits = memory.gpus.get(kind)
                if visits is None:
                    visits = memory.gpus[kind] = {}
                known[channel] = visits
            kept = True
            if channel > 0 and (same or replays):
                start(state, hops, net, orders[channel - 1][0], orders[channel - 1])
            if channel == 0 or not same:
                if channel == 0 and (not nvs or minor < 19):
                    main, time = time, TIMEOUT_PCI_ORDER
                    start(state, hops, net, 0, pci_order)
                    time = PERFECT if time == PERFECT else main
                kept = starts(state, hops, net)
            if kept:
                for twin in twins[net]:
                    room[twin] += speed
            if time <= 0 and stops and (channel > 0 or nvs):
                break
        if free and skipping and time > 0:
            mine[state] = began - time, hops

    def starts(state: int, hops: int, net: int) -> bool:
        """From a NET to its nearest GPUs. False where NCCL forgets to give the NET's bandwidth back."""
        if minor >= 27:
            near = system.nets[net].local_gpu
            if near != -1:
                start(state, hops, net, near, None)
            if guide.lost[net]:
                return False
            for gpu in guide.near_gpus[net]:
                if gpu != near:
                    start(state, hops, net, gpu, None)
            return True
        for gpu in guide.widest(net, done, speed, state):
            start(state, hops, net, gpu, None)
        return True

    next_channel(roads.start, trial.hops)
    return time
