"""hwloc's own XML (`lstopo --of xml`), versions 1 to 3: the object tree from the machine to the devices' names.

Format: hwloc/topology-xml.c and doc/hwloc.doxy of hwloc 2.9 and 3.0.

`pci_link_speed` is lanes times rate of the trained link in one number (hwloc's include/private/misc.h,
hwloc__pci_link_speed): 15.75 GB/s is Gen3 x16 as well as Gen4 x8. It is taken apart only where one pair fits what the
product can do; else generation and width stay unknown.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field

from topodiag.evidence.amd.links import PCIE, pair_word
from topodiag.evidence.draft import Entity, NodeDraft
from topodiag.evidence.interface import MAX_GPUS, Blob, Parsed, Source, to_float, to_int
from topodiag.evidence.network import rdma_words as words
from topodiag.evidence.xml_tags import XmlTag, decoded, tags
from topodiag.hardware import catalog
from topodiag.lazy import dataclass
from topodiag.model.busid import normalise_bus_id
from topodiag.model.cpulist import parse_cpumask
from topodiag.model.devices import AMD as AMD_ID
from topodiag.model.devices import NVIDIA
from topodiag.model.errors import InputError
from topodiag.model.maker import XGMI
from topodiag.model.provenance import Origin, Topic
from topodiag.words.own_data import patterns
from topodiag.words.units import fold_numbers, in_gbs, spell_bytes


@dataclass(slots=True)
class HwlocObject:
    """A machine, package, NUMA node, bridge or device: its tag, its `info` pairs, and the object above it."""

    tag: XmlTag
    above: HwlocObject | None = None
    infos: dict[str, str] = field(default_factory=dict)
    format: int = 2
    """The major version of the file, 1 where it says none."""

    @property
    def type(self) -> str:
        return self.get("type")

    def get(self, name: str) -> str:
        return self.tag.get(name) or ""

    def within(self, *types: str) -> HwlocObject | None:
        """The nearest object above of one of these types."""
        above = self.above
        while above is not None and above.type not in types:
            above = above.above
        return above

    @property
    def top(self) -> HwlocObject:
        """The host bridge of a PCI function, itself without one."""
        top = self
        while top.above is not None and top.above.type in _IO:
            top = top.above
        return top

    @property
    def bus_id(self) -> str | None:
        """Of a device of an operating system or a library, where its function is."""
        function = self.within("PCIDev")
        return normalise_bus_id(function.get("pci_busid")) if function is not None else None


MAX_BYTES = 32 * 2**20
MAX_TAGS = 500_000
"""A machine of 1,024 threads, with all caches and all page sizes, has 60,000."""
MAX_DEPTH = 256


class HwlocXml(Source):
    """Offers processors, NUMA nodes, the PCI tree, GPUs as NVML numbers them, NICs and interfaces."""

    def read(self, blob: Blob, draft: NodeDraft) -> Parsed[int]:
        parsed: Parsed[int] = Parsed()
        objects: list[HwlocObject] = []
        if len(blob.data) > MAX_BYTES:
            why = f"is larger than {spell_bytes(MAX_BYTES)}"
            raise InputError(blob.name, why, hint="refused: no topology is so large")
        try:
            if not _read_objects(blob, objects):
                parsed.leave(blob, None, "", "the file ends before its topology does; what stands before is kept")
        except InputError as error:
            if blob.item is None:
                raise
            parsed.leave(blob, error.line, "", error.message)
        if any("NVIDIAUUID" in one.infos or "XGMIHiveID" in one.infos for one in objects):
            parsed.topics = self.speaks_of | {Topic.GPUS}
        parsed.records = [one.tag.line for one in objects]
        _fill_draft(objects, blob, draft)
        return parsed


def _read_objects(blob: Blob, objects: list[HwlocObject]) -> bool:
    """Adds the objects of a file; False where it ends before its topology does. Raises InputError."""
    stack: list[HwlocObject] = []
    version, whole = 1, False
    for tag in tags(decoded(blob.data), blob.name, MAX_TAGS):
        if tag.name == "topology":
            whole |= tag.closes
            version = _major(tag)
        elif tag.name == "object" and tag.closes:
            if stack:
                stack.pop()
        elif tag.name == "object":
            hwloc_object = HwlocObject(tag, stack[-1] if stack else None, {}, version)
            objects.append(hwloc_object)
            if not tag.self_closing:
                stack.append(hwloc_object)
                if len(stack) > MAX_DEPTH:
                    raise InputError(blob.name, f"nests deeper than {MAX_DEPTH} objects", line=tag.line, hint="refused")
        elif tag.name == "info" and objects:
            # From hwloc 3 on what holds for the machine stands behind all objects.
            (stack or objects[:1])[-1].infos.setdefault(tag.get("name") or "", tag.get("value") or "")
    return whole or not objects


def _major(tag: XmlTag) -> int:
    first = (tag.get("version") or "1").partition(".")[0]
    return int(first) if first.isascii() and first.isdigit() and len(first) < 4 else 1


MAX_NUMA = 4095
_ACCELERATOR = "1200"
"""The PCI class of AMD's accelerators that show no display: 0x03 is also the graphics of a board or a CPU."""
_PACKAGES = ("Package", "Socket")
_IO = frozenset({"Bridge", "PCIDev", "OSDev", "Misc"})
_LIKE = patterns("evidence/lines", "hwloc")
_END, _MOST_DISTANCES = "</distances2", 400_000
_OPENFABRICS_V2, _NETWORK_V2 = 3, 2
_NETWORK_V3, _OPENFABRICS_V3 = 1 << 4, 1 << 5
"""enum hwloc_obj_osdev_type_e: numbers up to version 2 of the format, bits from version 3 on."""

