"""Why a prediction says what it says: from link bandwidths over the speeds tried and channels to the tuning entries.

One term per step, in order, each with the formula or NCCL source that gives it; for `--explain` and for reports.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import fsum

from topodiag.model.nccl_enums import BY_WEIGHT, Graph
from topodiag.model.nccl_versions import path_types
from topodiag.nccl.connect.communicator import Communicator
from topodiag.nccl.connect.fuse import NVLS_ID, RING_ID
from topodiag.nccl.graph.bandwidths import nvlink_bandwidth
from topodiag.nccl.graph.graph import SearchGraph, System, Vertex
from topodiag.nccl.prediction import Term, TuningTable
from topodiag.nccl.search.trial import ladder
from topodiag.nccl.settings import Settings
from topodiag.nccl.tuning.choice import LARGE_BYTES, choose
from topodiag.nccl.tuning.tuning import explain_entry
from topodiag.words.units import in_gbs

_CLOSE = 1e-3
_DOUBLED_FROM = 25.0
"""GB/s of a channel that is worth two; twice that for many channels after Ampere."""


def derive(comm: Communicator, table: TuningTable, settings: Settings) -> tuple[Term, ...]:
    """The terms of a prediction, of the node of rank 0 where nodes differ."""
    first = comm.node(0).domain
    terms = [*_links(first.system), *_system(comm)]
    for graph in first.graphs:
        terms += _search(graph, first.system)
    terms += _agreed(comm)
    terms += _channels(comm)
    for collective in BY_WEIGHT:
        terms += _entry(comm, table, settings, collective.value)
    return tuple(terms)


def _entry(comm: Communicator, table: TuningTable, settings: Settings, collective: str) -> Iterator[Term]:
    """The tuning model's steps for the choice at large sizes, each named by its collective."""
    choice = choose(comm.shape, table, settings, collective, LARGE_BYTES)
    if choice is None:
        yield Term(collective, "none", "no algorithm and protocol is left to run it")
        return
    yield Term(
        collective,
        f"{choice.algorithm} {choice.protocol}, {in_gbs(choice.busbw_gbs)}",
        "fastest for large sizes by NCCL's own model; bus bandwidth as nccl-tests prints it",
    )
    for term in explain_entry(comm.shape, settings, collective, choice.algorithm, choice.protocol):
        yield replace(term, name=f"{collective}: {term.name}")


def _gbs(value: float) -> str:
    return in_gbs(value, exact=True)


def _links(system: System) -> Iterator[Term]:
    """The links of the first GPU, of the first NET, and between CPUs."""
    types, minor = path_types(system.minor), system.minor
    holder = system.nodes["DEV"][0] if system.nodes["DEV"] else system.gpus[0]
    one = nvlink_bandwidth(holder.sm, minor)
    nvlink = fsum(link.bw for link in holder.links if link.type == types.nvl and link.remote.kind != "CPU")
    if nvlink:
        yield Term(
            "NVLink of a GPU",
            _gbs(nvlink),
            f"{nvlink / one:.3g} links x {in_gbs(one)} for compute capability {holder.sm // 10}.{holder.sm % 10}"
            " (src/graph/topo.h)",
        )
    pci = [link for link in holder.links if link.type == types.pix and link.remote.kind != "NVS"]
    if pci:
        yield Term(
            "PCIe of a GPU", _gbs(pci[-1].bw), "lanes x 100 Mb/s per lane / 80 by link_speed (src/graph/topo.cc)"
        )
    if system.nets:
        net = system.nets[0]
        yield Term(f"network of {_label(net)}", _gbs(_speed(net)), "speed in Mb/s / 8000")
    sockets = [link for cpu in system.cpus for link in cpu.links if link.remote.kind == "CPU"]
    if sockets:
        yield Term(
            "between CPUs", _gbs(sockets[0].bw), "by CPU vendor and model (src/graph/topo.cc, ncclTopoGetInterCpuBw)"
        )


def _label(net: Vertex) -> str:
    return f"{net.label} ({net.name})" if net.name else net.label


def _speed(net: Vertex) -> float:
    return next((link.bw for link in net.links), net.bw)


def _system(comm: Communicator) -> Iterator[Term]:
    system = comm.node(0).domain.system
    target = "NET" if system.inter else "GPU"
    yield Term("maxBw", _gbs(system.max_bw), f"best path from a GPU to a {target}")
    yield Term("totalBw", _gbs(system.total_bw), "most that leaves a GPU: the sum of its NVLinks, or its PCIe")


def _search(graph: SearchGraph, system: System) -> Iterator[Term]:
    name = Graph(graph.id).words
    if not graph.channels:
        yield Term(f"{name} channels", "none", "no GPU order found at any speed")
        return
    types = path_types(system.minor)
    yield Term(
        f"{name} channels",
        f"{graph.channels} x {_gbs(graph.bw_intra)} inside, {_gbs(graph.bw_inter)} between nodes",
        f"pattern {graph.pattern}, over {types.names[graph.type_intra]} and {types.names[graph.type_inter]}: "
        f"{_gbs(graph.channels * graph.bw_intra)} of {_gbs(system.total_bw)}; {_step(graph, system)}",
    )


def _step(graph: SearchGraph, system: System) -> str:
    """Which speed of the ladder it is, whole or shared out after the channels were doubled."""
    sm = min(vertex.sm for vertex in system.nodes["DEV"] or system.gpus)
    speeds = ladder(system.minor, sm, system.inter)
    parts, words = (2, ", shared by two channels each") if _doubled(graph, sm) else (1, "")
    for index, speed in enumerate(speeds):
        if abs(graph.bw_inter * parts - speed) < _CLOSE:
            return f"speed {speed:g}, number {index + 1} of {len(speeds)} tried from {speeds[0]:g} down{words}"
    return "no speed held: the fallback over all GPUs in order"


def _doubled(graph: SearchGraph, sm: int) -> bool:
    """Whether each channel was made two (ncclTopoDupChannels, src/graph/search.cc): both halves are then alike."""
    half = graph.channels // 2
    before = 2 * graph.bw_inter
    alike = graph.intra[:half] == graph.intra[half : 2 * half] and graph.inter[:half] == graph.inter[half : 2 * half]
    fast = before >= _DOUBLED_FROM and not (sm > 80 and before < 2 * _DOUBLED_FROM and half > 4)
    return graph.id != NVLS_ID and graph.channels == 2 * half > 0 and alike and fast


def _agreed(comm: Communicator) -> Iterator[Term]:
    if len(comm.nodes) < 2:
        return
    ring = comm.shape.graphs[RING_ID]
    numbers = sorted({node.graphs[RING_ID].channels for node in comm.nodes})
    yield Term(
        "agreed channels",
        f"{ring.channels} x {_gbs(ring.bw_intra)} inside, {_gbs(ring.bw_inter)} between nodes",
        f"least of ring and tree of {len(comm.nodes)} nodes,"
        f" which found {' and '.join(map(str, numbers))} ring channels",
    )


def _channels(comm: Communicator) -> Iterator[Term]:
    for step in comm.steps:
        yield Term("runtime channels", str(step.count), step.rule)
    if comm.channels.nvls:
        yield Term("NVLS channels", str(comm.channels.nvls), "by compute capability and nodes (src/transport/nvls.cc)")
    yield Term(
        "send/recv channels",
        f"{comm.channels.p2p}, {comm.channels.p2p_per_peer} per peer",
        "powers of two, by NVLinks or NICs per peer (src/graph/paths.cc, ncclTopoComputeP2pChannels)",
    )
