"""hwloc's own XML (`lstopo --of xml`), versions 1 to 3: the object tree from the machine to the devices' names.

Format: hwloc/topology-xml.c and doc/hwloc.doxy of hwloc 2.9 and 3.0. What the objects mean is in `hwloc_facts`.

`lstopo --of console`, or `lstopo-no-graphics`: PCI functions, their NUMA nodes, GPUs and NICs by their names.

    Machine (1511GB total)
      Package L#0
        NUMANode L#0 (P#0 755GB)
        HostBridge
          PCIBridge
            PCI 05:00.0 (ProcessingAccelerator)
              GPU(RSMI) "rsmi0"
            PCI 08:00.0 (Ethernet)
              OpenFabrics "mlx5_0"

What stands further to the right is below. A NUMA node stands at the side of what is near it. Links between GPUs are in
the XML alone. Format: hwloc 1.11 to 3.0, utils/lstopo/lstopo-text.c, hwloc_pci_class_string of hwloc/traversal.c.
"""

from __future__ import annotations

import re

from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.hwloc.hwloc_facts import GPU_NAME, MAX_GPUS, MAX_NUMA
from topodiag.evidence.hwloc.objects import HwlocObject
from topodiag.evidence.interface import Blob, Parsed, Source
from topodiag.evidence.xml_tags import XmlTag, decoded, tags
from topodiag.lazy import dataclass, regex
from topodiag.model.busid import normalise_bus_id
from topodiag.model.devices import AMD as AMD_ID
from topodiag.model.devices import NVIDIA
from topodiag.model.errors import InputError
from topodiag.model.topics import Topic
from topodiag.words.units import spell_bytes

MAX_BYTES = 32 * 2**20
MAX_TAGS = 500_000
"""A machine of 1,024 threads, with all caches and all page sizes, has 60,000."""
MAX_DEPTH = 256

_TOPOLOGY = regex(r"<topology(?:\s[^<>]{0,200})?>")
_MACHINE = regex(r"<object\s[^<>]{0,40}\btype\s{0,4}=\s{0,4}[\"'](?:Machine|System)[\"']")


class HwlocXml(Source[HwlocObject]):
    """Offers processors, NUMA nodes, the PCI tree, GPUs as NVML numbers them, NICs and interfaces."""

    kind = "hwloc-xml"
    speaks_of = frozenset({Topic.CPUS, Topic.PCI})
    trust = 60

    def recognises(self, head: str) -> bool:
        return bool(_TOPOLOGY.search(head) and _MACHINE.search(head))

    def parse(self, blob: Blob) -> Parsed[HwlocObject]:
        parsed: Parsed[HwlocObject] = Parsed(lines=blob.data.count(b"\n") + 1)
        if len(blob.data) > MAX_BYTES:
            raise InputError(
                blob.name, f"is larger than {spell_bytes(MAX_BYTES)}", hint="refused: no topology is so large"
            )
        try:
            _read(blob, parsed)
        except InputError as error:
            if blob.item is None:
                raise
            parsed.leave(blob, error.line, "", error.message)
        return parsed

    def told(self, parsed: Parsed[HwlocObject]) -> frozenset[Topic]:
        numbered = any("NVIDIAUUID" in record.infos or "XGMIHiveID" in record.infos for record in parsed.records)
        return self.speaks_of | {Topic.GPUS} if numbered else self.speaks_of

    def fill(self, blob: Blob, parsed: Parsed[HwlocObject], draft: NodeDraft) -> None:
        from topodiag.evidence.hwloc.hwloc_facts import fill_draft  # noqa: PLC0415 - only where there is such a file

        fill_draft(parsed.records, blob, draft)


def _read(blob: Blob, parsed: Parsed[HwlocObject]) -> None:
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
            made = HwlocObject(
                tag.get("type") or "", tag.attributes, tag.line, stack[-1] if stack else None, {}, version
            )
            parsed.records.append(made)
            if not tag.alone:
                stack.append(made)
                if len(stack) > MAX_DEPTH:
                    raise InputError(blob.name, f"nests deeper than {MAX_DEPTH} objects", line=tag.line, hint="refused")
        elif tag.name == "info" and parsed.records:
            # From hwloc 3 on what holds for the machine stands behind all objects.
            above = stack[-1] if stack else parsed.records[0]
            above.infos.setdefault(tag.get("name") or "", tag.get("value") or "")
    if parsed.records and not whole:
        parsed.leave(blob, parsed.lines, "", "the file ends before its topology does; what stands before is kept")


