"""Room on links as one integer: every path that a search may take, compiled to one subtraction and one test.

NCCL's search walks a path link by link, takes bandwidth off each and puts it back. Here every link has a field in one
long integer, holding its free bandwidth in thousandths of GB/s below a guard bit that is set. What a path takes is such
an integer too, so following it is one subtraction: it had room everywhere exactly if all guard bits are still set.
Nothing needs to be undone, and equal integers are equal states.

NCCL rounds to thousandths after each step (SUB_ROUND in src/graph/search.cc); below 2000 GB/s its single precision and
whole thousandths give the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field
from functools import cache, partial
from math import ceil, floor

from topodiag.lazy import dataclass
from topodiag.model.nccl_versions import Feature, path_types
from topodiag.nccl.graph.bandwidths import INTEL, POWER, X86
from topodiag.nccl.graph.graph import Link, Path, RejectedError, System, Vertex
from topodiag.nccl.numbers import single

_PLAIN, _PCI, _PLAIN_EIGHTH, _PCI_EIGHTH = range(4)
"""What a path takes of a link: its bandwidth, on PCI perhaps 6/5 of it, or an eighth of either on the way back."""
_LEAST_BITS = 26
_SMALL_BITS = 8
_MOST = (1 << 40) - 1
"""No link has more than 10^9 GB/s, whatever a file says."""

Step = tuple[int, int]
"""What a path takes from the links, as an integer of fields, and its hops."""

Steps = list[list[Step | None]]
"""Of the ways from each of some vertices to each of others; None where an attempt may not or cannot go."""


@dataclass(slots=True)
class Route:
    """A compiled path: types there and back, hops, and where its amounts go. `uses` are the four kinds' fields."""

    type: int
    back: int
    hops: int
    uses: tuple[int, int, int, int]
    steps: dict[float, Step] = field(default_factory=dict)

    def step(self, bandwidth: float) -> Step:
        """What following it with a bandwidth in GB/s takes."""
        known = self.steps.get(bandwidth)
        if known is None:
            known = self.steps[bandwidth] = (self._used_bandwidth(amounts(bandwidth)), self.hops)
        return known

    def share(self, bandwidth: float) -> tuple[int, int]:
        """For a bandwidth that is no thousandth: what must be free, and what is then taken."""
        exact = single(bandwidth)
        pci = single(single(exact * 6) / 5)
        values = (exact, pci, exact / 8, pci / 8)
        need = tuple(ceil(value * 1000 - _EXACT) for value in values)
        take = tuple(floor(value * 1000 + 0.5) for value in values)
        return self._used_bandwidth(need), self._used_bandwidth(take)

    def _used_bandwidth(self, values: Iterable[int]) -> int:
        return sum(use * value for use, value in zip(self.uses, values, strict=True) if use)


_EXACT = 1e-2
"""Single precision keeps amounts to better than this many thousandths: below it a value is a whole one."""


def amounts(bandwidth: float) -> tuple[int, int, int, int]:
    """Thousandths of GB/s of the four kinds of use of a speed, its half or its double (INTEL_P2P_OVERHEAD)."""
    exact = single(bandwidth)
    pci = single(single(exact * 6) / 5)
    return round(exact * 1000), round(pci * 1000), round(exact * 125), round(pci * 125)


def _reverse(system: System, start: Vertex, link: Link) -> Link:
    """findRevLink: the first link back."""
    typed = system.has(Feature.LINK_BACK_BY_TYPE)
    for back in link.remote.links:
        if back.remote is start and (back.type == link.type or not typed):
            return back
    raise RejectedError(f"Could not find rev link for {start.label} -> {link.remote.label}")


def kinds_of(rows: Sequence[Sequence[Route | None]]) -> list[int]:
    """All types of the ways, there and back."""
    return sorted({kind for row in rows for way in row if way for kind in (way.type, way.back)})


def _furthest(kinds: Sequence[int], limit: int) -> int:
    return max((kind for kind in kinds if kind <= limit), default=-1)


