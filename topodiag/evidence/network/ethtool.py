"""`ethtool IF` (speed, link, the modes that an interface can do), `ethtool -i IF` (driver, firmware, PCI function) and
`ethtool -S IF` (the driver's own counters): rows of a name and a value.

    Settings for ens1f0np0:            driver: mlx5_core                            NIC statistics:
            Speed: 100000Mb/s          firmware-version: 28.41 (MT_0000000838)           rx_discards_phy: 17
            Link detected: yes         bus-info: 0000:18:00.0

The last two do not name the interface: it is the captured command's last word, or the echoed command line of a paste;
without either the facts go to the NIC of the function. A pattern after the command takes the head line away. Counters
of single queues are kept only where their name speaks of a loss: a driver has thousands of them, and their sums stand
beside them. Format: ethtool's netlink/settings.c and ethtool.c.
"""

from __future__ import annotations

import re

from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.interface import Blob, Item, Parsed
from topodiag.evidence.network import rdma_words as words
from topodiag.evidence.network.network_records import (
    Line,
    NetDevRecord,
    NetDevSource,
    Page,
    fill_netdev,
    offer_cells,
)
from topodiag.lazy import regex
from topodiag.model.provenance import NotObserved

MAX_COUNTERS = 20_000
"""Counters read of one interface; drivers with a counter for each of 128 queues and 40 names stay below."""
_COMMAND = regex(
    r"(?:[#$] (?:sudo )?ethtool|\bethtool\s+(?:-i|--driver|(-S|--statistics)))"
    r"\s+([A-Za-z0-9_][A-Za-z0-9_.:@+-]{0,63})\s*(\|.{1,200})?\Z"
)
_SETTINGS = regex(r"Settings for (\S{1,64}):\Z")
_STATISTICS = "NIC statistics:"
_MODES = "Supported link modes"
_MODE = regex(r"\b([0-9]{2,7})base[A-Za-z]")
_REFUSED = regex(r"(?:netlink error|Cannot get|Cannot set|No data available)", re.IGNORECASE)
_BOARD = regex(r"\(((?:MT|DEL|HP|LNV|NVD|ISL|SM)_[A-Z0-9]{4,16})\)\s*\Z")
_OF_A_QUEUE = regex(
    r"(?:\[[0-9]{1,5}\]: |queue_[0-9]{1,5}_|(?:rx|tx|ch)(?:_xsk|_xdp|_xdp_tx)?[-_]?(?:queue[-_])?[0-9]{1,5}[-_.])"
)
_OF_A_LOSS = regex(r"err|drop|discard|bad|miss|fail|timeout|stall|recover|out_of|overrun|oos")
_KEYS = {
    "Speed": "speed_mbps", "Link detected": "carrier", "driver": "driver", "firmware-version": "firmware",
    "bus-info": "bus_id",
}  # fmt: skip


def named_interface(item: Item | None) -> str:
    """The interface of a captured command, its last word; empty when the manifest does not say one."""
    return (words.device_name(item.argv[-1]) or "") if item is not None and len(item.argv) > 1 else ""


class Ethtool(NetDevSource):
    """Interfaces with their settings, driver and counters."""

    kind = "ethtool"
    trust = 70
    measured = regex(r"\s*\S[^:\t]{0,120}: (?P<numbers>[0-9]{1,18})\s*\Z")

    def parse(self, blob: Blob) -> Parsed[NetDevRecord]:
        parsed: Parsed[NetDevRecord] = Parsed()
        page = Page(blob, parsed)
        name, key, counts = named_interface(blob.item), "", False
        record: NetDevRecord | None = None
        for line in page.lines():
            text = line.bare
            word, colon, cell = text.rpartition(":") if counts else text.partition(":")
            asked, settings = _COMMAND.search(text), _SETTINGS.match(text)
            if asked is not None:
                name, counts = asked[2], bool(asked[1])
                record = _begun(parsed, name, line) if asked[3] else None
            elif settings is not None:
                record, counts, key = _begun(parsed, words.device_name(settings[1]) or "", line), False, ""
            elif text == _STATISTICS or word == "driver":
                record, counts = _begun(parsed, name, line), text == _STATISTICS
                name = named_interface(blob.item)  # an echoed command names one block only
            elif _REFUSED.match(text):
                page.leave(line, "the driver does not answer this")
            if record is None or asked is not None or settings is not None or text == _STATISTICS:
                continue
            if counts:
                _count(page, line, record, (word, cell.strip()))
            else:
                key = word.strip() if colon else key
                _read(page, line, record, (key, cell if colon else text))
        parsed.records[:] = [record for record in parsed.records if record.counters or _is_of_some(record)]
        return parsed

    def fill(self, blob: Blob, parsed: Parsed[NetDevRecord], draft: NodeDraft) -> None:
        for record in parsed.records:
            fill_netdev(blob, record, draft)
            place = record.facts.get("bus_id")
            if not record.name and place is not None and isinstance(place.value, str):
                offer_cells(blob, draft.nic(bus_id=place.value), record.facts)
            elif not record.name and record.counters:
                why = "the output does not name the interface"
                draft.missing.append(NotObserved(f"counters of ethtool -S in {blob.name}", why))


def _is_of_some(record: NetDevRecord) -> bool:
    """Whether facts are of an interface, or a function, that is named."""
    return bool(record.facts) and (bool(record.name) or "bus_id" in record.facts)


def _begun(parsed: Parsed[NetDevRecord], name: str, line: Line) -> NetDevRecord:
    parsed.records.append(NetDevRecord(name, line.number))
    return parsed.records[-1]


def _read(page: Page[NetDevRecord], line: Line, record: NetDevRecord, pair: tuple[str, str]) -> None:
    key, cell = pair
    if key in _KEYS:
        page.read(line, cell, record.facts, _KEYS[key])
        if key == "firmware-version" and (board := _BOARD.search(cell)) is not None:
            line.put(record.facts, "board_id", board[1])
    elif key == _MODES:
        best = max((int(mode[1]) for mode in _MODE.finditer(cell)), default=0)
        kept = record.facts.get("max_speed_mbps")
        if kept is not None and isinstance(kept.value, int) and best > kept.value:
            del record.facts["max_speed_mbps"]
        if best:
            line.put(record.facts, "max_speed_mbps", best)


def _count(page: Page[NetDevRecord], line: Line, record: NetDevRecord, pair: tuple[str, str]) -> None:
    name, cell = pair
    if not name or not cell.lstrip("-").isdecimal():
        if line.bare:
            page.leave(line, "not a counter of ethtool -S")
    elif len(record.counters) < MAX_COUNTERS and (_OF_A_QUEUE.match(name) is None or _OF_A_LOSS.search(name)):
        line.put(record.counters, name, words.count(cell), "below zero or too large")
