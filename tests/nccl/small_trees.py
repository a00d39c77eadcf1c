"""Small topologies by hand for the tests of NCCL's system graph: elements, and hosts of a few GPUs and NICs."""

from collections.abc import Callable, Sequence
from typing import Any

from topodiag.model.nccl_tree import Element
from topodiag.nccl.graph.attach import HostTree
from topodiag.nccl.graph.domains import build_system
from topodiag.nccl.graph.graph import System
from topodiag.nccl.graph.paths import path_table
from topodiag.nccl.settings import read_settings

GEN4, GEN5 = "16.0 GT/s PCIe", "32.0 GT/s PCIe"
BROADCOM5 = {"vendor": "0x1000", "device": "0xc030", "subsystem_vendor": "0x1000"}
"""With subsystem_device 0x0nnn the upper, 0x1nnn the lower level."""


def element(tag: str, *children: Element, line: int = 0, **attributes: object) -> Element:
    """An element; `class_` stands for the attribute `class`."""
    named = tuple((name.rstrip("_"), str(value)) for name, value in attributes.items())
    return Element(tag, named, children, line)


def pci(bus: str, *children: Element, speed: str = GEN4, width: int | str = 16, **more: object) -> Element:
    """A switch unless `class_` says otherwise. `bus` is the bus number: 0000:BUS:00.0."""
    attributes: dict[str, object] = {"class_": "0x060400", "link_speed": speed, "link_width": width, **more}
    return element("pci", *children, busid=f"0000:{bus}:00.0", **attributes)


def nvlink(target: str, count: int, tclass: str = "0x068000") -> Element:
    return element("nvlink", target=target, count=count, tclass=tclass)


def to_gpu(bus: str, count: int) -> Element:
    """NVLinks to another GPU of the host."""
    return nvlink(f"0000:{bus}:00.0", count, "0x030200")


def gpu(bus: str, *links: Element, sm: int = 80, speed: str = GEN4, width: int | str = 16, **more: object) -> Element:
    return pci(bus, element("gpu", *links, sm=sm, **more), speed=speed, width=width, class_="0x030200")


def nic(bus: str, mbps: int = 200000, speed: str = GEN4, nets: int = 1, **more: object) -> Element:
    """A NIC with GPUDirect RDMA, unless told otherwise."""
    ports = [
        element("net", **{"name": f"mlx5_{bus}_{port}", "speed": mbps, "gdr": 1, **more})  # type: ignore[arg-type]
        for port in range(nets)
    ]
    return pci(bus, element("nic", *ports), speed=speed, class_="0x020700")


def slot(at: int, nics: int = 1, *, links: int = 18, sm: int = 90, mbps: int = 400000, **net: object) -> Element:
    """A PCIe switch at bus `at`0, its GPU with NVLinks to an NVSwitch at `at`1, and its NICs from `at`2 on."""
    card = gpu(f"{at}1", nvlink("0000:f5:00.0", links), sm=sm, speed=GEN5, dev=at - 1)
    near = (nic(f"{at}{2 + index}", mbps, GEN5, **net) for index in range(nics))  # type: ignore[arg-type]
    return pci(f"{at}0", card, *near, speed=GEN5)


def cpu(
    numa: int, *children: Element, arch: str = "x86_64", vendor: str = "GenuineIntel", family: int = 6, model: int = 143
) -> Element:
    attributes: dict[str, object] = {"numaid": numa, "arch": arch}
    if arch == "x86_64":
        attributes |= {"vendor": vendor, "familyid": family, "modelid": model}
    return element("cpu", *children, **attributes)


def host(*cpus: Element) -> Element:
    return element("system", *cpus, version=1)


def grown(row: list[Any], **own: Callable[..., Element]) -> Element:
    """A tree as rows tell it: a function of this module or of the tests' own by its name, its arguments, of which lists
    are trees, and those that have a name in a table at the end."""
    name, *arguments = row
    named = arguments.pop() if arguments and isinstance(arguments[-1], dict) else {}
    parts = (grown(part, **own) if isinstance(part, list) else part for part in arguments)
    return (own | globals())[name](*parts, **named)  # type: ignore[no-any-return]


def built(
    *trees: Element,
    minor: int = 28,
    nodes: int = 1,
    me: int = 0,
    ranks: Sequence[dict[str, int]] | None = None,
    **env: str,
) -> System:
    """The system of rank `me`; several trees form one NVLink domain, `nodes` as many equal ones beside each other."""
    gpus = (
        sum(1 for tree in trees for node in tree.walk() if node.tag == "gpu") if ranks is None else sum(map(len, ranks))
    )
    hosts = [HostTree(tree, None if ranks is None else ranks[at], at) for at, tree in enumerate(trees)]
    return build_system(hosts, minor=minor, settings=read_settings(env, minor), nranks=gpus * nodes, me=me)


def way(system: System, source: str, target: str) -> tuple[int, float, str]:
    """Hops, GB/s and type between two vertices by label, as in the printed table."""
    return path_table(system)[source][target]


def ways(trees: Sequence[Element], asked: Sequence[Any]) -> list[Any]:
    """What is found where rows ask for a way: each of them has settings, with one or several versions as `minor`, two
    labels, and the way that is wanted or its type alone. Versions that agree are one row again."""
    found = []
    for settings, ends, wanted in asked:
        minors = settings.get("minor", 28)
        for minor in minors if isinstance(minors, list) else [minors]:
            hops, gbs, kind = way(built(*trees, **settings | {"minor": minor}), *ends.split())
            found.append([settings, ends, kind if isinstance(wanted, str) else [hops, gbs, kind]])
    return [row for at, row in enumerate(found) if row not in found[:at]]