_WIDTHS = (1, 2, 4, 8, 16)
_LINK_MBS = (25_000, 20_000)
"""One NVLink and direction: 25 GB/s since NVLink 2, 20 GB/s in NVLink 1 (hwloc/topology-nvml.c)."""
MOST_LINKS = 18
_SPEED_TOLERANCE = 0.002
"""The file gives six decimals; neighbouring rates are 1.5 % apart at least (Gen1 x16 4.0, Gen3 x4 3.94 GB/s)."""


def _fill_draft(objects: list[HwlocObject], blob: Blob, draft: NodeDraft) -> None:
    """Offer all that the objects say."""
    origin = blob.quoted(2**23)
    memory_only = {
        number
        for one in objects
        if one.type == "NUMANode" and not parse_cpumask(one.get("cpuset")) and (number := _number(one)) is not None
    }
    for hwloc_object in objects:
        place = origin(hwloc_object.tag.line)
        if hwloc_object.type in ("Machine", "System"):
            draft.single("cpu").offer("arch", hwloc_object.infos.get("Architecture") or None, place)
            if hwloc_object.infos.get("OSName") == "Linux":
                draft.single("os").offer("kernel", (hwloc_object.infos.get("OSRelease") or "")[:120] or None, place)
        elif hwloc_object.type in _PACKAGES:
            _package(hwloc_object, draft, place)
        elif hwloc_object.type == "NUMANode":
            _numa(hwloc_object, draft, place)
        elif hwloc_object.type in ("PCIDev", "Bridge"):
            _function(hwloc_object, memory_only, draft, place)
        elif hwloc_object.type == "OSDev":
            _add_device(hwloc_object, draft, place)
    _counts(objects, draft, origin)
    _nvlinks(objects, blob, draft)
    _gpu_links(objects, blob, draft, origin)


def _gpu_links(objects: list[HwlocObject], blob: Blob, draft: NodeDraft, origin: Callable[[int], Origin]) -> None:
    """What joins AMD's GPUs: xGMI with its hops where the file has them, else PCIe; nothing where no GPU names a peer,
    as with a driver that does not tell."""
    gpus = [one for one in objects if one.type == "OSDev" and _LIKE["rsmi"].fullmatch(one.get("name"))]
    numbers = {number: gpu for gpu in gpus if (number := _rsmi(gpu.get("name"))[0]) < MAX_GPUS}
    peers = {number: set(_rsmi(one.infos.get("XGMIPeers", ""))) for number, one in numbers.items()}
    if not any(peers.values()):
        return
    hops = _distances(blob.text, "XGMIHops")
    for number, hwloc_object in numbers.items():
        for peer, other in numbers.items():
            if peer != number:
                far = hops.get((hwloc_object.get("gp_index"), other.get("gp_index")), 0)
                word = pair_word(XGMI, far) if peer in peers[number] else PCIE
                draft.pair("smi", draft.gpu(index=number), draft.gpu(index=peer), word, origin(hwloc_object.tag.line))


