"""What NCCL works on when it loads a topology file on a machine: the file, completed by what the machine shows.

The file is trusted where it speaks: a function that it names stays where the file puts it, and its attributes win. What
it leaves out is added from the machine, and what is not on the machine is trimmed (src/graph/topo.cc,
ncclTopoGetSystem; src/graph/xml.cc, ncclTopoGetPciNode, ncclTopoGetXmlFromSys, ncclTopoTrimXml, v2.28).
"""

from __future__ import annotations

from topodiag.model.nccl_tree import Element
from topodiag.nccl.graph.graph import Branch
from topodiag.nccl.topo.changes import bus_of, ways_down

_OVERWRITTEN = {"net": ("dev",), "gpu": ("rank",), "pci": ("class",)}
"""Attributes that NCCL sets anew whatever the file says."""


def loaded(file: Element, machine: Element) -> Element:
    """The tree that NCCL works on. Both are `<system>` elements; `machine` is what it would detect without a file."""
    place = _Places(Branch.opened(file))
    for way in ways_down(machine):
        if way[-1].tag == "gpu":
            _add_gpu(place, way)
        elif way[-1].tag == "net":
            _add_net(place, way)
    _trim(place.root, place.kept)
    return place.root.closed()


def _trim(branch: Branch, kept: set[Branch]) -> bool:
    """Take out below a branch what is not kept and leads to nothing kept; whether the branch itself stays."""
    branch.children = [child for child in branch.children if _trim(child, kept)]
    return branch in kept or bool(branch.children)


class _Places:
    """Where things stand in the tree under construction."""

    def __init__(self, root: Branch) -> None:
        self.root = root
        self.kept: set[Branch] = set()
        self.by_bus: dict[str, Branch] = {}
        self.nets: dict[str, Branch] = {}
        for element in root.walk():
            bus = element.attributes.get("busid", "").lower()
            if element.tag == "pci" and bus:
                self.by_bus.setdefault(bus, element)
            if element.tag == "net":
                self.nets.setdefault(element.attributes.get("name", ""), element)

    def cpu(self, element: Element) -> Branch:
        for child in self.root.children:
            if child.tag == "cpu" and child.attributes.get("numaid") == element.get("numaid"):
                _fill(child, element)
                return child
        return _added(self.root, element)

    def function(self, way: tuple[Element, ...]) -> Branch:
        """The place of the last element of a way (processor, switches, function), made where it is not there yet."""
        last = way[-1]
        if last.tag == "cpu":
            return self.cpu(last)
        bus = bus_of(last)
        function = self.by_bus.get(bus)
        if function is None:
            function = self.by_bus[bus] = _added(self.function(way[:-1]), last)
        _fill(function, last)
        return function


def _added(parent: Branch, element: Element) -> Branch:
    return parent.add(element.tag, dict(element.attributes), element.line)


def _fill(there: Branch, seen: Element) -> None:
    """Attributes that the file left out, and those that are always set anew."""
    for name, value in seen.attributes:
        if name not in there.attributes or name in _OVERWRITTEN.get(there.tag, ()):
            there.attributes[name] = value


def _add_gpu(place: _Places, way: tuple[Element, ...]) -> None:
    function = place.function(way[:-1])
    gpu = function.first("gpu") or _added(function, way[-1])
    _fill(gpu, way[-1])
    for tag in ("nvlink", "c2c"):
        if gpu.first(tag) is None:
            for link in way[-1].having(tag):
                _added(gpu, link)
    place.kept.update(gpu.walk())


def _add_net(place: _Places, way: tuple[Element, ...]) -> None:
    net = place.nets.get(way[-1].get("name") or "")
    if net is None:
        parent = place.function(way[:-2])
        net = _added(parent.first("nic") or _added(parent, way[-2]), way[-1])
    _fill(net, way[-1])
    place.kept.add(net)
