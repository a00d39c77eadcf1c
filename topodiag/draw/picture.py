"""What is in the picture of a node, before anything is laid out: boxes in a tree, and the links beside the tree.

A translation of the node and of what the checks found: it decides nothing. `sick` holds the ids of findings that name a
device or a link; what is sick is drawn red and says which check found it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field

from topodiag.draw.levels import Levels, levels_of
from topodiag.lazy import dataclass
from topodiag.model.devices import Gpu, Nic, NicRole, PciDevice
from topodiag.model.finding import Finding, Marks
from topodiag.model.links import Link, LinkKind
from topodiag.model.maker import dialect_of
from topodiag.model.node import Node
from topodiag.model.shape import Branch, Group, Leaf, shape_of
from topodiag.words.text import clean
from topodiag.words.units import few, in_gbps, in_gbs, short_bus

MAX_LABEL = 24
"""Characters of a label; real names have fewer, hostile ones are of any length."""
SICK_SHOWN = 3


@dataclass(slots=True)
class Box:
    """One thing that is drawn. `kind`: cpu, switch, gpu, nic, nvswitch. `lines` are its texts, the name first; `link`
    labels the PCIe link above it. `key` is unique in a picture."""

    key: str
    kind: str
    lines: list[str]
    link: str = ""
    sick: tuple[str, ...] = ()
    link_sick: tuple[str, ...] = ()
    children: list[Box] = field(default_factory=list)
    levels: Levels | None = None
    """Of the PCIe link above it, where a finding on that link has a price."""
    dim: bool = False
    """Not for the job: storage and management NICs."""

    def tree(self) -> Iterator[Box]:
        """The box and all below it."""
        yield self
        for child in self.children:
            yield from child.tree()

    def leaves(self) -> Iterator[Box]:
        return (box for box in self.tree() if not box.children)

    def depth(self) -> int:
        return 1 + max((child.depth() for child in self.children), default=0)


@dataclass(frozen=True, slots=True)
class Line:
    """A link beside the tree, between the keys of two boxes. `kind`: nvlink, c2c, smp."""

    a: str
    b: str
    kind: str
    label: str = ""
    sick: tuple[str, ...] = ()
    levels: Levels | None = None


@dataclass(frozen=True, slots=True)
class Edge:
    """A faulty place: its name, the checks that found it, what it could carry, trained to and is used for."""

    name: str
    checks: tuple[str, ...]
    levels: Levels
    note: str = ""
    """How the figures follow: those of a NIC may be of all NICs of the node."""


@dataclass(frozen=True, slots=True)
class Picture:
    """The sockets from left to right, each with its tree; the NVLink fabric and other links; title and verdict."""

    title: str
    verdict: str
    sockets: tuple[Box, ...]
    lines: tuple[Line, ...]
    nvswitches: int = 0
    """NVSwitches seen on the bus; the fabric is drawn where GPUs have links to it, seen or not."""
    edges: tuple[Edge, ...] = ()
    """Faulty places with a price, the worst first."""
    links: str = "NVLink"
    """What joins the GPUs of the node."""


NVSWITCH = "nvs:0"
_ENDS = ("gpu", "nic")


def picture_of(node: Node, findings: Sequence[Finding], title: str, verdict: str) -> Picture:
    """The picture of a node with what was found on it."""
    marks = Marks(findings)
    groups = shape_of(node, lambda bus_id: bool(marks.on(bus_id)))
    sockets = tuple(_socket(node, marks, group, place) for place, group in enumerate(groups))
    keys = {box.key for socket in sockets for box in socket.tree()} | {NVSWITCH}
    lines = [line for link in node.links if (line := _line(node, marks, link)) and {line.a, line.b} <= keys]
    linked = {line.a for line in lines if line.b == NVSWITCH} | {line.b for line in lines if line.a == NVSWITCH}
    if linked:
        # A GPU that lost all its links to the fabric is what the picture is for: its line is there, and red.
        lost = [gpu for gpu in node.gpus if _gpu_key(gpu) not in linked]
        for gpu in lost:
            if marks.about("NVL", gpu.label) or marks.about("TOP004", gpu.label):
                marked = marks.on(gpu.label)
                lines.append(Line(_gpu_key(gpu), NVSWITCH, "nvlink", _count(gpu, 0), _ids(marked), _levels(marked)))
    return Picture(_cut(title, 200), _cut(verdict, 120), sockets, tuple(lines), len(node.nvswitches), _edges(findings),
                   dialect_of(node).links)  # fmt: skip


def _edges(findings: Iterable[Finding]) -> tuple[Edge, ...]:
    """One per place; findings on the same place with the same levels are one edge."""
    by_edge: dict[tuple[str, Levels], list[Finding]] = {}
    for finding in findings:
        levels, where = levels_of(finding), finding.where
        names = [*where.gpus, *where.nics] or list(where.links)
        name = few([_cut(name) for name in names], 3)
        if levels is not None and name:
            by_edge.setdefault((name, levels), []).append(finding)
    order = sorted(by_edge.items(), key=lambda pair: pair[0][1].negotiated / pair[0][1].intended)
    return tuple(
        Edge(name, tuple(dict.fromkeys(finding.id for finding in findings)), levels, _cut(findings[0].cost.text, 200))
        for (name, levels), findings in order
    )


def _levels(findings: Iterable[Finding]) -> Levels | None:
    return next((levels for finding in findings if (levels := levels_of(finding)) is not None), None)


def _cut(text: object, limit: int = MAX_LABEL) -> str:
    return clean(text, limit=limit)


def _ids(findings: Iterable[Finding]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(finding.id for finding in findings))[:SICK_SHOWN]


def _gpu_key(gpu: Gpu) -> str:
    return f"gpu:{gpu.index}"


def _socket(node: Node, marks: Marks, group: Group, place: int) -> Box:
    numa = next((numa_node for numa_node in node.numa if numa_node.id == group.numa), None)
    words = [f"NUMA {group.numa}" if group.numa is not None else f"cpus {group.cpus}" if group.cpus else "NUMA unknown"]
    if numa is not None and numa.socket.value is not None:
        words.append(f"socket {numa.socket.value}")
    if numa is not None and numa.cpus.value:
        words.append(f"cpus {numa.cpus.value}")
    key = f"cpu:{group.numa}" if group.numa is not None else f"cpu:?{place}"
    return Box(key, "cpu", [_cut(word, 48) for word in words], children=_boxes(node, marks, group.children))


def _boxes(node: Node, marks: Marks, children: Iterable[Branch | Leaf]) -> list[Box]:
    boxes = [_branch(node, marks, child) if isinstance(child, Branch) else _leaf(marks, child) for child in children]
    # NVSwitches without a finding are drawn once, as the fabric; a switch that held nothing else goes with them.
    return [box for box in boxes if box.sick or box.link_sick or any(leaf.kind in _ENDS for leaf in box.leaves())]


def _branch(node: Node, marks: Marks, branch: Branch) -> Box:
    buses = [bridge.bus_id for bridge in branch.bridges]
    top = branch.bridges[0]
    sick = _ids(marks.on(*buses))
    return Box(f"pci:{buses[-1]}", "switch", ["switch", short_bus(buses[-1])], _pcie(top), sick, sick,
               _boxes(node, marks, branch.children), _levels(marks.on(*buses)))  # fmt: skip


def _pcie(device: PciDevice | None) -> str:
    """`Gen5 x16`; what it can do follows where it runs at less lanes."""
    if device is None or device.width.value is None:
        return ""
    best = device.slot_max_width.value or device.max_width.value
    lanes = f"x{device.width.value}" + (f" of {best}" if best and best > device.width.value else "")
    gen = device.gen.value if device.gen.value is not None else device.max_gen.value
    return f"Gen{gen} {lanes}" if gen is not None else lanes


def _leaf(marks: Marks, leaf: Leaf) -> Box:
    device = leaf.device
    above = [bridge.bus_id for bridge in leaf.bridges]
    if isinstance(device, Gpu):
        names: list[str | None] = [device.label, device.bus_id]
        link = marks.about("PCI", *names, *above)
        return Box(_gpu_key(device), "gpu", [device.label, short_bus(device.bus_id)], _pcie(leaf.pci),
                   _ids(marks.on(*names)), _ids(link), levels=_levels(link))  # fmt: skip
    if isinstance(device, Nic):
        names = [device.name, device.rdma_name, device.smi_label, device.bus_id]
        dim = device.role in (NicRole.STORAGE, NicRole.MANAGEMENT)
        link = marks.about("PCI", *names, *above)
        return Box(f"nic:{device.name}", "nic", [_cut(device.name), *_port_lines(device)], _pcie(leaf.pci),
                   _ids(marks.on(*names)), _ids(link), levels=_levels(link), dim=dim)  # fmt: skip
    sick = _ids(marks.on(device.bus_id, *above))
    return Box(f"pci:{device.bus_id}", "nvswitch", ["NVSwitch", short_bus(device.bus_id)], _pcie(leaf.pci), sick, sick)


def _port_lines(nic: Nic) -> list[str]:
    """Rate or state of each port, then what the NIC is for when that is not the job."""
    lines = []
    for port in nic.ports[:2]:
        state = port.state.value
        up = state is None or state.upper() in {"ACTIVE", "UP"}
        if not up:
            lines.append(_cut(state))
        elif port.rate_gbps.value:
            lines.append(in_gbps(port.rate_gbps.value))
    if nic.role in (NicRole.STORAGE, NicRole.MANAGEMENT):
        lines.append(nic.role.value)
    return lines


def _line(node: Node, marks: Marks, link: Link) -> Line | None:
    if link.kind is LinkKind.NVLINK:
        ends = [gpu for gpu in node.gpus if _gpu_key(gpu) in (link.a, link.b)]
        sick = [f for gpu in ends for family in ("NVL", "TOP004") for f in marks.about(family, gpu.label)]
        to_switch = NVSWITCH in (link.a, link.b)
        label = _count(ends[0], link.count) if to_switch and ends else f"{link.count}"
        mine = sick if to_switch or _both(ends, sick) else []
        return Line(link.a, link.b, "nvlink", label, _ids(mine), _levels(mine))
    if link.kind is LinkKind.C2C:
        gbs = link.negotiated_gbs.value or link.intended_gbs.value
        return Line(link.a, link.b, "c2c", f"C2C {in_gbs(gbs)}" if gbs else "C2C")
    if link.kind is LinkKind.SMP:
        gbs = link.negotiated_gbs.value
        return Line(link.a, link.b, "smp", in_gbs(gbs) if gbs else "")
    return None


def _both(ends: Sequence[Gpu], findings: Iterable[Finding]) -> bool:
    """Whether a finding names both ends of a direct link, so that it is about this link."""
    return any({gpu.label for gpu in ends} <= set(finding.where.gpus) for finding in findings)


def _count(gpu: Gpu, seen: int) -> str:
    """`18`, or `12 of 18` where the GPU has more links than are active."""
    active = gpu.active_links
    have = seen if active is None else active
    total = len(gpu.nvlinks)
    return f"{have} of {total}" if total > have else f"{have}"
