"""The tree behind what NCCL printed of its system: a topology file for whoever has only a log with GRAPH lines.

The print holds the simplified tree: CPUs, PCIe switches that matter, GPUs, NICs, and the bandwidth of each link.
Speeds and lanes are chosen so that NCCL reckons the same bandwidth from them again; names are made up. Not printed, and
so not known: link latencies, GPUDirect (taken as possible) and the compute capability (given by the caller).
SOURCE: NCCL src/graph/topo.cc, ncclTopoPrint and ncclTopoPrintRec.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from topodiag.hardware.catalog import pcie_nccl_gbs
from topodiag.lazy import dataclass
from topodiag.model.nccl_enums import CpuVendor
from topodiag.model.nccl_tree import Element
from topodiag.model.nccl_view import NcclSystem, SystemDevice
from topodiag.nccl.graph.bandwidths import nvlink_bandwidth
from topodiag.nccl.numbers import bus_id, spell_bus_id
from topodiag.nccl.topo.changes import gpus_of
from topodiag.nccl.topo.detect import GPU_CLASS, GT_PER_S, HIDDEN_SWITCH, SWITCH_CLASS, gpu_of, net_attributes, pci_of
from topodiag.words.units import grouped

_BRIDGE_CLASS, _NIC_CLASS = "0x060400", "0x020700"
_ARCHES = {1: "x86_64", 2: "ppc64", 3: "arm64"}
_VENDORS = {1: "GenuineIntel", 2: "AuthenticAMD", 3: "CentaurHauls"}
_MODELS = {1: "79", 2: "85", 3: "143", 4: "207"}
"""Intel's model numbers for what NCCL tells apart: Broadwell, Skylake, Sapphire Rapids, Emerald Rapids."""
_AMD_FAMILIES = {1: "23", 2: "25", 3: "26"}
"""AMD's families for what NCCL tells apart since 2.31: Zen 1 and 2, Zen 3 and 4, Zen 5. Before, it prints none."""
_LANES = (16, 8, 4, 2, 1)
MAX_DEPTH = 16


def tree_of_print(system: NcclSystem, sm: int, minor: int = 28) -> Element | None:
    """The `<system>` element of the first node in a print, for GPUs of compute capability `sm` (90) and the version
    2.`minor` that printed it. None where the print lacks CPUs or GPUs, or a GPU hangs nowhere."""
    first = next((device.id.partition("-")[0] for device in system.of_kind("GPU")), None)
    if first is None:
        return None
    mine = {name: device for name, device in system.devices.items() if _node(device) == first}
    below = grouped((device.parent, device) for device in mine.values())
    cpus = [device for device in mine.values() if device.kind == "CPU"]
    gpus = sorted((device for device in mine.values() if device.kind == "GPU"), key=lambda device: _number(device.id))
    if not cpus or any(device.parent not in mine for device in gpus):
        return None
    links: dict[str, dict[str, dict[str, float]]] = {}
    for link in system.links:
        # Both ends print a link, and a CPU prints one per GPU: the first is enough.
        links.setdefault(link.a, {}).setdefault(link.kind, {}).setdefault(link.b, link.gbs)
    maker = _Maker(links, sm, minor, below, {device.name: number for number, device in enumerate(gpus)})
    return Element("system", (("version", "1"),), tuple(maker.cpu(number, cpu) for number, cpu in enumerate(cpus)))


