"""Paths from every vertex to every CPU, GPU, NIC and NVSwitch, before NCCL corrects them for P2P, PXN and GPUDirect.

After ncclTopoSetPaths (src/graph/paths.cc): a breadth-first search from each base over the links, in which a path is
replaced by a wider one of up to as many hops; with GPU_DEVICES by one of a lower type, then a wider, then a shorter.
"""

from __future__ import annotations

from collections.abc import Mapping

from topodiag.model.nccl_enums import VERTEX_KINDS
from topodiag.model.nccl_versions import Feature, PathTypes, path_types
from topodiag.nccl.graph.graph import KINDS, Link, Path, RejectedError, System, Vertex
from topodiag.nccl.settings import Settings

BASE_BW = 5000.0
_NUMBERS = {kind: number for number, kind in enumerate(VERTEX_KINDS)}
_BASES = ("CPU", "GPU", "NET", "NVS")
_DEVICE_BASES = ("CPU", "DEV", "GPU", "NET", "GIN", "RMA", "NVS")


def set_paths(system: System, settings: Settings) -> None:
    """Fills the paths of all vertices anew. Raises RejectedError where a way has no way back."""
    for vertex in system:
        vertex.paths = {}
    reverse: dict[tuple[Vertex, Vertex, int], Link] = {}
    typed, devices = system.has(Feature.LINK_BACK_BY_TYPE), system.has(Feature.GPU_DEVICES)
    for vertex in system:
        for link in vertex.links:
            reverse.setdefault((vertex, link.remote, link.type if typed else 0), link)
    search = _set_device_paths if devices else _set_paths
    for kind in _DEVICE_BASES if devices else _BASES:
        first: dict[int, int] = {}
        for base in system.nodes[kind]:
            # with two of one id NCCL finds the slot of the first
            search(system, base, first.setdefault(base.id, base.index), settings, reverse)


def path_table(system: System) -> Mapping[str, Mapping[str, tuple[int, float, str]]]:
    """From every GPU and NET to all that has a path table, as NCCL_DEBUG_SUBSYS=GRAPH prints it: hops, GB/s, type."""
    names = path_types(system.minor).names
    table: dict[str, dict[str, tuple[int, float, str]]] = {}
    for vertex in system.gpus + system.nets:
        ways = table[vertex.label] = {}
        for kind in KINDS:
            for other, path in zip(system.nodes[kind], vertex.paths.get(kind, ()), strict=False):
                ways.setdefault(other.label, (path.count, round(path.bw, 1), names[path.type]))
    return table


def _blank(system: System, kind: str, own: bool) -> list[Path]:
    """No paths yet."""
    dis = path_types(system.minor).dis
    if not system.has(Feature.OWN_PATHS_START_APART if own else Feature.PATHS_START_APART):
        dis = 0
    return [Path([], 0, 0.0, dis) for _ in system.nodes[kind]]


def _start(system: System, base: Vertex, slot: int) -> None:
    if base.kind not in base.paths:
        base.paths[base.kind] = _blank(system, base.kind, True)
    own = base.paths[base.kind][slot]
    # the slot may be taken already: by a base of the same id
    own.links, own.count, own.bw, own.type = [], 0, BASE_BW, path_types(system.minor).loc


def _no_way_back(system: System, path: Path, ends: tuple[Vertex, Vertex]) -> Link:
    """What stands for the link from the far end back where there is none: an older path's first link, as NCCL leaves it
    in place. Raises RejectedError where there is no older path."""
    node, remote = ends
    if path.links:
        return path.links[0]
    # a GPU's link to itself, of which nothing else comes
    links = len(remote.links) + (remote.kind == "GPU" and not system.has(Feature.NO_LINK_TO_ITSELF))
    raise RejectedError(
        f"Failed to find reverse path from remNode {_NUMBERS[remote.kind]}/{remote.id:x} nlinks {links} "
        f"to node {_NUMBERS[node.kind]}/{node.id:x}",
        system.lines.get(remote, 0),
    )


