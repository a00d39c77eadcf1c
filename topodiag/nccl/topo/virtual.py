"""A guest's flattened tree completed with the switches of its host, for a virtual machine's NCCL_TOPO_FILE.

The recipe of NCCL's maintainers (NVIDIA nccl issues 1843 and 1674, nccl-tests issue 86): devices keep the bus ids of
the guest, the PCI tree above them is made as on the host, and switches get bus ids that no device of the guest has.
NCCL trusts the place of a function that it finds in the file (src/graph/xml.cc, ncclTopoGetXmlFromSys, v2.28).

Where a device belongs is a `Plan`, which comes from a capture of the host (virtual_host.py), from the instance type
(virtual_instance.py) or from what was measured (virtual_affinity.py); here it is only carried out.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

from topodiag.hardware import catalog
from topodiag.lazy import dataclass, regex
from topodiag.model.nccl_tree import Element
from topodiag.nccl.graph.graph import Branch
from topodiag.nccl.topo.changes import EditedTree, bus_of, pruned, with_values
from topodiag.nccl.topo.detect import link_speed
from topodiag.words.units import few

SWITCH_CLASS = "0x060400"
_SPEED = regex(r"(?:2\.5|5|8|16|32|5\.0|8\.0|16\.0|32\.0|64\.0) GT/s")
"""What NCCL can read; all else it takes for Gen3 (kvDictPciGen, src/graph/topo.cc)."""
_INVENTED_BUSES = range(0xFF, 0x00, -1)
_FULL_WIDTH = 16


class VirtualError(ValueError):
    """A plan that cannot be made or carried out; the message is for the user."""


@dataclass(frozen=True, slots=True)
class Link:
    """A PCIe link as a topology file spells it."""

    speed: str
    width: str

    @property
    def attributes(self) -> dict[str, str]:
        return {"link_speed": self.speed, "link_width": self.width}

    @property
    def gbs(self) -> float:
        """What NCCL reckons for it, near enough to order links."""
        match = re.match(r"[0-9]{1,3}(?:\.[0-9])?", self.speed)
        return float(match[0]) * int(self.width) if match and re.fullmatch(r"[0-9]{1,2}", self.width) else 0.0


@dataclass(frozen=True, slots=True)
class Switch:
    """One switch of the host. `key` tells it from the others; `attributes` are those of its element without the bus
    id, () for one of which no more is known; `peers` the keys of switches that it is joined to (pcilink)."""

    key: str
    attributes: tuple[tuple[str, str], ...] = ()
    peers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Place:
    """Where a function belongs: NUMA node (None: as the guest says), the switches from the root down, its link."""

    numa: int | None
    switches: tuple[Switch, ...] = ()
    link: Link | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """Places by the guest's bus ids, and how they were found, one sentence each."""

    places: Mapping[str, Place]
    done: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Guest:
    """What of a guest's tree a plan is about: its functions with a GPU or a NIC, by bus id, and all its bus ids."""

    gpus: Mapping[str, Element]
    nics: Mapping[str, Element]
    taken: frozenset[str]

    def find(self, word: str) -> str | None:
        """The bus id of `GPU3`, of a NIC by name, or of a bus id in any case; None when it is not there."""
        text = word.strip().lower()
        for bus_id, pci in (*self.gpus.items(), *self.nics.items()):
            names = [f"gpu{gpu.get('dev')}" for gpu in pci.having("gpu")]
            names += [(net.get("name") or "").lower() for net in pci.nets]
            if text == bus_id or text == bus_id.removeprefix("0000:") or text in names:
                return bus_id
        return None

    def label(self, bus_id: str) -> str:
        pci = self.gpus.get(bus_id) or self.nics.get(bus_id)
        return label(pci) if pci is not None else bus_id


def guest_of(tree: Element, taken: Collection[str] = ()) -> Guest:
    """The guest by its tree; `taken` are further bus ids that exist in it."""
    functions = [element for element in tree.walk() if element.tag == "pci"]
    seen = {bus_of(element) for element in functions}
    for element in tree.walk():
        seen.add(bus_of(element, "target"))
    return Guest(
        {bus_of(pci): pci for pci in sorted(functions, key=_bus_order) if pci.having("gpu")},
        {bus_of(pci): pci for pci in sorted(functions, key=_bus_order) if pci.nets},
        frozenset(seen | {bus.lower() for bus in taken}),
    )


