"""Builds the node's links as NCCL would, and the paths between GPUs and NICs.

A PCIe switch is one vertex: NCCL climbs two sysfs levels at a time, from a device past the switch's downstream port
to its upstream port, and stops at the root complex, which is the NUMA node (src/graph/xml.cc,
ncclTopoGetXmlFromSys, v2.30). Where the PCI tree is not known, `nvidia-smi topo -m` gives the types.
"""

from __future__ import annotations

import re
from collections import Counter as Tally
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from topodiag.evidence.assemble.entities import product_of
from topodiag.hardware import catalog
from topodiag.hardware.amd import amd_gpu_by_name
from topodiag.model.busid import NVSWITCH_BUS_ID
from topodiag.model.devices import Gpu, Nic, PciDevice, PciKind
from topodiag.model.links import Link, LinkKind, Path
from topodiag.model.maker import XGMI
from topodiag.model.nccl_enums import PathType
from topodiag.model.node import Node, Pair
from topodiag.model.paths import Edges, Way, edges_of_ways, narrowest, nic_paths, paths_from, way_of
from topodiag.model.provenance import Fact
from topodiag.words.dialect import AMD, NVIDIA
from topodiag.words.units import in_gbps

_SMI_TYPES = {name: PathType[name] for name in ("PIX", "PXB", "PHB", "SYS")} | {"NODE": PathType.PHB}
"""nvidia-smi's words as NCCL's types: NCCL has one vertex per NUMA node, so NODE is PHB."""

NVSWITCH = "nvs:0"
"""NCCL merges all NVSwitches into one vertex."""

MOST_GRAPHS = 64
"""Graphs whose paths are remembered: those of the kinds of machines of a case, and of their faults."""


def gpu_vertex(gpu: Gpu) -> str:
    return f"gpu:{gpu.index}"


def nic_vertex(nic: Nic) -> str:
    return f"nic:{nic.name}"


def chain(node: Node, bus_id: str) -> list[str]:
    """The switches above a function as NCCL sees them, nearest first."""
    above = node.ancestors(bus_id)
    bridges = [bridge.bus_id for bridge in above]
    if all(bridge.port_type.value == "upstream" for bridge in above):
        # A tree from NCCL's own dump: it has only the switches.
        return bridges
    # Elements above the function: downstream port, upstream port (the switch), ..., root port. Every second one counts.
    return bridges[1::2]


def build_links(node: Node) -> tuple[Link, ...]:
    """All links of the node's graph; PCIe ones only where the tree was seen."""
    links: dict[tuple[str, str, LinkKind], Link] = {}
    for link in (*_pci_links(node), *_cpu_links(node), *_nvlinks(node), *_c2c_links(node), *_ports(node)):
        links.setdefault((link.a, link.b, link.kind), link)
    return tuple(links.values())


def _pci_links(node: Node) -> Iterator[Link]:
    ends = [(gpu_vertex(gpu), gpu.bus_id, node.pci_of(gpu)) for gpu in node.gpus]
    ends += [(nic_vertex(nic), nic.bus_id, node.pci_of(nic)) for nic in node.nics]
    done: set[str] = set()
    for vertex, bus_id, device in ends:
        if bus_id is None or device is None or not device.root:
            continue
        below = device
        for switch in chain(node, bus_id):
            yield _pcie(node, vertex, f"pci:{switch}", below)
            vertex, below = f"pci:{switch}", node.pci[switch]
            if switch in done:
                break
            done.add(switch)
        else:
            yield _pcie(node, vertex, f"cpu:{node.hung_from(bus_id)}", below)


def _pcie(node: Node, a: str, b: str, device: PciDevice) -> Link:
    """The link above a function: intended by the lesser ability of both ends, negotiated as trained.

    An idle GPU rests at a low generation, which is power saving: the trained width counts, and the generation that the
    link can do.
    """
    above = node.pci.get(device.parent) if device.parent else None
    gens = [fact.value for fact in (device.slot_max_gen, device.max_gen) if fact.value][:1]
    widths = [fact.value for fact in (device.slot_max_width, device.max_width) if fact.value][:1]
    if above is not None:
        gens += [above.max_gen.value] if above.max_gen.value else []
        widths += [above.max_width.value] if above.max_width.value else []
    gen, width = min(gens, default=None), min(widths, default=None)
    rests = device.kind is PciKind.GPU
    now_gen = gen if rests else device.gen.value
    now_width = device.width.value
    return Link(
        a,
        b,
        LinkKind.PCIE,
        intended_gbs=_bandwidth(gen, width, device.max_width),
        negotiated_gbs=_bandwidth(now_gen or gen, now_width, device.width),
        latency_us=_latency(LinkKind.PCIE),
        label=f"Gen{now_gen or gen or '?'} x{now_width or '?'}",
    )


