"""Where a guest's devices belong by a capture of its host, and which device of the guest is which of the host.

The host's side is a topology dump, or the PCI tree of a bundle: a host that has handed its GPUs to guests shows none to
nvidia-smi, but still has them in /sys/bus/pci. Which is which is told by the user, or found by what both sides say of a
device: the UUID of a GPU, the GUID of a NIC.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from topodiag.lazy import dataclass
from topodiag.model.busid import normalise_bus_id, slot_of
from topodiag.model.devices import PciKind
from topodiag.model.nccl_tree import Element
from topodiag.model.node import Node
from topodiag.nccl.topo.changes import bus_of, ways_down
from topodiag.nccl.topo.clean import one_host
from topodiag.nccl.topo.detect import places_of
from topodiag.nccl.topo.virtual import Guest, Link, Place, Plan, Switch, VirtualError, guest_of
from topodiag.words.units import few

RUN_ONLY = frozenset({"busid", "keep"})


@dataclass(frozen=True, slots=True)
class Pairs:
    """Bus ids of the host by those of the guest, and by what they were paired."""

    host_of: Mapping[str, str]
    by: str = ""


def plan_by_host(guest: Guest, host: Node, pairs: Pairs) -> Plan:
    """The places of the paired devices on the host. Raises VirtualError where the host's capture lacks one, or one of
    the guest's GPUs has no pair."""
    unpaired = [guest.label(bus_id) for bus_id in guest.gpus if bus_id not in pairs.host_of]
    if unpaired:
        raise VirtualError(f"{few(unpaired, 4)} of the guest has no pair on the host: add it to --pairs")
    dump = host.nccl_file.tree if host.nccl_file is not None else None
    wanted = [bus_id if bus_id in host.pci else _first_function(bus_id) for bus_id in pairs.host_of.values()]
    tree = one_host(dump).tree if dump is not None else places_of(host, wanted)
    ways = {bus_of(way[-1]): way for way in ways_down(tree) if _is_end(way[-1])}
    places = {}
    for bus_id, theirs in pairs.host_of.items():
        way = ways.get(theirs) or ways.get(_first_function(theirs))
        if way is None:
            raise VirtualError(f"the host's capture has no {theirs}, which is to be {guest.label(bus_id)} of the guest")
        cpu, *switches, device = way
        link, numa = Link(device.get("link_speed") or "", device.get("link_width") or ""), cpu.number("numaid", -1)
        places[bus_id] = Place(numa if numa >= 0 else None, tuple(_switch(element) for element in switches), link)
    how = f" ({pairs.by})" if pairs.by else ""
    return Plan(places, (f"took the places of {len(places)} devices from the host's capture{how}",))


def read_pairs(guest: Guest, host: Node, words: Mapping[str, str]) -> Pairs:
    """Pairs as the user names them: bus ids in any spelling, `GPU3`, NICs by name; guest first. Raises VirtualError."""
    other = guest_of(one_host(host.nccl_file.tree).tree) if host.nccl_file is not None else None
    pairs: dict[str, str] = {}
    for mine, theirs in words.items():
        bus_id = guest.find(mine) or guest.find(normalise_bus_id(mine) or "")
        if bus_id is None:
            raise VirtualError(f"the guest has no GPU and no NIC {mine}: a pair is guest=host")
        wanted = (other.find(theirs) if other is not None else None) or _host_device(host, theirs)
        wanted = wanted or normalise_bus_id(theirs)
        if wanted is None:
            raise VirtualError(f"the host has no {theirs}, which is to be {mine} of the guest")
        if wanted in pairs.values():
            first = next(key for key, value in pairs.items() if value == wanted)
            raise VirtualError(f"{theirs} of the host is paired twice: with {guest.label(first)} and {mine}")
        pairs[bus_id] = wanted
    return Pairs(pairs, "as mapped")


def find_pairs(guest: Guest, guest_node: Node, host: Node) -> Pairs:
    """Pairs by GPU UUIDs and NIC GUIDs; failing them, by bus ids where all of the guest's are the host's too, each of
    the same kind. Raises VirtualError where some GPU stays without a pair."""
    theirs = dict(_marks(host))
    pairs: dict[str, str] = {}
    for mark, bus_id in _marks(guest_node):
        if mark in theirs and (bus_id in guest.gpus or bus_id in guest.nics):
            pairs.setdefault(bus_id, theirs[mark])
    if all(bus_id in pairs for bus_id in guest.gpus) and len(set(pairs.values())) == len(pairs):
        lacking = [guest.label(bus_id) for bus_id in guest.nics if bus_id not in pairs]
        by = "found by UUIDs and GUIDs" + (f"; not found: {few(lacking, 4)}" if lacking else "")
        if not guest.nics or len(lacking) < len(guest.nics):
            return Pairs(pairs, by)
    same = {bus_id: bus_id for bus_id in (*guest.gpus, *guest.nics)}
    if same and all(bus_id in host.pci and _kind(guest, bus_id) is host.pci[bus_id].kind for bus_id in same):
        return Pairs(same, "bus ids are the same in guest and host")
    lacking = [guest.label(bus_id) for bus_id in (*guest.gpus, *guest.nics) if bus_id not in pairs]
    why = f"no UUID or GUID says which device of the host is {few(lacking, 4)}"
    raise VirtualError(f"{why}: name the pairs with --pairs guest=host,...")


def _marks(node: Node) -> Iterator[tuple[str, str]]:
    """What tells a device from all others, and its bus id. What several devices share tells nothing."""
    marks: dict[str, list[str]] = {}
    for gpu in node.gpus:
        if gpu.bus_id and gpu.uuid.value:
            marks.setdefault(gpu.uuid.value.lower(), []).append(gpu.bus_id)
    for nic in node.nics:
        guids = {nic.node_guid.value, *(port.guid.value for port in nic.ports)}
        for digits in {re.sub(r"[^0-9a-f]", "", guid.lower().removeprefix("0x")) for guid in guids if guid}:
            if nic.bus_id and len(digits.strip("0")) > 1:
                marks.setdefault(f"guid {digits.lstrip('0')}", []).append(nic.bus_id)
    return ((mark, bus_ids[0]) for mark, bus_ids in marks.items() if len(set(bus_ids)) == 1)


def _kind(guest: Guest, bus_id: str) -> PciKind:
    return PciKind.GPU if bus_id in guest.gpus else PciKind.NIC


def _host_device(host: Node, word: str) -> str | None:
    text = word.strip().lower()
    for gpu in host.gpus:
        if text == gpu.label.lower() and gpu.bus_id:
            return gpu.bus_id
    for nic in host.nics:
        if nic.bus_id and text in {nic.name.lower(), (nic.rdma_name or "").lower(), *map(str.lower, nic.netdevs)}:
            return nic.bus_id
    return None


def _first_function(bus_id: str) -> str:
    """A virtual function sits where its card does: function 0 of the slot stands for it."""
    return f"{slot_of(bus_id)}.0"


def _is_end(element: Element) -> bool:
    """Whether a function is more than a bridge to others."""
    return element.tag == "pci" and bool(element.having("gpu") or element.nets or not element.having("pci"))


def _switch(element: Element) -> Switch:
    attributes = tuple((name, value) for name, value in element.attributes if name and name not in RUN_ONLY)
    peers = tuple(bus_of(link, "target") for link in element.having("pcilink"))
    return Switch(bus_of(element), attributes, peers)
