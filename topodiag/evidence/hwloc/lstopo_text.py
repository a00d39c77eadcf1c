"""`lstopo --of console`, or `lstopo-no-graphics`: PCI functions, their NUMA nodes, GPUs and NICs by their names.

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
from topodiag.evidence.interface import Blob, Parsed, Source
from topodiag.lazy import dataclass, regex
from topodiag.model.busid import normalise_bus_id
from topodiag.model.devices import AMD as AMD_ID
from topodiag.model.devices import NVIDIA
from topodiag.model.topics import Topic

MAX_LINE = 400
MAX_RECORDS = 20_000
_CLASSES = {
    "VGA": 0x0300, "3D": 0x0302, "Display": 0x0380, "Ethernet": 0x0200, "InfiniBand": 0x0207, "Fabric": 0x0208,
    "ProcessingAccelerator": 0x1200, "ProcessingAccelerators": 0x1200,
}  # fmt: skip
_MACHINE = regex(r"^ {0,20}Machine (?:L#0 )?\([^\n]{1,80}\)", re.MULTILINE)
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
        return _MACHINE.search(head) is not None and _DEVICE.search(head) is not None

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


__all__ = ["LstopoRecord", "LstopoText"]
