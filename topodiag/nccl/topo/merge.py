"""What NCCL works on when it loads a topology file on a machine: the file, completed by what the machine shows.

The file is trusted where it speaks: a function that it names stays where the file puts it, and its attributes win. What
it leaves out is added from the machine, and what is not on the machine is trimmed (src/graph/topo.cc,
ncclTopoGetSystem; src/graph/xml.cc, ncclTopoGetPciNode, ncclTopoGetXmlFromSys, ncclTopoTrimXml, v2.28).
"""

from __future__ import annotations

from dataclasses import field

from topodiag.lazy import dataclass
from topodiag.model.nccl_tree import Element
from topodiag.nccl.topo.changes import bus_of, ways_down

_OVERWRITTEN = {"net": ("dev",), "gpu": ("rank",), "pci": ("class",)}
"""Attributes that NCCL sets anew whatever the file says."""


@dataclass(slots=True)
class _Open:
    """An element under construction, with its parent."""

    tag: str
    attributes: dict[str, str]
    parent: _Open | None
    line: int
    children: list[_Open] = field(default_factory=list)
    kept: bool = False

    def closed(self) -> Element:
        children = tuple(child.closed() for child in self.children if child.kept)
        return Element(self.tag, tuple(self.attributes.items()), children, self.line)

    def keep(self) -> None:
        here: _Open | None = self
        while here is not None and not here.kept:
            here.kept = True
            here = here.parent

    def keep_below(self) -> None:
        for child in self.children:
            child.kept = True
            child.keep_below()


def loaded(file: Element, machine: Element) -> Element:
    """The tree that NCCL works on. Both are `<system>` elements; `machine` is what it would detect without a file."""
    root = _opened(file, None)
    place = _Places(root)
    for way in ways_down(machine):
        if way[-1].tag == "gpu":
            _add_gpu(place, way)
        elif way[-1].tag == "net":
            _add_net(place, way)
    root.kept = True
    return root.closed()


def _opened(element: Element, parent: _Open | None) -> _Open:
    opened = _Open(element.tag, dict(element.attributes), parent, element.line)
    opened.children = [_opened(child, opened) for child in element.children]
    return opened


class _Places:
    """Where things stand in the tree under construction."""

    def __init__(self, root: _Open) -> None:
        self.root = root
        self.by_bus: dict[str, _Open] = {}
        self.nets: dict[str, _Open] = {}
        stack = [root]
        while stack:
            element = stack.pop()
            bus = element.attributes.get("busid", "").lower()
            if element.tag == "pci" and bus:
                self.by_bus.setdefault(bus, element)
            if element.tag == "net":
                self.nets.setdefault(element.attributes.get("name", ""), element)
            stack.extend(reversed(element.children))

    def cpu(self, element: Element) -> _Open:
        for child in self.root.children:
            if child.tag == "cpu" and child.attributes.get("numaid") == element.get("numaid"):
                _fill(child, element)
                return child
        return self.append(self.root, element)

    def append(self, parent: _Open, element: Element) -> _Open:
        opened = _Open(element.tag, dict(element.attributes), parent, element.line)
        parent.children.append(opened)
        return opened

    def function(self, way: tuple[Element, ...]) -> _Open:
        """The place of the last element of a way (processor, switches, function), made where it is not there yet."""
        last = way[-1]
        if last.tag == "cpu":
            return self.cpu(last)
        bus = bus_of(last)
        function = self.by_bus.get(bus)
        if function is None:
            function = self.by_bus[bus] = self.append(self.function(way[:-1]), last)
        _fill(function, last)
        return function


def _fill(there: _Open, seen: Element) -> None:
    """Attributes that the file left out, and those that are always set anew."""
    for name, value in seen.attributes:
        if name not in there.attributes or name in _OVERWRITTEN.get(there.tag, ()):
            there.attributes[name] = value


def _add_gpu(place: _Places, way: tuple[Element, ...]) -> None:
    function = place.function(way[:-1])
    gpu = next((child for child in function.children if child.tag == "gpu"), None)
    if gpu is None:
        gpu = place.append(function, way[-1])
    _fill(gpu, way[-1])
    for tag in ("nvlink", "c2c"):
        if not any(child.tag == tag for child in gpu.children):
            for link in way[-1].having(tag):
                place.append(gpu, link)
    gpu.keep()
    gpu.keep_below()


def _add_net(place: _Places, way: tuple[Element, ...]) -> None:
    net = place.nets.get(way[-1].get("name") or "")
    if net is None:
        parent = place.function(way[:-2])
        nic = next((child for child in parent.children if child.tag == "nic"), None) or place.append(parent, way[-2])
        net = place.append(nic, way[-1])
    _fill(net, way[-1])
    net.keep()
