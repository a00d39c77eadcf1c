"""Healthy machines beyond the captured ones, built in memory: each has something that a careless check calls a fault."""
# ruff: noqa: E501 - tables of machines, one part a line, as in fixtures/generate

import json
from collections.abc import Callable
from dataclasses import replace

from fixtures.generate import bundle, products, wiring
from fixtures.generate.machine import Machine
from fixtures.generate.machines import dgx_h100 as dgx
from fixtures.generate.machines import four_way, hgx_a100
from fixtures.generate.machines.common import (
    BROADWELL,
    EXITED,
    GPU_MODULES,
    GRACE,
    PEERMEM,
    RDMA_MODULES,
    RUNNING,
    two_sockets,
)
from fixtures.generate.parts import Fabric, NetDev, Numa
from tests.healthy_clouds import aws_g6e, aws_g6e_48, aws_p5, azure_a100, gcp_a3_mega
from tests.healthy_parts import (
    A100_PCIE,
    A6000,
    BF3_400,
    CX5,
    GH200,
    H100_PCIE,
    H200,
    V100_SXM3,
    below_switch,
    join_all,
    on_card_of,
    own_ports,
    server,
    way_out,
)


def h200_ten_nics() -> Machine:
    """HGX H200: eight 400G rails, and two BlueField-3 whose second ports have no cable; one hangs at a GPU's switch."""
    m = dgx.dgx_h100("h200-31")
    m.sys_vendor, m.product_name = "Supermicro", "SYS-821GE-TNHR"
    for one in m.gpus:
        one.product = H200
        m.fn(one.bus).device = H200.device
    for adapter in [n for n in m.nics if n.product is products.CX7_ETH]:
        adapter.product, adapter.board, adapter.fw, adapter.rate = BF3_400, BF3_400.board, BF3_400.fw, 400
        adapter.speed_name = "NDR"
        fn = m.fn(adapter.bus)
        fn.device, fn.text = BF3_400.device, BF3_400.lspci
    return m


def storage_beside_gpu() -> Machine:
    """A BlueField-3 for storage below the switch of GPU0, as several builders place it; its second port has no cable."""
    m = dgx.dgx_h100("h100-77")
    m.sys_vendor, m.product_name = "Supermicro", "SYS-821GE-TNHR"
    beside = m.fn(str(m.fn(m.nic("mlx5_0").bus).parent))
    port = replace(beside, bus="0000:17:08.0", secondary=0x1C, subordinate=0x1C)
    m.pci.append(port)
    for function, rdma in enumerate(("mlx5_12", "mlx5_13")):
        bus = f"0000:1c:00.{function}"
        adapter = wiring.nic(
            m, port.bus, bus, BF3_400, rdma, f"ens9f{function}np{function}", layer="Ethernet", traffic=10**9
        )
        if function:
            on_card_of(m.nic("mlx5_12"), adapter)
            adapter.state, adapter.phys, adapter.active_mtu = "DOWN", "Disabled", 1024
            m.netdev(adapter.netdev).operstate = "down"
    return m


def storage_of_same_product() -> Machine:
    """Storage over InfiniBand with the very product of the rails, single cards away from the GPUs, one of them unused."""
    m = dgx.dgx_h100("dgx-099")
    for adapter in [n for n in m.nics if n.product is products.CX7_ETH]:
        card = products.CX7_NDR
        adapter.product, adapter.layer, adapter.board, adapter.rate = card, "InfiniBand", card.board, 400
        adapter.fw, adapter.speed_name, adapter.lid, adapter.sm_lid = card.fw, "NDR", 7, 1
        fn, dev = m.fn(adapter.bus), m.netdev(adapter.netdev)
        fn.cls, fn.text, dev.kind, dev.master = 0x020700, products.CX7_NDR.lspci, 32, ""
        if adapter.state != "ACTIVE":
            adapter.phys = "Polling"
    m.netdevs = [dev for dev in m.netdevs if dev.name != "bond0"]
    m.bonds = {}
    return m


