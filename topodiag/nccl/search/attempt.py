"""One attempt of NCCL's graph search for rings and trees: as many channels as fit at one speed, in so many steps.

After ncclTopoSearchRec, RecNet, RecGpu and TryGpu of src/graph/search.cc, step for step: what is found
depends on the order of visits and on when the time is over. Nothing is given back, as a state is a value (`follow`).

A visit depends on little: the free bandwidth, the channels complete, the GPUs used, the NETs in. If the same visit was
made before and did not end the search, it takes the same number of steps again and finds nothing new, because the best
graph has only become better since. Such visits are skipped and their steps counted, which changes no result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

from topodiag.model.nccl_versions import Feature
from topodiag.nccl.graph.graph import BALANCED_TREE, RING, SPLIT_TREE, RejectedError, SearchGraph
from topodiag.nccl.numbers import single
from topodiag.nccl.search.candidates import ANY, Guide
from topodiag.nccl.search.follow import Step
from topodiag.nccl.search.trial import PERFECT, TIMEOUT_PCI_ORDER, Memory, Tables, Visits, bar, keep

_WORTH = 4
"""Steps from which on a visit is worth remembering."""


def attempt(guide: Guide, trial: SearchGraph, best: SearchGraph, time: int, repeatable: bool) -> int:
    """Searches once with the speeds, types and limits of `trial`; improves `best`. Returns the time left.

    `repeatable` says that a visit leaves things as they were, so that equal ones may be skipped.
    """
    search = _Attempt(guide, trial, best, time, repeatable)
    try:
        search.next_channel(guide.roads.start, trial.hops)
    finally:
        search.end()
    return search.time


@lru_cache(maxsize=256)
def _products(speed: float, most: int) -> tuple[float, ...]:
    """Bandwidth of 0, 1, 2, ... channels."""
    return tuple(single(count * speed) for count in range(most + 1))


class _Attempt:
    """An attempt under way; `done` channels are complete, `order` is that of the one being built."""

    __slots__ = (
        *("balanced", "best", "bits", "by_net", "by_path", "dense", "done", "ended", "entered", "exit_lists"),
        *("end", "fixed", "free", "gpu_net", "gpus", "guard", "guide", "known", "last", "latency", "least", "left"),
        *("like_best", "limit", "memory", "minor", "most", "net_gpu", "order", "orders", "paired", "product"),
        *("pci_order", "repeatable", "replays", "roads", "row", "same", "skipping", "speed", "starts_at_local"),
        *("system", "time", "to_first", "to_net", "trial", "tries_pci_order", "visit", "visits"),
    )

    def __init__(self, guide: Guide, trial: SearchGraph, best: SearchGraph, time: int, repeatable: bool) -> None:
        system = guide.system
        self.guide, self.trial, self.best, self.time, self.repeatable = guide, trial, best, time, repeatable
        self.roads, self.system, self.minor = guide.roads, system, guide.minor
        tables = Tables(self.roads, trial)
        self.row, self.net_gpu, self.gpu_net = tables.gpu_gpu, tables.net_gpu, tables.gpu_net
        self.guard, self.bits = self.roads.guard, self.roads.small
        self.gpus = len(system.gpus)
        self.last = self.gpus - 1
        self.least, self.most = trial.min_channels, trial.max_channels
        self.same, self.balanced = trial.same_channels == 1, trial.pattern == BALANCED_TREE
        self.speed = int(trial.bw_inter)
        self.product = _products(trial.bw_intra, self.most)
        self.to_net = self.to_first = -1
        if system.inter:
            self.to_net = self.last if trial.pattern == RING else 1 if trial.pattern == SPLIT_TREE else 0
        elif trial.pattern == RING:
            self.to_first = self.last
        self.paired = guide.paired(trial)
        self.fixed = guide.fixed_orders(trial.pattern)
        self.by_net = not guide.neighbours or not guide.has(Feature.NEIGHBOURS_ONLY)
        self._start_memory()
        self.orders = [[0] * self.gpus for _ in range(self.most + 1)]
        self.entered, self.left = [ANY] * (self.most + 1), [ANY] * (self.most + 1)
        self.pci_order = range(self.gpus)
        self.tries_pci_order = not system.nvs or not guide.has(Feature.NO_PCI_ORDER_ON_NVSWITCH)
        self.starts_at_local = guide.has(Feature.STARTS_AT_LOCAL_GPU)
        self.by_path: dict[int, list[int]] = {}
        self.exit_lists = guide.exits(trial)
        self.done, self.order, self.latency = 0, self.orders[0], trial.latency_inter
        self._compare_with_best()
        self.visit, self.end = _visitor(self)

    def _start_memory(self) -> None:
        self.memory = Memory()
        self.known: list[Visits] = [{} for _ in range(self.most + 1)]
        self.visits = self.known[0]
        self.replays = not self.guide.has(Feature.ORDERS_NOT_REPLAYED)
        self.skipping = self.repeatable and not self.same
        # where the order of a channel is tried again for the next one, a visit that completes channels has a past
        self.free = self.system.inter and not self.same and not self.replays
        # without an NVSwitch GPUs are met in many orders; with one they are in a row, worth noting at its start only
        self.dense = not self.guide.neighbours
        self.ended = 0

    def _compare_with_best(self) -> None:
        self.limit = bar(self.trial, self.best, self.minor)
        self.like_best = (self.best.pattern, self.best.cross_nic) == (self.trial.pattern, self.trial.cross_nic)

    def complete(self, state: int, hops: int) -> None:
        """A channel is complete: keeps what there is if it is better, and goes on to the next channel."""
        self.ended += 1
        if self.time <= 0:
            return
        self.time -= 1
        self.done = done = self.done + 1
        if done >= self.least:
            value = self.product[done]
            if value > self.limit or (value == self.limit and self.like_best and hops < self.best.hops):
                self._keep(hops)
        if done < self.most and (self.time > 0 or not self.repeatable):
            self.next_channel(state, hops)
        self.done = done = done - 1
        self.order = self.orders[done]
        self.visits = self.known[done]

    def _keep(self, hops: int) -> None:
        done = self.done
        ends = [[self.entered[c], self.left[c]] for c in range(done)] if self.system.inter else []
        keep(self.best, self.trial, [list(order) for order in self.orders[:done]], ends)
        self.best.hops, self.best.latency_inter = hops, self.latency
        self._compare_with_best()
        if done == self.most:
            self.time = PERFECT

    def next_channel(self, state: int, hops: int) -> None:
        """Starts a channel (ncclTopoSearchRec)."""
        done = self.done
        self.order = self.orders[done]
        if self.system.inter:
            self.from_nets(state, hops)
            return
        self.forced(state, hops, 0, -1, self.orders[done - 1] if done else self.pci_order)
        if self.same and done:
            return
        noted = self._channel_noted(done) if self.skipping else None
        if noted is not None and state in noted and hops >= noted[state][1]:
            self.time = max(0, self.time - noted[state][0])
            return
        began = self.time
        self.visits = self.known[done] = self.memory.gpus.setdefault(done, {})
        for gpu in range(self.gpus):
            self.visit(state, hops, gpu, 0, 1 << gpu, -1)
        if noted is not None and self.time > 0:
            noted[state] = began - self.time, hops

    def _channel_noted(self, kind: object) -> Visits:
        return self.memory.channels.setdefault(kind, {})

    def exits(self, gpu: int, step: int) -> list[tuple[int, Step]]:
        """The NETs by which the channel may leave from a GPU, and what that takes."""
        done = self.done
        entry = self.entered[done - 1] if self.paired and done & 1 else ANY
        chosen = self.left[done] if self.balanced and step != 0 else ANY
        key = gpu, self.entered[done], entry, chosen
        pairs = self.exit_lists.get(key)
        if pairs is None:
            guide, row = self.guide, self.gpu_net[gpu]
            pairs = self.exit_lists[key] = [
                (guide.same_id[net], taken)
                for net in guide.nets(self.trial.type_inter, gpu)
                if guide.may_return(self.trial, self.entered[done], net, entry, chosen)
                and (taken := row[net]) is not None
            ]
        return pairs

    def forced(self, state: int, hops: int, step: int, to_net: int, way: Sequence[int]) -> None:
        """A channel along a given order: the PCI order or that of the channel before."""
        guard, last = self.guard, self.last
        while self.time > 0:
            self.time -= 1
            gpu = way[step]
            self.order[step] = gpu
            if step == to_net:
                then = 1 if self.balanced and step == 0 else -1
                for net, (taken, count) in self.exits(gpu, step):
                    after = state - taken
                    if after & guard == guard:
                        self.left[self.done] = net
                        self.forced(after, hops + count, step, then, way)
                return
            if step == last and step != self.to_first:
                self.complete(state, hops)
                return
            follow = self.row[gpu][way[step + 1] if step < last else way[0]]
            if follow is None:
                return
            state -= follow[0]
            if state & guard != guard:
                return
            hops += follow[1]
            if step == last:
                self.complete(state, hops)
                return
            step += 1

    def choices(self, gpu: int, used: int, to_net: int, state: int) -> list[int]:
        """The GPUs to go to next where that depends on more than which are left."""
        mode = 0 if to_net == -1 else 1 if to_net == used.bit_count() else -1
        if mode == 0:
            key = used << self.bits | gpu
            known = self.by_path.get(key)
            if known is None:
                known = self.by_path[key] = self._choices(gpu, used, mode, state)
            return known
        return self._choices(gpu, used, mode, state)

    def _choices(self, gpu: int, used: int, mode: int, state: int) -> list[int]:
        numbers = self.guide.next_gpus(gpu, used, mode, self.entered[self.done], state)
        return numbers if self.fixed[gpu] is not None else self.guide.with_neighbours(numbers, gpu, self.trial.pattern)

    def start(self, state: int, hops: int, net: int, gpu: int, way: Sequence[int] | None) -> None:
        """From a NET to the first GPU of a channel, and on in a given order or any."""
        follow = self.net_gpu[net][gpu]
        if follow is not None:
            after = state - follow[0]
            if after & self.guard == self.guard:
                if way is None:
                    self.visit(after, hops + follow[1], gpu, 0, 1 << gpu, self.to_net)
                else:
                    self.forced(after, hops + follow[1], 0, self.to_net, way)

    def from_nets(self, state: int, hops: int) -> None:
        """A channel that comes in through each NET in turn (ncclTopoSearchRecNet)."""
        try:
            nets = self.guide.nets(self.trial.type_inter)
        except RejectedError:
            return
        channel, room = self.done, self.roads.room
        kind: tuple[object, ...] = (channel, tuple(room))
        if self.paired and channel & 1:
            kind = (*kind, self.entered[channel - 1], self.left[channel - 1])
        # where the order before is tried again, what follows depends on it too
        past = tuple(self.orders[channel - 1]) if channel and self.replays else ()
        noted = self._channel_noted((*kind, past)) if self.skipping else None
        if noted is not None and state in noted and hops >= noted[state][1]:
            self.time = max(0, self.time - noted[state][0])
            return
        began, count, in_turn = self.time, len(nets), self.guide.in_turn
        for turn in range(count):
            net = nets[(channel + turn) % count] if in_turn else nets[turn]
            if self.may_enter(net, channel):
                self.from_net(state, hops, net, kind)
                # the PCI order of a first channel has a clock of its own
                if self.time <= 0 and self.repeatable and (channel > 0 or not self.tries_pci_order):
                    break
        if noted is not None and self.time > 0:
            noted[state] = began - self.time, hops

    def may_enter(self, net: int, channel: int) -> bool:
        if self.roads.room[net] < self.speed or (self.trial.coll_net and self.system.nets[net].coll == 0):
            return False
        return not (self.paired and channel & 1 and self.guide.same_id[net] != self.left[channel - 1])

    def from_net(self, state: int, hops: int, net: int, kind: tuple[object, ...]) -> None:
        """All channels that come in through a NET; meanwhile all NETs of its port have that much less bandwidth."""
        channel, room = self.done, self.roads.room
        entered = self.entered[channel] = self.guide.same_id[net]
        self.latency = self.system.nets[net].latency
        twins = self.guide.twins[net]
        for twin in twins:
            room[twin] -= self.speed
        if self.skipping:
            self.visits = self.known[channel] = self.memory.gpus.setdefault((*kind, entered), {})
        if channel > 0 and (self.same or self.replays):
            self.start(state, hops, net, self.orders[channel - 1][0], self.orders[channel - 1])
        given_back = True
        if channel == 0 or not self.same:
            if channel == 0 and self.tries_pci_order:
                time, self.time = self.time, TIMEOUT_PCI_ORDER
                self.start(state, hops, net, 0, self.pci_order)
                self.time = PERFECT if self.time == PERFECT else time
            given_back = self.starts(state, hops, net)
        if given_back:
            for twin in twins:
                room[twin] += self.speed

    def starts(self, state: int, hops: int, net: int) -> bool:
        """From a NET to its nearest GPUs. False where NCCL forgets to give the NET's bandwidth back."""
        if not self.starts_at_local:
            for gpu in self.guide.widest(net, self.done, self.speed, state):
                self.start(state, hops, net, gpu, None)
            return True
        near = self.system.nets[net].local_gpu
        if near != -1:
            self.start(state, hops, net, near, None)
        if self.guide.lost[net]:
            return False
        for gpu in self.guide.near_gpus[net]:
            if gpu != near:
                self.start(state, hops, net, gpu, None)
        return True


