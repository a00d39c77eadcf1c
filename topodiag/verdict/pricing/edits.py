"""Edits of a host's tree by object: what one source shows of a GPU or a NIC put into another tree of the same host."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from topodiag.lazy import regex
from topodiag.model.devices import ports_of
from topodiag.model.nccl_tree import Element
from topodiag.nccl.topo.changes import bus_of, edited, gpus_of, nvlinks_of, with_nets, with_values
from topodiag.nccl.topo.detect import SOCKET_MAXCONN, net_attributes

_RUN_ONLY = frozenset({"keep", "host_hash"})
_GPU_LABEL = regex(r"GPU([0-9]{1,4})")


def canonical(tree: Element) -> Element:
    """The tree without what tells equal hosts apart: GUIDs are numbered as they come, lines and marks of a run go."""
    numbers: dict[str, str] = {}

    def edit(element: Element) -> Element:
        kept = [pair for pair in element.attributes if pair[0] not in _RUN_ONLY]
        for at, (name, value) in enumerate(kept):
            if element.tag == "net" and name == "guid":
                kept[at] = (name, numbers.setdefault(value, hex(0x1000 + len(numbers))))
        return Element(element.tag, tuple(kept), element.children)

    return edited(tree, edit)


def buses_of_labels(labels: Sequence[str], tree: Element) -> frozenset[str]:
    """Bus ids of GPUs by their labels: `GPU3`, or a bus id; all GPUs of the tree where no label is given."""
    by_label = {f"GPU{number}": bus_of(pci) for number, pci in gpus_of(tree).items()}
    if not labels:
        return frozenset(by_label.values())
    known = [label for label in labels if label in by_label or not _GPU_LABEL.fullmatch(label)]
    return frozenset(by_label.get(label, label.lower()) for label in known)


def nvlinks_by_gpu(tree: Element) -> dict[str, tuple[Element, ...]]:
    """NVLinks by the bus id of their GPU."""
    return {bus_of(pci): nvlinks_of(pci) for pci in gpus_of(tree).values()}


_PCIE = ("link_speed", "link_width")


def pcie_by_function(tree: Element) -> dict[str, dict[str, str]]:
    """Speed and lanes of every PCI function by its bus id."""
    return {bus_of(pci): {name: pci.get(name) or "" for name in _PCIE} for pci in tree.walk() if pci.tag == "pci"}


def rates(tree: Element) -> dict[str, int]:
    """Mb/s of network ports by name, the first of a name. Ports of a virtual NIC have equal parts of its rate."""
    by_bus: dict[str, int] = {}
    for element in tree.walk():
        if element.tag == "net":
            ports = ports_of(element.get("name") or "")
            by_bus = dict.fromkeys(ports, element.number("speed") // len(ports)) | by_bus
    return by_bus


def ports_by_bus(tree: Element) -> dict[str, tuple[str, ...]]:
    """Names of network ports by the bus id of their function."""
    return {bus_of(pci): ports_of(net.get("name") or "") for pci in tree.walk() if pci.tag == "pci" for net in pci.nets}


def with_less(tree: Element, lost: Collection[str], slow: Mapping[str, int] | None = None) -> Element:
    """The tree without the network ports `lost`, and those of `slow` at these Mb/s; a virtual NIC keeps the others."""
    slower = slow or {}

    def edit(net: Element) -> Element | None:
        ports = ports_of(net.get("name") or "")
        left = [port for port in ports if port not in lost]
        if left == list(ports) and not slower.keys() & set(left):
            return net
        rate = sum(slower.get(port, net.number("speed") // len(ports)) for port in left)
        return with_values(net, {"name": "+".join(left), "speed": str(rate)}) if left else None

    return with_nets(tree, edit)


def with_socket(tree: Element, name: str, mbps: int) -> Element:
    """The tree with one interface in place of all its NICs, where NCCL puts what has no place on the bus."""
    bare = with_nets(tree, lambda net: None)
    attributes = net_attributes(name, 0, mbps, "0x0", port=0, maxconn=SOCKET_MAXCONN, gdr=False)
    nic = Element("nic", (), (Element("net", tuple(attributes.items())),))
    first, *others = bare.children
    return replace(bare, children=(replace(first, children=(*first.children, nic)), *others))


def without_gdr(tree: Element) -> Element:
    """The tree with GPUDirect RDMA off at every NIC and GPU."""

    def edit(element: Element) -> Element:
        return with_values(element, {"gdr": "0"}) if element.tag in ("gpu", "net") else element

    return edited(tree, edit)
