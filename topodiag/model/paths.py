"""Paths over a node's links by NCCL's definitions: type, vertices, narrowest bandwidth.

The rules are those of NCCL v2.30 (src/graph/paths.cc): a path's type is the worst of its hops; a hop between two
PCI switches makes it PXB, a hop between PCI and a CPU makes it PHB; a second NVLink hop through a GPU makes it NVB;
of two paths the one of better type is taken, then the wider, then the shorter. GPUs and NICs are not passed through,
except one GPU over NVLink.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from topodiag.model.links import Link, LinkKind, Path
from topodiag.model.nccl_enums import PathType

LOC_GBS = 5000.0
"""Bandwidth that NCCL gives a device to itself, GB/s (LOC_BW, src/graph/topo.h v2.30)."""


def vertex_class(vertex: str) -> str:
    """`gpu`, `pci`, `cpu`, `nvs`, `nic` of `gpu:0` and so on."""
    return vertex.partition(":")[0]


_TYPES = {
    LinkKind.NVLINK: PathType.NVL, LinkKind.C2C: PathType.C2C, LinkKind.SMP: PathType.SYS,
    LinkKind.NETWORK: PathType.LOC,
}  # fmt: skip
"""What a hop makes a path, whatever it joins."""


def hop_type(a: str, b: str, kind: LinkKind) -> PathType:
    """The type that one hop gives a path."""
    if kind in _TYPES:
        return _TYPES[kind]
    classes = {vertex_class(a), vertex_class(b)}
    if "cpu" in classes:
        return PathType.PHB
    return PathType.PXB if classes == {"pci"} else PathType.PIX


Way = tuple[str, str, LinkKind, float | None, float | None]
"""What of a link makes paths: both ends, kind, intended and negotiated GB/s."""
Edges = dict[str, list[Way]]
"""The ways by the vertex that they leave."""


def way_of(link: Link) -> Way:
    return link.a, link.b, link.kind, link.intended_gbs.value, link.negotiated_gbs.value


def edges_of_ways(ways: Iterable[Way]) -> Edges:
    """Both directions of every way, by the vertex they leave."""
    edges: Edges = defaultdict(list)
    for way in ways:
        edges[way[0]].append(way)
        edges[way[1]].append((way[1], way[0], *way[2:]))
    return edges


def narrowest(one: float | None, other: float | None) -> float | None:
    """The lesser of two bandwidths; unknown when either is."""
    return None if one is None or other is None else min(one, other)


def _may_pass(vertex: str, came_by: LinkKind | None, go_by: LinkKind) -> bool:
    """Whether a path may go on through this vertex."""
    name = vertex_class(vertex)
    return name != "nic" and (name != "gpu" or came_by is go_by is LinkKind.NVLINK)


def paths_from(start: str, edges: Edges) -> dict[str, Path]:
    """The best path from one vertex to every other it can reach."""
    here = Path(PathType.LOC, (start,), LOC_GBS, LOC_GBS)
    best: dict[str, Path] = {}
    # (type, -width, hops) orders candidates as NCCL 2.30 prefers them; the counter keeps the heap stable.
    serial = 0
    heap: list[tuple[int, float, int, int, LinkKind | None, Path]] = [(0, -LOC_GBS, 0, 0, None, here)]
    while heap:
        _, _, hops, _, came_by, path = heapq.heappop(heap)
        vertex = path.vertices[-1]
        if vertex in best:
            continue
        best[vertex] = path
        for _, to, go_by, intended, negotiated in edges.get(vertex, ()):
            if to in best or (vertex != start and not _may_pass(vertex, came_by, go_by)):
                continue
            vertices = (*path.vertices, to)
            passed = sum(vertex_class(between) == "gpu" for between in vertices[1:-1])
            if passed > 1:
                continue
            kind = PathType(max(path.type, hop_type(vertex, to, go_by)))
            if kind is PathType.NVL and passed == 1:
                kind = PathType.NVB
            rates = narrowest(path.intended_gbs, intended), narrowest(path.negotiated_gbs, negotiated)
            longer = Path(kind, vertices, *rates)
            serial += 1
            heapq.heappush(heap, (kind, -_width(longer), hops + 1, serial, go_by, longer))
    return best


def concatenated(first: Path, second: Path, kind: PathType) -> Path:
    """Two paths end to end, as one of the given type."""
    intended = narrowest(first.intended_gbs, second.intended_gbs)
    negotiated = narrowest(first.negotiated_gbs, second.negotiated_gbs)
    return Path(kind, first.vertices + second.vertices[1:], intended, negotiated)


Table = dict[str, dict[str, Path]]
"""Paths from each GPU to every vertex."""


def nic_paths(gpus: Mapping[str, int], nics: Sequence[str], table: Table) -> dict[tuple[str, str], Path]:
    """The way from every GPU to every NIC with NCCL's detours: P2C over a coherent CPU link, PXN through a peer.

    `gpus` are the GPUs' vertices in order with their NVML indices, `nics` the vertices of the NICs that NCCL would use.
    PXN goes through the one GPU that NCCL calls local to the NIC, if that is one NVLink away from us and has the NIC
    within P2C, and if it is wider than our own way or our own way crosses a CPU (src/graph/paths.cc,
    ncclTopoComputePaths; src/graph/topo.cc, ncclTopoGetLocalGpu; v2.28 and later).
    """
    direct: dict[tuple[str, str], Path] = {}
    for gpu in gpus:
        for nic in nics:
            path = table[gpu].get(nic)
            if path is not None:
                over_c2c = path.type is PathType.PHB and _over_c2c(path, table[gpu])
                direct[gpu, nic] = replace(path, type=PathType.P2C) if over_c2c else path
    paths = dict(direct)
    for nic in nics:
        peer = local_gpu(nic, gpus, nics, direct)
        last = direct.get((peer, nic)) if peer is not None else None
        if peer is None or last is None or last.type > PathType.P2C:
            continue
        for gpu in gpus:
            own, near = direct.get((gpu, nic)), table[gpu].get(peer)
            if gpu == peer or near is None or near.type > PathType.NVL:
                continue
            if own is None or own.type > PathType.PXN or _width(last) > _width(own):
                paths[gpu, nic] = concatenated(near, last, PathType.PXN)
    return paths


def local_gpu(
    nic: str, gpus: Mapping[str, int], nics: Sequence[str], paths: Mapping[tuple[str, str], Path]
) -> str | None:
    """The GPU whose NIC this is: the first whose own choice, channel by channel, falls on it."""
    near = _best({gpu: paths[gpu, nic] for gpu in gpus if (gpu, nic) in paths})
    for channel in range(max(len(nics), 1)):
        for gpu in near:
            own = _best({nic: paths[gpu, nic] for nic in nics if (gpu, nic) in paths})
            sharers = _best({gpu: paths[gpu, own[0]] for gpu in gpus if (gpu, own[0]) in paths})
            per_gpu = -(-len(own) // len(sharers))
            if own[(mirrored(gpus[gpu], len(own)) + channel % per_gpu) % len(own)] == nic:
                return gpu
    return None


def mirrored(device: int, count: int) -> int:
    """Where among equally near NICs a GPU begins: its index bit-reversed, where their number is a power of two
    (mirrorBits, src/graph/topo.h)."""
    if count & (count - 1):
        return device
    bits = count.bit_length() - 1
    return sum(((device >> bit) & 1) << (bits - 1 - bit) for bit in range(bits))


def _best(paths: Mapping[str, Path]) -> list[str]:
    """The ends that are reached widest, and among those by the best type, in order (ncclTopoGetLocal)."""
    merit = {end: (-_width(path), path.type) for end, path in paths.items()}
    top = min(merit.values(), default=None)
    return [end for end, pair in merit.items() if pair == top]


def _width(path: Path) -> float:
    return path.negotiated_gbs if path.negotiated_gbs is not None else 0.0


def _over_c2c(path: Path, mine: dict[str, Path]) -> bool:
    """Whether a path leaves its GPU over the coherent link to a CPU, and not over PCIe."""
    first = path.vertices[1] if len(path.vertices) > 1 else ""
    return vertex_class(first) == "cpu" and first in mine and mine[first].type is PathType.C2C
