"""`ethtool IF`: speed, link and the modes that an interface can do.

Keys are indented `Key: value`; lists of link modes go on in further lines without a key. Format: ethtool's
netlink/settings.c.

`ethtool -i IF`: driver, firmware and PCI function of an interface.

The output does not name the interface: it is the captured command's last word, or the echoed command line of a paste.
Without either the facts go to the NIC of the bus id.

`ethtool -S IF`: the driver's own counters of an interface.

Names are the driver's. Counters of single queues are kept only where their name speaks of a loss: a driver has
thousands of them, and their sums stand beside them. The interface is the captured command's last word, or the echoed
command line of a paste; `| grep` after it takes the head line away.
"""

from __future__ import annotations

import re

from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.interface import Blob, Item, Parsed, Source
from topodiag.evidence.network import rdma_words as words
from topodiag.evidence.network.network_records import (
    Line,
    NetDevRecord,
    NetDevSource,
    Page,
    Target,
    fill_netdev,
    offer_cells,
)
from topodiag.evidence.network.sys_net import speed_mbps
from topodiag.lazy import regex
from topodiag.model.provenance import NotObserved
from topodiag.model.topics import Topic

_MARGIN = " \t>|"
_HEADER = regex(r"^[ \t>|]*Settings for (\S{1,64}):[ \t]*$", re.MULTILINE)
_ASKED = regex(
    r"^[^\n]{0,60}[#$] (?:sudo )?ethtool ([A-Za-z][\w.-]{0,31})(?: \|[^\n]{0,200})?$"
    r"(?=\n[ \t>|]*(?:Speed|Link detected|Supported link modes): )",
    re.MULTILINE,
)
_PROMPT = regex(r".{0,60}[#$] (?:sudo )?ethtool ([A-Za-z][\w.-]{0,31})(?: \|.{0,200})?\Z")
"""The command at a prompt names the interface where a grep took the first line."""
_MODE = regex(r"\b([0-9]{2,7})base[A-Za-z]")
_REFUSED = regex(r"(?:netlink error|Cannot get|Cannot set|No data available)", re.IGNORECASE)


def named_interface(item: Item | None) -> str:
    """The interface of a captured command, its last word; empty when the manifest does not say one."""
    return (words.device_name(item.argv[-1]) or "") if item is not None and len(item.argv) > 1 else ""


def _link(text: str) -> bool | None:
    """`yes`, or `no (No cable)` with ethtool's reason."""
    parts = text.split()
    return {"yes": True, "no": False}.get(parts[0]) if parts else None


_FIELDS: dict[str, Target] = {
    "Speed": ("speed_mbps", speed_mbps),
    "Link detected": ("carrier", _link),
}


class Ethtool(NetDevSource):
    """Interfaces from `ethtool IF`."""

    kind = "ethtool"
    trust = 70

    def recognises(self, head: str) -> bool:
        return _HEADER.search(head) is not None or _ASKED.search(head) is not None

    def parse(self, blob: Blob) -> Parsed[NetDevRecord]:
        parsed: Parsed[NetDevRecord] = Parsed()
        page = Page(blob, parsed)
        record: NetDevRecord | None = None
        key = ""
        for line in page.lines():
            text = line.text.strip(_MARGIN)
            header = _HEADER.match(text) or _PROMPT.match(text)
            if header:
                name = words.device_name(header[1])
                record, key = NetDevRecord(name or "", line.number), ""
                parsed.records.append(record)
            elif _REFUSED.match(text):
                page.leave(line, "the driver does not answer this")
            elif record is None:
                if text and not text.startswith(("#", "$")):
                    page.leave(line, "no interface named before it")
            else:
                word, colon, cell = text.partition(":")
                key = word.strip() if colon else key
                _read(page, line, record, (key, cell if colon else text))
        return parsed


def _read(page: Page[NetDevRecord], line: Line, record: NetDevRecord, pair: tuple[str, str]) -> None:
    key, cell = pair
    if key in _FIELDS:
        page.read(line, cell, record.facts, _FIELDS[key])
    elif key == "Supported link modes":
        best = max((int(mode[1]) for mode in _MODE.finditer(cell)), default=0)
        kept = record.facts.get("max_speed_mbps")
        if kept is not None and isinstance(kept.value, int) and best > kept.value:
            del record.facts["max_speed_mbps"]
        if best:
            line.put(record.facts, "max_speed_mbps", best)


