"""`ethtool -S IF`: the driver's own counters of an interface.

Names are the driver's. Counters of single queues are kept only where their name speaks of a loss: a driver has
thousands of them, and their sums stand beside them. The interface is the captured command's last word, or the echoed
command line of a paste; `| grep` after it takes the head line away.
"""

from __future__ import annotations

import re

from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.interface import Blob, Parsed, Source
from topodiag.evidence.network.ethtool import named_interface
from topodiag.evidence.network.network_records import NetDevRecord, Page, fill_netdev
from topodiag.lazy import regex
from topodiag.model.provenance import NotObserved
from topodiag.model.topics import Topic

_MARGIN = " \t>|"
_HEADER = regex(r"^[ \t>|]*NIC statistics:[ \t]*$", re.MULTILINE)
_COMMAND = regex(
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
        return _HEADER.search(head) is not None or _FILTERED.search(head) is not None

    def parse(self, blob: Blob) -> Parsed[NetDevRecord]:
        parsed: Parsed[NetDevRecord] = Parsed()
        page = Page(blob, parsed)
        name = named_interface(blob.item)
        record: NetDevRecord | None = None
        for line in page.lines():
            text = line.text.strip(_MARGIN)
            echoed = _COMMAND.search(text)
            match = _LINE.match(text)
            if echoed:
                name, record = echoed[1], None
                if echoed[2]:  # grep took the head away
                    record = NetDevRecord(name, line.number)
                    parsed.records.append(record)
            elif _HEADER.match(text):
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
