"""Flattened trees of guests, as virtual machines show them, and where their devices end up."""

from tests.nccl.small_trees import element
from topodiag.model.nccl_tree import Element


def gpu(dev: int, bus: str, speed: str = "", width: str = "0", **more: object) -> Element:
    pci = {"class_": "0x030200", **more, "link_speed": speed, "link_width": width}
    links = element("nvlink", target="fffffff:ffff:ff", count=18, tclass="0x068000")
    return element("pci", element("gpu", links, dev=dev, sm=90, gdr=1), busid=bus, **pci)


def nic(name: str, bus: str, mbps: int = 400000, speed: str = "", width: str = "0", **more: object) -> Element:
    net = element("net", name=name, dev=int(name[-1]), speed=mbps, port=1, guid=hex(0x100 + int(bus[:4], 16)), gdr=1)
    pci = {"class_": "0x020700", **more, "link_speed": speed, "link_width": width}
    return element("pci", element("nic", net), busid=bus, **pci)


def flat(*devices: Element, numa: int = -1) -> Element:
    x86 = {"arch": "x86_64", "vendor": "GenuineIntel", "familyid": 6, "modelid": 143}
    return element("system", element("cpu", *devices, numaid=numa, affinity="", **x86), version=1)


def four_pairs() -> Element:
    """GPUs at 0001:00 to 0004:00 and a NIC for each at 0101:00 to 0104:00, in a guest that shows no links."""
    devices = [gpu(at, f"{at + 1:04x}:00:00.0") for at in range(4)]
    return flat(*devices, *(nic(f"ib{at}", f"{at + 0x101:04x}:00:00.0") for at in range(4)))


def ways(tree: Element) -> dict[str, tuple[str, ...]]:
    """By bus id: NUMA node and switches above a function that holds a GPU or a NIC."""
    table: dict[str, tuple[str, ...]] = {}

    def walk(element: Element, above: tuple[str, ...]) -> None:
        for child in element.children:
            here = child.get("numaid") or child.get("busid") or ""
            if child.tag == "pci" and (child.having("gpu") or child.having("nic")):
                table[here] = above
            walk(child, (*above, here))

    walk(tree, ())
    return table


def pci_of(tree: Element, bus_id: str) -> Element:
    return next(node for node in tree.walk() if node.get("busid") == bus_id)
