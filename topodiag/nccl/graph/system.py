"""The system graph that NCCL builds from the joined tree: vertices, links and their bandwidths, before any path.

After src/graph/topo.cc (ncclTopoGetSystemFromXml). Creation order is kept everywhere: the search
breaks ties by it.
"""

from __future__ import annotations

from collections import defaultdict

from topodiag.model.nccl_enums import VERTEX_KINDS
from topodiag.model.nccl_tree import RCCL_FILE
from topodiag.model.nccl_versions import MAX_LINKS, MAX_VERTICES, Feature, has, path_types
from topodiag.nccl.graph.bandwidths import (
    AMD,
    ARCHES,
    INTEL,
    LOC_BW,
    MLOPART_BW,
    RCCL_SM,
    VENDORS,
    X86,
    ZHAOXIN,
    cpu_bandwidth,
    cpu_model,
    device_id,
    gcn_name,
    link_bandwidth,
    looked_up,
    nvlink_bandwidth,
    pci_class,
    rccl_cpu_model,
    xgmi_bandwidth,
)
from topodiag.nccl.graph.flatten import flatten
from topodiag.nccl.graph.graph import OWN_RAIL, Branch, Link, RejectedError, System, Vertex
from topodiag.nccl.graph.nearest import cpu_above
from topodiag.nccl.numbers import bus_id, c_float, c_hex, single, wrap32

MASK = (1 << 56) - 1
MLOPART_BITS = 3
"""Low bits of a bus id that name a partition of a GPU (NCCL_TOPO_MLOPART_MASK)."""
_DEFAULT_NET_MBPS = 10000


def build_graph(tree: Branch, *, minor: int, nranks: int) -> System:
    """Vertices and links of the joined tree, sorted as NCCL sorts them; no paths.

    Raises RejectedError with NCCL's words and the line for a missing attribute or too many vertices or links.
    """
    builder = _Builder(minor, nranks, rccl=tree.attributes.get("version") == RCCL_FILE)
    for cpu in tree.children:
        builder.add_cpu(cpu)
    builder.add_links(tree)
    flatten(builder.system)
    builder.connect_cpus()
    _sort(builder.system)
    return builder.system