def _rsmi(text: str) -> list[int]:
    return [int(number) for number in _LIKE["rsmi"].findall(text)]


def _distances(text: str, name: str) -> dict[tuple[str, str], int]:
    """The matrix of distances of a name, by the global indexes of two objects; none where the file has no such one."""
    start = text.find(f'name="{name}"')
    end = text.find(_END, start, start + _MOST_DISTANCES) if start >= 0 else -1
    held: dict[str, list[str]] = {"indexes": [], "u64values": []}
    for kind, cells in _LIKE["numbers"].findall(text[start:end]) if end >= 0 else ():
        held[kind] += (cell.rpartition(":")[2] for cell in cells.split())
    values = [int(cell) if cell.isascii() and cell.isdecimal() and len(cell) < 12 else 0 for cell in held["u64values"]]
    indexes = held["indexes"][:MAX_GPUS]
    pairs = ((one, other) for one in indexes for other in indexes)
    return dict(zip(pairs, values, strict=True)) if len(values) == len(indexes) ** 2 else {}


def _nvlinks(objects: list[HwlocObject], blob: Blob, draft: NodeDraft) -> None:
    """The matrix `NVLinkBandwidth` of hwloc 2.4 and later: MB/s between GPUs, as many links as `nvidia-smi topo -m`
    counts."""
    rates = _distances(blob.text, "NVLinkBandwidth")
    if not rates:
        return
    gpus = {one.get("gp_index"): _gpu(one, draft) for one in objects if one.type == "OSDev"}
    line = blob.text.count("\n", 0, blob.text.find("NVLinkBandwidth")) + 1
    for (one, other), rate in rates.items():
        a, b = gpus.get(one), gpus.get(other)
        lanes = next((rate // lane_mbs for lane_mbs in _LINK_MBS if rate % lane_mbs == 0), 0)
        if a is not None and b is not None and a is not b and 0 < lanes <= MOST_LINKS:
            draft.pair("smi", a, b, f"NV{lanes}", blob.origin(line, f"NVLinkBandwidth {rate} MB/s"))


def _counts(objects: list[HwlocObject], draft: NodeDraft, origin: Callable[[int], Origin]) -> None:
    for name, types in (("sockets", _PACKAGES), ("count", ("PU",))):
        lines = [one.tag.line for one in objects if one.type in types]
        if lines:
            draft.single("cpu").offer(name, len(lines), origin(lines[0]))


def _package(package: HwlocObject, draft: NodeDraft, place: Origin) -> None:
    infos = package.infos
    draft.single("cpu").put(
        place,
        vendor=infos.get("CPUVendor") or None,
        name=" ".join(infos.get("CPUModel", "").split())[:120] or None,
        family=to_int(infos.get("CPUFamilyNumber"), low=0, high=0xFFFF),
        model=to_int(infos.get("CPUModelNumber"), low=0, high=0xFFFF),
    )


def _number(numa: HwlocObject) -> int | None:
    return to_int(numa.get("os_index"), low=0, high=MAX_NUMA)


def _numa(numa: HwlocObject, draft: NodeDraft, place: Origin) -> None:
    number = _number(numa)
    if number is None:
        return
    node = draft.numa(number)
    node.offer("cpus", fold_numbers(parse_cpumask(numa.get("cpuset")) or ()), place)
    package = numa.within(*_PACKAGES)
    if package is not None:
        node.offer("socket", to_int(package.get("os_index"), low=0, high=MAX_NUMA), place)


def _function(function: HwlocObject, memory_only: set[int], draft: NodeDraft, place: Origin) -> None:
    bus_id = normalise_bus_id(function.get("pci_busid"))
    kind = _LIKE["type"].match(function.get("pci_type").lower())
    if bus_id is None or kind is None:
        return
    entity = draft.pci(bus_id)
    vendor, device = int(kind["vendor"], 16), int(kind["device"], 16)
    entity.put(place, class_code=int(kind["code"], 16) << 8, vendor=vendor, device=device)
    if kind["subvendor"]:
        entity.put(place, subsystem_vendor=int(kind["subvendor"], 16), subsystem_device=int(kind["subdevice"], 16))
    above = function.above
    if above is not None and above.type == "Bridge":
        entity.offer("parent", normalise_bus_id(above.get("pci_busid")), place)
    entity.put(place, numa=_numa_of(function, memory_only), root=_root(function))
    _speed(entity, function.get("pci_link_speed"), vendor, device, place)
    if (vendor == NVIDIA and kind["code"].startswith("03")) or (vendor == AMD_ID and kind["code"] == _ACCELERATOR):
        draft.gpu(bus_id=bus_id)


def _root(function: HwlocObject) -> str | None:
    """The host bridge by its first bus, as sysfs names it: `pci0000:15`."""
    domain, bracket, buses = function.top.get("bridge_pci").lower().partition(":[")
    return f"pci{domain}:{buses[:2]}" if bracket else None


def _numa_of(function: HwlocObject, memory_only: set[int]) -> int | None:
    """The NUMA node of the object that the host bridge hangs from, where it is one; GPUs' memory does not count."""
    above = function.top.above
    if above is None:
        return None
    nodes = (parse_cpumask(above.get("nodeset")) or frozenset()) - memory_only
    return next(iter(nodes)) if len(nodes) == 1 else None


def _speed(entity: Entity, text: str, vendor: int, device: int, place: Origin) -> None:
    speed = to_float(text, low=0.01, high=10_000)
    if speed is None:
        return
    gpu = catalog.gpu_by_pci_device(device) if vendor == NVIDIA else None
    part = gpu or catalog.nic_by_pci_id(vendor, device)
    top = (part.pcie_gen, part.pcie_width) if part is not None else (0, 0)
    fits = [
        (gen, width)
        for gen in range(1, top[0] + 1)
        for width in _WIDTHS
        if width <= top[1] and abs((catalog.pcie_line_gbs(gen, width) or 0.0) - speed) <= _SPEED_TOLERANCE * speed
    ]
    if len(fits) == 1:
        entity.put(place, gen=fits[0][0], width=fits[0][1])
        return
    what = " or ".join(f"Gen{gen} x{width}" for gen, width in fits) if fits else "no known link of a known product"
    for name in ("gen", "width"):
        entity.offer(name, None, place, f"hwloc says {in_gbs(speed)}: {what}")


def _add_device(device: HwlocObject, draft: NodeDraft, place: Origin) -> None:
    """A device by the name that the operating system or a library gives it."""
    name, bus_id, number = device.get("name")[:64], device.bus_id, to_int(device.get("osdev_type"), low=0, high=0xFFFF)
    if not name or number is None:
        return
    bitwise = device.format >= 3
    if number & _OPENFABRICS_V3 if bitwise else number == _OPENFABRICS_V2:
        _rdma(device, draft.nic(rdma=name, bus_id=bus_id), place)
    elif number & _NETWORK_V3 if bitwise else number == _NETWORK_V2:
        draft.netdev(name).offer("bus_id", bus_id, place)
    elif (rsmi := _LIKE["rsmi"].fullmatch(name)) is not None and bus_id is not None and int(rsmi[1]) < MAX_GPUS:
        model = device.infos.get("GPUModel", "")[:120] or None
        draft.gpu(index=int(rsmi[1]), bus_id=bus_id).offer("name", model, place)
        draft.pci(bus_id).offer("vendor", AMD_ID, place)
    elif (gpu := _gpu(device, draft)) is not None:
        name = device.infos.get("GPUModel", "").removeprefix("NVIDIA ")[:120]
        gpu.put(place, uuid=device.infos.get("NVIDIAUUID") or None, name=name or None)


def _gpu(device: HwlocObject, draft: NodeDraft) -> Entity | None:
    """The GPU that a device of NVML's is; None for every other."""
    bus_id, index = device.bus_id, to_int(device.get("name").removeprefix("nvml"), low=0, high=MAX_GPUS - 1)
    if index is None or bus_id is None or not device.get("name").startswith("nvml"):
        return None
    return draft.gpu(index=index, bus_id=bus_id, uuid=device.infos.get("NVIDIAUUID") or None)


def _rdma(device: HwlocObject, nic: Entity, place: Origin) -> None:
    nic.offer("node_guid", words.guid(device.infos.get("NodeGUID", "")), place)
    for name, text in device.infos.items():
        number = to_int(name.removeprefix("Port"), low=0)
        if number is None or not name.startswith("Port"):
            continue
        port = nic.child("port", number)
        if name.endswith("State"):
            port.offer("state", words.port_state(f"{text}:"), place)
        elif name.endswith("LID") and not name.endswith("SMLID"):
            port.offer("lid", words.lid(text), place)
