"""Events that a baseboard controller logged: `ipmitool sel list`, `sel elist`, and what web consoles export of it.

     1b3 | 03/02/2025 | 04:18:22 | Module/Board GPU_5_Status | Device Removed/Device Absent | Asserted
       9 | 08/11/2025 | 14:02:11 | Temperature GPU3_TEMP | Upper Critical going high | Asserted | Reading 94 > ...
    2025-05-06T02:11:33 | PCIe Slot 4 ConnectX-7 | Device not detected | Critical

An event that was asserted and later taken back is over. Sensors of other parts are told as lines that no check judges.
Format: ipmitool lib/ipmi_sel.c (ipmi_sel_print_std_entry), sensor types and events of IPMI 2.0, table 42.
"""

from __future__ import annotations

import re

from topodiag.evidence.interface import Blob, Parsed
from topodiag.evidence.sentences import MAX_LINE, Reporting, report
from topodiag.lazy import regex
from topodiag.model.events import REMARK, Event, Trust
from topodiag.model.topics import Topic

MAX_EVENTS = 100
_ROW = regex(
    r"^[ \t>]{0,20}(?:(?:[0-9a-fA-F]{1,8} {0,8}\| {0,4})?"
    r"(?:[\d/-]{8,10}|Pre-Init) {0,12}\| {0,4}[\d:]{5,10}[ \w]{0,8}\|"
    r"|\d{4}-\d\d-\d\d[T ][\d:.+Z-]{5,24} {0,4}\|)"
    r" {0,4}([^|\n]{2,80}?) {0,20}\| {0,4}([^|\n]{2,100}?) {0,20}"
    r"(?:\| {0,4}([^|\n]{0,40}?) {0,20})?(?:\|([^\n]{0,200}))?$"
)
_GPU = regex(r"(?<![A-Za-z])(?:GPU|SXM|HGX|OAM|UBB)(?![A-Za-z])|GPU")
_KINDS: tuple[tuple[str, re.Pattern[str], re.Pattern[str]], ...] = (
    ("gpu.lost", _GPU,
     regex(r"Device Removed|Removed/|Absent|Communication lost|not (?:responding|detected|present)", re.I)),
    ("gpu.clocks", _GPU,
     regex(r"Upper (?:Critical|Non-recoverable)|Over ?-?temp|Thermal ?(?:Trip|Throttl)|PROCHOT", re.I)),
    ("gpu.memory", _GPU, regex(r"Uncorrectable (?:ECC|memory)|Uncorrectable ECC", re.I)),
    ("nic.missing", regex(r"\bConnectX|\bNIC\b|\bHCA\b|\bnetwork adapter", re.I),
     regex(r"not (?:detected|present)|device (?:absent|removed|missing)|Removed/|Absent", re.I)),
    ("pcie.errors", regex(r"\bPCI|\bslot\b|\briser\b|Critical Interrupt", re.I),
     regex(r"Bus (?:Fatal|Uncorrectable)|\bfatal\b|PERR|SERR|Uncorrect|\bfault\b|\bfail(?:ed|ure)\b|link down"
                r"|degraded|not (?:detected|present)", re.I)),
)  # fmt: skip
_BAD = regex(
    r"Upper (?:Critical|Non-recoverable)|Lower (?:Critical|Non-recoverable)|Failure detected|Power Supply AC lost"
    r"|Redundancy Lost|Uncorrectable|Fatal|IERR|Thermal Trip|Predictive Failure",
    re.IGNORECASE,
)
_OVER = regex(r"Deassert|^(?:OK|Normal|Informational)\b", re.IGNORECASE)


class BmcEvents(Reporting):
    """What `ipmitool sel` lists of GPUs, PCIe, fans and supplies."""

    kind = "bmc-events"
    speaks_of = frozenset({Topic.SERVICES})
    quiet_is_news = True
    trust = 45
    a_piece = "a controller's sensors, as somebody cut them out"

    def recognises(self, head: str) -> bool:
        return any(" | " in line and _ROW.match(line) is not None for line in head.split("\n"))

    def parse(self, blob: Blob) -> Parsed[Event]:
        parsed: Parsed[Event] = Parsed()
        standing: dict[tuple[str, str], Event] = {}
        for number, whole in blob.lines():
            row = _ROW.match(whole[:MAX_LINE])
            if row is None:
                continue
            sensor, said = row[1], row[2]
            if _OVER.search(row[3] or ""):
                standing.pop((sensor, said), None)
            elif (kind := _kind(sensor, said)) and len(standing) < MAX_EVENTS:
                standing[sensor, said] = report(
                    kind,
                    f"{sensor}: {said}{' ' + row[4].strip() if row[4] else ''}",
                    blob,
                    number,
                    whole,
                    trust=Trust.PERSON,
                )
        parsed.records.extend(standing.values())
        return parsed


def _kind(sensor: str, said: str) -> str:
    """The kind of event; "" for one that says no fault."""
    fault = next((fault for fault, where, what in _KINDS if where.search(sensor) and what.search(said)), "")
    return fault or (REMARK if _BAD.search(said) else "")