def roce_bonds() -> Machine:
    """RoCE over bonds: one RDMA device mlx5_bond_N for both ports of each ConnectX-6 Dx, two GPUs to a card."""
    m = server("roce-12", "AS-4125GS-TNRT")
    for number, (numa, bridge) in enumerate([(0, 0x10), (0, 0x30), (1, 0x90), (1, 0xB0)]):
        places = below_switch(m, f"0000:{bridge:02x}:01.0", bridge + 1, bridge + 5, 3, gen=4, numa=numa, acs=0)
        for slot in (0, 1):
            wiring.gpu(m, places[slot], f"0000:{bridge + 3 + slot:02x}:00.0", products.L40S)
        adapter = wiring.nic(m, places[2], f"0000:{bridge + 5:02x}:00.0", products.CX6DX, f"mlx5_bond_{number}", f"ens{number}f0np0", layer="Ethernet",
                   traffic=10**12)  # fmt: skip
        adapter.rate, adapter.speed_name = 200, "HDR"
        m.netdev(adapter.netdev).speed = 100000
        card = products.CX6DX
        wiring.endpoint(
            m,
            places[2],
            f"0000:{bridge + 5:02x}:00.1",
            0x020000,
            0x15B3,
            card.device,
            card.lspci,
            gen=4,
            driver="mlx5_core",
        )
        m.netdevs.append(NetDev(f"ens{number}f1np1", f"0000:{bridge + 5:02x}:00.1", speed=100000, mtu=9000, master=f"bond{number}",
                                driver="mlx5_core", address=m.netdev(adapter.netdev).address))  # fmt: skip
        m.netdev(adapter.netdev).master = f"bond{number}"
        m.netdevs.append(NetDev(f"bond{number}", speed=200000, mtu=9000, address=m.netdev(adapter.netdev).address))
        m.bonds[f"bond{number}"] = [f"ens{number}f0np0", f"ens{number}f1np1"]
    way_out(m)
    return m


def dual_port_unused() -> Machine:
    """HGX A100 whose ConnectX-6 have two ports each, the second without a cable on all cards."""
    m = hgx_a100.hgx_a100("a100-300")
    for adapter in [n for n in list(m.nics) if n.product is products.CX6_HDR]:
        bus = adapter.bus[:-1] + "1"
        second = wiring.nic(
            m, m.fn(adapter.bus).parent, bus, products.CX6_HDR, f"{adapter.rdma}b", f"{adapter.netdev}f1"
        )
        on_card_of(adapter, second)
        second.state, second.phys = "DOWN", "Polling"
        m.netdev(second.netdev).operstate = "down"
    return m


