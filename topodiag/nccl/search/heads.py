"""One attempt of NCCL's graph search for NVLS and CollNet direct, where a channel is a head and the NET beside it.

After ncclTopoSearchTryNvls, ncclTopoSearchTryCollnetDirect and their part of ncclTopoSearchRecNet
(src/graph/search.cc).
"""

from __future__ import annotations

from topodiag.model.nccl_versions import Feature
from topodiag.nccl.graph.graph import COLLNET_DIRECT, NVLS, RejectedError, SearchGraph
from topodiag.nccl.numbers import single
from topodiag.nccl.search.candidates import ANY, Guide
from topodiag.nccl.search.follow import Roads, Route
from topodiag.nccl.search.trial import PERFECT, Tables, keep


class _Heads:
    """An attempt under way.

    What follows a channel of NVLS depends on little: the free bandwidth, the NETs in, the heads. As in
    `topodiag.nccl.search.attempt`, the same situation takes the same number of steps again and finds nothing new: more
    heads are needed with each better graph, and hops do not count. It is skipped and its steps counted. CollNet direct
    weighs hops, and takes few steps.
    """

    def __init__(self, guide: Guide, trial: SearchGraph, best: SearchGraph, time: int, repeatable: bool) -> None:
        self.guide, self.trial, self.best, self.time = guide, trial, best, time
        gives_back = guide.has(Feature.HEADS_GIVE_BACK) or not guide.has(Feature.HEADS_ONCE)
        self.skipping = repeatable and gives_back and guide.system.inter and trial.pattern == NVLS
        self.noted: dict[object, int] = {}
        """Steps by situation."""
        self.roads: Roads = guide.roads
        self.system = guide.system
        self.has = guide.has
        self.follows_apart = not guide.has(Feature.APART_NOT_FOLLOWED)
        self.gpus = len(self.system.gpus)
        self.tables = Tables(self.roads, trial)
        self.heads: list[int] = []
        self.entered: list[int] = []
        self.left: list[int] = []
        self.hops = trial.hops
        self.latency = trial.latency_inter
        self.bw = int(trial.bw_inter)

    def next_channel(self, state: int) -> None:
        if self.system.inter:
            self.from_outside(state)
        elif self.trial.pattern == NVLS:
            if len(self.heads) < self.gpus:
                self.head(state, len(self.heads), ANY)
        else:
            self.from_gpus(state)

    def from_gpus(self, state: int) -> None:
        """CollNet direct within a node: the order of a channel is its head, whatever order is forced."""
        self.head(state, self.heads[-1] if self.heads else 0, ANY)
        if self.trial.same_channels == 0 or not self.heads:
            for gpu in range(self.gpus):
                self.head(state, gpu, ANY)

    def from_outside(self, state: int) -> None:
        """Through the NETs. Up to 2.30 an error there ends what follows this channel, as ncclTopoSearchRec drops it."""
        try:
            if self.skipping:
                self.from_nets_once(state)
            else:
                self.from_nets(state)
        except RejectedError:
            if self.guide.errors_end_search:
                raise

    def from_nets_once(self, state: int) -> None:
        situation = state, tuple(self.roads.room), tuple(sorted(self.heads)), self.open_pair()
        steps = self.noted.get(situation)
        if steps is not None:
            self.time = max(0, self.time - steps)
            return
        began = self.time
        self.from_nets(state)
        if self.time > 0:
            self.noted[situation] = began - self.time

    def from_nets(self, state: int) -> None:
        guide, room, nets_of = self.guide, self.roads.room, self.system.nets
        nets = guide.nets(self.trial.type_inter)
        channel, extra = len(self.heads), False
        first_only = self.trial.pattern == NVLS and self.has(Feature.HEADS_OF_FIRST_NET)
        for turn in range(len(nets)):
            if extra or (turn > 0 and first_only):
                break
            net = nets[(channel + turn) % len(nets)] if guide.in_turn else nets[turn]
            if self.trial.coll_net and nets_of[net].coll == 0:
                continue
            if room[net] < self.bw:
                continue
            self.latency = nets_of[net].latency
            for twin in guide.twins[net]:
                room[twin] -= self.bw
            given_back = True
            if channel < len(nets):
                given_back, extra = self.from_net(state, net, nets)
            if given_back:
                for twin in guide.twins[net]:
                    room[twin] += self.bw

    def from_net(self, state: int, net: int, nets: list[int]) -> tuple[bool, bool]:
        """Whether the NET's bandwidth is given back (NCCL forgets it at times), and whether a head was tried."""
        once, gives_back = self.has(Feature.HEADS_ONCE), self.has(Feature.HEADS_GIVE_BACK)
        if not self.has(Feature.HEAD_OF_ITS_NET):
            gpu = self.near(nets[len(self.heads)])
            if gpu != -1:
                self.head(state, gpu, self.guide.same_id[net])
            return True, False
        gpu = self.near(net)
        if once and gpu in self.heads:
            return gives_back, False
        if gpu != -1:
            follow = self.tables.net_gpu[net][gpu]
            if follow is not None:
                after = state - follow[0]
                if after & self.roads.guard == self.roads.guard:
                    self.hops += follow[1]
                    self.head(after, gpu, self.guide.same_id[net])
                    self.hops -= follow[1]
        return True, once and (gpu != -1 or not gives_back)

    def near(self, net: int) -> int:
        kept = self.has(Feature.STARTS_AT_LOCAL_GPU)
        return self.system.nets[net].local_gpu if kept else self.guide.local_gpu(net)

    def head(self, state: int, gpu: int, net: int) -> None:
        """A GPU as head; with other nodes it first goes back to its NET."""
        if self.time <= 0:
            return
        self.time -= 1
        if net == ANY:
            self.spread(state, gpu, ANY, ANY)
            return
        guide, trial = self.guide, self.trial
        for other in guide.nets(trial.type_inter, gpu):
            follow = self.tables.gpu_net[gpu][other]
            if follow is None or not guide.may_return(trial, net, other, self.open_pair(), ANY):
                continue
            after = state - follow[0]
            if after & self.roads.guard == self.roads.guard:
                self.hops += follow[1]
                if self.time > 0:
                    self.time -= 1
                    self.spread(after, gpu, net, guide.same_id[other])
                self.hops -= follow[1]

    def open_pair(self) -> int:
        paired = self.guide.paired(self.trial) and len(self.heads) & 1
        return self.entered[-1] if paired else ANY

    def spread(self, state: int, gpu: int, entered: int, left: int) -> None:
        """Takes what a head needs from and to all other GPUs; when that fits, the channel is complete."""
        hops = self.hops
        after = self.over_switch(state, gpu) if self.trial.pattern == NVLS else self.direct(state, gpu)
        if after is not None:
            self.heads.append(gpu)
            self.entered.append(entered)
            self.left.append(left)
            self.complete(after)
            self.heads.pop()
            self.entered.pop()
            self.left.pop()
            if self.trial.pattern == COLLNET_DIRECT:
                self.back(gpu)
        if self.trial.pattern == NVLS:
            self.hops = hops

    def over_switch(self, state: int, gpu: int) -> int | None:
        """NVLS: each GPU's bandwidth from the switch and to it, the head's twice."""
        gpus = range(self.gpus)
        for way, other in [*zip(self.roads.nvs_gpu, gpus, strict=True), *zip(self.roads.gpu_nvs, gpus, strict=True)]:
            if way is None:
                raise RejectedError(f"No path computed to go from GPU/{other} to NVS/0")
            if other == gpu:
                if way.type >= self.tables.rules.dis and not self.follows_apart:
                    return None
                taken, count = way.step(single(self.trial.bw_intra * 2))
                count *= 2
            else:
                follow = self.tables.step(way, self.trial.bw_intra, self.trial.type_intra)
                if follow is None:
                    return None
                taken, count = follow
            state -= taken
            if state & self.roads.guard != self.roads.guard:
                return None
            self.hops += count
        return state

    def direct(self, state: int, gpu: int) -> int | None:
        """CollNet direct: an equal share to each GPU and from it. Hops are cut to whole ones each time."""
        share = single(1.0 / (self.gpus - 1))
        done = []
        for way in self.spokes(gpu):
            if way.type >= self.tables.rules.dis and not self.follows_apart:
                break
            if share == 1 and way.type > self.trial.type_intra:
                break
            need, take = way.share(single(self.trial.bw_intra * share))
            if (state - need) & self.roads.guard != self.roads.guard:
                break
            state -= take
            self.hops = int(self.hops + single(share * way.hops))
            done.append(way)
        else:
            return state
        for way in reversed(done):
            self.hops = int(self.hops - single(share * way.hops))
        return None

    def back(self, gpu: int) -> None:
        share = single(1.0 / (self.gpus - 1))
        for way in reversed(self.spokes(gpu)):
            self.hops = int(self.hops - single(share * way.hops))

    def spokes(self, gpu: int) -> list[Route]:
        table = self.roads.gpu_gpu
        return [way for way in [*table[gpu], *(row[gpu] for row in table)] if way is not None]

    def complete(self, state: int) -> None:
        if self.time <= 0:
            return
        self.time -= 1
        done = len(self.heads)
        if self.better(done):
            orders = [[head, *(g for g in range(self.gpus) if g != head)] for head in self.heads]
            ends = [list(pair) for pair in zip(self.entered, self.left, strict=True)] if self.system.inter else []
            keep(self.best, self.trial, orders, ends)
            self.best.hops, self.best.latency_inter = self.hops, self.latency
            if done == self.trial.max_channels:
                self.time = PERFECT
        if done < self.trial.max_channels:
            self.next_channel(state)

    def better(self, done: int) -> bool:
        trial, graph = self.trial, self.best
        if done < trial.min_channels:
            return False
        if trial.pattern == NVLS:
            if graph.channels < done <= self.gpus:
                return True
            return self.has(Feature.NVLS_BY_SPEED) and single(done * trial.bw_inter) > single(
                graph.channels * graph.bw_inter
            )
        here, there = single(done * trial.bw_intra), single(graph.channels * graph.bw_intra)
        if here != there:
            return here > there
        same = trial.pattern == graph.pattern and trial.cross_nic == graph.cross_nic
        return same and self.hops < graph.hops


def attempt_heads(guide: Guide, trial: SearchGraph, best: SearchGraph, time: int, repeatable: bool) -> int:
    """Searches once for heads with the speeds and types of `trial`; improves `best`. Returns the time left.

    `repeatable` says that a visit leaves things as they were, so that equal ones may be skipped.
    """
    search = _Heads(guide, trial, best, time, repeatable)
    search.next_channel(search.roads.start)
    return search.time
