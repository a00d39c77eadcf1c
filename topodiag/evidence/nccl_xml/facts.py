"""What a topology tree says of the machine, as facts of the draft: devices, where they hang, how many NVLinks.

A tree tells what NCCL sees, not how links do: link_speed and link_width are what function and slot can do together up
to NCCL 2.29 (the lesser of both ends' max_link_speed in sysfs), so they are offered as that and never as trained
values; a network's speed comes without its port's state.
"""

from __future__ import annotations

from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.host.pcie import MAX_WIDTH, gen_of_speed
from topodiag.evidence.interface import Blob, to_int
from topodiag.evidence.nccl_xml.load import c_int
from topodiag.lazy import regex
from topodiag.model.busid import NVSWITCH_BUS_ID, normalise_bus_id
from topodiag.model.cpuid import family_of
from topodiag.model.cpulist import parse_cpumask
from topodiag.model.nccl_tree import Element, first_host
from topodiag.model.provenance import Origin
from topodiag.words.fold import fold_numbers

MAX_GPUS, MAX_LINKS, MAX_NUMA, MAX_PORT = 256, 64, 4095, 255
_HIDDEN = "fffffff:ffff:ff"
_INTERFACE = regex(r"(?:eth|en[opsxP]|ib|bond|wl|veth|virbr|docker|lo)[0-9a-zA-Z._-]{0,20}")
_REMOTES = (("0x068001", "cpu"), ("0x068000", "switch"), ("0x03", "gpu"), ("0x12", "gpu"))


def fill_draft(tree: Element, blob: Blob, draft: NodeDraft) -> None:
    """Offer everything that the tree says of its first host."""
    _Filler(blob, draft).fill(tree)


class _Filler:
    def __init__(self, blob: Blob, draft: NodeDraft) -> None:
        self._draft = draft
        self._line = blob.quoted(2**20)
        self._indices: set[int] = set()

    def _origin(self, element: Element) -> Origin:
        return self._line(element.line)

    def fill(self, tree: Element) -> None:
        cpus = first_host(tree)
        for number, cpu in enumerate(cpus):
            self._cpu(cpu)
            numa = to_int(cpu.get("numaid"), low=-1, high=MAX_NUMA)
            self._below(cpu, numa, f"numa{numa}" if numa is not None else f"cpu{number}", None)

    def _below(self, element: Element, numa: int | None, root: str, parent: str | None) -> None:
        """Every pci and nic element below this one. `parent` is the bus id of the nearest element that has one."""
        for child in element.children:
            if child.tag == "pci":
                bus_id = normalise_bus_id(child.get("busid") or "")
                if bus_id is not None and bus_id != NVSWITCH_BUS_ID:
                    self._pci(child, bus_id, numa, root, parent)
                self._below(child, numa, root, bus_id or parent)
            elif child.tag == "nic":
                self._nets(child, parent)

    def _cpu(self, cpu: Element) -> None:
        origin = self._origin(cpu)
        whole = self._draft.single("cpu")
        whole.put(origin, arch=cpu.get("arch") or None, vendor=cpu.get("vendor") or None)
        for field, name in (("family", "familyid"), ("model", "modelid")):
            value = to_int(cpu.get(name), low=1, high=0xFFFF)
            whole.offer(field, family_of(value) if name == "familyid" and value is not None else value, origin)
        numa = to_int(cpu.get("numaid"), low=0, high=MAX_NUMA)
        if numa is not None:
            cpus = fold_numbers(parse_cpumask(cpu.get("affinity") or "") or ())
            self._draft.numa(numa).offer("cpus", cpus or None, origin, "the file gives no affinity")

    def _pci(self, element: Element, bus_id: str, numa: int | None, root: str, parent: str | None) -> None:
        origin = self._origin(element)
        function = self._draft.pci(bus_id)
        for field, name, high in (
            ("class_code", "class", 0xFFFFFF), ("vendor", "vendor", 0xFFFF), ("device", "device", 0xFFFF),
            ("subsystem_vendor", "subsystem_vendor", 0xFFFF), ("subsystem_device", "subsystem_device", 0xFFFF),
        ):  # fmt: skip
            function.offer(field, to_int(element.get(name), low=0, high=high), origin)
        gen = gen_of_speed(element.get("link_speed") or "")
        width = to_int(element.get("link_width"), low=1, high=MAX_WIDTH)
        function.put(origin, numa=numa, root=root, parent=parent, slot_max_gen=gen, slot_max_width=width)
        if element.having("pci"):
            # NCCL climbs two levels at a time: what it shows above a device is a switch's upstream port.
            function.offer("port_type", "upstream", origin)
        for gpu in element.having("gpu"):
            self._gpu(gpu, bus_id, numa)
        bare = (element.get("class") or "").startswith("0x03") and element.get("vendor") in (None, "0x10de")
        if bare and not element.having("gpu"):
            # A file for a virtual machine may name places alone: NCCL asks the driver for the rest.
            self._draft.gpu(bus_id=bus_id).offer("numa", numa, origin)

    def _gpu(self, element: Element, bus_id: str, numa: int | None) -> None:
        origin = self._origin(element)
        index = to_int(element.get("dev"), low=0, high=MAX_GPUS - 1)
        if index in self._indices:
            index = None
        if index is not None:
            self._indices.add(index)
        gpu = self._draft.gpu(index=index, bus_id=bus_id)
        if element.get("gcn") is None:  # RCCL's files count compute units there
            gpu.offer("sm", to_int(element.get("sm"), low=1, high=999), origin)
        gpu.offer("numa", numa, origin)
        number = 0
        for link in element.having("nvlink"):
            remote = _remote(link)
            target = normalise_bus_id(link.get("target") or "")
            for _ in range(max(0, min(c_int(link.get("count") or ""), MAX_LINKS - number))):
                one = gpu.child("nvlink", number)
                one.put(self._origin(link), state="active", remote_type=remote, remote_bus_id=target)
                number += 1
        for c2c in element.having("c2c")[:1]:
            megabytes, count = c_int(c2c.get("bw") or ""), c_int(c2c.get("count") or "")
            gpu.offer("c2c", True, self._origin(c2c))
            if 0 < megabytes < 10**7 and 0 < count < MAX_LINKS:
                gpu.offer("c2c_gbs", megabytes * count / 1000, self._origin(c2c))

    def _nets(self, nic: Element, bus_id: str | None) -> None:
        single_net = len({net.get("name") for net in nic.having("net")}) == 1
        for net in nic.having("net"):
            name = net.get("name")
            if not name or len(name) > 64:
                continue
            origin = self._origin(net)
            speed = to_int(net.get("speed"), low=1, high=10**8)
            port = to_int(net.get("port"), low=0, high=MAX_PORT) or 0
            if port == 0 and _INTERFACE.fullmatch(name):
                self._draft.netdev(name).put(origin, speed_mbps=speed, bus_id=bus_id)
                continue
            # A NIC that NCCL merged from several is called by all of them: mlx5_0+mlx5_1.
            parts = name.split("+")
            for part in parts:
                entity = self._draft.nic(rdma=part, bus_id=bus_id if single_net and len(parts) == 1 else None)
                if speed is not None:
                    entity.child("port", port or 1).offer("rate_gbps", speed / 1000 / len(parts), origin)


def _remote(link: Element) -> str:
    code, target = link.get("tclass"), link.get("target")
    if code is None and (target == _HIDDEN or (target and normalise_bus_id(target) == NVSWITCH_BUS_ID)):
        return "switch"
    return next((kind for prefix, kind in _REMOTES if code and code.startswith(prefix)), "unknown")
