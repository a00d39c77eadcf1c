"""Events that a baseboard controller logged: `ipmitool sel list`, `sel elist`, and what web consoles export of it.

     1b3 | 03/02/2025 | 04:18:22 | Module/Board GPU_5_Status | Device Removed/Device Absent | Asserted
       9 | 08/11/2025 | 14:02:11 | Temperature GPU3_TEMP | Upper Critical going high | Asserted | Reading 94 > ...
    2025-05-06T02:11:33 | PCIe Slot 4 ConnectX-7 | Device not detected | Critical

An event that was asserted and later taken back is over. Sensors of other parts are told as lines that no check judges.
Format: ipmitool lib/ipmi_sel.c (ipmi_sel_print_std_entry), sensor types and events of IPMI 2.0, table 42.
"""

from __future__ import annotations

from topodiag.evidence.interface import MAX_LINE, Blob, Parsed
from topodiag.evidence.sentences import Reporting, report
from topodiag.lazy import regex
from topodiag.model.events import Event, Trust
from topodiag.words.own_data import own_data

MAX_EVENTS = 100
_ROW = regex(
    r"^[ \t>]{0,20}(?:(?:[0-9a-fA-F]{1,8} {0,8}\| {0,4})?"
    r"(?:[\d/-]{8,10}|Pre-Init) {0,12}\| {0,4}[\d:]{5,10}[ \w]{0,8}\|"
    r"|\d{4}-\d\d-\d\d[T ][\d:.+Z-]{5,24} {0,4}\|)"
    r" {0,4}([^|\n]{2,80}?) {0,20}\| {0,4}([^|\n]{2,100}?) {0,20}"
    r"(?:\| {0,4}([^|\n]{0,40}?) {0,20})?(?:\|([^\n]{0,200}))?$"
)
_FAULTS = tuple(
    (fault["says"], regex(fault["sensor"]), regex(fault["event"]))
    for fault in own_data("evidence/host/bmc_events")["fault"]
)
_OVER = ("ok", "normal", "informational")
"""How states begin that are none of a fault."""


class BmcEvents(Reporting):
    """What `ipmitool sel` lists of GPUs, PCIe, fans and supplies."""

    def recognises(self, head: str) -> bool:
        return any(" | " in line and _ROW.match(line) is not None for line in head.split("\n"))

    def parse(self, blob: Blob) -> Parsed[Event]:
        parsed: Parsed[Event] = Parsed()
        standing: dict[tuple[str, str], Event] = {}
        for number, whole in blob.lines():
            row = _ROW.match(whole[:MAX_LINE])
            if row is None:
                continue
            sensor, words = row[1], row[2]
            state = (row[3] or "").lower()
            if "deassert" in state or state.startswith(_OVER):
                standing.pop((sensor, words), None)
            elif (kind := _kind(sensor, words)) and len(standing) < MAX_EVENTS:
                text = f"{sensor}: {words} {row[4] or ''}".strip()
                standing[sensor, words] = report(kind, text, blob, number, whole, trust=Trust.PERSON)
        parsed.records.extend(standing.values())
        return parsed


def _kind(sensor: str, words: str) -> str:
    """The kind of event; "" for one that says no fault."""
    return next((says for says, where, what in _FAULTS if where.search(sensor) and what.search(words)), "")
