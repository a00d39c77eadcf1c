"""Topology trees made of few words, and nodes that hold them, for the checks of topology files."""

from collections.abc import Sequence
from dataclasses import replace

from tests.nccl.small_trees import element
from topodiag.evidence.nccl_xml import read_file
from topodiag.model.devices import Gpu, Nic, NicRole
from topodiag.model.nccl_tree import Element, NcclFile, Refusal
from topodiag.model.node import Node, Setting
from topodiag.model.provenance import Origin, Topic

LINK = {"link_speed": "32.0 GT/s PCIe", "link_width": 16}


def bus(number: int) -> str:
    return f"0000:{0x10 + 16 * number:02x}:00.0"


def gpu(number: int, *, links: int = 18, target: str = "fffffff:ffff:ff", sm: str = "90", at: str = "") -> Element:
    """A GPU with its NVLinks to one place; 0 links are none at all."""
    tclass = "0x068000" if target.startswith("f") else "0x030200"
    nvlinks = [element("nvlink", target=target, count=links, tclass=tclass)] if links else []
    inside = element("gpu", *nvlinks, dev=number, sm=sm, gdr=1)
    return element("pci", inside, line=10 + number, busid=at or bus(number), class_="0x030200", **LINK)


def nic(number: int, *, name: str = "", at: str = "", guid: str = "") -> Element:
    net = element("net", name=name or f"mlx5_{number}", dev=number, speed=400000, port=1,
                  guid=guid or f"0x{number + 1:x}", gdr=1)  # fmt: skip
    place = at or f"0000:{0x11 + 16 * number:02x}:00.0"
    return element("pci", element("nic", net), line=40 + number, busid=place, class_="0x020700", **LINK)


def switch(number: int, *children: Element, at: str = "") -> Element:
    place = at or f"0000:{0x0F + 16 * number:02x}:00.0"
    return element("pci", *children, line=70 + number, busid=place, class_="0x060400", **LINK)


def cpu(*children: Element, numa: str = "0", host: str = "") -> Element:
    head = {"host_hash": host} if host else {}
    kind = {"arch": "x86_64", "vendor": "GenuineIntel", "familyid": 6, "modelid": 143}
    return element("cpu", *children, line=2, **head, numaid=numa, affinity="ffffffff", **kind)


def system(*cpus: Element) -> Element:
    return element("system", *cpus, line=1, version=1)


def board(counts: Sequence[int] = (18,) * 4) -> Element:
    """GPUs of an NVSwitch board, each with a NIC below its switch."""
    return system(cpu(*(switch(at, gpu(at, links=count), nic(at)) for at, count in enumerate(counts))))


def alone(tree: Element, *, refusals: tuple[Refusal, ...] = (), asked: tuple[int, ...] = ()) -> Node:
    """The node of a file by itself."""
    return Node(
        "topo",
        nccl_file=NcclFile("/tmp/topo.xml", tree, refusals, asked=asked),
        topics=frozenset({Topic.TOPOLOGY_FILE}),
    )


def machine(gpus: int = 4, **changes: object) -> Node:
    """What a bundle says of the machine of `board`, as far as it names devices."""
    node = Node(
        "gpu-07",
        gpus=tuple(Gpu(at, bus(at)) for at in range(gpus)),
        nics=tuple(Nic(f"mlx5_{at}", rdma_name=f"mlx5_{at}", role=NicRole.COMPUTE) for at in range(gpus)),
        topics=frozenset({Topic.GPUS}),
    )
    return replace(node, **changes)  # type: ignore[arg-type]


def against(node: Node, other: Node) -> Node:
    assert node.nccl_file is not None
    return replace(node, nccl_file=replace(node.nccl_file, against=other))


def told_to_read(path: str) -> Node:
    return machine(settings=(Setting("NCCL_TOPO_FILE", path, "environment", Origin("environ", 1)),))


def read(text: str) -> Node:
    """The node of a file's text, as its reader meets it."""
    return Node("topo", nccl_file=read_file(text.encode(), "topo.xml"), topics=frozenset({Topic.TOPOLOGY_FILE}))
