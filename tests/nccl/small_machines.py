"""Random small machines for the tests of the graph search: sockets, switches, a few GPUs and NICs, odd widths."""

from hypothesis import strategies as st

from tests.nccl.small_trees import cpu, gpu, host, nic, nvlink, pci, to_gpu
from topodiag.model.nccl_tree import Element

_SPEEDS = st.sampled_from(["8.0 GT/s PCIe", "16.0 GT/s PCIe", "32.0 GT/s PCIe", "2.5 GT/s PCIe"])
_WIDTHS = st.sampled_from([16, 16, 8, 4, 1])
_CPUS = st.sampled_from(
    [
        ("x86_64", "GenuineIntel", 143),
        ("x86_64", "GenuineIntel", 79),
        ("x86_64", "AuthenticAMD", 1),
        ("arm64", "", 0),
        ("ppc64", "", 0),
    ]
)
_SMS = st.sampled_from([70, 75, 80, 86, 90, 100])


@st.composite
def machines(draw: st.DrawFn, gpus: int = 4, nics: int = 3) -> Element:
    """A host of up to so many GPUs and NICs; its NVLinks are none, over a switch, in a ring or in pairs."""
    count, sockets = draw(st.integers(1, gpus)), draw(st.integers(1, 2))
    buses = [f"{0x10 + index:02x}" for index in range(count)]
    cabling = draw(st.sampled_from(["none", "switch", "ring", "pairs"]))
    sm, lines = draw(_SMS), draw(st.sampled_from([1, 2, 4, 6, 12]))
    width = draw(_WIDTHS)
    below: list[list[Element]] = [[] for _ in range(sockets)]

    def links(at: int) -> list[Element]:
        if cabling == "switch":
            return [nvlink("0000:ff:00.0", lines)]
        peers = []
        if cabling == "ring" and count > 2:
            peers = [(at - 1) % count, (at + 1) % count]
        elif cabling != "none" and at ^ 1 < count:
            peers = [at ^ 1]
        return [to_gpu(buses[peer], lines) for peer in peers]

    devices = [
        gpu(
            bus,
            *links(at),
            sm=draw(_SMS) if draw(st.integers(0, 9)) == 0 else sm,
            speed=draw(_SPEEDS) if draw(st.integers(0, 4)) == 0 else "16.0 GT/s PCIe",
            width=width,
            gdr=draw(st.sampled_from([1, 1, 0])),
            dev=at,
        )
        for at, bus in enumerate(buses)
    ]
    mbps = draw(st.sampled_from([10000, 25000, 100000, 200000, 400000, 123456]))
    for at in range(draw(st.integers(0, nics))):
        devices.append(
            nic(
                f"{0x40 + at:02x}",
                mbps if draw(st.booleans()) else draw(st.sampled_from([100000, 200000])),
                nets=draw(st.sampled_from([1, 1, 2])),
                gdr=draw(st.sampled_from([1, 1, 0])),
                coll=draw(st.sampled_from([0, 1])),
                latency=draw(st.sampled_from([0, 0, 0, 0, 0, 0, 5])),
            )
        )
    for device in devices:
        socket = draw(st.integers(0, sockets - 1))
        where = below[socket]
        shared: bool = draw(st.booleans())
        if where and shared and where[-1].get("class") == "0x060400":
            switch = where.pop()
            where.append(Element("pci", switch.attributes, (*switch.children, device)))
        elif draw(st.booleans()):
            where.append(pci(f"{0x80 + len(where) + 32 * socket:02x}", device))
        else:
            where.append(device)
    arch, vendor, model = draw(_CPUS)
    return host(*(cpu(at, *children, arch=arch, vendor=vendor, model=model) for at, children in enumerate(below)))
