"""The tree that NCCL would detect on a node, from what is known of the node: no file needed.

NCCL looks up every GPU and every NIC in sysfs, climbs two levels of the PCI path at a time (downstream port to upstream
port), takes the lesser ability of a function and the port above it as the link's speed and width, and asks NVML for
NVLinks (src/graph/xml.cc, ncclTopoGetXmlFromSys, ncclTopoGetXmlFromGpu; src/graph/topo.cc, ncclTopoGetSystem, v2.28).
What the evidence does not hold is assumed as built, and said so.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping

from topodiag.hardware import catalog
from topodiag.lazy import dataclass, regex
from topodiag.model.busid import NVSWITCH_BUS_ID
from topodiag.model.cpulist import parse_cpulist
from topodiag.model.devices import Gpu, NetDev, Nic, NicPort, NumaNode, PciDevice, PciKind
from topodiag.model.gpudirect import rdma_possible
from topodiag.model.nccl_tree import Element
from topodiag.model.node import Node
from topodiag.nccl.graph.graph import Branch
from topodiag.nccl.topo.hca_list import HcaFilter

HIDDEN_SWITCH = "fffffff:ffff:ff"
"""What NCCL writes as the target of an NVLink whose far end the host cannot see."""

SWITCH_CLASS, GPU_CLASS = "0x068000", "0x030200"

GT_PER_S = {1: "2.5", 2: "5.0", 3: "8.0", 4: "16.0", 5: "32.0", 6: "64.0"}
"""Transfers of a lane by PCIe generation, in the kernel's spelling."""

IB_MAXCONN = 131072
"""maxComms of NCCL's IB transport (src/transport/net_ib.cc)."""
SOCKET_MAXCONN = 65536

NOT_FOR_DATA = regex(r"lo|docker.*|virbr.*|veth.*|br-.*|cni.*|flannel.*|cali.*|tunl.*|bond.*\..*")


def link_speed(gen: int) -> str:
    """The kernel's words for a PCIe generation, which NCCL reads: `32.0 GT/s PCIe`; "" for one that is not known."""
    return f"{GT_PER_S[gen]} GT/s PCIe" if gen in GT_PER_S else ""


def net_attributes(
    name: str,
    dev: int,
    mbps: float,
    guid: str = "",
    *,
    port: int = 1,
    maxconn: int = IB_MAXCONN,
    gdr: bool = True,
) -> dict[str, str]:
    """Those of a `<net>` as NCCL's plugins give them; without a GUID one of its own, so that no two NICs count as
    one."""
    return {
        "name": name,
        "dev": str(dev),
        "latency": "0",
        "speed": str(round(mbps)),
        "port": str(port),
        "guid": guid or hex(0x1000 + dev),
        "maxconn": str(maxconn),
        "gdr": str(int(gdr)),
    }


def pci_of(bus_id: str, kind: str, gen: int, lanes: int, below: Iterable[Element]) -> Element:
    """The `<pci>` of a function of this class, with the link that it has."""
    attributes = (("busid", bus_id), ("class", kind), ("link_speed", link_speed(gen)), ("link_width", str(lanes)))
    return Element("pci", attributes, tuple(below))


def gpu_of(
    dev: int, sm: int, links: Iterable[tuple[str, int, str]], c2c_gbs: float | None, *, gdr: bool, rank: int = -1
) -> Element:
    """A `<gpu>` with NVLinks by target, count and class of the target; without a rank where it is -1."""
    below = [Element("nvlink", (("target", target), ("count", str(count)), ("tclass", tclass)))
             for target, count, tclass in links if count]  # fmt: skip
    if c2c_gbs:
        below.append(Element("c2c", (("bw", str(round(c2c_gbs * 1000))), ("count", "1"))))
    ranked = (("rank", str(rank)),) if rank >= 0 else ()
    return Element("gpu", (("dev", str(dev)), ("sm", str(sm)), *ranked, ("gdr", str(int(gdr)))), tuple(below))


class LackingError(ValueError):
    """The evidence of a node is not enough to rebuild the tree; the message says what lacks."""


@dataclass(frozen=True, slots=True)
class Detected:
    """The tree, and what had to be assumed for it, one sentence each."""

    tree: Element
    assumed: tuple[str, ...] = ()


