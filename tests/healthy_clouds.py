"""Healthy guests of clouds: flattened PCI trees, virtual functions, adapters of their own."""
# ruff: noqa: E501 - tables of machines, one part a line, as in fixtures/generate

from dataclasses import replace

from fixtures.generate import products
from fixtures.generate.machine import Machine
from fixtures.generate.machines import vm
from fixtures.generate.machines.common import GENOA, GPU_MODULES, OFF, RUNNING, SPR, two_sockets
from fixtures.generate.parts import NetDev
from fixtures.generate.wiring import gpu, loopback, nic
from tests.healthy_parts import A100_40, CX4LX_VF, CX6_VF, EFA, below_switch, cloud_nic, join_all


def azure_a100() -> Machine:
    """ND96asr v4: a flattened guest whose image brings the topology file, with accelerated networking for the way out."""
    m = vm.guest()
    m.host, m.numa = "nda100-0001", two_sockets(48, threads=False)
    m.gpus, m.nics, m.pci, m.netdevs = [], [], [], []
    m.conf = ["NCCL_TOPO_FILE=/opt/microsoft/ndv4-topo.xml", "NCCL_IB_PCI_RELAXED_ORDERING=1"]
    for number in range(8):
        domain = f"{number + 1:04x}"
        gpu(m, None, f"{domain}:00:00.0", A100_40, root=f"pci{domain}:00")
        vm._flatten(m.fn(f"{domain}:00:00.0"))
        domain = f"{number + 0x101:04x}"
        adapter = nic(m, None, f"{domain}:00:00.0", CX6_VF, f"mlx5_ib{number}", f"ib{number}", root=f"pci{domain}:00", traffic=10**13,
                   is_vf=True)  # fmt: skip
        adapter.is_vf = True
        vm._flatten(m.fn(adapter.bus))
    adapter = nic(
        m, None, "e291:00:02.0", CX4LX_VF, "mlx5_an0", "enP58001s1", layer="Ethernet", root="pcie291:00", is_vf=True
    )
    adapter.is_vf = True
    vm._flatten(m.fn(adapter.bus))
    m.netdev("enP58001s1").master = "eth0"
    m.netdevs.append(NetDev("eth0", speed=50000, address="00:0d:3a:7c:21:9f"))
    loopback(m)
    return join_all(m)


def aws_p5() -> Machine:
    """p5.48xlarge: 32 EFA of 100 Gb/s, four beside each GPU on one virtual root; the way out is an ENA."""
    m = Machine(
        "ip-10-1-77-12", replace(GENOA, count=192), two_sockets(96, threads=False), "Amazon EC2", "p5.48xlarge", "", virt="amazon", ofed=False,
        default_route="ens32", modules=[*GPU_MODULES, "efa", "ib_core", "ib_uverbs", "ena"], memory_peers=False,
        services={"nvidia-fabricmanager": RUNNING, "nvidia-persistenced": RUNNING}, kernel="6.1.112-124.190.amzn2023.x86_64",
        environ={"FI_PROVIDER": "efa", "NCCL_DEBUG": "WARN"},
    )  # fmt: skip
    for number in range(8):
        root, first = f"pci0000:{0x40 + 0x10 * number:02x}", 0x40 + 0x10 * number
        for adapter in range(4):
            bus = f"0000:{first + 1 + adapter:02x}:00.0"
            names = f"rdmap{first + 1 + adapter}s0", f"efa{4 * number + adapter}"
            nic(m, None, bus, EFA, *names, layer="Unspecified", root=root, traffic=10**12)
            m.fn(bus).vendor, m.fn(bus).driver, m.fn(bus).numa = 0x1D0F, "efa", number // 4
        gpu(m, None, f"0000:{first + 9:02x}:00.0", products.H100, root=root)
        m.fn(f"0000:{first + 9:02x}:00.0").numa = number // 4
    m.netdevs = []
    cloud_nic(m, None, "0000:20:00.0", "ena", root="pci0000:20")
    m.netdevs.append(
        NetDev("ens32", "0000:20:00.0", speed_unknown=True, address="0e:1b:22:33:44:55", driver="ena", fw="")
    )
    loopback(m)
    for fn in m.pci:
        fn.has_aer = False
    return join_all(m)


def aws_g6e(count: int = 4, product: str = "g6e.12xlarge") -> Machine:
    """g6e: L40S side by side in a flattened guest, no EFA attached."""
    m = Machine(
        "ip-10-1-9-3", replace(GENOA, count=48), two_sockets(24, threads=False)[:1], "Amazon EC2", product, "", virt="amazon", ofed=False,
        default_route="ens5", modules=[*GPU_MODULES, "ena"], memory_peers=False, services={"nvidia-persistenced": RUNNING},
        relation_text="PHB",
    )  # fmt: skip
    m.numa[0].distances = (10,)
    for number in range(count):
        bus = f"0000:{0x30 + number:02x}:00.0"
        gpu(m, None, bus, products.L40S, root="pci0000:00")
        fn = m.fn(bus)
        fn.gen, fn.max_gen, fn.width, fn.max_width = None, None, 0, 0
        fn.speed_text, fn.has_aer, fn.numa = "Unknown", False, -1
    cloud_nic(m, None, "0000:00:05.0", "ena", root="pci0000:00")
    m.netdevs.append(
        NetDev("ens5", "0000:00:05.0", speed_unknown=True, address="0e:1b:22:33:44:56", driver="ena", fw="")
    )
    loopback(m)
    return m


def aws_g6e_48() -> Machine:
    """g6e.48xlarge: eight L40S, its four EFA not attached, as for inference."""
    return aws_g6e(8, "g6e.48xlarge")


def gcp_a3_mega() -> Machine:
    """a3-megagpu-8g: the guest sees its switches, and nine gVNIC instead of RDMA."""
    m = Machine(
        "a3m-0007", replace(SPR, count=208), two_sockets(104, threads=False), "Google", "Google Compute Engine", "Google Compute Engine",
        virt="google", ofed=False, default_route="enp0s12", modules=[*GPU_MODULES, "gve"], memory_peers=False,
        services={"nvidia-fabricmanager": OFF, "nvidia-persistenced": RUNNING},
    )  # fmt: skip
    for number in range(4):
        base = 0x04 + 0x20 * number
        ports = below_switch(m, f"0000:{base - 2:02x}:01.0", base, base + 7, 4, gen=5, numa=number // 2)
        for slot in (0, 1):
            gpu(m, ports[slot], f"0000:{base + 2 + slot:02x}:00.0", products.H100)
            bus = f"0000:{base + 4 + slot:02x}:00.0"
            cloud_nic(m, ports[2 + slot], bus, "gve")
            address = f"42:01:0a:80:00:{number}{slot}"
            m.netdevs.append(
                NetDev(f"eth{1 + 2 * number + slot}", bus, speed=200000, mtu=8244, driver="gve", address=address)
            )
    cloud_nic(m, None, "0000:00:0c.0", "gve", root="pci0000:00")
    m.netdevs.append(
        NetDev("enp0s12", "0000:00:0c.0", speed=200000, mtu=8244, driver="gve", address="42:01:0a:80:00:02")
    )
    loopback(m)
    return join_all(m)
