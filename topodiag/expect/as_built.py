"""A node as it was built, beside the node as it was found: ports and links that fall short of their siblings.

What a healthy machine reaches does not sink with a port that is down or slow, nor with a PCIe link that trained narrow:
those lower what is measured. NVLinks and lanes in a tree are mended by nccl/topo/repair.py; here is what a tree does
not show, because NCCL leaves a dead port out and reads what a PCIe link is able to do, not what it does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from topodiag.expect.settings import compute_nics
from topodiag.hardware.specs import GpuSpec
from topodiag.lazy import dataclass
from topodiag.model.devices import Gpu, Nic, NicPort
from topodiag.model.gpudirect import rdma_possible
from topodiag.model.nccl_tree import Element
from topodiag.model.node import Node
from topodiag.model.provenance import known
from topodiag.nccl.topo.changes import edited, with_values
from topodiag.nccl.topo.detect import Detected, tree_of
from topodiag.nccl.topo.repair import LEAST_SIBLINGS, clear_majority, repair
from topodiag.words.units import grouped, in_gbps


@dataclass(frozen=True, slots=True)
class AsBuilt:
    """`node` with its ports as their siblings are; `faults` in words, () where nothing falls short."""

    node: Node
    faults: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NarrowLink:
    """A PCIe link below its siblings, and the share of their lanes that it has. NCCL plans with what the link is able
    to do, so everything that passes it slows in proportion."""

    words: str
    share: float


def as_built(node: Node) -> AsBuilt:
    """The node with ports that are down or slow made like those of their siblings. A node that is known by a topology
    file alone has no ports."""
    if node.nccl_file is not None:
        return AsBuilt(node)
    nics: dict[str, Nic] = {}
    faults: list[str] = []
    for family in _families(node):
        usual = _usual_rate(family)
        if usual is None:
            continue
        for nic in family:
            ports = tuple(_mended(port, usual) for port in nic.ports)
            if ports != nic.ports:
                nics[nic.name] = replace(nic, ports=ports)
                faults.append(_port_words(nic, usual))
    if not faults:
        return AsBuilt(node)
    return AsBuilt(replace(node, nics=tuple(nics.get(nic.name, nic) for nic in node.nics)), tuple(faults))


@dataclass(frozen=True, slots=True)
class BuiltTree:
    """The tree of a node with every part as its siblings are. `faults` in words, () where nothing falls short;
    `assumed` the same as what it was reckoned with."""

    tree: Element
    faults: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()


def built_tree(node: Node, detected: Detected, env: Mapping[str, str], gpu: GpuSpec | None) -> BuiltTree:
    """What NCCL would detect on the node as it was built; `detected` is what it detects on the node as found, `env` the
    settings that choose NICs, `gpu` its product."""
    built = as_built(node)
    mended = repair((tree_of(built.node, env) if built.faults else detected).tree)
    tree = mended.tree
    rdma: tuple[str, ...] = ()
    if lacks_rdma(node) and gpu is not None and (gpu.form != "pcie" or gpu.p2p_pcie):
        tree, rdma = with_rdma(tree), ("GPUDirect RDMA is off: neither nvidia_peermem nor dmabuf is there",)
    faults = (*rdma, *built.faults)
    assumed = (
        *(f"modelled without this fault: {fault}" for fault in faults),
        *(f"modelled with {one.words}" for one in mended.repairs),
    )
    return BuiltTree(tree, (*faults, *(one.attention for one in mended.repairs)), assumed)


def lacks_rdma(node: Node) -> bool:
    """Whether the modules for GPUDirect RDMA were looked for on a node with RDMA devices, and are not there."""
    return node.nccl_file is None and rdma_possible(node) is False and any(nic.rdma_name for nic in node.nics)


def with_rdma(tree: Element) -> Element:
    """The tree with GPUDirect RDMA possible at every GPU and NIC."""

    def edit(element: Element) -> Element:
        says = element.tag in ("gpu", "net") and element.get("gdr") is not None
        return with_values(element, {"gdr": "1"}) if says else element

    return edited(tree, edit)


def _families(node: Node) -> list[list[Nic]]:
    """Compute NICs of one product; a single one has no sibling to be like."""
    families = grouped(
        ((nic.part.get("") or nic.hca_type.get(""), nic.transport.get("").lower()), nic)
        for nic in compute_nics(node)
        if nic.ports
    )
    return [family for family in families.values() if len(family) > LEAST_SIBLINGS]


def _is_active(port: NicPort) -> bool | None:
    state = port.state.value
    return None if state is None else state.upper().endswith("ACTIVE")


def _usual_rate(family: Sequence[Nic]) -> float | None:
    """The rate of most ports of a family, where most of them are up and agree."""
    ports = [port for nic in family for port in nic.ports]
    return clear_majority((port.rate_gbps.value for port in ports if _is_active(port)), len(ports))


def _mended(port: NicPort, rate: float) -> NicPort:
    state, now = _is_active(port), port.rate_gbps.value
    if state is False:
        return replace(port, state=known("ACTIVE", port.state.origin), rate_gbps=known(rate, port.rate_gbps.origin))
    return replace(port, rate_gbps=known(rate, port.rate_gbps.origin)) if state and now and now < rate else port


def _port_words(nic: Nic, rate: float) -> str:
    name = nic.rdma_name or nic.name
    if any(_is_active(port) is False for port in nic.ports):
        return f"the port of {name} is down, those of its peers are up at {in_gbps(rate)}"
    slow = min((port.rate_gbps.value for port in nic.ports if port.rate_gbps.value), default=0.0)
    return f"the port of {name} runs at {in_gbps(slow)}, those of its peers at {in_gbps(rate)}"


def narrow_links(node: Node) -> Iterator[NarrowLink]:
    """Links of GPUs and of compute NICs at fewer lanes than they and most of their siblings can do and have."""
    families: tuple[Sequence[Gpu | Nic], ...] = (node.gpus, compute_nics(node))
    for siblings in families:
        lanes = [_lanes(node, sibling) for sibling in siblings]
        usual = clear_majority((now for now, _ in lanes if now), len(siblings)) or 0
        for width, (now, able) in zip(siblings, lanes, strict=True):
            if 0 < now < min(able, usual):
                name = width.label if isinstance(width, Gpu) else width.rdma_name or width.name
                words = f"the PCIe link of {name} trained at x{now}, those of its peers at x{usual}"
                yield NarrowLink(words, now / usual)


def _lanes(node: Node, device: Gpu | Nic) -> tuple[int, int]:
    """Lanes that the device's link has, and that it can do; 0 where they are not known."""
    pci_device = node.pci_of(device)
    if pci_device is None:
        return 0, 0
    return pci_device.width.value or 0, pci_device.max_width.value or 0
