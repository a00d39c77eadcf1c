"""`ethtool -i IF`: driver, firmware and PCI function of an interface.

The output does not name the interface: it is the captured command's last word, or the echoed command line of a paste.
Without either the facts go to the NIC of the bus id.
"""

from __future__ import annotations

import re

from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.interface import Blob, Parsed, Source
from topodiag.evidence.network import rdma_words as words
from topodiag.evidence.network.ethtool import named_interface
from topodiag.evidence.network.network_records import NetDevRecord, Page, Target, offer_cells
from topodiag.lazy import regex
from topodiag.model.topics import Topic

_MARGIN = " \t>|"
_KEYS = tuple(regex(rf"^[ \t>|]*{key}:", re.MULTILINE) for key in ("driver", "firmware-version", "bus-info"))
_COMMAND = regex(r"\bethtool\s+(?:-i|--driver)\s+([A-Za-z0-9_][A-Za-z0-9_.:@+-]{0,63})\s*\Z")
_BOARD = regex(r"\(((?:MT|DEL|HP|LNV|NVD|ISL|SM)_[A-Z0-9]{4,16})\)\s*\Z")


def _driver(text: str) -> str | None:
    """`mlx5_core[ib_ipoib]` is mlx5_core with IP over InfiniBand on top."""
    cleaned = words.value_text(text)
    return cleaned.partition("[")[0].strip() or None if cleaned else None


_FIELDS: dict[str, Target] = {
    "driver": ("driver", _driver),
    "firmware-version": ("firmware", words.firmware),
    "bus-info": ("bus_id", words.bus_id_in),
}


class EthtoolDriver(Source[NetDevRecord]):
    """Driver and function of interfaces from `ethtool -i`."""

    kind = "ethtool-driver"
    speaks_of = frozenset({Topic.INTERFACES})
    trust = 70

    def recognises(self, head: str) -> bool:
        return all(key.search(head) is not None for key in _KEYS)

    def parse(self, blob: Blob) -> Parsed[NetDevRecord]:
        parsed: Parsed[NetDevRecord] = Parsed()
        page = Page(blob, parsed)
        name = named_interface(blob.item)
        record: NetDevRecord | None = None
        for line in page.lines():
            text = line.text.strip(_MARGIN)
            echoed = _COMMAND.search(text)
            if echoed:
                name, record = echoed[1], None
                continue
            key, colon, cell = text.partition(":")
            if key == "driver":
                record = NetDevRecord(name, line.number)
                parsed.records.append(record)
                name = named_interface(blob.item)  # an echoed command names one block only
            if colon and key in _FIELDS and record is not None:
                page.read(line, cell, record.facts, _FIELDS[key])
                board = _BOARD.search(cell)
                if key == "firmware-version" and board:
                    line.put(record.facts, "board_id", board[1])
            elif text and not colon and not text.startswith(("#", "$")):
                page.leave(line, "not a line of ethtool -i")
        return parsed

    def fill(self, blob: Blob, parsed: Parsed[NetDevRecord], draft: NodeDraft) -> None:
        for record in parsed.records:
            place = record.facts.get("bus_id")
            bus_id = place.value if place is not None and isinstance(place.value, str) else None
            if record.name:
                own = {name: cell for name, cell in record.facts.items() if name != "board_id"}
                offer_cells(blob, draft.netdev(record.name), own)
            elif bus_id is not None:
                own = {name: cell for name, cell in record.facts.items() if name != "bus_id"}
                offer_cells(blob, draft.nic(bus_id=bus_id), own)