@dataclass(frozen=True, slots=True)
class _Maker:
    links: Mapping[str, Mapping[str, Mapping[str, float]]]
    """Bandwidth in GB/s by one end, kind and other end."""
    sm: int
    minor: int
    below: Mapping[str, Sequence[SystemDevice]]
    gpus: Mapping[str, int]

    def cpu(self, number: int, cpu: SystemDevice) -> Element:
        arch, vendor, model = (*cpu.numbers, -1, -1, -1)[:3]
        numa = cpu.id.rpartition("-")[2]
        attributes = [("numaid", numa if numa.isdigit() and len(numa) < 4 else str(number))]
        attributes.append(("arch", _ARCHES.get(arch, "x86_64")))
        if vendor in _VENDORS:
            family = _AMD_FAMILIES.get(model, "25") if vendor == CpuVendor.AMD else "6"
            attributes += [("vendor", _VENDORS[vendor]), ("familyid", family), ("modelid", _MODELS.get(model, "143"))]
        return Element("cpu", tuple(attributes), tuple(self._children(cpu, 0)))

    def _children(self, parent: SystemDevice, depth: int) -> list[Element]:
        elements: list[Element] = []
        for device in self.below.get(parent.name, ()) if depth < MAX_DEPTH else ():
            if device.kind == "PCI":
                elements.append(self._pci(parent, device, _BRIDGE_CLASS, self._children(device, depth + 1)))
            elif device.kind == "GPU":
                elements.append(self._pci(parent, device, GPU_CLASS, [self._gpu(device, device)]))
            elif device.kind == "DEV":  # since 2.30 the function and the GPU on it are two vertices
                gpus = [self._gpu(gpu, device) for gpu in self.below.get(device.name, ()) if gpu.kind == "GPU"]
                elements.append(self._pci(parent, device, GPU_CLASS, gpus[:1]))
            elif device.kind == "NIC":
                nets = [net for net in self.below.get(device.name, ()) if net.kind == "NET"]
                elements.append(
                    self._pci(parent, device, _NIC_CLASS, [Element("nic", (), tuple(map(self._net, nets)))])
                )
        return elements

    def _pci(self, parent: SystemDevice, device: SystemDevice, kind: str, below: Sequence[Element]) -> Element:
        gbs = self.links.get(parent.name, {}).get("PCI", {}).get(device.name)
        return pci_of(bus_of(device.id), kind, *_link(gbs if gbs is not None else 48.0), below)

    def _gpu(self, gpu: SystemDevice, function: SystemDevice) -> Element:
        link_gbs = nvlink_bandwidth(self.sm, self.minor)
        links = []
        mine = {**self.links.get(gpu.name, {}), **self.links.get(function.name, {})}
        for other, gbs in mine.get("NVL", {}).items():
            switch = other.startswith("NVS")
            target = HIDDEN_SWITCH if switch else bus_of(other.partition("/")[2])
            links.append((target, max(round(gbs / link_gbs), 1), SWITCH_CLASS if switch else GPU_CLASS))
        c2c = next(iter(mine.get("C2C", {}).values()), None)
        number = self.gpus[gpu.name]
        return gpu_of(number, self.sm, links, c2c, gdr=True, rank=number)

    def _net(self, net: SystemDevice) -> Element:
        number = _number(net.id)
        speed = net.speed_gbs if net.speed_gbs is not None else 12.5
        port = net.port if net.port is not None and 0 <= net.port < 256 else 1
        guid = f"0x{net.guid}" if net.guid else ""
        return Element("net", tuple(net_attributes(f"net{number}", number, speed * 8000, guid, port=port).items()))


def bus_of(device: str) -> str:
    """`0-1b000`, NCCL's packed number, as `0000:1b:00.0`."""
    return spell_bus_id(_number(device))


def _node(device: SystemDevice) -> str:
    return device.id.partition("-")[0]


def _number(device: str) -> int:
    text = device.rpartition("-")[2][:16]
    return int(text, 16) if text and set(text) <= set("0123456789abcdef") else 0


def _link(gbs: float) -> tuple[int, int]:
    """Generation and lanes whose bandwidth is nearest, as many lanes as fit."""
    ways = [(abs((pcie_nccl_gbs(gen, lanes) or 0.0) - gbs), -lanes, gen) for gen in GT_PER_S for lanes in _LANES]
    _, lanes, gen = min(ways)
    return gen, -lanes


def device_names(tree: Element) -> dict[str, str]:
    """NCCL's labels as people know the devices: `GPU/0-61000` is GPU3, `NET/0-3` mlx5_3. Of several hosts nothing, for
    their numbers repeat."""
    if len({cpu.get("host_hash") for cpu in tree.having("cpu")}) > 1:
        return {}
    names = {f"GPU/0-{bus_id(pci.get('busid') or ''):x}": f"GPU{number}" for number, pci in gpus_of(tree).items()}
    nets: dict[str, str] = {}
    for element in tree.walk():
        dev, name = element.get("dev") or "", element.get("name")
        if element.tag == "net" and name and re.fullmatch(r"[0-9]{1,4}", dev):
            # One number twice names neither.
            label = f"NET/0-{int(dev):x}"
            nets[label] = name if nets.get(label, name) == name else ""
    return names | {label: name for label, name in nets.items() if name}
