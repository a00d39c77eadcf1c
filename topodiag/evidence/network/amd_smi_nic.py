"""`amd-smi static --nic` and `amd-smi metric --nic`: AMD's own adapters with their ports, as indented fields.

    NIC: 4
        PORTS:
            PORT_0:
                NETDEV: enp229s0
                CARRIER: 0
                LINK_STATE: down
        RDMA_DEVICES:
            RDMA_DEVICE_0:
                NAME: rocep229s0
                PORT_0:
                    NETDEV: enp229s0
                    PORT_NUM: 1
                    STATE: DOWN

Format: ROCm 7, amdsmi_commands.py (static_nic).
"""

from __future__ import annotations

import re

from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.interface import Blob, Parsed, Source, to_int
from topodiag.evidence.network import rdma_words as words
from topodiag.evidence.network.network_records import MAX_PORT, Line, Page, RdmaRecord, Target, fill_rdma
from topodiag.lazy import regex
from topodiag.model.topics import Topic

_MARK = regex(r"^[ \t>|]{0,20}NIC: \d{1,3}[ \t]*$(?=[\s\S]{0,8000}^[ \t>|]{1,40}RDMA_DEVICES:[ \t]*$)", re.MULTILINE)
_FIELD = regex(r"([A-Z][A-Z0-9_ ]{0,40}):(?: {1,4}(\S.{0,120}))?\s*\Z")
_FIELDS: dict[str, Target] = {"STATE": ("state", words.port_state), "NETDEV": ("netdev", words.device_name)}


class AmdSmiNic(Source[RdmaRecord]):
    """RDMA devices of AMD's adapters, with the state of their ports."""

    kind = "amd-smi-nic"
    speaks_of = frozenset({Topic.RDMA_DEVICES})
    trust = 65

    def recognises(self, head: str) -> bool:
        return _MARK.search(head) is not None

    def parse(self, blob: Blob) -> Parsed[RdmaRecord]:
        parsed: Parsed[RdmaRecord] = Parsed()
        page = Page(blob, parsed)
        record: RdmaRecord | None = None
        port: dict[str, Line] = {}
        within = False
        for line in page.lines():
            found = _FIELD.match(line.text.strip(" \t>|"))
            if found is None:
                continue
            name, value = found[1], found[2]
            if value is None or name == "NIC":
                _close(page, record, port)
                port = {}
                within = name.startswith("RDMA_DEVICE") or (within and name.startswith("PORT_"))
                record = record if name.startswith("PORT_") and within else None
            elif within and name == "NAME" and (device := words.device_name(value)) is not None:
                record = RdmaRecord(device, line.number)
                parsed.records.append(record)
            elif record is not None and name in ("PORT_NUM", *_FIELDS):
                port[name] = Line(line.number, value)
        _close(page, record, port)
        return parsed

    def fill(self, blob: Blob, parsed: Parsed[RdmaRecord], draft: NodeDraft) -> None:
        for record in parsed.records:
            fill_rdma(blob, record, draft)


def _close(page: Page[RdmaRecord], record: RdmaRecord | None, told: dict[str, Line]) -> None:
    """Keep what was told of a port of this device."""
    number = to_int(told["PORT_NUM"].text, low=0, high=MAX_PORT) if "PORT_NUM" in told else None
    if record is None or number is None:
        return
    port = record.port(number, told["PORT_NUM"].number)
    told["PORT_NUM"].put(port.facts, "link_layer", "Ethernet")
    for key, target in _FIELDS.items():
        if key in told:
            page.read(told[key], told[key].text, port.facts, target)


__all__ = ["AmdSmiNic"]
