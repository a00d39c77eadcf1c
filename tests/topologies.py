"""Random topology trees of whole machines: any cabling, any number of switches above any device."""

from __future__ import annotations

from hypothesis import strategies as st

from topodiag.model.nccl_tree import Element

SPEEDS = st.sampled_from(["2.5 GT/s PCIe", "8.0 GT/s PCIe", "16.0 GT/s PCIe", "32.0 GT/s PCIe", "64.0 GT/s PCIe", ""])
WIDTHS = st.sampled_from(["16", "8", "4", "1", "0"])


def element(tag: str, *children: Element, **attributes: object) -> Element:
    named = tuple((name.rstrip("_"), str(value)) for name, value in attributes.items())
    return Element(tag, named, children)


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


@st.composite
def machines(draw: st.DrawFn) -> Element:
    """1 to 16 GPUs, cabled in any way, and up to 12 NICs, below 1 to 4 sockets and up to 3 levels of switches."""
    bus = _Bus()
    gpus, nics = draw(st.integers(1, 16)), draw(st.integers(0, 12))
    cabling, count = draw(st.sampled_from(["switch", "all", "ring", "none"])), draw(st.integers(1, 18))
    sm = draw(st.sampled_from([70, 80, 86, 90, 100]))
    buses = [bus.next() for _ in range(gpus)]
    devices = [
        function(
            draw,
            buses[at],
            "0x030200",
            element("gpu", *mesh(at, buses, cabling, count), dev=at, sm=sm, gdr=draw(st.integers(0, 1))),
        )
        for at in range(gpus)
    ]
    for dev in range(nics):
        net = element("net", name=f"mlx5_{dev}", dev=dev, speed=draw(st.sampled_from([100000, 400000])), port=1,
                      guid=hex(0x1000 + dev), maxconn=131072, gdr=draw(st.integers(0, 1)))  # fmt: skip
        devices.append(function(draw, bus.next(), "0x020000", element("nic", net)))
    sockets: list[list[Element]] = [[] for _ in range(draw(st.integers(1, 4)))]
    for device in draw(st.permutations(devices)):
        way = draw(st.integers(0, 3))
        for _ in range(way):
            device = function(draw, bus.next(), "0x060400", device)
        sockets[draw(st.integers(0, len(sockets) - 1))].append(device)
    arch = draw(
        st.sampled_from(
            [{"arch": "x86_64", "vendor": "GenuineIntel", "familyid": 6, "modelid": 143}, {"arch": "arm64"}]
        )
    )
    cpus = [element("cpu", *below, numaid=numa, affinity="ffff", **arch) for numa, below in enumerate(sockets) if below]
    return element("system", *cpus, version=1)