def tree_of(node: Node, env: Mapping[str, str] | None = None) -> Detected:
    """The system element of a node: from its own topology file where it has one, else as NCCL would detect it.

    `env` are NCCL settings that choose NICs (NCCL_IB_HCA, NCCL_SOCKET_IFNAME); None takes those of the node.
    Raises LackingError without GPUs or without their places on the PCI bus.
    """
    if node.nccl_file is not None:
        return Detected(node.nccl_file.tree)
    return _Detector(node, dict(env) if env is not None else _settings(node)).run()


def places_of(node: Node, functions: Iterable[str]) -> Element:
    """The tree of these PCI functions alone, by bus id, whatever drives them: a host that has passed its GPUs to guests
    knows no GPU, and still where each one sits. Functions that the evidence does not hold are left out."""
    detector = _Detector(node, {})
    for bus_id in functions:
        if bus_id in node.pci:
            detector._pci(bus_id, "0x060400")
    return detector.system.closed()


def masks_of(node: Node) -> dict[int, str]:
    """The cpus of each NUMA node that has some, as the kernel's mask."""
    return {numa.id: mask for numa in node.numa if (mask := _mask(numa))}


def _settings(node: Node) -> dict[str, str]:
    return {setting.name: setting.value for setting in node.settings}


class _Detector:
    def __init__(self, node: Node, env: Mapping[str, str]) -> None:
        self.node = node
        self.env = env
        self.system = Branch("system", {"version": "1"})
        self.cpus: dict[int, Branch] = {}
        self.places: dict[str, Branch] = {}
        self.assumed: dict[str, None] = {}
        gdr = rdma_possible(node)
        if gdr is None:
            self.assume("GPUDirect RDMA is taken as possible: its modules were not seen")
        self.gdr = gdr is not False

    def assume(self, what: str) -> None:
        self.assumed.setdefault(what)

    def run(self) -> Detected:
        if not self.node.gpus:
            raise LackingError("no GPU in the evidence")
        for place, gpu in enumerate(sorted(self.node.gpus, key=lambda gpu: gpu.index)):
            self._gpu(gpu, place)
            if place == 0:  # the first rank's tree holds its own GPU and all NICs; the others add their GPUs to it
                self._nets()
        return Detected(self.system.closed(), tuple(self.assumed))

    def _gpu(self, gpu: Gpu, rank: int) -> None:
        if gpu.bus_id is None:
            raise LackingError(f"no bus id of {gpu.label}")
        spec = catalog.gpu_by_name(gpu.name.get(""))
        sm = gpu.sm.value or (spec.sm if spec else None)
        if sm is None:
            raise LackingError(f"no compute capability of {gpu.label}")
        pci = self._pci(gpu.bus_id, GPU_CLASS)
        able = spec is None or spec.form != "pcie" or spec.p2p_pcie
        links = ((target, count, tclass) for target, (count, tclass) in self._nvlinks(gpu).items())
        gbs = gpu.c2c_gbs.value or (spec.c2c_gbs if spec is not None and gpu.c2c.get(False) else 0.0)
        pci.children.append(Branch.opened(gpu_of(gpu.index, sm, links, gbs, gdr=self.gdr and able, rank=rank)))

    def _nvlinks(self, gpu: Gpu) -> dict[str, tuple[int, str]]:
        """Active links by target: (count, PCI class of the target)."""
        by_bus = {other.bus_id for other in self.node.gpus}
        counts: Counter[tuple[str, str]] = Counter()
        for link in gpu.nvlinks:
            if link.state.get("active") != "active":
                continue
            far = link.remote_bus_id.value
            device = self.node.pci.get(far) if far else None
            if far in by_bus and far is not None:
                counts[far, GPU_CLASS] += 1
            elif device is not None and far is not None:
                counts[far, _class_text(device)] += 1
            elif link.remote_type.value == "switch" or far == NVSWITCH_BUS_ID:
                counts[HIDDEN_SWITCH, SWITCH_CLASS] += 1
        if not counts:
            return self._by_links(gpu) or self._as_built(gpu)
        return {target: (count, tclass) for (target, tclass), count in counts.items()}

    def _by_links(self, gpu: Gpu) -> dict[str, tuple[int, str]]:
        """From the node's graph (which knows the matrix), where no link tells its far end."""
        groups: dict[str, tuple[int, str]] = {}
        mine = f"gpu:{gpu.index}"
        for link in self.node.links:
            if link.kind.value != "nvlink" or mine not in (link.a, link.b):
                continue
            far = link.b if link.a == mine else link.a
            peer = self.node.gpu(int(far[4:])) if far.startswith("gpu:") and far[4:].isdigit() else None
            if peer is not None and peer.bus_id:
                groups[peer.bus_id] = (link.count, GPU_CLASS)
            elif far.startswith("nvs:"):
                groups[HIDDEN_SWITCH] = (link.count, SWITCH_CLASS)
        if groups:
            self.assume("far ends of NVLinks are taken from nvidia-smi's matrix")
        return groups

    def _as_built(self, gpu: Gpu) -> dict[str, tuple[int, str]]:
        """The links of an NVSwitch product of which nothing was seen: a tool that hung says nothing of the links."""
        spec = catalog.gpu_by_name(gpu.name.get(""))
        seen = bool(gpu.nvlinks) or gpu.nvlink_note.known or any(gpu.label in pair for pair in self.node.smi_matrix)
        if seen or spec is None or not spec.nvswitch or spec.bridged or len(self.node.gpus) < 3:
            return {}
        self.assume(f"NVLinks of {spec.name} are taken as built, {spec.nvlinks} to NVSwitches: they were not seen")
        return {HIDDEN_SWITCH: (spec.nvlinks, SWITCH_CLASS)}

    def _nets(self) -> None:
        ports = self._rdma_ports()
        for dev, (nic, port) in enumerate(ports):
            name = nic.rdma_name or nic.name
            speed = port.rate_gbps.value
            if speed is None:
                self.assume(f"{name} is taken as 10 Gb/s: its rate was not seen")
            mbps = (speed or 10.0) * 1000
            self._net(nic.bus_id, net_attributes(name, dev, mbps, _guid(nic, port), port=port.number, gdr=self.gdr))
        for dev, netdev in enumerate(self._sockets() if not ports else ()):
            speed_mbps = netdev.speed_mbps.value
            mbps = speed_mbps if speed_mbps and speed_mbps > 0 else 10000
            attributes = net_attributes(netdev.name, dev, mbps, hex(dev), port=0, maxconn=SOCKET_MAXCONN, gdr=False)
            self._net(netdev.bus_id, attributes)

    def _net(self, bus_id: str | None, attributes: dict[str, str]) -> None:
        known = bus_id is not None and bus_id in self.node.pci
        parent = self._pci(bus_id, "0x020000") if known and bus_id is not None else self._first_cpu()
        (parent.first("nic") or parent.add("nic", {})).add("net", attributes)

    def _rdma_ports(self) -> list[tuple[Nic, NicPort]]:
        """The ports that NCCL's IB transport takes: active ones, by NCCL_IB_HCA where that is set."""
        wanted = HcaFilter(self.env.get("NCCL_IB_HCA", ""))
        pairs = []
        for nic in self.node.nics:
            if nic.rdma_name is None or nic.transport.get("").lower() == "iwarp":
                continue
            for port in nic.ports:
                usable = (
                    port.state.get("ACTIVE").upper().endswith("ACTIVE") and port.link_layer.get("") != "Unspecified"
                )
                if usable and wanted.takes(nic.rdma_name, port.number):
                    pairs.append((nic, port))
        return pairs

    def _sockets(self) -> list[NetDev]:
        """The interfaces that NCCL's socket transport takes: up, by NCCL_SOCKET_IFNAME or else not loopback, not
        docker. NCCL also asks for an address, which the evidence does not hold."""
        wanted = self.env.get("NCCL_SOCKET_IFNAME", "")
        up = [netdev for netdev in self.node.netdevs if netdev.operstate.get("up") in ("up", "unknown")]
        up = [netdev for netdev in up if netdev.master.value is None]
        if wanted:
            taken = HcaFilter(wanted)
            return [netdev for netdev in up if taken.takes(netdev.name, 0)]
        return [netdev for netdev in up if NOT_FOR_DATA.fullmatch(netdev.name) is None]

    def _pci(self, bus_id: str, class_text: str) -> Branch:
        """The element of a function, made with those of the switches above it when it is not there yet."""
        if bus_id in self.places:
            return self.places[bus_id]
        device = self.node.pci.get(bus_id)
        # From the function up: downstream port, upstream port (the switch), ..., root port. Every second one counts.
        above = [bridge.bus_id for bridge in self.node.ancestors(bus_id)][1::2]
        parent = self._pci(above[0], "0x060400") if above else self._cpu(self.node.hung_from(bus_id))
        if device is None:
            self.assume(f"{bus_id} is taken as Gen3 x16 below the first processor: its place was not seen")
        element = self.places[bus_id] = parent.add("pci", self._pci_attributes(bus_id, device, class_text))
        return element

    def _pci_attributes(self, bus_id: str, device: PciDevice | None, class_text: str) -> dict[str, str]:
        attributes = {"busid": bus_id, "class": _class_text(device) if device is not None else class_text}
        if device is None:
            return attributes | {"link_speed": "", "link_width": "0"}
        ids = {
            "vendor": device.vendor.value,
            "device": device.device.value,
            "subsystem_vendor": device.subsystem_vendor.value,
            "subsystem_device": device.subsystem_device.value,
        }
        attributes |= {name: f"{value:#06x}" for name, value in ids.items() if value is not None}
        gen, width = self._ability(device)
        attributes["link_speed"] = link_speed(gen or 0)
        attributes["link_width"] = str(width or 0)
        return attributes

    def _ability(self, device: PciDevice) -> tuple[int | None, int | None]:
        """Generation and lanes that the function and the port above it can do together."""
        above = self.node.pci.get(device.parent) if device.parent else None
        gens = [device.max_gen.value, device.slot_max_gen.value, above.max_gen.value if above else None]
        widths = [device.max_width.value, device.slot_max_width.value, above.max_width.value if above else None]
        return _least(gens), _least(widths)

    def _first_cpu(self) -> Branch:
        return self.system.children[0] if self.system.children else self._cpu(-1)

    def _cpu(self, numa: int) -> Branch:
        if numa in self.cpus:
            return self.cpus[numa]
        known = next((numa_node for numa_node in self.node.numa if numa_node.id == numa), None)
        cpu = self.node.cpu
        arch = cpu.arch.get("")
        attributes = {"numaid": str(numa), "affinity": _mask(known)}
        if not arch:
            self.assume("the processor is taken as x86_64 of no known vendor: it was not seen")
        attributes["arch"] = {"aarch64": "arm64", "ppc64le": "ppc64"}.get(arch, arch or "x86_64")
        if attributes["arch"] == "x86_64":
            attributes["vendor"] = cpu.vendor.get("")
            attributes["familyid"] = str(cpu.family.get(0))
            attributes["modelid"] = str(cpu.model.get(0))
        element = self.cpus[numa] = self.system.add("cpu", attributes)
        return element


def _least(values: Iterable[int | None]) -> int | None:
    return min((value for value in values if value), default=None)


def _class_text(device: PciDevice) -> str:
    if device.class_code.value is not None:
        return f"{device.class_code.value:#08x}"
    of_kind = {PciKind.GPU: GPU_CLASS, PciKind.NIC: "0x020000", PciKind.NVSWITCH: SWITCH_CLASS}
    return of_kind.get(device.kind, "0x060400")


def _guid(nic: Nic, port: NicPort) -> str:
    """The node GUID as NCCL writes it, "" where none is known."""
    digits = re.sub(r"[^0-9a-fA-F]", "", nic.node_guid.get("") or port.guid.get(""))
    return hex(int(digits[:16], 16)) if digits else ""


def _mask(numa: NumaNode | None) -> str:
    """The cpus of a NUMA node as the kernel's mask: 32-bit groups in hexadecimal, the highest first."""
    cpus = parse_cpulist(numa.cpus.get("")) if numa is not None else None
    if not cpus:
        return ""
    groups = [0] * (max(cpus) // 32 + 1)
    for cpu in cpus:
        groups[cpu // 32] |= 1 << cpu % 32
    return ",".join(f"{group:08x}" for group in reversed(groups))
