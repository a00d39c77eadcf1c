"""Products and parts of the machines that healthy_machines.py and healthy_clouds.py build."""
# ruff: noqa: E501 - tables of machines, one part a line, as in fixtures/generate

from dataclasses import replace
from typing import Any

from fixtures.generate import products
from fixtures.generate.machine import Machine
from fixtures.generate.machines.common import EXITED, GPU_MODULES, PEERMEM, RDMA_MODULES, RUNNING, SPR, two_sockets
from fixtures.generate.parts import Nic, NicProduct
from fixtures.generate.wiring import endpoint, gpu, join_through_switches, loopback, plain_nic, root_port, switch

SWITCH = ["ffffffff:ff:ff.0"]
CLOUD_NICS = {
    "ena": (0x1D0F, 0xEC20, "Ethernet controller: Amazon.com, Inc. Elastic Network Adapter (ENA)"),
    "gve": (0x1AE0, 0x0042, "Ethernet controller: Google, Inc. Compute Engine Virtual Ethernet [gVNIC]"),
}
"""By driver: vendor, device and what lspci prints."""
H200 = replace(products.H100, name="NVIDIA H200", device=0x2335, memory_mib=143771)
H100_PCIE = replace(products.H100_NVL, name="NVIDIA H100 PCIe", device=0x2331, memory_mib=81559)
A100_40 = replace(products.A100, name="NVIDIA A100-SXM4-40GB", device=0x20B0, memory_mib=40960)
A100_PCIE = replace(products.A100, name="NVIDIA A100-PCIE-40GB", device=0x20F1, memory_mib=40960)
A6000 = replace(products.L40S, name="NVIDIA RTX A6000", device=0x2230, cc=(8, 6), links=4, nvlink_version=3, mbps=14062,
                rate="14.062", link_supported=False)  # fmt: skip
V100_SXM3 = replace(products.V100, name="Tesla V100-SXM3-32GB", device=0x1DB8)
GH200 = replace(products.GB200, name="NVIDIA GH200 480GB", arch="Hopper", device=0x2342, cc=(9, 0), nvlink_version=6,
                mbps=26562, rate="26.562", memory_mib=97871, fabric=False)  # fmt: skip
EFA = NicProduct("EFA", 0xEFA2, "", "", "0.0.0.0", 100, "Ethernet controller: Amazon.com, Inc. Elastic Fabric Adapter (EFA)",
                 0xEFA2, 5, "EDR", 25.0, 0x1D0F)  # fmt: skip
CX6_VF = replace(products.CX6_HDR, name="ConnectX-6 VF", device=0x101C, hca="MT4124",
                 lspci="Infiniband controller: Mellanox Technologies MT28908 Family [ConnectX-6 Virtual Function]")  # fmt: skip
CX4LX_VF = replace(products.CX6DX, name="ConnectX-4 Lx VF", device=0x1016, hca="MT4118", rate=100, gen=3,
                   lspci="Ethernet controller: Mellanox Technologies MT27710 Family [ConnectX-4 Lx Virtual Function]")  # fmt: skip
CX5 = replace(products.CX4_EDR, name="ConnectX-5", device=0x1017, hca="MT4119",
              lspci="Infiniband controller: Mellanox Technologies MT27800 Family [ConnectX-5]")  # fmt: skip
BF3_400 = replace(products.BF3_ETH, rate=400, speed_name="NDR", lane_gbps=100.0)


def server(host: str, product_name: str, **more: object) -> Machine:
    """A bare-metal server with driver and RDMA stack, and nothing plugged in."""
    settings: dict[str, object] = {
        "default_route": "eno1", "modules": [*PEERMEM, *GPU_MODULES, *RDMA_MODULES],
        "services": {"nvidia-persistenced": RUNNING, "openibd": EXITED},
    }  # fmt: skip
    m = Machine(host, SPR, two_sockets(56), "Supermicro", product_name, product_name, **(settings | more))  # type: ignore[arg-type]
    return m


def way_out(m: Machine) -> None:
    """The management port, with the default route."""
    port = root_port(m, "0000:00:1c.0", numa=0, gen=3, below=(4, 4), width=4)
    plain_nic(m, port, "0000:04:00.0", "eno1", speed=10000)
    loopback(m)


def own_ports(m: Machine, product: object, places: list[tuple[int, int]], gen: int) -> None:
    """GPUs on root ports of their own: `(NUMA node, host bridge bus)`."""
    for numa, bridge in places:
        port = root_port(m, f"0000:{bridge:02x}:01.0", numa=numa, gen=gen, below=(bridge + 1, bridge + 1))
        gpu(m, port, f"0000:{bridge + 1:02x}:00.0", product)  # type: ignore[arg-type]


def below_switch(m: Machine, root: str, first: int, last: int, count: int, **more: Any) -> list[str]:
    """Ports of a switch below a root port: buses `first` to `last` are theirs, two below `first` that of a device."""
    settings = {"gen": more["gen"], "numa": more["numa"]}
    maker = {"maker": more.pop("maker")} if "maker" in more else {}
    port = root_port(m, root, below=(first, last), **settings, **maker)
    places = [(f"0000:{first + 1:02x}:{at:02x}.0", first + 2 + at) for at in range(count)]
    return switch(m, port, f"0000:{first:02x}:00.0", places, **more)


def cloud_nic(m: Machine, port: str | None, bus: str, driver: str, **more: Any) -> None:
    """An Ethernet function of a cloud, which has no RDMA."""
    endpoint(m, port, bus, 0x020000, *CLOUD_NICS[driver], gen=3, driver=driver, **more)


def join_all(m: Machine) -> Machine:
    """The machine with all GPUs on its NVSwitches."""
    for one in m.gpus:
        join_through_switches(one, SWITCH)
    return m


def on_card_of(first: Nic, second: Nic) -> None:
    """Make a NIC the second port of an adapter: one image GUID for both, and its own one above that of the first."""
    digits = f"{int(first.guid.replace(':', ''), 16) + 1:016x}"
    second.guid = ":".join(digits[place : place + 4] for place in range(0, 16, 4))
    second.card_guid = first.guid
