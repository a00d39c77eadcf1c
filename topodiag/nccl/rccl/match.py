"""Which set of rings RCCL takes for a machine: a chord of eight, an all-to-all of eight, a known machine, four hives.

After parseChordalRing, parseA2a8P, parseRome4P2H, parse1H16P and parse4H4P (src/graph/rome_models.cc, RCCL 2.21.5), in
their order. RCCL walks all renumberings in one order and takes the first that fits; here beginnings that cannot fit are
not walked to their end, which changes no result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import permutations, product

from topodiag.lazy import dataclass
from topodiag.model.nccl_versions import path_types
from topodiag.nccl.graph.bandwidths import ROME_CORNER, is_rome
from topodiag.nccl.graph.graph import System
from topodiag.nccl.rccl.models import Layout, RomeModel, all_to_all, layout_of, rome_models
from topodiag.words.own_data import own_data

CHORDAL_GPUS = 8
CHORDAL_RINGS = tuple(own_data("nccl/rccl/rome_models")["chordal"])
"""The rings of eight GPUs of which each has a link to all others but one."""
HIVES = 4
_HIVE_MODEL = 32
"""The set whose rings four hives of four take (parse4H4P)."""


@dataclass(frozen=True)
class Match:
    """What decides: `decided_by` as RCCL's source groups it, the set, and the GPU that stands for each of its numbers
    (device numbers)."""

    decided_by: str
    rings: tuple[str, ...]
    gpus: tuple[int, ...]
    model: RomeModel | None = None
    rome: bool = False
    """Whether it counts as a Rome system (RCCL_TOPO_4P2H_ROME)."""
    chord: bool = False


def match(system: System) -> Match | None:
    """The set of rings that RCCL takes, None where it searches."""
    layout = layout_of(system)
    result = _chordal(system, layout)
    if result is not None or not system.cpus:
        return result
    results = (way(system, layout) for way in (_in_nodes, _rome, _four_hives))
    return next((result for result in results if result is not None), None)


def counts_as_rome(system: System) -> bool:
    """Whether RCCL takes it for a Rome system though no set fits (parseRome4P2H)."""
    return 4 < len(system.gpus) <= 8 and layout_of(system).most_links > 0


def _chordal(system: System, layout: Layout) -> Match | None:
    if layout.gpus != CHORDAL_GPUS:
        return None
    far = []
    for dev, row in enumerate(layout.links):
        peers = [peer for peer, count in enumerate(row) if count and peer != dev]
        left = sum(range(CHORDAL_GPUS)) - dev - sum(peers)
        if len(peers) != CHORDAL_GPUS - 2 or not 0 <= left < CHORDAL_GPUS:
            return None
        far.append(left)
    names = list(range(CHORDAL_GPUS))
    for place in range(CHORDAL_GPUS):
        wanted = CHORDAL_GPUS - 1 - place
        if far[place] == wanted:
            continue
        other = next((at for at in range(place + 1, CHORDAL_GPUS) if far[at] == wanted), None)
        if other is None:
            return None
        # as RCCL has it: the places are those of the far ends, not of the GPUs themselves
        m, n = far[place], wanted
        far[place], far[other] = n, m
        names[m], names[n] = names[n], names[m]
        far[m], far[n] = far[n], far[m]
    return Match("chordal", CHORDAL_RINGS, tuple(names), chord=True)


def _same_counts(layout: Layout, model: Layout) -> bool:
    return (layout.gpus, layout.nics, layout.most_links) == (model.gpus, model.nics, model.most_links)


def _in_nodes(system: System, layout: Layout) -> Match | None:
    """Two NUMA nodes of four GPUs that all have links to all (parseA2a8P), or four nodes of them (parse1H16P)."""
    width = all_to_all(layout) if layout.gpus == CHORDAL_GPUS and layout.cpus == 2 else 0
    if not width and not (layout.gpus == 16 and layout.cpus == 4 and is_rome(system.cpus[0])):
        return None
    for model in rome_models():
        if layout.cpus != model.cpus or not _same_counts(layout, model) or layout.pattern != model.pattern:
            continue
        if width and all_to_all(model) != width:
            continue
        for gpus in _by_numa(layout, model, layout.cpus):
            if _nets_fit(layout, model, gpus, numa=True):
                return Match("rome", model.rings, gpus, model, rome=bool(width))
    return None


def _by_numa(layout: Layout, model: Layout, nodes: int) -> Iterator[tuple[int, ...]]:
    """Renumberings within NUMA nodes of four GPUs under which the links are the model's, in RCCL's order."""
    blocks = []
    for node in range(nodes):
        mine = sorted(gpu for gpu, numa in enumerate(layout.numa) if numa == node)
        if len(mine) != 4 or model.numa.count(node) != 4:
            return
        blocks.append([p for p in permutations(mine) if _links_fit(layout, model, p, node * 4)])
    for chosen in product(*blocks):
        gpus = tuple(gpu for block in chosen for gpu in block)
        if _links_fit(layout, model, gpus, 0):
            yield gpus


def _links_fit(layout: Layout, model: Layout, gpus: Sequence[int], start: int) -> bool:
    """Whether GPUs that stand for the model's from `start` on have its links among each other."""
    return all(
        model.links[start + one][start + other] == layout.links[a][b]
        for one, a in enumerate(gpus)
        for other, b in enumerate(gpus)
    )