def _bandwidth(gen: int | None, width: int | None, source: Fact[int]) -> Fact[float]:
    gbs = catalog.pcie_nccl_gbs(gen, width) if gen and width else None
    return Fact(gbs, source.origin) if gbs else Fact(why="speed or width of the link is unknown")


def _latency(kind: LinkKind) -> Fact[float]:
    value = catalog.latency_us(kind.value)
    return Fact(value) if value is not None else Fact(why="no published figure")


def _cpu_links(node: Node) -> Iterator[Link]:
    ids = [numa.id for numa in node.numa if numa.has_cpus]
    cpu = node.cpu
    gbs = catalog.smp_gbs(cpu.arch.get(""), cpu.vendor.get(""), cpu.family.get(0), cpu.model.get(0))
    wide = Fact(gbs, cpu.model.origin or cpu.vendor.origin)
    for place, one in enumerate(ids):
        for other in ids[place + 1 :]:
            yield Link(f"cpu:{one}", f"cpu:{other}", LinkKind.SMP, 1, wide, wide, _latency(LinkKind.SMP), "SMP")


def _rate(gpu: Gpu) -> float | None:
    name, sm = gpu.name.get(""), gpu.sm.value
    if sm is None and (spec := catalog.gpu_by_name(name)) is not None:
        sm = spec.sm
    if sm is None and (product := amd_gpu_by_name(name)) is not None:
        return product.rccl_gbs
    return catalog.nvlink_nccl_gbs(sm) if sm else None


def _nvlinks(node: Node) -> Iterator[Link]:
    by_bus = {gpu.bus_id: gpu for gpu in node.gpus if gpu.bus_id}
    seen: set[frozenset[str]] = set()
    for gpu in node.gpus:
        ends: Tally[str] = Tally()
        active: Tally[str] = Tally()
        for link in gpu.nvlinks:
            far = _far_end(node, link.remote_type.value, link.remote_bus_id.value, by_bus)
            if far is not None:
                ends[far] += 1
                active[far] += link.state.value == "active"
        for far in ends:
            both = frozenset((gpu_vertex(gpu), far))
            if both not in seen and active[far]:
                seen.add(both)
                yield _nvlink(gpu, far, ends[far], active[far])
        if not ends and node.smi_matrix:
            yield from _nvlinks_by_matrix(node, gpu, seen)


def _far_end(node: Node, kind: str | None, bus_id: str | None, by_bus: dict[str, Gpu]) -> str | None:
    if bus_id in by_bus:
        return gpu_vertex(by_bus[bus_id])
    if kind == "switch" or bus_id == NVSWITCH_BUS_ID:
        return NVSWITCH
    device = node.pci.get(bus_id) if bus_id else None
    return NVSWITCH if device is not None and device.kind is PciKind.NVSWITCH else None


def _nvlink(gpu: Gpu, far: str, intended: int, active: int, kind: str = "NVLink") -> Link:
    rate = _rate(gpu)
    origin = gpu.name.origin
    return Link(
        gpu_vertex(gpu),
        far,
        LinkKind.NVLINK,
        count=active,
        intended_gbs=Fact(intended * rate, origin) if rate else Fact(why=f"{kind} rate of this GPU is unknown"),
        negotiated_gbs=Fact(active * rate, origin) if rate else Fact(why=f"{kind} rate of this GPU is unknown"),
        latency_us=_latency(LinkKind.NVLINK),
        label=f"{active} x {kind}",
    )


def _nvlinks_by_matrix(node: Node, gpu: Gpu, seen: set[frozenset[str]]) -> Iterator[Link]:
    """Without per-link evidence the matrix's NV# counts: equal to all peers and a switched product is one NVSwitch."""
    joined = [peer for peer in node.gpus if peer is not gpu and _says(node, gpu, peer) == XGMI]
    counts = [(peer, links) for peer in node.gpus if peer is not gpu and (links := _nv(node, gpu, peer))]
    spec = catalog.gpu_by_name(gpu.name.value) if gpu.name.value else None
    active = sum(link.state.value == "active" for link in gpu.nvlinks)
    alike = len({links for _, links in counts}) == 1
    if alike and len(node.gpus) > 2 and (spec is None or spec.nvswitch):
        links = active or counts[0][1]
        yield _nvlink(gpu, NVSWITCH, max(links, spec.nvlinks if spec else 0), links)
        return
    for peer, links in (*counts, *((peer, 1) for peer in joined)):
        both = frozenset((gpu_vertex(gpu), gpu_vertex(peer)))
        if both not in seen:
            seen.add(both)
            yield _nvlink(gpu, gpu_vertex(peer), links, links, AMD.links if peer in joined else NVIDIA.links)


def _says(node: Node, gpu: Gpu, peer: Gpu) -> str:
    cell = node.smi_matrix.get((gpu.label, peer.label))
    return cell.value or "" if cell is not None else ""


def _nv(node: Node, gpu: Gpu, peer: Gpu) -> int:
    match = re.fullmatch(r"NV([0-9]{1,3})", _says(node, gpu, peer))
    return int(match[1]) if match else 0


