"""Ports that NCCL merges into virtual NICs before it builds its graph: who is merged, the NIC's figures, its place.

After ncclTopoProcessNet and what it calls (src/graph/topo.cc) and ncclIbMakeVDeviceInternal (src/transport/net_ib.cc,
later net_ib/init.cc). Its own IB transport merges; sockets and other plugins do not. Not modelled: NICs with a DMA
function beside their own (Data Direct), ports of two link layers, and the rails that NCCL_IB_RAIL_POLICY gives.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from topodiag.lazy import dataclass
from topodiag.model.nccl_versions import ByVersion, Feature, has, path_types
from topodiag.nccl.graph.graph import Branch, RejectedError
from topodiag.nccl.numbers import bus_id, c_long, spell_bus_id

SETTINGS = ("NCCL_NET_MERGE_LEVEL", "NCCL_NET_FORCE_MERGE", "NCCL_NET_MERGE_POLICY", "NCCL_IB_MERGE_NICS")
"""The variables that decide here."""
_MOST = ByVersion({18: 1, 24: 4, 30: 8})
"""Ports of a virtual NIC: NCCL_NET_MAX_DEVS_PER_NIC (src/include/plugin/net)."""
_LEVELS = ("LOC", "PIX", "PXB", "P2C", "PXN", "PHB", "SYS")
"""What NCCL_NET_MERGE_LEVEL names (nicPathKvList); PORT is the number of NVL, and anything else counts as LOC."""
_BRIDGE = "0x060400"
_VIRTUAL_PLANE = 1 << 14
"""NCCL_IB_PLANE_VIRT_BIT (src/transport/net_ib/init.cc)."""
_BUS_IDS_TRIED = 100


@dataclass(frozen=True, slots=True, eq=False)
class _Port:
    """A device of the net plugin: its element, and the elements from the top of the tree down to it."""

    net: Branch
    way: tuple[Branch, ...]

    @property
    def name(self) -> str:
        return self.net.attributes.get("name", "")


def merge_ports(root: Branch, minor: int, env: Mapping[str, str]) -> None:
    """Puts the virtual NICs of NCCL 2.`minor` in the tree of one host, in the place of the ports that they are made of.

    `env` are the NCCL_ variables of its ranks. Raises RejectedError where NCCL would not start.
    """
    if not has(minor, Feature.VIRTUAL_NICS):
        return
    ports = _ports(root)
    groups = _Groups(ports, minor, env).groups()
    merged = [group for group in groups if len(group) > 1]
    planes = _plane_numbers(ports)
    for number, group in enumerate(groups if has(minor, Feature.SINGLE_VIRTUAL_NICS) else merged, len(ports)):
        if len(group) > 1:
            _place(root, group, number, minor, planes)
        else:  # a port that is merged with none is a virtual NIC too, under its own name
            group[0].net.attributes["dev"] = str(number)
    for port in (port for group in merged for port in group):
        if not _stays(port, minor):
            port.way[-2].children.remove(port.net)
        elif has(minor, Feature.GIN_NETS):
            port.net.attributes["net"] = "0"


def _ports(root: Branch) -> list[_Port]:
    """The devices of the IB transport by their numbers: those with a port, as sockets have port 0."""
    ports: dict[str, _Port] = {}

    def walk(branch: Branch, way: tuple[Branch, ...]) -> Iterator[_Port]:
        way = (*way, branch)
        if branch.tag == "net":
            yield _Port(branch, way)
        for child in branch.children:
            yield from walk(child, way)

    for port in walk(root, ()):
        if port.net.number_or("port", 1) > 0 and port.net.number_or("net", 1):
            ports.setdefault(port.name or f" {len(ports)}", port)  # NCCL finds the first of a name
    return sorted(ports.values(), key=lambda port: port.net.number("dev"))


class _Groups:
    """Which ports become one device: ncclTopoMakeVNics with ncclTopoForceMerge and ncclTopoAutoMerge."""

    def __init__(self, ports: Sequence[_Port], minor: int, env: Mapping[str, str]) -> None:
        self.ports, self.minor, self.env = ports, minor, env
        self.most = _MOST[minor]
        types = path_types(minor)
        levels = {name: types.numbers.get(name, types.loc) for name in _LEVELS} | {"PORT": types.nvl}
        self.level = levels.get(env.get("NCCL_NET_MERGE_LEVEL") or "PORT", types.loc)
        self.by_rail = has(minor, Feature.MERGE_BY_RAIL) and env.get("NCCL_NET_MERGE_POLICY", "").upper() == "RAIL"
        self.able = c_long(env.get("NCCL_IB_MERGE_NICS") or "1") != 0
        self.placed: set[int] = set()

    def groups(self) -> list[list[_Port]]:
        groups = [[self.ports[at] for at in group] for group in self.forced()]
        return groups + [[self.ports[at] for at in group] for group in self.near()]

    def forced(self) -> Iterator[list[int]]:
        """The groups of NCCL_NET_FORCE_MERGE: names, with `:port` where one port is meant, by `,` and `;`."""
        for text in filter(None, self.env.get("NCCL_NET_FORCE_MERGE", "").split(";")):
            wanted = [item.partition(":")[::2] for item in text.split(",") if item][: self.most]
            group = [at for at, port in enumerate(self.ports) if any(_is(port, *item) for item in wanted)]
            if len(group) != len(wanted):
                raise RejectedError(
                    f"TOPO/NET : Only matched {len(group)} devices, {len(wanted)} requested from {text}"
                )
            if not self.able:
                raise RejectedError(
                    f"TOPO/NET : Could not force merge NICs {text}. Please specify a valid NCCL_NET_FORCE_MERGE string."
                )
            self.placed |= set(group)
            yield group

    def near(self) -> Iterator[list[int]]:
        """Every port left with those within the level; where merging is off, NCCL starts again at the second port."""
        numbers: set[frozenset[int]] = set()
        at = 0
        while at < len(self.ports):
            if at not in self.placed:
                group = [at]
                self.placed.add(at)
                for other in range(len(self.ports)):
                    if other not in self.placed and frozenset((at, other)) not in numbers and self._joins(at, other):
                        group.append(other)
                        self.placed.add(other)
                    if len(group) == self.most:
                        break
                if len(group) == 1 or self.able:
                    yield group
                elif not has(self.minor, Feature.MERGE_MAY_FAIL):
                    raise RejectedError(
                        "TOPO/NET : Tried merging multiple devices together and failed. Try setting "
                        "NCCL_NET_MERGE_LEVEL=LOC"
                    )
                else:
                    self.placed -= set(group)
                    numbers |= {frozenset((at, other)) for other in group[1:]}
                    at = 0
            at += 1

    def _joins(self, one: int, other: int) -> bool:
        a, b = self.ports[one], self.ports[other]
        if self.by_rail:
            rail = a.net.number_or("rail", -1)
            if rail == -1 or rail != b.net.number_or("rail", -1):
                return False
        return _common_path((a, b), self.minor)[0] <= self.level


def _is(port: _Port, name: str, number: str) -> bool:
    return port.name == name and number in ("", str(port.net.number_or("port", 1)))


def _common_path(ports: Sequence[_Port], minor: int) -> tuple[int, tuple[Branch, ...]]:
    """The path type between ports, and the way down to the last element above all of them (ncclTopoGetPath)."""
    types = path_types(minor)
    depth = 0
    for steps in zip(*(port.way for port in ports), strict=False):
        if any(step is not steps[0] for step in steps):
            if _one_adapter(steps):
                return types.nvl, ports[0].way[:depth]
            break
        depth += 1
    way = ports[0].way[:depth]
    common = way[-1]
    kinds = {"system": types.sys, "cpu": types.phb, "nic": types.nvl, "net": types.nvl}
    beside = all(port.way[-4:-3] == (common,) for port in ports)
    return kinds.get(common.tag, types.pix if beside else types.pxb), way


def _one_adapter(steps: Sequence[Branch]) -> bool:
    """Whether all are functions of one PCI device: bus ids that differ in their last digit."""
    ids = [step.attributes.get("busid") for step in steps]
    return None not in ids and len({(len(text or ""), (text or "")[:-1]) for text in ids}) == 1


def _plane_numbers(ports: Sequence[_Port]) -> Mapping[int, int]:
    """Planes in the order of the ports; 0 is for ports without."""
    planes = {-1: 0}
    for port in ports:
        planes.setdefault(port.net.number_or("plane", -1), len(planes))
    return planes


def _place(root: Branch, group: Sequence[_Port], number: int, minor: int, planes: Mapping[int, int]) -> None:
    """ncclTopoGetVNicParent and ncclTopoFillNet: the element of a virtual NIC, below one made for it where need be."""
    path, way = _common_path(group, minor)
    types = path_types(minor)
    if has(minor, Feature.VIRTUAL_NIC_IN_FUNCTION):
        last = max((at for at, branch in enumerate(way) if branch.tag == "pci"), default=None)
        way = way if last is None else way[: last + 1]
    common = way[-1]
    width = None
    if has(minor, Feature.VIRTUAL_NIC_WIDENS) and path in (types.phb, types.pxb, types.pix):
        width = sum(_width(child, group) for child in common.children)
        if has(minor, Feature.PORTS_WIDENED_TOO):
            _widen([step for port in group for step in port.way[len(way) :]], width)
    parent = common
    if common.tag == "system" and has(minor, Feature.FAR_PORTS_REFUSED):
        raise RejectedError("Fusing NET devices from different NUMA domains is not supported.")
    own_bridge = common.attributes.get("class") == _BRIDGE or not has(minor, Feature.VIRTUAL_NIC_IN_FUNCTION)
    if (common.tag == "pci" and own_bridge) or (common.tag == "cpu" and has(minor, Feature.VIRTUAL_NIC_WIDENS)):
        parent = _made_function(root, common, group[0])
    if width:
        _widen((parent, common), width)
    nic = parent.first("nic") or parent.add("nic", {}, common.line)
    nic.add("net", _figures(group, number, minor, planes), group[0].net.line)


def _width(branch: Branch, group: Sequence[_Port]) -> int:
    """Lanes down to the ports: the lesser of an element's own and its children's (ncclTopoFindLinkWidth)."""
    if not any(branch in port.way for port in group):
        return 0
    own = branch.number("link_width") if branch.tag == "pci" else 0
    below = sum(_width(child, group) for child in branch.children)
    return own if not below else min(own, below) if own > 0 else below


def _widen(branches: Sequence[Branch], width: int) -> None:
    for branch in branches:
        if branch.tag == "pci":
            branch.attributes["link_width"] = str(width)


def _made_function(root: Branch, parent: Branch, first: _Port) -> Branch:
    """A PCI function like that of the first port, with the next bus id that is free (ncclTopoMakePciParent)."""
    function = first.way[-3]
    if function.tag != "pci":
        raise RejectedError(f"TOPO/NET : Can't find busId of child 0 {first.name}", first.net.line)
    taken = {branch.attributes.get("busid") for branch in root.walk() if branch.tag == "pci"}
    seed = bus_id(function.required("busid"))
    free = (text for step in range(1, _BUS_IDS_TRIED + 1) if (text := spell_bus_id(seed + step)) not in taken)
    bus = next(free, None)
    if bus is None:
        raise RejectedError(f"TOPO/NET : Couldn't generate unique busId after {_BUS_IDS_TRIED} tries", function.line)
    return parent.add("pci", {**function.attributes, "busid": bus}, function.line)


def _figures(group: Sequence[_Port], number: int, minor: int, planes: Mapping[int, int]) -> dict[str, str]:
    """The attributes of a virtual NIC: speeds add up, names are joined by `+`, the rest is that of the first port."""
    attributes = {**group[0].net.attributes, "name": "+".join(port.name for port in group), "dev": str(number)}
    attributes["speed"] = str(sum(port.net.number_or("speed", 0) for port in group))
    attributes["net"] = "1"
    for name in ("gin", "rma", "rail", "plane"):
        attributes.pop(name, None)
    if has(minor, Feature.RAILS_AND_PLANES):
        rails = {port.net.number_or("rail", -1) for port in group}
        if len(rails) == 1 and -1 not in rails:
            attributes["rail"] = str(*rails)
        plane = _VIRTUAL_PLANE
        for port in group:
            plane |= 1 << planes[port.net.number_or("plane", -1)]
        attributes["plane"] = str(plane)
    return attributes


def _stays(port: _Port, minor: int) -> bool:
    """Whether a merged port is left in the graph, for GIN and CollNet use it beside the virtual NIC."""
    if has(minor, Feature.SINGLE_VIRTUAL_NICS):
        # the virtual NIC stands in a <nic> below the ports' own, where nothing is looked for
        return any(child.tag == "nic" for child in port.way[-2].children)
    return has(minor, Feature.GIN_NETS) and any(port.net.number_or(name, 0) for name in ("gin", "coll"))