def _rome(system: System, layout: Layout) -> Match | None:
    if layout.gpus > 8:
        return None
    rome_cpu = is_rome(system.cpus[0])
    per_gpu = layout.nics // layout.gpus if layout.nics % layout.gpus == 0 else 0
    direct = all(min(gpu.paths["CPU"][cpu.index].count for cpu in system.cpus) <= 2 for gpu in system.gpus)
    for model in rome_models():
        any_cpu, any_numa = model.asks("noCpuCheck"), model.asks("disableNumaMatching")
        if not any_cpu and not rome_cpu:
            continue
        if not any_numa and (layout.cpus != model.cpus or layout.pattern != model.pattern):
            continue
        if not _same_counts(layout, model):
            continue
        gpus = _first_numbering(layout, model, numa=not any_numa, nbio=direct and not any_cpu)
        if gpus is None:
            continue
        if per_gpu > 1:
            if not _nets_in_turn(layout, model, gpus, numa=not any_numa):
                return None
        elif not _nets_fit(layout, model, gpus, numa=not any_numa):
            continue
        return Match("rome", model.rings, gpus, model, rome=layout.gpus > 4 and layout.most_links > 0)
    return None


def _first_numbering(layout: Layout, model: Layout, *, numa: bool, nbio: bool) -> tuple[int, ...] | None:
    """The first renumbering of GPUs that fits, in the order of RCCL's swaps (permuteGpuIds)."""
    count = layout.gpus
    order = [(gpu + 2) % count for gpu in range(count)]

    def fits(place: int) -> bool:
        mine = order[place]
        if numa and model.numa[place] != layout.numa[mine]:
            return False
        for other in range(place + 1):
            theirs = order[other]
            if model.links[place][other] != layout.links[mine][theirs]:
                return False
            if model.links[other][place] != layout.links[theirs][mine]:
                return False
            if (model.bus[place] - model.bus[other]) * (layout.bus[mine] - layout.bus[theirs]) < 0:
                return False
            if nbio and other != place:
                asked = model.bus[place] & ROME_CORNER == model.bus[other] & ROME_CORNER
                if asked != (layout.bus[mine] & ROME_CORNER == layout.bus[theirs] & ROME_CORNER):
                    return False
        return True

    return tuple(order) if _swapped(order, 0, fits) else None


def _swapped(order: list[int], place: int, fits: Callable[[int], bool]) -> bool:
    if place == len(order):
        return True
    for other in range(place, len(order)):
        order[place], order[other] = order[other], order[place]
        if fits(place) and _swapped(order, place + 1, fits):
            return True
        order[place], order[other] = order[other], order[place]
    return False


def _nets_fit(layout: Layout, model: Layout, gpus: Sequence[int], *, numa: bool) -> bool:
    """Whether the NICs can be renumbered to the model's (permuteNetIds); one alone is not compared."""
    if layout.nics < 2:
        return True
    order = [(nic + 2) % layout.nics for nic in range(layout.nics)]
    return _swapped(order, 0, lambda place: _net_fits(layout, model, gpus, place, order[place], numa=numa))


def _net_fits(layout: Layout, model: Layout, gpus: Sequence[int], theirs: int, mine: int, *, numa: bool) -> bool:
    if numa and model.nic_numa[theirs] != layout.nic_numa[mine]:
        return False
    return all(
        layout.distance[mine][gpu] in ("PXN", asked) for asked, gpu in zip(model.distance[theirs], gpus, strict=True)
    )


def _nets_in_turn(layout: Layout, model: Layout, gpus: Sequence[int], *, numa: bool) -> bool:
    """With several NICs a GPU each of the model's takes the first that fits. The GPUs count by their own numbers."""
    left = list(range(layout.nics))
    own = range(len(gpus))
    for theirs in range(layout.nics):
        mine = next((nic for nic in left if _net_fits(layout, model, own, theirs, nic, numa=numa)), None)
        if mine is None:
            return False
        left.remove(mine)
    return True


def _four_hives(system: System, layout: Layout) -> Match | None:
    if layout.gpus != HIVES * 4 or layout.nics != HIVES * 4 or not is_rome(system.cpus[0]):
        return None
    hives: list[list[int]] = []
    for gpu in range(layout.gpus):
        mine = next((hive for hive in hives if layout.links[gpu][hive[0]]), None)
        if mine is not None:
            mine.append(gpu)
        elif len(hives) < HIVES:
            hives.append([gpu])
        else:
            return None
    if [len(hive) for hive in hives] != [4] * HIVES:
        return None
    gpus = tuple(gpu for hive in hives for gpu in hive)
    near = path_types(system.minor).names[path_types(system.minor).pix]
    if not all(near in distances for distances in layout.distance):
        return None
    return Match("4p4h", rome_models()[_HIVE_MODEL].rings, gpus, rome_models()[_HIVE_MODEL], rome=True)