class _Builder:
    """The state of ncclTopoGetSystemFromXml."""

    def __init__(self, minor: int, nranks: int, *, rccl: bool = False) -> None:
        self.minor = minor
        self.types = path_types(minor)
        self.system = System(minor=minor, nranks=nranks, rccl=rccl)
        self.by_id: dict[tuple[str, int], Vertex] = {}
        self.max_nodes, self.max_links = MAX_VERTICES[minor], MAX_LINKS[minor]
        self.devices = has(minor, Feature.GPU_DEVICES)
        self.full_bus_ids = has(minor, Feature.NIC_BY_FULL_BUS_ID)
        self.gpus_of: dict[Vertex, int] = {}
        self.adapters: dict[int, dict[int, int]] = defaultdict(dict)
        """By host the numbers of adapters."""
        self.line = 0

    def create(self, kind: str, id: int) -> Vertex:  # noqa: A002 - as the field of a vertex
        vertices = self.system.nodes[kind]
        if len(vertices) >= self.max_nodes:
            number = VERTEX_KINDS.index(kind)
            raise RejectedError(f"Error : tried to create too many nodes of type {number}", self.line)
        vertex = Vertex(kind, id, len(vertices))
        vertices.append(vertex)
        self.by_id.setdefault((kind, id), vertex)
        self.system.lines[vertex] = self.line
        return vertex

    def connect(self, one: Vertex, other: Vertex, type: int, bw: float) -> None:  # noqa: A002 - as the field of a link
        """Adds bandwidth to a link, made if need be, and keeps the vertex's links in falling order of bandwidth."""
        links = one.links
        position = next((at for at, link in enumerate(links) if link.remote is other and link.type == type), len(links))
        if position == len(links):
            if position >= self.max_links:
                raise RejectedError(f"Error : too many Topo links (max {self.max_links})", self.line)
            links.append(Link(type, other, 0.0))
        link = links[position]
        link.bw = single(link.bw + single(bw))
        while position and links[position - 1].bw < link.bw:
            links[position] = links[position - 1]
            position -= 1
        links[position] = link

    def join(self, one: Vertex, other: Vertex, type: int, bw: float) -> None:  # noqa: A002 - as the field of a link
        self.connect(one, other, type, bw)
        self.connect(other, one, type, bw)

    def system_id(self, cpu: Branch) -> int:
        """Which host a CPU is of, by its host_hash; without MNNVL there is one."""
        if not has(self.minor, Feature.MNNVL):
            return 0
        host = c_hex(cpu.attributes.get("host_hash", ""))
        if host not in self.system.hosts:
            self.system.hosts.append(host)
        return self.system.hosts.index(host)

    def add_cpu(self, branch: Branch) -> None:
        self.line = branch.line
        numa = branch.number("numaid")
        host = self.system_id(branch)
        cpu = self.create("CPU", (host << 56) + (numa & MASK))
        cpu.arch = looked_up(branch.required("arch"), ARCHES, 0)
        cpu.model = cpu.vendor = -1
        if cpu.arch == X86:
            cpu.vendor = looked_up(branch.required("vendor"), VENDORS, 0)
            if cpu.vendor in (INTEL, AMD, ZHAOXIN):
                cpu.model = (rccl_cpu_model if self.system.rccl else cpu_model)(branch, cpu.vendor, self.minor)
        for child in branch.children:
            if child.tag == "pci":
                self.add_pci(child, cpu, host)
            elif child.tag == "nic":
                nic = self.by_id.get(("NIC", (host << 56) if self.full_bus_ids else 0))
                if nic is None:
                    nic = self.create("NIC", host << 56)
                    self.join(cpu, nic, self.types.pix, LOC_BW)
                self.add_nets(child, nic, host, None)

    def add_pci(self, branch: Branch, parent: Vertex, host: int) -> None:
        """ncclTopoAddPci: a vertex for the function, its children first, then its link to the parent."""
        self.line = branch.line
        kind = pci_class(branch.required("class"), rccl=self.system.rccl)
        busid = bus_id(branch.required("busid"))
        node: Vertex | None = None
        if self.devices:
            link_bandwidth(branch)
            for gpu in branch.children:
                if gpu.tag == "gpu":
                    if "rank" not in gpu.attributes:
                        return
                    self.add_partition(branch, gpu, parent, host)
        else:
            first = branch.first("gpu")
            if first is not None:
                kind = "GPU"
                if "rank" not in first.attributes:
                    return
                node = self.create("GPU", (host << 56) + (busid & MASK))
                self.fill_gpu(node, first, branch)
        nic = branch.first("nic")
        if nic is not None:
            key = (host << 56) + ((busid if self.full_bus_ids else busid & ~0xF) & MASK)
            vertex = self.by_id.get(("NIC", key))
            if vertex is None:
                vertex = node = self.create("NIC", key)
            self.add_nets(nic, vertex, host, branch)
        elif kind == "PCI":
            node = self.create("PCI", (host << 56) + (busid & MASK))
            node.device = device_id(branch)
            for child in branch.children:
                if child.tag != "pcilink":
                    self.add_pci(child, node, host)
        if node is not None:
            self.line = branch.line
            self.join(node, parent, self.types.pix, link_bandwidth(branch))

    def fill_gpu(self, vertex: Vertex, gpu: Branch, pci: Branch) -> None:
        vertex.sm = gpu.number("sm")
        if self.system.rccl:
            vertex.sm, vertex.cu, vertex.gcn = RCCL_SM, vertex.sm, gcn_name(gpu.required("gcn"))
            gpu.required("arch")
        vertex.rank = gpu.number("rank")
        vertex.dev = gpu.number("dev")
        vertex.gdr = gpu.number("gdr")
        vertex.busid = pci.attributes["busid"]

    def add_partition(self, pci: Branch, gpu: Branch, parent: Vertex, host: int) -> None:
        """GPU_DEVICES: a GPU is a DEV with the links of the device, and one GPU vertex for each rank on it."""
        busid = bus_id(pci.required("busid"))
        if busid & MLOPART_BITS:
            raise RejectedError(
                f"BusId {busid:#x} has non-zero bits in MLOPart mask 0x3, cannot encode MLOPart partition index "
                "without collision",
                pci.line,
            )
        part = gpu.number_or("mlopart", -1)
        gpu.number("sm")
        if part >= 2:
            raise RejectedError(f"MLOPart index {part} out of range (max 1)", gpu.line)
        if part != -1:
            busid |= (part << 1 | 1) & MLOPART_BITS
        device = self.by_id.get(("DEV", (host << 56) + (busid & MASK)))
        if device is None:
            device = self.create("DEV", (host << 56) + (busid & MASK))
            device.device = device_id(pci)
            device.sm = gpu.number("sm")
            device.dev = gpu.number("dev")
            device.busid = pci.attributes["busid"]
            self.join(device, parent, self.types.pix, link_bandwidth(pci))
            for sibling in self.partitions(device.id):
                if sibling is not device:
                    self.join(device, sibling, self.types.loc, MLOPART_BW)
        position = self.gpus_of.get(device, 0)
        vertex = self.create("GPU", (host << 56) + ((position << 40 | busid & (1 << 40) - 1) & MASK))
        self.fill_gpu(vertex, gpu, pci)
        vertex.parent = device
        self.join(device, vertex, self.types.loc, LOC_BW)
        self.gpus_of[device] = position + 1

    def partitions(self, id: int) -> list[Vertex]:  # noqa: A002 - as the field of a vertex
        base = id & ~MLOPART_BITS
        vertexes = [device for device in self.system.nodes["DEV"] if device.id & ~MLOPART_BITS == base]
        if len(vertexes) > 2:
            raise RejectedError(f"ncclTopoGetDevNodes : too many DEV nodes for busId {id:x} (max 2)", self.line)
        return vertexes

    def add_nets(self, nic: Branch, vertex: Vertex, host: int, pci: Branch | None) -> None:
        for net in nic.children:
            if net.tag != "net" or "dev" not in net.attributes:
                continue
            self.line = net.line
            kinds = ["NET"]
            if has(self.minor, Feature.GIN_NETS):
                kinds = [kind for kind, name, default in _OWNERS if net.number_or(name, default)]
                kinds = [kind for kind in kinds if kind != "RMA" or has(self.minor, Feature.RMA_NETS)]
            for kind in kinds:
                self.add_net(net, vertex, host, kind, pci)

    def add_net(self, branch: Branch, nic: Vertex, host: int, kind: str, pci: Branch | None) -> None:
        dev = branch.number("dev")
        net = self.create(kind, (host << 56) + (dev & MASK))
        net.dev = dev
        mbps = branch.number_or("speed", 0)
        net.bw = single((mbps if mbps > 0 else _DEFAULT_NET_MBPS) / 8000.0)
        if kind == "NET":
            net.name = branch.attributes.get("name", "")
            net.asic = self.asic(branch.attributes.get("guid"), net)
            net.latency = c_float(branch.attributes.get("latency", "0"))
            net.port = branch.number_or("port", 0)
            net.gdr = branch.number_or("gdr", 0)
            net.coll = branch.number_or("coll", 0)
            net.rail = branch.number_or("rail", -1)
            net.plane = branch.number_or("plane", -1)
            if has(self.minor, Feature.RAIL_OF_EVERY_NET):
                adapters = self.adapters[host]
                net.rail = net.rail if net.rail >= 0 else OWN_RAIL | adapters.setdefault(net.asic, len(adapters))
                net.plane = net.plane if net.plane >= 0 else OWN_RAIL | net.port
            if pci is not None:
                net.busid = pci.attributes.get("busid", "")
                vendor, device = (c_hex(pci.attributes.get(name, "")) for name in ("vendor", "device"))
                net.device = vendor << 16 | device
        self.join(nic, net, self.types.net, net.bw)

    def asic(self, guid: str | None, net: Vertex) -> int:
        """Which adapter a port is of. Before ASIC_BY_ANY_GUID a guid starts with 0x, and a net without one has its
        number."""
        if has(self.minor, Feature.ASIC_BY_ANY_GUID):
            return net.id if guid is None else c_hex(guid)
        if guid is None:
            return net.dev
        return c_hex(guid) if guid.lstrip().startswith("0x") else 0

    def add_links(self, tree: Branch) -> None:
        """NVLink, C2C and links between PCI switches: three walks over the document, in this order."""
        adders = {"nvlink": self.add_nvlink, "c2c": self.add_c2c, "pcilink": self.add_pcilink}
        rows: dict[str, list[tuple[Branch, Branch, Branch, int]]] = {tag: [] for tag in adders}
        for cpu in tree.children:
            host = self.system_id(cpu)
            stack = [(child, cpu, cpu) for child in reversed(cpu.children)]
            while stack:
                branch, parent, pci = stack.pop()
                if branch.tag in rows:
                    rows[branch.tag].append((branch, parent, pci, host))
                here = branch if "busid" in branch.attributes else pci
                stack += [(child, branch, here) for child in reversed(branch.children)]
        for tag, add in adders.items():
            for branch, parent, pci, host in rows[tag]:
                self.line = branch.line
                add(branch, parent, pci, host)

    def device_of(self, gpu: Branch, pci: Branch, host: int, what: str) -> Vertex | None:
        """The vertex that carries a gpu element's links; None for a second element of one device."""
        busid = bus_id(pci.required("busid"))
        if self.devices:
            part = gpu.number_or("mlopart", -1)
            gpus = [child for child in pci.children if child.tag == "gpu"]
            if next((twin for twin in gpus if twin.number_or("mlopart", -1) == part), gpu) is not gpu:
                return None
            if part != -1:
                busid |= (part << 1 | 1) & MLOPART_BITS
        kind = "DEV" if self.devices else "GPU"
        vertex = self.by_id.get((kind, (host << 56) + (busid & MASK)))
        if vertex is None:
            words = (
                f"could not find DEV for GPU {pci.attributes['busid']}"
                if kind == "DEV"
                else f"could not find GPU {busid:x}"
            )
            raise RejectedError(f"Add {what if kind == 'DEV' else 'NVLink'} error : {words}", self.line)
        return vertex

    def add_nvlink(self, nvlink: Branch, gpu: Branch, pci: Branch, host: int) -> None:
        device = self.device_of(gpu, pci, host, "NVLink")
        if device is None:
            return
        count = nvlink.number("count")
        target = pci_class(nvlink.required("tclass"), rccl=self.system.rccl)
        gbs = xgmi_bandwidth(device.gcn) if self.system.rccl else nvlink_bandwidth(device.sm, self.minor)
        bw = single(count * gbs)
        siblings = len(self.partitions(device.id)) if self.devices else 1
        nvl = self.types.nvl
        if target == "GPU":
            far = (host << 56) + (bus_id(nvlink.required("target")) & MASK)
            if self.devices:
                remotes = self.partitions(far)
                for remote in remotes:
                    self.connect(device, remote, nvl, bw / len(remotes) / siblings)
            elif (remote_gpu := self.by_id.get(("GPU", far))) is not None:
                self.connect(device, remote_gpu, nvl, bw)
            return
        if target == "CPU":
            end = cpu_above(device)
        else:
            end = self.system.nvs[0] if self.system.nvs else self.create("NVS", 0)
        if end is not None:
            self.join(device, end, nvl, bw / siblings)

    def add_c2c(self, c2c: Branch, gpu: Branch, pci: Branch, host: int) -> None:
        device = self.device_of(gpu, pci, host, "C2c")
        if device is None:
            return
        bw = wrap32(c2c.number("count") * c2c.number("bw")) / 1000.0
        cpu = cpu_above(device)
        if cpu is None:
            return
        if not self.devices or len(self.partitions(device.id)) == 1:
            self.join(device, cpu, self.types.c2c, bw)
            return
        key = device.id & ~MLOPART_BITS
        bridge = self.by_id.get(("CXB", key))
        if bridge is None:
            bridge = self.create("CXB", key)
            self.join(bridge, cpu, self.types.c2c, bw)
        self.join(device, bridge, self.types.c2c, bw)

    def add_pcilink(self, pcilink: Branch, _: Branch, pci: Branch, host: int) -> None:
        near = (host << 56) + (bus_id(pci.required("busid")) & MASK)
        switch = self.by_id.get(("PCI", near))
        if switch is None:
            raise RejectedError(f"Add PCI Link error : could not find PCI SW {near:x}", self.line)
        far = self.by_id.get(("PCI", (host << 56) + (bus_id(pcilink.required("target")) & MASK)))
        if far is not None:
            self.connect(switch, far, self.types.loc, LOC_BW)

    def connect_cpus(self) -> None:
        cpus = self.system.cpus
        for one in cpus:
            for other in cpus:
                if one is not other and one.system_id == other.system_id:
                    self.connect(one, other, self.types.sys, cpu_bandwidth(one, self.minor))


_OWNERS = (("NET", "net", 1), ("GIN", "gin", 0), ("RMA", "rma", 0))


def _sort(system: System) -> None:
    """In every vertex of a CPU's PCI tree the link up comes last (ncclTopoSortSystem)."""
    pci = path_types(system.minor).pix
    for cpu in system.cpus:
        stack: list[tuple[Vertex, Vertex | None]] = [(cpu, None)]
        seen = set()
        while stack:
            vertex, up = stack.pop()
            if vertex in seen:
                continue
            seen.add(vertex)
            if up is not None:
                position = next((i for i, link in enumerate(vertex.links) if link.remote is up), None)
                if position is not None:
                    vertex.links.append(vertex.links.pop(position))
            down = [link.remote for link in vertex.links if link.type == pci and link.remote is not up]
            stack += [(remote, vertex) for remote in reversed(down)]
