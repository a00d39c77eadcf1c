"""The shape of a node's PCI hierarchy, reduced to what lies between CPUs, GPUs, NICs and NVSwitches."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import field

from topodiag.lazy import dataclass
from topodiag.model.devices import Gpu, Nic, PciDevice
from topodiag.model.node import Node

MAX_EMPTY_NUMA = 16
"""NUMA nodes up to which those without devices are drawn too; two sockets cut in four each have eight."""
MAX_DEPTH = 24
"""Bridges drawn above one device: real machines have up to about ten, a made-up tree may have thousands."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """One end of the tree: a GPU, a NIC or an NVSwitch, with its PCI function and the lone bridges just above it."""

    device: Gpu | Nic | PciDevice
    pci: PciDevice | None = None
    bridges: tuple[PciDevice, ...] = ()


@dataclass(slots=True)
class Branch:
    """A bridge with several things below it; `bridges` are it and the lone ones above it, top first."""

    bridges: tuple[PciDevice, ...]
    children: list[Branch | Leaf] = field(default_factory=list)


@dataclass(slots=True)
class Group:
    """All that hangs off one NUMA node. `numa` is None where unknown; `cpus` is then what the GPUs say."""

    numa: int | None
    cpus: str = ""
    children: list[Branch | Leaf] = field(default_factory=list)


@dataclass(slots=True)
class _Stem:
    bridge: PciDevice | None
    stems: dict[str, _Stem] = field(default_factory=dict)
    ends: list[Leaf] = field(default_factory=list)


def has_tree(node: Node) -> bool:
    """Whether the PCI hierarchy of the GPUs or NICs is known at all."""
    ids = [*(gpu.bus_id for gpu in node.gpus), *(nic.bus_id for nic in node.nics)]
    known = [node.pci[bus_id] for bus_id in ids if bus_id and bus_id in node.pci]
    return any(device.parent or device.root for device in known)


def shape_of(node: Node, named: Callable[[str], bool]) -> list[Group]:
    """The groups in the order of their NUMA ids, unknown last, also those of CPUs with no device beside them.

    Where there is one NUMA node, a device without affinity can be on no other. Bridges that `named` are never folded.
    """
    with_cpus = [numa.id for numa in node.numa if numa.cpus.value]
    only = with_cpus[0] if len(with_cpus) == 1 else None
    stems: dict[tuple[int | None, str], _Stem] = defaultdict(lambda: _Stem(None))
    ends: tuple[Gpu | Nic | PciDevice, ...] = (*node.gpus, *node.nics, *node.nvswitches)
    for device in ends:
        pci = node.pci.get(device.bus_id) if device.bus_id else None
        chain = node.ancestors(device.bus_id)[::-1][:MAX_DEPTH] if device.bus_id else ()
        numa = _numa(node, device, only)
        affinity = device.cpu_affinity.get("") if numa is None and isinstance(device, Gpu) else ""
        at = stems[numa, affinity]
        for bridge in chain:
            at = at.stems.setdefault(bridge.bus_id, _Stem(bridge))
        at.ends.append(Leaf(device, pci))
    if len(with_cpus) <= MAX_EMPTY_NUMA:
        seen = {numa for numa, _ in stems}
        stems.update({(numa, ""): _Stem(None) for numa in with_cpus if numa not in seen})
    groups = [Group(numa, cpus, _children(stem, named)) for (numa, cpus), stem in stems.items()]
    return sorted(groups, key=lambda group: (group.numa is None, group.numa or 0, not group.cpus))


def _numa(node: Node, device: Gpu | Nic | PciDevice, only: int | None) -> int | None:
    """The device's own word, else that of its function or a bridge above, else the `only` node that there is."""
    number = device.numa.get(-1)
    if number < 0 and device.bus_id:
        number = node.hung_from(device.bus_id)
    return number if number >= 0 else only


def _children(stem: _Stem, named: Callable[[str], bool]) -> list[Branch | Leaf]:
    branches: list[tuple[tuple[bool, str], Branch | Leaf]] = []
    for leaf in stem.ends:
        branches.append(((not leaf.device.bus_id, leaf.device.bus_id or _label(leaf)), leaf))
    for below in stem.stems.values():
        assert below.bridge is not None  # noqa: S101 - only the root stem has none
        children = _children(below, named)
        only = children[0] if len(children) == 1 and not named(below.bridge.bus_id) else None
        if isinstance(only, Leaf):
            child: Branch | Leaf = Leaf(only.device, only.pci, (below.bridge, *only.bridges))
        elif isinstance(only, Branch):
            child = Branch((below.bridge, *only.bridges), only.children)
        else:
            child = Branch((below.bridge,), children)
        branches.append(((False, below.bridge.bus_id), child))
    return [child for _, child in sorted(branches, key=lambda pair: pair[0])]


def _label(leaf: Leaf) -> str:
    return f"{leaf.device.index:09d}" if isinstance(leaf.device, Gpu) else getattr(leaf.device, "name", "")
