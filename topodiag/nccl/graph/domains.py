"""The system of a communicator as one of its ranks sees it: from host trees, cut to its domain, with final paths.

After initTransportsRank (src/init.cc), ncclTopoTrimSystem (src/graph/paths.cc) and ncclTopoSearchInit
(src/graph/search.cc): paths are computed once over all GPUs of the host, GPUs that only the network reaches are taken
out, and paths are computed again.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from topodiag.model.nccl_versions import Feature, path_types
from topodiag.nccl.graph.attach import HostTree, joined_tree
from topodiag.nccl.graph.bandwidths import LOC_BW
from topodiag.nccl.graph.graph import RejectedError, System, Vertex
from topodiag.nccl.graph.nearest import local_nets
from topodiag.nccl.graph.reach import compute_paths, gdr_possible
from topodiag.nccl.graph.system import build_graph
from topodiag.nccl.graph.xgmi import all_by_xgmi
from topodiag.nccl.numbers import single
from topodiag.nccl.settings import Settings


def build_system(hosts: Sequence[HostTree], *, minor: int, settings: Settings, nranks: int, me: int) -> System:
    """The system of rank `me` under NCCL 2.`minor`. Several hosts form one NVLink domain (an MNNVL clique).

    `nranks` is the size of the communicator, which may have ranks on hosts that are not given.
    Raises RejectedError with NCCL's words, and the line of the file where one is to blame.
    """
    system = build_graph(joined_tree(hosts, minor, settings.values), minor=minor, nranks=nranks)
    if not system.gpus:
        raise RejectedError("no GPU of the communicator in the topology")
    compute_paths(system, settings)
    if _trim(system, me, settings):
        compute_paths(system, settings)
    _set_bandwidths(system)
    return system


def domains(system: System) -> list[int]:
    """For every GPU the least index of a GPU in its domain: those that reach each other without the network.

    Meant for a system before it is cut; afterwards all are of one domain.
    """
    net = path_types(system.minor).net
    numbers: list[int] = []
    for gpu in system.gpus:
        paths = gpu.paths["GPU"]
        numbers.append(min([gpu.index, *(numbers[other] for other in range(gpu.index) if paths[other].type < net)]))
    return numbers


def _trim(system: System, me: int, settings: Settings) -> bool:
    """Takes out the GPUs of other domains, before NETS_KEPT_IN_NODE the NETs of a communicator without network too.

    Whether any went.
    """
    numbers = domains(system)
    mine = next((numbers[gpu.index] for gpu in system.gpus if gpu.rank == me), 0)
    vertexes = {gpu for gpu in system.gpus if numbers[gpu.index] != mine}
    kept = system.has(Feature.NETS_KEPT_IN_NODE)
    if system.rccl:
        pairs = product(system.nets, repeat=2)
        vertexes |= {one for one, other in pairs if one.asic == other.asic and one.bw < other.bw}  # slower ports
        kept = system.gdr_all = _gdr_from_all(system, settings) and not all_by_xgmi(system)
    if not kept and len(system.gpus) - len(vertexes) == system.nranks:
        vertexes |= set(system.nets)
    if vertexes:
        _remove(system, vertexes)
    trimmed = len(system.gpus) != system.nranks
    system.inter = trimmed if kept else bool(system.nets)
    if system.rccl:
        system.inter = trimmed and bool(system.nets)
    return bool(vertexes)


def _gdr_from_all(system: System, settings: Settings) -> bool:
    """Of RCCL: whether every GPU reads and writes over its first NET directly."""
    policy = settings.values.get("NCCL_NETDEVS_POLICY", "")
    if not system.nets:
        return False
    return all(
        gdr_possible(system, gpu, system.nets[local_nets(system, gpu.index, policy)[0]], True, settings)
        for gpu in system.gpus
    )


def _remove(system: System, vertexes: set[Vertex]) -> None:
    for kind in {vertex.kind for vertex in vertexes}:
        system.nodes[kind] = [vertex for vertex in system.nodes[kind] if vertex not in vertexes]
        for index, vertex in enumerate(system.nodes[kind]):
            vertex.index = index
    for vertex in system:
        vertex.links = [link for link in vertex.links if link.remote not in vertexes]


def _set_bandwidths(system: System) -> None:
    """The figures of the line `=== System : maxBw .. totalBw ..`: the best way out and the most that leaves a GPU."""
    types = path_types(system.minor)
    inter = bool(system.nets) if system.rccl else system.inter
    if not inter and len(system.gpus) == 1:
        system.max_bw = LOC_BW
        system.total_bw = LOC_BW if system.has(Feature.ONE_GPU_TOTAL_BW) else 0.0
        return
    kind = "DEV" if system.has(Feature.GPU_DEVICES) else "GPU"
    for vertex in system.nodes[kind]:
        ways = vertex.paths.get("NET" if inter else kind, ())
        system.max_bw = max([system.max_bw, *(path.bw for path in ways if path.count)])
        nvlink = pci = 0.0
        for link in vertex.links:
            if link.type == types.nvl:
                nvlink = single(nvlink + link.bw)
            elif link.type == types.pix:
                pci = link.bw
        system.total_bw = max(system.total_bw, nvlink, pci)