def _link_type(link: Link, node: Vertex, types: PathTypes) -> int:
    """The type that a path gets by one more link."""
    remote = link.remote
    if link.type == types.net:
        return types.loc
    if node.kind == "PCI" and remote.kind == "PCI":
        return types.pxb
    if link.type == types.pix and (node.kind == "CPU" or remote.kind == "CPU"):
        return types.phb
    return link.type


# Complexity 23: as the one below, one step of the search in local names.
def _set_paths(
    system: System,
    base: Vertex,
    slot: int,
    settings: Settings,
    reverse: dict[tuple[Vertex, Vertex, int], Link],
) -> None:
    types = path_types(system.minor)
    nvl = types.nvl
    kind = base.kind
    rccl = system.rccl  # RCCL goes through no GPU, and a second hop over xGMI is no type of its own
    typed = system.has(Feature.LINK_BACK_BY_TYPE)
    _start(system, base, slot)
    frontier = [base]
    while frontier:
        following: dict[Vertex, None] = {}
        for node in frontier:
            path = node.paths[kind][slot]
            through_gpu = node is not base and node.kind == "GPU"
            for link in node.links:
                remote = link.remote
                table = remote.paths.get(kind)
                if table is None:
                    table = remote.paths[kind] = _blank(system, kind, False)
                if through_gpu and (settings.nvb_disable or link.type != nvl or remote.kind != "GPU" or path.count > 1):
                    continue
                far = table[slot]
                far_bw, bw = far.bw, min(path.bw, link.bw)
                if far_bw >= bw or (far_bw != 0 and far.count <= path.count):
                    continue
                back = reverse.get((remote, node, link.type if typed else 0))
                if back is None:
                    back = _no_way_back(system, far, (node, remote))
                new_type = _link_type(link, node, types)
                far.links = [back, *path.links]
                far.count = path.count + 1
                far.bw = bw
                if node.kind == "GPU" and path.type == nvl and new_type == nvl and far.count > 1 and not rccl:
                    new_type = types.nvb
                far.type = max(path.type, new_type)
                if not rccl or remote.kind != "GPU":
                    following[remote] = None
        frontier = list(following)


# Complexity 25: one step of the search, bound to local names and not called, for it is taken for every link and base.
def _set_device_paths(
    system: System,
    base: Vertex,
    slot: int,
    settings: Settings,
    reverse: dict[tuple[Vertex, Vertex, int], Link],
) -> None:
    types = path_types(system.minor)
    loc, nvl = types.loc, types.nvl
    kind = base.kind
    longest = 2 if kind == "GPU" else 1
    own_device = base.parent if kind == "GPU" else base
    _start(system, base, slot)
    frontier = [base]
    while frontier:
        following: dict[Vertex, None] = {}
        for node in frontier:
            path = node.paths[kind][slot]
            through_device = node is not own_device and node.kind == "DEV"
            for link in node.links:
                remote = link.remote
                table = remote.paths.get(kind)
                if table is None:
                    table = remote.paths[kind] = _blank(system, kind, False)
                if (
                    through_device
                    and (link.type != loc or remote.kind != "GPU")
                    and (settings.nvb_disable or link.type != nvl or remote.kind != "DEV" or path.count > longest)
                ):
                    continue
                far = table[slot]
                bw = min(path.bw, link.bw)
                new_type = _link_type(link, node, types)
                if node.kind == "DEV" and path.type == nvl and new_type == nvl and path.count == longest:
                    new_type = types.nvb
                new_type = max(path.type, new_type)
                if new_type > far.type:
                    continue
                if new_type == far.type and (bw < far.bw or (bw == far.bw and far.count <= path.count + 1)):
                    continue
                # GPU_DEVICES are later than LINK_BACK_BY_TYPE
                back = reverse.get((remote, node, link.type)) or _no_way_back(system, far, (node, remote))
                far.links = [back, *path.links]
                far.count = path.count + 1
                far.bw = bw
                far.type = new_type
                following[remote] = None
        frontier = list(following)
