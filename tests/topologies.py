"""Random topology trees of whole machines: any cabling, any number of switches above any device."""

from hypothesis import strategies as st

from tests.nccl.small_trees import element
from topodiag.model.nccl_tree import Element
from topodiag.nccl.topo.changes import EditedTree
from topodiag.nccl.topo.clean import bare, fitted

SPEEDS = st.sampled_from(["2.5 GT/s PCIe", "8.0 GT/s PCIe", "16.0 GT/s PCIe", "32.0 GT/s PCIe", "64.0 GT/s PCIe", ""])
WIDTHS = st.sampled_from(["16", "8", "4", "1", "0"])


class _Bus:
    """Bus ids, each given once."""

    def __init__(self) -> None:
        self.count = 0

    def next(self) -> str:
        self.count += 1
        return f"{self.count // 200:04x}:{self.count % 200 + 1:02x}:00.0"


def function(draw: st.DrawFn, bus_id: str, class_: str, *children: Element) -> Element:
    ids = {"vendor": "0x10de", "device": "0x2330"} if draw(st.booleans()) else {}
    return element(
        "pci", *children, busid=bus_id, class_=class_, **ids, link_speed=draw(SPEEDS), link_width=draw(WIDTHS)
    )


def mesh(at: int, buses: list[str], cabling: str, count: int) -> list[Element]:
    """The NVLinks of one GPU: to NVSwitches, to all others, to its neighbours in a ring, or none."""
    if cabling == "switch":
        return [element("nvlink", target=f"0000:f{n}:00.0", count=count, tclass="0x068000") for n in range(2)]
    size = len(buses)
    peers = {"all": [p for p in range(size) if p != at], "ring": [(at + 1) % size, (at - 1) % size]}.get(cabling, [])
    return [element("nvlink", target=buses[p], count=count, tclass="0x030200") for p in dict.fromkeys(peers) if p != at]


def port(draw: st.DrawFn, dev: int) -> Element:
    attributes = {"name": f"mlx5_{dev}", "dev": dev, "speed": draw(st.sampled_from([100000, 400000])), "port": 1}
    more = draw(st.sampled_from([{}, {"latency": "0.000000"}, {"net": 1, "gin": 1, "rail": -1, "plane": -1}]))
    return element("net", **attributes, guid=hex(0x1000 + dev), maxconn=131072, gdr=draw(st.integers(0, 1)), **more)


def switched(draw: st.DrawFn, bus: _Bus, devices: list[Element], levels: int) -> list[Element]:
    """The devices in groups, each below a switch, or a switch of switches, or right where they are."""
    elements: list[Element] = []
    while devices:
        size = draw(st.integers(1, len(devices)))
        group, devices = devices[:size], devices[size:]
        if levels and draw(st.booleans()):
            below = switched(draw, bus, group, levels - 1)
            if draw(st.integers(0, 5)) == 0:
                below.append(element("pcilink", target=bus.next()))
            elements.append(function(draw, bus.next(), "0x060400", *below))
        else:
            elements += group
    return elements


@st.composite
def machines(draw: st.DrawFn, virtual_nic: bool = False) -> Element:
    """1 to 16 GPUs, cabled in any way, and up to 12 NICs of one or two ports, below 1 to 4 sockets and up to 3 levels
    of switches; with `virtual_nic` perhaps a NIC without a PCI function."""
    bus = _Bus()
    gpus, nics = draw(st.integers(1, 16)), draw(st.integers(0, 12))
    cabling, count = draw(st.sampled_from(["switch", "all", "ring", "none"])), draw(st.integers(1, 18))
    sm = draw(st.sampled_from([70, 80, 86, 90, 100]))
    c2c = [element("c2c", bw=44712, count=10)] if sm == 100 and draw(st.booleans()) else []
    buses = [bus.next() for _ in range(gpus)]
    devices = []
    for at in range(gpus):
        gpu = element("gpu", *mesh(at, buses, cabling, count), *c2c, dev=at, sm=sm, gdr=draw(st.integers(0, 1)))
        devices.append(function(draw, buses[at], "0x030200", gpu))
    dev = 0
    for _ in range(nics):
        ports = [port(draw, dev + at) for at in range(draw(st.integers(1, 2)))]
        dev += len(ports)
        devices.append(function(draw, bus.next(), "0x020000", element("nic", *ports)))
    sockets: list[list[Element]] = [[] for _ in range(draw(st.integers(1, 4)))]
    for device in draw(st.permutations(devices)):
        sockets[draw(st.integers(0, len(sockets) - 1))].append(device)
    x86 = {"arch": "x86_64", "vendor": "GenuineIntel", "familyid": 6, "modelid": 143}
    arch = draw(st.sampled_from([x86, {"arch": "arm64"}]))
    cpus = []
    for numa, below in enumerate(sockets):
        if below:
            inside = switched(draw, bus, below, 3)
            if virtual_nic and not cpus and draw(st.booleans()):
                inside.append(element("nic", element("net", name="eth0", dev=dev, speed=10000, guid="0x0")))
            cpus.append(element("cpu", *inside, numaid=numa, affinity="ffff", **arch))
    return element("system", *cpus, version=1)


def clean(tree: Element, minor: int, host: str | None = None) -> EditedTree:
    """A tree as a topology file of this version, and what was done for that."""
    stripped = bare(tree, minor, host)
    fits = fitted(stripped.tree, minor)
    return EditedTree(fits.tree, (*stripped.done, *fits.done))
