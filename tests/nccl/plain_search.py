"""NCCL's graph search written down link by link, with single precision floats: slow, to hold the real one against.

A channel takes bandwidth off links and puts it back, nothing is compiled, skipped or remembered. Follows
src/graph/search.cc of each version (ncclTopoSearchRec, RecNet, RecGpu, TryGpu, FollowPath) for rings and trees.
"""

from collections.abc import Callable
from functools import lru_cache

from topodiag.model.nccl_versions import path_types
from topodiag.nccl.graph.graph import (
    BALANCED_TREE,
    RING,
    SPLIT_TREE,
    TREE,
    Link,
    Path,
    RejectedError,
    SearchGraph,
    Vertex,
)
from topodiag.nccl.graph.nearest import nearest
from topodiag.nccl.numbers import single
from topodiag.nccl.search.candidates import ANY, Guide
from topodiag.nccl.search.trial import PERFECT, keep

NORMAL, PCI, REPLAY = 0, 1, 2


class PlainSearch:
    """One attempt; `attempt` has the signature of the real one."""

    def __init__(
        self, guide: Guide, trial: SearchGraph, best: SearchGraph, time: int, net_bw: dict[int, float]
    ) -> None:
        self.guide, self.trial, self.best, self.time = guide, trial, best, [time]
        self.system, self.minor = guide.system, guide.minor
        self.types = path_types(self.minor)
        self.gpu_kind = "DEV" if self.minor >= 30 else "GPU"
        self.gpus, self.nets = self.system.gpus, self.system.nets
        self.net_bw = net_bw
        self.done = 0
        self.hops = trial.hops
        self.intra = [[0] * len(self.gpus) for _ in range(trial.max_channels + 1)]
        self.inter = [[ANY, ANY] for _ in range(trial.max_channels + 1)]
        self.used = [0] * len(self.gpus)
        self.half = False
        self.latency = trial.latency_inter

    def walk(self, path: Path, start: Vertex, steps: int, bw: float) -> int:
        pci = bw
        of_gpu = start.kind == "GPU"
        for link in path.links if of_gpu and path.type == self.types.phb else ():
            cpu = link.remote
            if cpu.kind == "CPU":
                pci = single(single(bw * 6) / 5) if (cpu.arch, cpu.vendor) == (1, 1) else pci
        here, pix, nvl = start, self.types.pix, self.types.nvl
        for step, link in enumerate(path.links[:steps]):
            forward = pci if link.type == pix else bw
            back, backward = None, 0.0
            remote = link.remote
            if not of_gpu and remote.kind == self.gpu_kind and remote.sm < 80:
                back, backward = self.reverse(here, link), single(backward + forward / 8)
            if link.type == nvl and remote.kind == "CPU" and (remote.arch == 2 or self.minor < 19):
                back, backward = self.reverse(here, link), single(backward + forward)
            if link.bw < forward or (back is not None and backward and back.bw < backward):
                return step
            link.bw = rounded(link.bw - forward)
            if back is not None and backward:
                back.bw = rounded(back.bw - backward)
            here = remote
        return steps

    def reverse(self, start: Vertex, link: Link) -> Link:
        return next(
            back for back in link.remote.links if back.remote is start and (self.minor < 19 or back.type == link.type)
        )

    def follow(self, start: Vertex, end: Vertex, mult: int) -> bool:
        path, back = start.paths[end.kind][end.index], end.paths[start.kind][start.index]
        if self.minor <= 20 and path.count == 0:
            return True
        intra = start.kind == "GPU" and end.kind == "GPU"
        bw = self.trial.bw_intra if intra else self.trial.bw_inter
        bw = single(bw / 2) if self.half and not intra and end.kind == "NET" else bw
        limit = self.trial.type_intra if intra else self.trial.type_inter
        if self.minor >= 27 and path.type >= self.types.dis:
            return False
        if mult == 1 and path.type > limit:
            return False
        if mult == 1 and self.trial.pattern in (BALANCED_TREE, TREE, SPLIT_TREE) and back.type > limit:
            return False
        if path.type >= self.types.dis:
            return True
        steps = self.walk(path, start, path.count, bw * mult)
        if steps < path.count:
            self.walk(path, start, steps, -bw * mult)
            return False
        self.hops += mult * path.count
        return True

    def try_gpu(self, start: Vertex | None, gpu: int, step: int, net: int, first: int, order: int) -> None:  # noqa: PLR0917
        if start is not None and not self.follow(start, self.gpus[gpu], 1):
            return
        flag = 1 << self.done
        self.used[gpu] ^= flag
        self.rec_gpu(gpu, step, net, first, order)
        self.used[gpu] ^= flag
        if start is not None:
            self.follow(start, self.gpus[gpu], -1)

    def rec(self) -> None:
        trial, last = self.trial, len(self.gpus) - 1
        if self.system.inter:
            net = last if trial.pattern == RING else 1 if trial.pattern == SPLIT_TREE else 0
            self.rec_net(net, -1)
            return
        first = last if trial.pattern == RING else -1
        if self.done == 0:
            self.try_gpu(None, 0, 0, -1, first, PCI)
        else:
            self.try_gpu(None, self.intra[self.done - 1][0], 0, -1, first, REPLAY)
        if trial.same_channels == 0 or self.done == 0:
            for gpu in range(len(self.gpus)):
                self.try_gpu(None, gpu, 0, -1, first, NORMAL)

    def rec_gpu(self, gpu: int, step: int, net: int, first: int, order: int) -> None:
        if self.time[0] <= 0:
            return
        self.time[0] -= 1
        count = len(self.gpus)
        if step == count:
            self.complete()
            return
        self.intra[self.done][step] = gpu
        if step == net:
            self.to_nets(gpu, step, first, order)
        elif step < count - 1:
            if order == PCI:
                choices = [step + 1]
            elif order == REPLAY:
                choices = [self.intra[self.done - 1][step + 1]]
            else:
                choices = self.next_gpus(gpu, 0 if net == -1 else 1 if net == step + 1 else -1)
            for other in choices:
                self.try_gpu(self.gpus[gpu], other, step + 1, net, first, order)
        elif step == first:
            target = self.intra[self.done][0]
            if self.follow(self.gpus[gpu], self.gpus[target], 1):
                self.rec_gpu(target, step + 1, net, -1, order)
                self.follow(self.gpus[gpu], self.gpus[target], -1)
        else:
            self.rec_gpu(gpu, count, -1, -1, order)

    def to_nets(self, gpu: int, step: int, first: int, order: int) -> None:
        guide, trial, balanced = self.guide, self.trial, self.trial.pattern == BALANCED_TREE
        here, start = self.gpus[gpu], self.inter[self.done][0]
        for net in guide.nets(trial.type_inter, gpu):
            number = self.inter[self.done - 1][0] if guide.paired(trial) and self.done & 1 else ANY
            chosen = self.inter[self.done][1] if balanced and step else ANY
            if not guide.may_return(trial, start, net, number, chosen):
                continue
            self.half = balanced
            found = self.follow(here, self.nets[net], 1)
            self.half = False
            if found:
                self.inter[self.done][1] = guide.same_id[net]
                self.rec_gpu(gpu, step, 1 if balanced and step == 0 else -1, first, order)
                self.half = balanced
                self.follow(here, self.nets[net], -1)
                self.half = False

    def next_gpus(self, gpu: int, mode: int) -> list[int]:
        count, paths = len(self.gpus), self.gpus[gpu].paths["GPU"]
        from_net = self.nets[self.inter[self.done][0]].paths["GPU"] if mode else []
        scores = []
        for turn in range(1, count):
            other = (gpu + turn) % count
            if paths[other].count == 0 or self.used[other] >> self.done & 1:
                continue
            net = from_net[other] if from_net else None
            scores.append(
                (
                    -int(net.bw) if net else 0,
                    -self.free_pci(self.gpus[other]) if net else 0,
                    net.count if net else 0,
                    *(-int(paths[other].bw), paths[other].count, turn, other),
                )
            )
        scores.sort()
        numbers = [score[-1] for score in scores]
        if mode == -1 and len({score[3:5] for score in scores}) == 1:
            numbers.reverse()
        if not self.system.nvs or self.minor < 19:
            return numbers
        after, before = (gpu + 1) % count, (gpu - 1) % count
        if self.trial.pattern == RING:
            wanted = [after, before]
        elif self.trial.pattern == BALANCED_TREE:
            wanted = [before, after]
        else:
            wanted = [after]
        moved = 0
        for other in wanted[: 1 if after == before and self.minor >= 21 else 2]:
            if other in numbers:
                numbers.remove(other)
                numbers.insert(0, other)
                moved += 1
        return numbers[:moved] if self.minor >= 21 else numbers

    def free_pci(self, gpu: Vertex) -> int:
        holder = gpu.parent if self.minor >= 30 and gpu.parent is not None else gpu
        for link in holder.links:
            if link.type == self.types.pix:
                for back in link.remote.links:
                    if back.remote is holder:
                        return int(min(link.bw, back.bw))
        return -1

    def complete(self) -> None:
        trial, graph = self.trial, self.best
        self.done += 1
        if self.done >= trial.min_channels:
            here, there = single(self.done * trial.bw_intra), single(graph.channels * graph.bw_intra)
            if self.minor < 20:
                there = single(there * single(1.0 - (graph.cross_nic - trial.cross_nic) * 0.15))
            same = trial.pattern == graph.pattern and trial.cross_nic == graph.cross_nic
            if here > there or (here == there and same and self.hops < graph.hops):
                ends = [list(pair) for pair in self.inter[: self.done]] if self.system.inter else []
                orders = [list(order) for order in self.intra[: self.done]]
                keep(graph, trial, orders, ends)
                graph.hops, graph.latency_inter = self.hops, self.latency
                if self.done == trial.max_channels:
                    self.time[0] = PERFECT
        if self.done < trial.max_channels:
            self.rec()
        self.done -= 1

    def rec_net(self, back_net: int, first: int) -> None:
        guide, trial = self.guide, self.trial
        speed = int(trial.bw_inter)
        try:
            nets = guide.nets(trial.type_inter)
        except RejectedError:
            return
        for turn in range(len(nets)):
            net = nets[(self.done + turn) % len(nets)] if self.minor >= 19 else nets[turn]
            if (trial.coll_net and self.nets[net].coll == 0) or self.net_bw[net] < speed:
                continue
            if guide.paired(trial) and self.done & 1 and guide.same_id[net] != self.inter[self.done - 1][1]:
                continue
            self.inter[self.done][0] = guide.same_id[net]
            self.latency = self.nets[net].latency
            for twin in guide.twins[net]:
                self.net_bw[twin] -= speed
            if self.starts(net, back_net, first):
                for twin in guide.twins[net]:
                    self.net_bw[twin] += speed

    def starts(self, net: int, back_net: int, first: int) -> bool:
        here, same = self.nets[net], self.trial.same_channels == 1
        if self.done > 0 and (same or self.minor < 27):
            self.try_gpu(here, self.intra[self.done - 1][0], 0, back_net, first, REPLAY)
        if self.done > 0 and same:
            return True
        if self.done == 0 and (not self.system.nvs or self.minor < 19):
            main, self.time = self.time, [1 << 10]
            self.try_gpu(here, 0, 0, back_net, first, PCI)
            if self.time[0] == PERFECT:
                main[0] = PERFECT
            self.time = main
        if self.minor >= 27:
            near, (local, kind) = here.local_gpu, nearest(self.system, here, "GPU")
            gpus = ([near] if near != -1 else []) + [gpu for gpu in local if gpu != near and kind < self.types.dis]
            for gpu in gpus:
                self.try_gpu(here, gpu, 0, back_net, first, NORMAL)
            return kind < self.types.dis
        for gpu in self.widest(here):
            self.try_gpu(here, gpu, 0, back_net, first, NORMAL)
        return True

    def widest(self, net: Vertex) -> list[int]:
        paths = net.paths["GPU"]
        most = max(path.bw for path in paths)
        if most < int(self.trial.bw_inter) or most == 0:
            return []
        fewest = min(path.count for path in paths if path.bw == most)
        numbers = [gpu for gpu, path in enumerate(paths) if path.bw == most and path.count == fewest]
        if self.minor >= 19:
            return sorted(numbers, key=lambda gpu: (gpu - self.done) % len(paths))
        return sorted(numbers, key=lambda gpu: self.free_pci(self.gpus[gpu]) <= 0)


@lru_cache(maxsize=1 << 16)  # the same few differences, millions of times
def rounded(value: float) -> float:
    """SUB_ROUND: to three decimals, halves away from zero, in single precision."""
    scaled = single(single(value) * 1000)
    whole = int(abs(scaled) + 0.5)
    return single((whole if scaled >= 0 else -whole) / 1000)


def plain_attempt(net_bw: dict[int, float]) -> Callable[[Guide, SearchGraph, SearchGraph, int, bool], int]:
    """What search.py can call in place of `attempt`; `net_bw` is the free bandwidth of the NETs, kept throughout."""

    def attempt(guide: Guide, trial: SearchGraph, best: SearchGraph, time: int, _repeatable: bool) -> int:
        search = PlainSearch(guide, trial, best, time, net_bw)
        search.rec()
        return search.time[0]

    return attempt
