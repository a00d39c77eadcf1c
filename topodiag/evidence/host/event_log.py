"""The event log of a board's controller: `ipmitool sel list`, `ipmitool sel elist`, and what web consoles export of it.

       31 | 07/14/2024 | 11:22:03 | Slot / Connector PCIe Slot 7 | Fault Status | Asserted
       40 | 07/14/2024 | 11:25:10 | Critical Interrupt #0x7f | Bus Fatal Error | Asserted
    2025-05-06T02:11:33 | PCIe Slot 4 ConnectX-7 | Device not detected | Critical

An event that is deasserted is over. Sensors of fans, doors and boot progress are of no link. Format: ipmitool 1.8
(lib/ipmi_sel.c); IPMI 2.0 tables 42-2 and 42-3.
"""

from __future__ import annotations

import re

from topodiag.evidence.sentences import Sentences
from topodiag.model.system import OUT_OF_SERVICE, REPORTED
from topodiag.model.topics import Topic

_ROW = re.compile(
    r"\s{0,8}(?:[0-9a-fA-F]{1,6} \| )?(?:\d\d/\d\d/\d{2,4} \| \d\d:\d\d:\d\d(?: \w{3,4})?"
    r"|\d{4}-\d\d-\d\d[T ][\d:.+Z-]{5,24}) \| "
    r"([^|]{2,120}) \| ([^|]{2,200}?)(?: \| (Asserted|Deasserted|Critical|Warning|OK|Ok|Normal"
    r"|Informational)\b.{0,200})?\s*$"
)
_FAULT = re.compile(
    r"\bfault\b|\bfatal\b|uncorrect|failure detected|\bfailed\b|\bfailure\b|not detected|not present|device"
    r" (?:absent|removed|missing)"
    r"|\bPERR\b|\bSERR\b|link down|degraded|power lost|non-?recoverable|upper critical",
    re.IGNORECASE,
)
_PARTS = (
    (
        "pcie-errors",
        re.compile(r"\bPCI|\bslot\b|critical interrupt|\bBus (?:Fatal|Uncorrect)|\briser\b", re.IGNORECASE),
    ),
    ("gpu-clocks", re.compile(r"\bGPU\b.{0,40}\b(?:temp|therm)", re.IGNORECASE)),
    ("port-count", re.compile(r"\bConnectX|\bNIC\b|\bHCA\b|\bnetwork adapter", re.IGNORECASE)),
    ("gpu-lost", re.compile(r"\bGPU\b", re.IGNORECASE)),
)


class EventLog(Sentences):
    """Faults of slots and devices that the board's controller saw, each sentence once."""

    kind = "event-log"
    speaks_of = frozenset({Topic.SERVICES})
    trust = 50
    once = True
    most = 50
    a_piece = "the controller of a board sees few of its parts"

    def recognises(self, head: str) -> bool:
        return " | " in head and any(self.event_of(line[:1000]) is not None for line in head.split("\n"))

    def event_of(self, line: str) -> tuple[str, str] | None:
        row = _ROW.match(line[:1000])
        if row is None or (row[3] or "") in ("Deasserted", "OK", "Ok", "Normal", "Informational"):
            return None
        what = f"{row[1].strip()} | {row[2].strip()}"
        if _FAULT.search(row[2]) is None:
            return None
        part = next((name for name, pattern in _PARTS if pattern.search(what)), "")
        return (f"{REPORTED}{part}" if part else OUT_OF_SERVICE), f"the board's controller: {what}"