_KEYS = tuple(regex(rf"^[ \t>|]*{key}:", re.MULTILINE) for key in ("driver", "firmware-version", "bus-info"))
_COMMAND = regex(r"\bethtool\s+(?:-i|--driver)\s+([A-Za-z0-9_][A-Za-z0-9_.:@+-]{0,63})\s*\Z")
_BOARD = regex(r"\(((?:MT|DEL|HP|LNV|NVD|ISL|SM)_[A-Z0-9]{4,16})\)\s*\Z")


def _driver(text: str) -> str | None:
    """`mlx5_core[ib_ipoib]` is mlx5_core with IP over InfiniBand on top."""
    cleaned = words.value_text(text)
    return cleaned.partition("[")[0].strip() or None if cleaned else None


_DRIVER_FIELDS: dict[str, Target] = {
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
            if colon and key in _DRIVER_FIELDS and record is not None:
                page.read(line, cell, record.facts, _DRIVER_FIELDS[key])
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


_STATS_HEADER = regex(r"^[ \t>|]*NIC statistics:[ \t]*$", re.MULTILINE)
_STATS_COMMAND = regex(
    r"\bethtool\s+(?:-S|--statistics)\s+([A-Za-z0-9_][A-Za-z0-9_.:@+-]{0,63})\s*(\|\s*(?:e|f|z)?grep\b.{0,200})?\Z"
)
_FILTERED = regex(r"\bethtool[ \t]+(?:-S|--statistics)[ \t]+[A-Za-z0-9_.:@+-]{1,64}[ \t]*\|[ \t]*[efz]?grep\b")
_LINE = regex(r"(?P<name>\S.{0,120}?):\s*(?P<value>-?[0-9]{1,20})\Z")
_OF_A_QUEUE = regex(
    r"(?:\[[0-9]{1,5}\]: |queue_[0-9]{1,5}_|(?:rx|tx|ch)(?:_xsk|_xdp|_xdp_tx)?[-_]?(?:queue[-_])?[0-9]{1,5}[-_.])"
)
_OF_A_LOSS = regex(r"err|drop|discard|bad|miss|fail|timeout|stall|recover|out_of|overrun|oos")

MAX_COUNTERS = 20_000
"""Counters read of one interface; drivers with a counter for each of 128 queues and 40 names stay below."""


class EthtoolStats(Source[NetDevRecord]):
    """Counters of interfaces from `ethtool -S`."""

    kind = "ethtool-stats"
    speaks_of = frozenset({Topic.INTERFACES})
    trust = 70
    measured = regex(r"\s*\S[^:\t]{0,120}: (?P<numbers>[0-9]{1,18})\s*\Z")

    def recognises(self, head: str) -> bool:
        return _STATS_HEADER.search(head) is not None or _FILTERED.search(head) is not None

    def parse(self, blob: Blob) -> Parsed[NetDevRecord]:
        parsed: Parsed[NetDevRecord] = Parsed()
        page = Page(blob, parsed)
        name = named_interface(blob.item)
        record: NetDevRecord | None = None
        for line in page.lines():
            text = line.text.strip(_MARGIN)
            echoed = _STATS_COMMAND.search(text)
            match = _LINE.match(text)
            if echoed:
                name, record = echoed[1], None
                if echoed[2]:  # grep took the head away
                    record = NetDevRecord(name, line.number)
                    parsed.records.append(record)
            elif _STATS_HEADER.match(text):
                record = NetDevRecord(name, line.number)
                parsed.records.append(record)
                name = named_interface(blob.item)  # an echoed command names one block only
            elif match and record is not None:
                if _worth_keeping(match["name"]) and len(record.counters) < MAX_COUNTERS:
                    line.put(record.counters, match["name"], _count(match["value"]), "below zero or too large")
            elif text and not text.startswith(("#", "$")):
                page.leave(line, "not a counter of ethtool -S")
        return parsed

    def fill(self, blob: Blob, parsed: Parsed[NetDevRecord], draft: NodeDraft) -> None:
        for record in parsed.records:
            fill_netdev(blob, record, draft)
            if not record.name:
                why = "the output does not name the interface"
                draft.missing.append(NotObserved(f"counters of ethtool -S in {blob.name}", why))


def _worth_keeping(name: str) -> bool:
    return _OF_A_QUEUE.match(name) is None or _OF_A_LOSS.search(name) is not None


def _count(text: str) -> int | None:
    value = int(text)
    return value if 0 <= value < 2**64 else None