class Roads:
    """All ways of a system, compiled; `start` is the state with all links free, `guard` its guard bits.

    `gpu_gpu[a][b]`, `net_gpu[n][g]`, `gpu_net[g][n]`, `nvs_gpu[g]`, `gpu_nvs[g]`: None where NCCL has no table.
    The lowest `zone` bits of a state are 0: room for a GPU set and three numbers of `small` bits, so that a state and
    a place in the search make one key. `room` is the free bandwidth of every NET in whole GB/s; the search changes it
    in place and puts it back.
    """

    def __init__(self, system: System) -> None:
        self.system = system
        self._fields: dict[int, tuple[int, Link]] = {}
        gpus, nets = system.gpus, system.nets
        self._device = "DEV" if system.has(Feature.GPU_DEVICES) else "GPU"
        self.pci = [self._pci_fields(self.body(gpu)) for gpu in gpus]
        plans = {
            "gpu_gpu": [[self._plan(a, b) for b in gpus] for a in gpus],
            "net_gpu": [[self._plan(n, g) for g in gpus] for n in nets],
            "gpu_net": [[self._plan(g, n) for n in nets] for g in gpus],
            "nvs_gpu": [[self._plan(v, g) for g in gpus] for v in system.nvs[:1]],
            "gpu_nvs": [[self._plan(g, v) for v in system.nvs[:1]] for g in gpus],
        }
        self.small = max(_SMALL_BITS, max(len(gpus), len(nets)).bit_length() + 1)
        self.zone = len(gpus) + 3 * self.small
        self._lay_out()
        ways = {name: [[self._compiled(plan) for plan in row] for row in rows] for name, rows in plans.items()}
        self.gpu_gpu = ways["gpu_gpu"]
        self.net_gpu = ways["net_gpu"]
        self.gpu_net = ways["gpu_net"]
        self.nvs_gpu = ways["nvs_gpu"][0] if system.nvs else []
        self.gpu_nvs = [row[0] for row in ways["gpu_nvs"]] if system.nvs else []
        self.room = [floor(min(net.bw, _MOST)) for net in nets]
        self.kind_within = cache(partial(_furthest, kinds_of([*self.gpu_gpu, *self.net_gpu, *self.gpu_net])))
        """The furthest type of any way that is no further than a limit, -1 for none: limits with the same one allow the
        same ways."""
        self.tables: dict[tuple[int, float, int, bool], Steps] = {}
        """What attempts with equal speeds and types share (trial.Tables)."""

    def _lay_out(self) -> None:
        """Gives each link that a path uses its field, and fills in what is free there."""
        free = [min(round(link.bw * 1000), _MOST) for _, link in self._fields.values()]
        self.bits = max(_LEAST_BITS, max(free, default=0).bit_length() + 1)
        self.mask = (1 << self.bits - 1) - 1
        guard = 1 << self.bits - 1
        self.start = self.guard = 0
        for index, value in enumerate(free):
            self.start |= (guard | max(0, value)) << self._shift(index)
            self.guard |= guard << self._shift(index)
        self.low = (1 << self._shift(sum(2 for pair in self.pci if pair))) - 1

    def body(self, gpu: Vertex) -> Vertex:
        """What holds a GPU's links: itself, or its DEV where there is one."""
        return gpu.parent if self._device == "DEV" and gpu.parent is not None else gpu

    def _shift(self, index: int) -> int:
        """Where a field starts."""
        return self.zone + index * self.bits

    def fields(self) -> Iterator[tuple[Link, int]]:
        """Every link that a path uses, and the bits of its free bandwidth."""
        for index, link in self._fields.values():
            yield link, self.mask << self._shift(index)

    def _index(self, link: Link) -> int:
        return self._fields.setdefault(id(link), (len(self._fields), link))[0]

    def _pci_fields(self, gpu: Vertex) -> tuple[int, int] | None:
        """The fields of a GPU's first PCI link with a way back, both directions (gpuPciBw); they come first."""
        for link in gpu.links:
            if link.type == path_types(self.system.minor).pix:
                for back in link.remote.links:
                    if back.remote is gpu:
                        return self._index(link), self._index(back)
        return None

    def free_pci(self, state: int, gpu: int) -> int:
        """Whole GB/s free on a GPU's PCI link, the lesser of both directions; -1 where there is none."""
        pair = self.pci[gpu]
        if pair is None:
            return -1
        return min(state >> self._shift(index) & self.mask for index in pair) // 1000

    def _plan(self, start: Vertex, end: Vertex) -> tuple[Path, int, list[tuple[int, int]]] | None:
        """A path, the type of the way back, and the links it uses with the kind of use."""
        table = start.paths.get(end.kind)
        if table is None or end.index >= len(table):
            return None
        path = table[end.index]
        back = end.paths.get(start.kind)
        system = self.system
        types = path_types(system.minor)
        if path.type >= types.dis:
            return path, types.dis, []
        detour = (
            path.type == types.phb
            and start.kind == "GPU"
            and any(
                link.remote.kind == "CPU" and link.remote.arch == X86 and link.remote.vendor == INTEL
                for link in path.links
            )
        )
        any_cpu = not system.has(Feature.CPU_LINK_BACK_ON_POWER)
        uses = []
        here = start
        for link in path.links:
            remote = link.remote
            kind = _PCI if detour and link.type == types.pix else _PLAIN
            uses.append((self._index(link), kind))
            if remote.kind == self._device and remote.sm < 80 and start.kind != "GPU":
                uses.append((self._index(_reverse(system, here, link)), kind + _PLAIN_EIGHTH))
            if remote.kind == "CPU" and link.type == types.nvl and (remote.arch == POWER or any_cpu):
                uses.append((self._index(_reverse(system, here, link)), kind))
            here = remote
        return path, back[start.index].type if back else types.dis, uses

    def _compiled(self, plan: tuple[Path, int, list[tuple[int, int]]] | None) -> Route | None:
        if plan is None:
            return None
        path, back, uses = plan
        fields = [0, 0, 0, 0]
        for index, kind in uses:
            fields[kind] += 1 << self._shift(index)
        return Route(path.type, back, path.count, (fields[0], fields[1], fields[2], fields[3]))
