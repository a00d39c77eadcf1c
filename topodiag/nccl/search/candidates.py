"""Which GPU a search tries next and which NETs it may use, in NCCL's order.

After ncclTopoSearchNextGpuSort, ncclTopoSelectNets, ncclTopoSearchCheckNet (src/graph/search.cc). The
order decides which of several equal solutions is found, and how far a search gets before its time is over.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial

from topodiag.model.nccl_versions import MAX_CHANNELS, Feature, is_rubin, path_types
from topodiag.nccl.graph.graph import BALANCED_TREE, OWN_RAIL, RING, SPLIT_TREE, TREE, SearchGraph, System, Vertex
from topodiag.nccl.graph.nearest import local_gpu, local_nets, most_nets, nearest
from topodiag.nccl.search.follow import Roads, Step

ANY = -1
_KEPT = 20_000
"""Orders of GPUs that are remembered."""

Exits = dict[tuple[int, int, int, int], list[tuple[int, Step]]]
"""The NETs by which a channel may leave and what that takes, by GPU, NET in, and what binds the NET out."""


class Guide:
    """The choices of a system that no attempt changes, found once."""

    def __init__(self, system: System, roads: Roads, policy: str = "") -> None:
        self.system = system
        self.policy = policy
        self.roads = roads
        self.minor, self.has = system.minor, system.has
        self.in_turn, self.reached_only = self.has(Feature.NETS_IN_TURN), self.has(Feature.UNREACHED_PASSED_OVER)
        self.ids = [net.id for net in system.nets]
        first = {vertex_id: index for index, vertex_id in reversed(list(enumerate(self.ids)))}
        self.same_id = [first[vertex_id] for vertex_id in self.ids]
        """NETs are looked up by id: the first of that id stands for all."""
        self.twins = [
            [other.index for other in system.nets if other.asic == net.asic and other.port == net.port]
            for net in system.nets
        ]
        near = [nearest(system, net, "GPU") for net in system.nets]
        self.near_gpus = [gpus for gpus, _ in near]
        self.lost = [kind == path_types(system.minor).dis for _, kind in near]
        """Whether no GPU reaches a NET: then NCCL forgets to give its bandwidth back (STARTS_AT_LOCAL_GPU)."""
        self.errors_end_search = bool(system.nets) and self.has(Feature.NET_ERRORS_END_SEARCH)
        """Not without NETs: a communicator brings those of its plugin, at least the one of sockets."""
        self.neighbours = len(system.nvs) > 0 and self.has(Feature.NVSWITCH_NEIGHBOURS)
        self.local_gpu = cache(partial(local_gpu, system))
        """The GPU that uses a NET first, -1 where none does. Raises RejectedError."""
        self._nets: dict[tuple[int, int], list[int]] = {}
        self._next: dict[tuple[int, int, int, int, int], list[int]] = {}
        self._free: dict[int, list[int]] = {}
        self._plain = [self._by_path(gpu) for gpu in range(len(system.gpus))]
        self._orders: dict[int, list[list[int] | None]] = {}
        self._exits: dict[tuple[int, int, int, float], Exits] = {}

    def nets(self, limit: int, gpu: int = ANY) -> list[int]:
        """NETs to try for all GPUs or one, up to a path type: the preferred ones first. Raises RejectedError."""
        chosen = self._nets.get((limit, gpu))
        if chosen is None:
            chosen = self._nets[limit, gpu] = self._select(limit, gpu)
        return chosen

    def _select(self, limit: int, gpu: int) -> list[int]:
        gpus = range(len(self.system.gpus)) if gpu == ANY else [gpu]
        chosen = list(dict.fromkeys(self._preferred(gpus)))
        most = self._most(len(gpus))
        if len(chosen) >= most:
            return chosen
        known = set(chosen)
        listed = MAX_CHANNELS[self.minor] if self.has(Feature.NETS_UP_TO_CHANNELS) else len(self.ids)
        for kind in range(limit + 1):
            for index in gpus:
                for net, path in enumerate(self.system.gpus[index].paths.get("NET", [])[:listed]):
                    if path.type == kind and net not in known:
                        known.add(net)
                        chosen.append(net)
                        if len(chosen) >= most:
                            return chosen
        return chosen

    def _most(self, gpus: int) -> int:
        """NCCL_NETDEVS_POLICY=MAX:n allows n NETs per GPU and no others."""
        most = most_nets(self.policy)
        return most * gpus if most is not None and self.has(Feature.NETDEVS_POLICY) else len(self.ids)

    def _preferred(self, gpus: Sequence[int]) -> list[int]:
        """The NETs that each GPU would use for its first channels; on MNNVL one of every GPU at a time."""
        lists = [local_nets(self.system, gpu, self.policy) for gpu in gpus]
        if len(self.system.hosts) > 1 and self.has(Feature.NETS_BY_TURN_OF_GPUS):
            deepest = max((len(own) for own in lists), default=0)
            return [own[turn] for turn in range(deepest) for own in lists if turn < len(own)]
        return [net for own in lists for net in own]

    def _by_path(self, gpu: int) -> list[int]:
        """The other GPUs that can be reached, the widest and shortest paths first, then in turn."""
        paths = self.system.gpus[gpu].paths.get("GPU", [])
        count = len(paths)
        others = [(gpu + turn) % count for turn in range(1, count)]
        reached = [other for other in others if paths[other].count > 0]
        return sorted(reached, key=lambda other: (-int(paths[other].bw), paths[other].count))

    def widest(self, net: int, channel: int, speed: int, state: int) -> list[int]:
        """The GPUs with the widest path from a NET, and the shortest of these, in turn by channel; before
        STARTS_AT_LOCAL_GPU."""
        paths = self.system.nets[net].paths.get("GPU", [])
        widest, fewest = 0.0, 0xFFFFFFF
        for path in paths:
            if path.bw > widest:
                widest, fewest = path.bw, path.count
            elif path.bw == widest and path.count < fewest and (path.count > 0 or not self.reached_only):
                fewest = path.count
        if widest < speed:
            return []
        count = len(paths)
        turns = [(channel + turn) % count for turn in range(count)] if self.in_turn else list(range(count))
        numbers = [gpu for gpu in turns if paths[gpu].bw == widest and paths[gpu].count == fewest]
        if not self.in_turn:
            numbers.sort(key=lambda gpu: self.roads.free_pci(state, gpu) <= 0)
        return numbers

    def nvswitch_first(self, gpu: int, pattern: int) -> list[int] | None:
        """With an NVSwitch, the GPUs next to this one that NCCL talks to first; None without. Last choice first."""
        if not self.neighbours:
            return None
        count = len(self.system.gpus)
        after, before = (gpu + 1) % count, (gpu - 1) % count
        if pattern == RING:
            return [before, after] if before != after else [after]
        if pattern in (SPLIT_TREE, BALANCED_TREE):
            return [after, before] if before != after else [before]
        return [after]

    def fixed_orders(self, pattern: int) -> list[list[int] | None]:
        """By GPU the order of next GPUs where it depends on nothing but which are left; else None."""
        known = self._orders.get(pattern)
        if known is None:
            gpus = range(len(self.system.gpus))
            known = self._orders[pattern] = [self._fixed_order(gpu, pattern) for gpu in gpus]
        return known

    def _fixed_order(self, gpu: int, pattern: int) -> list[int] | None:
        first = self.nvswitch_first(gpu, pattern)
        if first is None:
            return self._plain[gpu]
        reached = set(self._plain[gpu])
        return [other for other in first if other in reached] if self.has(Feature.NEIGHBOURS_ONLY) else None

    def next_gpus(self, gpu: int, used: int, mode: int, net: int, state: int) -> list[int]:
        """The GPUs to go to next. Modes: 0 by the path from here; 1 by that from the NET too; -1 the same, but in
        turn backwards where all paths from here are equal. NCCL weighs the PCI bandwidth that is free just now."""
        if mode == 0:
            return [other for other in self._plain[gpu] if not used >> other & 1]
        key = gpu, used, mode, net, state & self.roads.low
        known = self._next.get(key)
        if known is None:
            if len(self._next) > _KEPT:
                self._next.clear()
            known = self._next[key] = self._by_net(gpu, used, mode, net, state)
        return known

    def _by_net(self, gpu: int, used: int, mode: int, net: int, state: int) -> list[int]:
        paths = self.system.gpus[gpu].paths["GPU"]
        from_net = self.system.nets[net].paths.get("GPU")
        left = [other for other in self._plain[gpu] if not used >> other & 1]
        if from_net is not None:
            free = self._free_pci(state)
            left.sort(key=lambda other: (-int(from_net[other].bw), -free[other], from_net[other].count))
        if mode == -1 and len({(int(paths[other].bw), paths[other].count) for other in left}) == 1:
            left.reverse()
        return left

    def _free_pci(self, state: int) -> list[int]:
        """Whole GB/s free on the PCI link of every GPU."""
        key = state & self.roads.low
        known = self._free.get(key)
        if known is None:
            if len(self._free) > _KEPT:
                self._free.clear()
            known = self._free[key] = [self.roads.free_pci(key, gpu) for gpu in range(len(self.system.gpus))]
        return known

    def with_neighbours(self, order: list[int], gpu: int, pattern: int) -> list[int]:
        """Before NEIGHBOURS_ONLY: neighbours over an NVSwitch first, the others after."""
        first = self.nvswitch_first(gpu, pattern) or []
        first = [other for other in first if other in order]
        return first + [other for other in order if other not in first]

    def exits(self, trial: SearchGraph) -> Exits:
        """What attempts that leave by the same NETs at the same speed have found out of it."""
        return self._exits.setdefault((trial.pattern, trial.cross_nic, trial.type_inter, trial.bw_inter), {})

    def may_return(self, trial: SearchGraph, start: int, net: int, parity: int, chosen: int) -> bool:
        """Whether a channel that came in through a NET may leave through another. `odd` is the NET by which the
        channel before came in where this is its counterpart, else ANY; `chosen` the one a balanced tree has taken."""
        nets = self.system.nets
        one, other = nets[start], nets[net]
        planes_differ = one.plane != other.plane and -1 not in (one.plane, other.plane)
        if planes_differ and self.has(Feature.RAILS_AND_PLANES):
            return False
        if trial.pattern == TREE and one.id != other.id:
            return False
        if parity != ANY and other.id != self.ids[parity]:
            return False
        if self._same_nic(trial):
            if -1 not in (one.rail, other.rail) and self.has(Feature.RAILS_AND_PLANES):
                if one.rail != other.rail or (one.rail & OWN_RAIL and not self._one_rail(one, other)):
                    return False
            elif (one.asic, one.port) != (other.asic, other.port):
                return False
        return not (trial.pattern == BALANCED_TREE and chosen != ANY and other.id != self.ids[chosen])

    def _one_rail(self, one: Vertex, other: Vertex) -> bool:
        """Whether adapters with one number are on one rail: those of other hosts of an NVLink domain for Rubin alone
        (search.cc, ncclTopoSearchCheckNet of 2.32)."""
        return one.system_id == other.system_id or all(is_rubin(gpu.sm, self.minor) for gpu in self.system.gpus)

    def _same_nic(self, trial: SearchGraph) -> bool:
        return trial.cross_nic == 0 if self.has(Feature.CROSS_NIC_IN_PAIRS) else trial.cross_nic != 1

    def paired(self, trial: SearchGraph) -> bool:
        """Whether every odd channel runs the NETs of the one before in the other direction."""
        if not self.has(Feature.CROSS_NIC_IN_PAIRS):
            return trial.cross_nic != 0 and self.has(Feature.CHANNELS_PAIRED)
        return trial.pattern == RING and trial.cross_nic == 2
