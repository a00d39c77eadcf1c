"""`ibqueryerrors` and `perfquery`: error counters of ports anywhere in an InfiniBand fabric.

    Errors for "node041 HCA-1"
       GUID 0xb8599f0300ae11d2 port 1: [SymbolErrorCounter == 4411] [LinkDownedCounter == 17]
       Link info:     21   1[  ] ==( 4X  25.78125 Gbps Active/  LinkUp)==>  0x... 3  12[  ] "switch" ( )

    # Port counters: Lid 21 port 1 (CapMask: 0x5A00)
    SymbolErrorCounter:..............0

`ibqueryerrors` lists ports above its thresholds, `perfquery` one port. Format: rdma-core, infiniband-diags.
"""

from __future__ import annotations

import re
from dataclasses import field

from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.interface import Blob, Parsed, Source
from topodiag.evidence.network.network_records import Cells, Page, offer_counters
from topodiag.lazy import dataclass, regex
from topodiag.model.topics import Topic

_NAMES = {
    "SymbolErrorCounter": "symbol_error",
    "LinkErrorRecoveryCounter": "link_error_recovery",
    "LinkDownedCounter": "link_downed",
    "PortRcvErrors": "port_rcv_errors",
    "PortRcvRemotePhysicalErrors": "port_rcv_remote_physical_errors",
    "PortRcvSwitchRelayErrors": "port_rcv_switch_relay_errors",
    "PortXmitDiscards": "port_xmit_discards",
    "PortXmitConstraintErrors": "port_xmit_constraint_errors",
    "PortRcvConstraintErrors": "port_rcv_constraint_errors",
    "LocalLinkIntegrityErrors": "local_link_integrity_errors",
    "ExcessiveBufferOverrunErrors": "excessive_buffer_overrun_errors",
    "VL15Dropped": "VL15_dropped",
    "PortXmitWait": "port_xmit_wait",
    "PortXmitData": "port_xmit_data",
    "PortRcvData": "port_rcv_data",
    "PortXmitPkts": "port_xmit_packets",
    "PortRcvPkts": "port_rcv_packets",
    "QP1Dropped": "qp1_dropped",
}
"""The tools' names of the counters as the kernel's (Documentation/ABI/stable/sysfs-class-infiniband)."""

MAX_PORTS = 100_000
MAX_NUMBER = 1024

_MARGIN = " \t>|"
_NODE = regex(r'Errors for (?:0x[0-9a-fA-F]{1,16} )?"([^"\n]{1,160})"')
_PORT = regex(r"GUID (0x[0-9a-fA-F]{1,16}) port (ALL|[0-9]{1,4}): ?(\[.{0,3000})")
_COUNT = regex(r"\[([A-Za-z0-9]{3,40}) == ([0-9]{1,20})\b")
_ONE = regex(
    r"# (?:Port|Port extended) counters: (?:Lid ([0-9]{1,6}|0x[0-9a-fA-F]{1,6})|DR path [^ ]{1,80}) port ([0-9]{1,4})"
)
_FIELD = regex(r"([A-Za-z0-9]{3,40}):\.{2,60}([0-9]{1,20}|0x[0-9a-fA-F]{1,16})\s*\Z")
_MARK = regex(
    r"^[ \t>|]{0,20}(?:Errors for (?:0x[0-9a-fA-F]{1,16} )?\"|GUID 0x[0-9a-fA-F]{1,16} port (?:ALL|[0-9]{1,4}): ?\["
    r"|# (?:Port|Port extended) counters: |(?:SymbolErrorCounter|LinkDownedCounter|PortXmitData):\.{2,60}[0-9])",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class FabricRecord:
    """One port: the node that it belongs to as the tool names it, its GUID where it is told, its counters."""

    name: str
    guid: str
    number: int
    line: int
    counters: Cells = field(default_factory=dict)


class FabricCounters(Source[FabricRecord]):
    """Counters of ports from `ibqueryerrors` and `perfquery`."""

    kind = "ib-counters"
    speaks_of = frozenset({Topic.FABRIC})
    trust = 60

    def recognises(self, head: str) -> bool:
        return _MARK.search(head) is not None

    def parse(self, blob: Blob) -> Parsed[FabricRecord]:
        parsed: Parsed[FabricRecord] = Parsed()
        page = Page(blob, parsed)
        name, single = "", None
        for line in page.lines():
            text = line.text.strip(_MARGIN)
            if len(parsed.records) >= MAX_PORTS:
                break
            if (node := _NODE.search(text)) is not None:
                name, single = node[1].strip(), None
            elif (port := _PORT.search(text)) is not None:
                number = 0 if port[2] == "ALL" else int(port[2])
                record = FabricRecord(name or port[1], port[1].lower(), number, line.number)
                for count in _COUNT.finditer(port[3]):
                    if count[1] in _NAMES:
                        line.put(record.counters, _NAMES[count[1]], int(count[2]))
                parsed.records.append(record)
            elif (one := _ONE.search(text)) is not None:
                single = FabricRecord(f"LID {one[1]}" if one[1] else "", "", int(one[2]), line.number)
                parsed.records.append(single)
            elif (cell := _FIELD.match(text)) is not None:
                if single is None:
                    single = FabricRecord("", "", 0, line.number)
                    parsed.records.append(single)
                if cell[1] in _NAMES and not cell[2].startswith("0x"):
                    line.put(single.counters, _NAMES[cell[1]], int(cell[2]))
            elif text and not text.startswith(("#", "$", "Link info")):
                page.leave(line, "not a line of ibqueryerrors or perfquery")
        return parsed

    def fill(self, blob: Blob, parsed: Parsed[FabricRecord], draft: NodeDraft) -> None:
        for record in parsed.records:
            if record.number <= MAX_NUMBER:
                entity = draft.fabric_port(record.name or "the port", record.guid, record.number)
                offer_counters(blob, entity, record.counters, f"{record.name} port {record.number}", draft)


__all__ = ["FabricCounters", "FabricRecord"]