def geforce_eight() -> Machine:
    """Eight RTX 4090 behind two sockets, no NIC but the way out."""
    m = server("ws-8x4090", "SYS-420GP", modules=list(GPU_MODULES), ofed=False, services={}, p2p="CNS")
    own_ports(m, products.RTX4090, [(n // 4, 0x10 + 0x18 * n) for n in range(8)], 4)
    way_out(m)
    return m


def dgx2() -> Machine:
    """DGX-2: sixteen V100 behind twelve NVSwitches, a ConnectX-5 to each pair of GPUs."""
    m = Machine(
        "dgx2-01", replace(BROADWELL, model=85, count=96, name="Intel(R) Xeon(R) Platinum 8168 CPU @ 2.70GHz"), two_sockets(24),
        "NVIDIA", "DGX-2", "DGX-2", driver="470.161.03", cuda="11.4", driver_open=False, smi_style="r450", kernel="5.4.0-135-generic",
        distro=("ubuntu", "20.04"), default_route="enp6s0", modules=["nv_peer_mem", *GPU_MODULES, *RDMA_MODULES],
        services={"nvidia-fabricmanager": RUNNING, "openibd": EXITED, "nv_peer_mem": EXITED},
    )  # fmt: skip
    for number in range(8):
        base = 0x10 + 0x1C * number
        places = below_switch(m, f"0000:{base:02x}:00.0", base + 1, base + 6, 3, gen=3, numa=number // 4, acs=0,
                              maker="intel-old")  # fmt: skip
        wiring.gpu(m, places[0], f"0000:{base + 3:02x}:00.0", V100_SXM3)
        wiring.gpu(m, places[1], f"0000:{base + 4:02x}:00.0", V100_SXM3)
        wiring.nic(m, places[2], f"0000:{base + 5:02x}:00.0", CX5, f"mlx5_{number}", f"ib{number}", traffic=10**12)
    ports = below_switch(
        m, "0000:f4:00.0", 0xF5, 0xFF, 6, gen=3, numa=1, width=4, port_width=4, acs=0, maker="intel-old"
    )
    wiring.nvswitches(m, ports, [f"0000:{0xF7 + n:02x}:00.0" for n in range(6)], 0x1AC2, "NVSwitch", 2, 4)
    board = wiring.root_port(m, "0000:00:1c.0", numa=0, gen=3, below=(6, 6), width=4, maker="intel-old")
    wiring.plain_nic(m, board, "0000:06:00.0", "enp6s0", speed=10000)
    wiring.loopback(m)
    return join_all(m)


def one_h100_pcie() -> Machine:
    """One H100 PCIe and one NIC, each on its own root port of one socket."""
    m = server("box-1", "SYS-221H")
    own_ports(m, H100_PCIE, [(0, 0x40)], 5)
    m.gpus[0].fabric = None
    port = wiring.root_port(m, "0000:50:01.0", numa=0, gen=5, below=(0x51, 0x51))
    wiring.nic(m, port, "0000:51:00.0", products.CX7_NDR, "mlx5_0", "ibp81s0", traffic=10**12)
    way_out(m)
    return m


def bridged(host: str, product: object, pairs: list[tuple[int, int]], links: int, count: int) -> Machine:
    """PCIe cards of which some pairs have NVLink bridges."""
    m = server(host, "SYS-740GP", modules=list(GPU_MODULES), ofed=False, services={"nvidia-persistenced": RUNNING})
    own_ports(m, product, [(n * 2 // count, 0x20 + 0x30 * n) for n in range(count)], 4)
    way_out(m)
    for one, other in pairs:
        wiring.join(m.gpus[one], m.gpus[other], links)
    return m


def a6000_pair() -> Machine:
    return bridged("ws-a6000", A6000, [(0, 1)], 4, 2)


def a100_pcie_pairs() -> Machine:
    return bridged("a100p-4", A100_PCIE, [(0, 1), (2, 3)], 12, 4)


def a100_pcie_one_pair() -> Machine:
    """Four A100 PCIe of which only two have bridges."""
    return bridged("a100p-5", A100_PCIE, [(0, 1)], 12, 4)


def gh200() -> Machine:
    """One Grace Hopper: C2C, NVLinks without anything to join, the NIC on another root of the same processor."""
    numa = [Numa(0, "0-71", 0, (10, 80)), Numa(1, "", None, (80, 10))]
    m = Machine(
        "gh-01", replace(GRACE, count=72), numa, "Supermicro", "ARS-111GL-NHR", "ARS-111GL-NHR", default_route="eno1", iommu="identity",
        modules=[*PEERMEM, *GPU_MODULES, *RDMA_MODULES], services={"nvidia-persistenced": RUNNING, "openibd": EXITED},
        iommu_names=["smmu3.0x0000000011000000"], kernel="6.8.0-1021-nvidia-64k",
    )  # fmt: skip
    port = wiring.root_port(m, "0009:00:00.0", numa=0, gen=5, maker="nvidia", below=(1, 1))
    one = wiring.gpu(m, port, "0009:01:00.0", GH200)
    one.memory_numa, one.memory_numas, one.addressing, one.c2c = 1, "0", 2, True
    port = wiring.root_port(m, "0000:00:00.0", numa=0, gen=5, maker="nvidia", below=(1, 1))
    wiring.nic(m, port, "0000:01:00.0", products.CX7_NDR, "mlx5_0", "ibp1s0", traffic=10**12)
    out = wiring.root_port(m, "0005:00:00.0", numa=0, gen=3, maker="nvidia", below=(9, 9), width=4)
    wiring.plain_nic(m, out, "0005:09:00.0", "eno1", speed=10000)
    wiring.loopback(m)
    wiring.iommu_groups(m)
    return m


def fresh_boot() -> Machine:
    """A DGX H100 a minute after boot: links train, the fabric is being set up, ports wait for the subnet manager."""
    m = dgx.dgx_h100("dgx-new")
    m.uptime_s = 61.2
    m.services["nvidia-fabricmanager"] = ("loaded", "activating", "start", "success")
    for one in m.gpus:
        wiring.take_down(one, list(range(18)))
        one.fabric = Fabric(state=2, status=0, mask=0, summary=0)
    for adapter in m.nics:
        if adapter.layer == "InfiniBand":
            adapter.state = "INIT"
            m.netdev(adapter.netdev).operstate = "down"
    return m


def container() -> Machine:
    """A container that got all GPUs and no RDMA devices; the PCI tree shows the host's NICs."""
    m = dgx.dgx_h100("trainer-0")
    m.container, m.nics, m.default_route, m.bonds, m.services, m.ofed = "containerd", [], "eth0", {}, {}, False
    m.netdevs = [NetDev("eth0", speed=10000, address="02:42:ac:11:00:02")]
    wiring.loopback(m)
    return m


def mig_mixed() -> Machine:
    """An HGX A100 with MIG on two of its GPUs: their NVLinks read as down."""
    m = hgx_a100.hgx_a100("a100-mig")
    for one in m.gpus[:2]:
        one.mig = True
    return m


def vfio() -> Machine:
    """A DGX H100 with GPU 5 handed to a virtual machine: the bus shows eight GPUs, the driver seven."""
    m = dgx.dgx_h100("dgx-vfio")
    gone = m.gpus.pop(5)
    m.fn(gone.bus).driver = "vfio-pci"
    for number, one in enumerate(m.gpus):
        one.index = number
    return m


def cgroup(m: Machine, keep: tuple[int, ...]) -> Machine:
    m.gpus = [one for one in m.gpus if one.index in keep]
    for number, one in enumerate(m.gpus):
        one.index = number
    return m


def slurm_two_of_eight() -> Machine:
    """A Slurm job that may use two of eight GPUs: the driver shows two, the bus eight."""
    return cgroup(dgx.dgx_h100("dgx-slurm"), (2, 3))


def slurm_two_of_mesh() -> Machine:
    """Two of the four GPUs of a board with direct links."""
    m = four_way.board("xe-7", products.H100, products.CX7_NDR, 6)
    m.modules = PEERMEM + m.modules
    return cgroup(m, (1, 2))


def slurm_one_of_eight() -> Machine:
    return cgroup(dgx.dgx_h100("dgx-slurm1"), (6,))


def snc() -> Machine:
    """Sub-NUMA clusters: two NUMA nodes to a socket, GPUs on one and the NICs on the other."""
    m = server("snc-1", "SYS-521GE")
    m.numa = [
        Numa(n, f"{28 * n}-{28 * n + 27},{112 + 28 * n}-{139 + 28 * n}", n // 2, tuple(10 if k == n else 12 if k // 2 == n // 2 else 21 for k in range(4)))
        for n in range(4)
    ]  # fmt: skip
    own_ports(m, products.L40S, [(0, 0x20), (0, 0x30), (2, 0xA0), (2, 0xB0)], 4)
    for number, (numa, bridge) in enumerate([(1, 0x60), (3, 0xE0)]):
        port = wiring.root_port(m, f"0000:{bridge:02x}:01.0", numa=numa, gen=4, below=(bridge + 1, bridge + 1))
        bus = bridge + 1
        wiring.nic(m, port, f"0000:{bus:02x}:00.0", products.CX6_HDR, f"mlx5_{number}", f"ibp{bus}s0", traffic=10**12)
    way_out(m)
    return m


def files_of(machine: Machine) -> tuple[dict[str, object], dict[str, bytes]]:
    """Manifest and files of a capture of this machine. An EFA has no network interface of its own."""
    table = bundle.files(machine)
    tree = table.get("trees/sys-infiniband.tree", "")
    if "/rdmap" in tree:
        table["trees/sys-infiniband.tree"] = "".join(
            line for line in tree.splitlines(keepends=True) if "/device/net/" not in line and "ndevs" not in line
        )
    if machine.container:
        # The generator knows hosts only: a pod of containerd shows no marker, and its process 1 is in its own root.
        state = table["trees/os-state.tree"].splitlines(keepends=True)
        table["trees/os-state.tree"] = (
            "".join(line for line in state if "proc/1/" not in line) + "= proc/1/cgroup\t0::/\n"
        )
    manifest = json.loads(table.pop("manifest.json"))
    return manifest, {name: text.encode() for name, text in table.items()}


MACHINES: tuple[Callable[[], Machine], ...] = (
    azure_a100, aws_p5, aws_g6e, aws_g6e_48, gcp_a3_mega, h200_ten_nics, storage_beside_gpu, storage_of_same_product, roce_bonds,
    dual_port_unused, geforce_eight, dgx2, one_h100_pcie, a6000_pair, a100_pcie_pairs, a100_pcie_one_pair, gh200, fresh_boot, container,
    mig_mixed, vfio, slurm_two_of_eight, slurm_two_of_mesh, slurm_one_of_eight, snc,
)  # fmt: skip