def _major(tag: XmlTag) -> int:
    first = (tag.get("version") or "1").partition(".")[0]
    return int(first) if first.isascii() and first.isdigit() and len(first) < 4 else 1


MAX_LINE = 400
MAX_RECORDS = 20_000
_CLASSES = {
    "VGA": 0x0300, "3D": 0x0302, "Display": 0x0380, "Ethernet": 0x0200, "InfiniBand": 0x0207, "Fabric": 0x0208,
    "ProcessingAccelerator": 0x1200, "ProcessingAccelerators": 0x1200,
}  # fmt: skip
_LSTOPO_MACHINE = regex(r"^ {0,20}Machine (?:L#0 )?\([^\n]{1,80}\)", re.MULTILINE)
_DEVICE = regex(r"^ {1,80}PCI [0-9a-f:.]{7,13} \(", re.MULTILINE)
_NUMA = regex(r"NUMANode L#\d{1,4} \(P#(\d{1,4})\b")
_PCI = regex(r"PCI ([0-9a-f:.]{7,13}) \(([^)]{1,40})\)")
_NAMED = regex(r"(OpenFabrics|Net(?:work)?|GPU|CoProc)(?:\([A-Za-z]{1,20}\))?(?: L#\d{1,4})? \"([^\"]{1,64})\"")


@dataclass(frozen=True, slots=True)
class LstopoRecord:
    """A PCI function with its class and NUMA node, or the name that a device below it has."""

    bus_id: str
    line: int
    text: str
    code: int | None = None
    numa: int | None = None
    kind: str = ""
    name: str = ""


class LstopoText(Source[LstopoRecord]):
    """Devices and their places."""

    kind = "lstopo"
    speaks_of = frozenset({Topic.PCI})
    trust = 58

    def recognises(self, head: str) -> bool:
        return _LSTOPO_MACHINE.search(head) is not None and _DEVICE.search(head) is not None

    def parse(self, blob: Blob) -> Parsed[LstopoRecord]:
        parsed: Parsed[LstopoRecord] = Parsed(partial=True)
        near: list[tuple[int, int]] = []
        function, column = "", 0
        for number, whole in blob.lines():
            parsed.lines = number
            line = whole[:MAX_LINE].rstrip()
            at = len(line) - len(line.lstrip(" "))
            near = [each for each in near if each[0] <= at]
            if at <= column:
                function = ""
            if (numa := _NUMA.match(line, at)) and int(numa[1]) <= MAX_NUMA:
                near = [*(each for each in near if each[0] < at), (at, int(numa[1]))]
            elif (device := _PCI.match(line, at)) and (bus_id := normalise_bus_id(device[1])) is not None:
                function, column = bus_id, at
                code = _CLASSES.get(device[2])
                record = LstopoRecord(bus_id, number, line, code, near[-1][1] if near else None)
                parsed.records.append(record)
            elif function and (named := _NAMED.match(line, at)):
                parsed.records.append(LstopoRecord(function, number, line, kind=named[1], name=named[2]))
            if len(parsed.records) >= MAX_RECORDS:
                break
        return parsed

    def fill(self, blob: Blob, parsed: Parsed[LstopoRecord], draft: NodeDraft) -> None:
        for record in parsed.records:
            origin = blob.origin(record.line, record.text)
            function = draft.pci(record.bus_id)
            if not record.kind:
                function.offer("class_code", record.code << 8 if record.code is not None else None, origin)
                function.offer("numa", record.numa, origin)
            elif record.kind == "OpenFabrics":
                draft.nic(rdma=record.name, bus_id=record.bus_id)
            elif record.kind.startswith("Net"):
                draft.netdev(record.name).offer("bus_id", record.bus_id, origin)
            elif (found := GPU_NAME.fullmatch(record.name)) and int(found[2]) < MAX_GPUS:
                function.offer("vendor", NVIDIA if found[1] == "nvml" else AMD_ID, origin)
                draft.gpu(index=int(found[2]), bus_id=record.bus_id)