_Visit = Callable[[int, int, int, int, int, int], None]


def _visitor(search: _Attempt) -> tuple[_Visit, Callable[[], None]]:
    """The visit of a GPU in free order (ncclTopoSearchRecGpu). What no visit changes is bound here, for speed.

    Also what ends the attempt: it and its visit hold each other, and what it remembers would stay in memory until
    Python searches for cycles.
    """
    guard, bits, last, row, most = search.guard, search.bits, search.last, search.row, search.most
    skipping, dense, free, balanced = search.skipping, search.dense, search.free, search.balanced
    to_first, fixed, by_net = search.to_first, search.fixed, search.by_net
    complete, exits, choose, left = search.complete, search.exits, search.choices, search.left

    def visit(state: int, hops: int, gpu: int, step: int, used: int, to_net: int) -> None:  # noqa: PLR0917
        """A GPU at a step of a channel, after those `used`, and all ways on from it."""
        time = search.time
        if time <= 0:
            return
        order = search.order
        order[step] = gpu
        noting = skipping and (dense or step == 0)
        if noting:
            extra = order[0] if to_first != -1 else left[search.done] + 1 if to_net == 1 else 0
            key = state | ((used << bits | gpu) << bits | to_net + 1) << bits | extra
            visits = search.visits
            before = visits.get(key)
            if before is not None and hops >= before[1]:
                search.time = max(0, time - before[0])
                return
            ended = search.ended
        search.time = time - 1
        if step == to_net:
            then = 1 if balanced and step == 0 else -1
            for net, (taken, count) in exits(gpu, step):
                after = state - taken
                if after & guard == guard:
                    left[search.done] = net
                    visit(after, hops + count, gpu, step, used, then)
        elif step < last:
            others = fixed[gpu]
            if others is None or (by_net and to_net != -1):
                others = choose(gpu, used, to_net, state)
            ways = row[gpu]
            for other in others:
                follow = ways[other]
                if follow is not None and not used >> other & 1:
                    after = state - follow[0]
                    if after & guard == guard:
                        visit(after, hops + follow[1], other, step + 1, used | 1 << other, to_net)
                        if search.time <= 0:
                            return
        elif step == to_first:
            follow = row[gpu][order[0]]
            if follow is not None:
                after = state - follow[0]
                if after & guard == guard:
                    complete(after, hops + follow[1])
        else:
            complete(state, hops)
        if noting and 0 < search.time <= time - _WORTH and (free or ended == search.ended or search.done + 1 == most):
            visits[key] = time - search.time, hops

    def end() -> None:
        nonlocal visit
        del visit, search.visit, search.end

    return visit, end
