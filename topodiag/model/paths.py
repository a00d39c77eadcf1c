"""Paths over a node's links by NCCL's definitions: type, vertices, narrowest bandwidth.

The rules are those of NCCL v2.30 (src/graph/paths.cc): a path's type is the worst of its hops; a hop between two
PCI switches makes it PXB, a hop between PCI and a CPU makes it PHB; a second NVLink hop through a GPU makes it NVB;
of two paths the one of better type is taken, then the wider, then the shorter. GPUs and NICs are not passed through,
except one GPU over NVLink.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from topodiag.model.links import Link, LinkKind, Path, PathType

LOC_GBS = 5000.0
"""Bandwidth that NCCL gives a device to itself, GB/s (LOC_BW, src/graph/topo.h v2.30)."""


def vertex_class(vertex: str) -> str:
    """`gpu`, `pci`, `cpu`, `nvs`, `nic` of `gpu:0` and so on."""
    return vertex.partition(":")[0]


def hop_type(a: str, b: str, kind: LinkKind) -> PathType:
    """The type that one hop gives a path."""
    if kind is LinkKind.NVLINK:
        return PathType.NVL
    if kind is LinkKind.C2C:
        return PathType.C2C
    if kind is LinkKind.SMP:
        return PathType.SYS
    if kind is LinkKind.NETWORK:
        return PathType.LOC
    classes = {vertex_class(a), vertex_class(b)}
    if "cpu" in classes:
        return PathType.PHB
    return PathType.PXB if classes == {"pci"} else PathType.PIX


@dataclass(frozen=True, slots=True)
class Edge:
    """One direction of a link."""

    to: str
    kind: LinkKind
    intended: float | None
    negotiated: float | None


Edges = dict[str, list[Edge]]


def edges_of(links: Iterable[Link]) -> Edges:
    """Both directions of every link, by the vertex they leave."""
    edges: Edges = defaultdict(list)
    for link in links:
        wide = (link.intended_gbs.value, link.negotiated_gbs.value)
        edges[link.a].append(Edge(link.b, link.kind, *wide))
        edges[link.b].append(Edge(link.a, link.kind, *wide))
    return edges


def narrowest(one: float | None, other: float | None) -> float | None:
    """The lesser of two bandwidths; unknown when either is."""
    return None if one is None or other is None else min(one, other)


def _may_pass(vertex: str, came_by: LinkKind | None, go_by: LinkKind) -> bool:
    """Whether a path may go on through this vertex."""
    name = vertex_class(vertex)
    if name == "nic":
        return False
    if name == "gpu":
        return came_by is LinkKind.NVLINK and go_by is LinkKind.NVLINK
    return True


def _gpus_passed(vertices: tuple[str, ...]) -> int:
    return sum(vertex_class(vertex) == "gpu" for vertex in vertices[1:-1])


def paths_from(start: str, edges: Edges, *, without: frozenset[LinkKind] = frozenset()) -> dict[str, Path]:
    """The best path from one vertex to every other it can reach; `without` leaves out kinds of link."""
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
        for edge in edges.get(vertex, ()):
            if edge.to in best or edge.kind in without:
                continue
            if vertex != start and not _may_pass(vertex, came_by, edge.kind):
                continue
            vertices = (*path.vertices, edge.to)
            passed = _gpus_passed(vertices)
            if passed > 1:
                continue
            kind = PathType(max(path.type, hop_type(vertex, edge.to, edge.kind)))
            if kind is PathType.NVL and passed == 1:
                kind = PathType.NVB
            longer = Path(
                kind,
                vertices,
                narrowest(path.intended_gbs, edge.intended),
                narrowest(path.negotiated_gbs, edge.negotiated),
            )
            serial += 1
            width = longer.negotiated_gbs if longer.negotiated_gbs is not None else 0.0
            heapq.heappush(heap, (kind, -width, hops + 1, serial, edge.kind, longer))
    return best


def joined(first: Path, second: Path, kind: PathType) -> Path:
    """Two paths end to end, as one of the given type."""
    return Path(
        kind,
        first.vertices + second.vertices[1:],
        narrowest(first.intended_gbs, second.intended_gbs),
        narrowest(first.negotiated_gbs, second.negotiated_gbs),
    )


def nic_path(gpu: str, nic: str, table: dict[str, dict[str, Path]]) -> Path | None:
    """The way from a GPU to a NIC with NCCL's detours: P2C over a coherent CPU link, PXN through an NVLink peer.

    `table` holds `paths_from` of every GPU. PXN is taken when the direct way crosses a CPU and a peer one NVLink away
    has the NIC within PXB (src/graph/paths.cc, ncclTopoComputePaths, v2.30).
    """
    direct = table[gpu].get(nic)
    if direct is not None and direct.type is PathType.PHB and _over_c2c(direct, table[gpu]):
        direct = Path(PathType.P2C, direct.vertices, direct.intended_gbs, direct.negotiated_gbs)
    if direct is not None and direct.type <= PathType.P2C:
        return direct
    for peer, paths in table.items():
        near = table[gpu].get(peer)
        last = paths.get(nic)
        if peer == gpu or near is None or last is None:
            continue
        if near.type is PathType.NVL and last.type <= PathType.PXB:
            return joined(near, last, PathType.PXN)
    return direct


def _over_c2c(path: Path, mine: dict[str, Path]) -> bool:
    """Whether a path leaves its GPU over the coherent link to a CPU, and not over PCIe."""
    first = path.vertices[1] if len(path.vertices) > 1 else ""
    return vertex_class(first) == "cpu" and first in mine and mine[first].type is PathType.C2C