def _bus_order(element: Element) -> tuple[int, str]:
    """Domains may have more digits: by number, not by text."""
    text = bus_of(element)
    return int(re.sub(r"[^0-9a-f]", "", text)[:16] or "0", 16), text


def label(pci: Element) -> str:
    """`GPU3`, or the names of a NIC."""
    gpu = next(iter(pci.having("gpu")), None)
    if gpu is not None and gpu.get("dev"):
        return f"GPU{gpu.get('dev')}"
    return ", ".join(net.get("name") or "?" for net in pci.nets) or bus_of(pci)


def complete(
    tree: Element, plan: Plan, *, taken: Collection[str] = (), masks: Mapping[int, str] | None = None
) -> EditedTree:
    """The guest's tree with every planned function below the switches of its place.

    `taken`: bus ids of the guest beyond those of the tree; `masks`: affinity masks of the guest's NUMA nodes. Functions
    without a place stay where they are. Raises VirtualError for a plan that names no function of the tree.
    """
    return _Builder(tree, plan, guest_of(tree, taken), masks or {}).run()


class _Builder:
    def __init__(self, tree: Element, plan: Plan, guest: Guest, masks: Mapping[int, str]) -> None:
        self.tree = tree
        self.plan = plan
        self.guest = guest
        self.masks = masks
        self.free = _free_bus_ids(guest.taken)
        self.cpus: dict[int, Branch] = {}
        self.switches: dict[tuple[int, str], Branch] = {}
        self.ids: dict[str, str] = {}
        self.done: list[str] = list(plan.done)
        self.guessed: dict[str, list[str]] = {}

    def run(self) -> EditedTree:
        wanted = [(numa, pci) for numa, pci in _functions(self.tree) if bus_of(pci) in self.plan.places]
        if not wanted:
            raise VirtualError("none of the places is of a GPU or a NIC of this machine")
        numbers = {id(pci) for _, pci in wanted}
        for cpu in self.tree.having("cpu"):
            kept = (pruned(child, lambda element: id(element) in numbers) for child in cpu.children)
            rest = [Branch.opened(element) for element in kept if element is not None]
            if rest:
                self._cpu(cpu.number("numaid", -1), cpu).children += rest
        for numa, pci in wanted:
            self._put(pci, self.plan.places[bus_of(pci)], numa)
        self._write_notes()
        cpus = [self.cpus[numa].closed() for numa in sorted(self.cpus, key=lambda n: (n < 0, n))]
        others = tuple(child for child in self.tree.children if child.tag != "cpu")
        return EditedTree(replace(self.tree, children=(*cpus, *others)), tuple(self.done))

    def _put(self, pci: Element, place: Place, guest_numa: int) -> None:
        numa = place.numa if place.numa is not None else guest_numa
        parent = self._cpu(numa)
        link = self._link(pci, place)
        for switch in place.switches:
            parent = self._switch(numa, switch, parent, link)
        parent.children.append(Branch.opened(with_values(pci, link.attributes)))

    def _link(self, pci: Element, place: Place) -> Link:
        """The guest's own link where it can read it, else that of its place, else by the device."""
        own = Link(pci.get("link_speed") or "", pci.get("link_width") or "")
        known = place.link if place.link is not None and _readable(place.link) else None
        if _readable(own):
            return own
        if known is not None:
            return known
        by_device = link_by_device(pci)
        self.guessed.setdefault(f"{by_device.speed} x{by_device.width}", []).append(label(pci))
        return by_device

    def _switch(self, numa: int, switch: Switch, parent: Branch, link: Link) -> Branch:
        branch = self.switches.get((numa, switch.key))
        if branch is None:
            bus_id = self.ids.setdefault(switch.key, "") or next(self.free)
            self.ids[switch.key] = bus_id
            attributes = {"busid": bus_id, **_complete_switch(switch, link)}
            branch = self.switches[numa, switch.key] = parent.add("pci", attributes)
        if not switch.attributes:
            # Of an invented switch nothing is known but its devices: its own link is as good as the best of them.
            up = Link(branch.attributes["link_speed"], branch.attributes["link_width"])
            if link.gbs > up.gbs:
                branch.attributes |= link.attributes
        return branch

    def _cpu(self, numa: int, like: Element | None = None) -> Branch:
        if numa in self.cpus:
            return self.cpus[numa]
        own = next((cpu for cpu in self.tree.having("cpu") if cpu.number("numaid", -1) == numa), like)
        if own is None:
            own = next(iter(self.tree.having("cpu")), Element("cpu", (("arch", "x86_64"),)))
            mask = self.masks.get(numa, "")
            attributes = [(n, v) for n, v in own.attributes if n not in ("numaid", "affinity")]
            # Without a mask NCCL looks it up in the guest; an empty one would keep it from looking.
            head = [("numaid", str(numa)), *([("affinity", mask)] if mask else [])]
            own = replace(own, attributes=(*head, *attributes))
            if self.masks and numa not in self.masks:
                self.done.append(f"NUMA node {numa} is the host's: the guest has none of that number")
        branch = self.cpus[numa] = Branch.opened(replace(own, children=()))
        return branch

    def _write_notes(self) -> None:
        for link, names in self.guessed.items():
            self.done.append(f"took {link} for {few(names, 4)}: the guest cannot read the link")
        left = [label(pci) for _, pci in _functions(self.tree) if bus_of(pci) not in self.plan.places]
        if left:
            self.done.append(f"left {few(left, 4)} where the guest shows {'it' if len(left) == 1 else 'them'}")
        self._join_peers()
        if self.ids:
            first, last = min(self.ids.values()), max(self.ids.values())
            ids = first if first == last else f"{first} to {last}"
            word = "switch" if len(self.ids) == 1 else "switches"
            self.done.append(f"put in {len(self.ids)} {word} with bus ids that the guest does not have: {ids}")

    def _join_peers(self) -> None:
        known = {switch.key: switch for place in self.plan.places.values() for switch in place.switches}
        for (_, key), branch in self.switches.items():
            for peer in known[key].peers:
                if peer in self.ids:
                    branch.add("pcilink", {"target": self.ids[peer]})