def _c2c_links(node: Node) -> Iterator[Link]:
    for gpu in node.gpus:
        spec = catalog.gpu_by_name(gpu.name.value) if gpu.name.value else None
        if not gpu.c2c.get(False) or spec is None or spec.c2c_gbs <= 0:
            continue
        numa = node.hung_from(gpu.bus_id) if gpu.bus_id else gpu.numa.get(-1)
        wide = gpu.c2c_gbs if gpu.c2c_gbs.known else Fact(spec.c2c_gbs, gpu.name.origin)
        intended = Fact(spec.c2c_gbs, gpu.name.origin)
        latency = _latency(LinkKind.C2C)
        yield Link(gpu_vertex(gpu), f"cpu:{numa}", LinkKind.C2C, 1, intended, wide, latency, "NVLink-C2C")


def _ports(node: Node) -> Iterator[Link]:
    for nic in node.nics:
        spec, _ = product_of(nic, node.pci_of(nic))
        for port in nic.ports:
            up = port.state.value == "ACTIVE"
            rate = port.rate_gbps
            yield Link(
                nic_vertex(nic),
                f"port:{nic.name}/{port.number}",
                LinkKind.NETWORK,
                intended_gbs=Fact(spec.rate_gbps / 8, nic.part.origin)
                if spec and spec.rate_gbps
                else Fact(why="rate of this NIC is not in the datasheets"),
                negotiated_gbs=Fact(rate.value / 8, rate.origin)
                if up and rate.value is not None
                else Fact(why="the port is not active" if port.state.known else "port state unknown"),
                latency_us=_latency(LinkKind.NETWORK),
                label=in_gbps(rate.value) if up and rate.value is not None else "",
            )


def build_paths(node: Node) -> dict[Pair, Path]:
    """Paths between every two GPUs and between every GPU and NIC, by label, from the graph or else from the matrix.

    The way to a NIC is as wide as its port, as NCCL has it; a port that is down does not count. Nodes of equal links
    and matrices share their paths.
    """
    tables = tuple(
        tuple((pair, cell.value) for pair, cell in table.items() if cell.value is not None)
        for table in (node.smi_matrix, node.pcie_matrix)
    )
    gpus = tuple((gpu.index, gpu_vertex(gpu), gpu.label) for gpu in node.gpus)
    nics = tuple(
        (nic_vertex(nic), nic.name, nic.rdma_name is not None or nic.smi_label is not None) for nic in node.nics
    )
    return _paths(tuple(way_of(link) for link in node.links), tables, gpus, nics)


Words = tuple[tuple[Pair, str], ...]
"""The cells of a matrix."""


@lru_cache(maxsize=MOST_GRAPHS)
def _paths(
    ways: tuple[Way, ...],
    tables: tuple[Words, ...],
    gpus: tuple[tuple[int, str, str], ...],
    nics: tuple[tuple[str, str, bool], ...],
) -> dict[Pair, Path]:
    """`gpus`: index, vertex, label. `nics`: vertex, name, whether NCCL could use it."""
    edges = edges_of_ways(ways)
    words = [dict(table) for table in tables]
    table = {vertex: paths_from(vertex, edges) for _, vertex, _ in gpus}
    vertices = {vertex: index for index, vertex, _ in gpus}
    to_nics = nic_paths(vertices, [vertex for vertex, _, rdma in nics if rdma], table)
    paths: dict[Pair, Path] = {}
    for _, here, label in gpus:
        mine = table[here]
        for _, there, peer in gpus:
            path = mine.get(there) or _matrix_path(words, label, peer)
            if path is not None:
                paths[label, peer] = path
        for there, name, _ in nics:
            path = to_nics.get((here, there)) or mine.get(there) or _matrix_path(words, label, name)
            if path is not None:
                paths[label, name] = path = _as_wide_as_port(path, there, edges)
                paths[name, label] = replace(path, vertices=path.vertices[::-1])
    return paths


def _as_wide_as_port(path: Path, nic: str, edges: Edges) -> Path:
    ports = [(now, able) for _, _, by, able, now in edges.get(nic, ()) if by is LinkKind.NETWORK and now is not None]
    if not ports or path.negotiated_gbs is None:
        return path
    widest, able = max(ports, key=lambda port: port[0])
    intended = path.intended_gbs if able is None else narrowest(path.intended_gbs, able)
    return replace(path, intended_gbs=intended, negotiated_gbs=narrowest(path.negotiated_gbs, widest))


def _matrix_path(words: Sequence[Mapping[Pair, str]], a: str, b: str) -> Path | None:
    cells = (table.get(pair) for table in words for pair in ((a, b), (b, a)))
    cell = next((cell for cell in cells if cell is not None), None)
    if cell is None:
        return None
    if cell.startswith("NV"):
        return Path(PathType.NVL)
    kind = _SMI_TYPES.get(cell)
    return Path(kind) if kind is not None else None