def link_by_device(pci: Element) -> Link:
    """The link of a GPU or NIC by its datasheet, else the least x16 that carries its ports."""
    vendor, device = _hex(pci.get("vendor")), _hex(pci.get("device"))
    if pci.having("gpu"):
        gpu = catalog.gpu_by_pci_device(device) if device is not None else None
        if gpu is not None and gpu.pcie_gen:
            return link_of(gpu.pcie_gen, gpu.pcie_width)
        sm = next(iter(pci.having("gpu"))).number("sm")
        return link_of(5 if sm >= 90 else 4 if sm >= 80 else 3, _FULL_WIDTH)
    nic = catalog.nic_by_pci_id(vendor, device) if vendor is not None and device is not None else None
    if nic is not None and nic.pcie_gen and not nic.is_vf:
        return link_of(nic.pcie_gen, nic.pcie_width)
    gbs = sum(net.number("speed") for net in pci.nets) / 8000
    fitting = (gen for gen in (3, 4, 5, 6) if (catalog.pcie_line_gbs(gen, _FULL_WIDTH) or 0) >= gbs)
    return link_of(next(fitting, 6), _FULL_WIDTH)


def link_of(gen: int, width: int) -> Link:
    return Link(link_speed(gen), str(width))


def _readable(link: Link) -> bool:
    return bool(_SPEED.match(link.speed)) and re.fullmatch(r"(?:[1-9]|[1-3][0-9])", link.width) is not None


def _complete_switch(switch: Switch, link: Link) -> dict[str, str]:
    """NCCL wants class, speed and width of a switch that is in no sysfs."""
    given = dict(switch.attributes)
    own = Link(given.get("link_speed", ""), given.get("link_width", ""))
    attributes = {"class": given.get("class") or SWITCH_CLASS}
    attributes |= {name: value for name, value in given.items() if name not in ("busid", "class", "keep")}
    return attributes | (own if _readable(own) else link).attributes


def _free_bus_ids(taken: Collection[str]) -> Iterator[str]:
    """Bus ids at the end of the last domain, as cloud providers take them: ffff:ff:01.0, ffff:ff:02.0, ..."""
    for bus in _INVENTED_BUSES:
        for device in range(1, 0x20):
            bus_id = f"ffff:{bus:02x}:{device:02x}.0"
            if bus_id not in taken:
                yield bus_id
    raise VirtualError("there is no bus id left for another switch")


def _functions(tree: Element) -> Iterator[tuple[int, Element]]:
    """Every function with a GPU or a NIC, and the NUMA node that it stands below."""
    for cpu in tree.having("cpu"):
        for element in cpu.walk():
            if element.tag == "pci" and (element.having("gpu") or element.nets):
                yield cpu.number("numaid", -1), element


def _hex(text: str | None) -> int | None:
    return int(text, 16) if text and re.fullmatch(r"0x[0-9a-fA-F]{1,8}", text) else None
