"""`mlnx_qos -i IF` and `dcb pfc show dev IF`: which priorities have flow control, and which DSCP rides which priority.

    Priority trust state: dscp
    dscp2prio mapping:
            prio:0 dscp:07,06,05,04,03,02,01,00,
    PFC configuration:
            priority    0   1   2   3   4   5   6   7
            enabled     0   0   0   1   0   0   0   0
    pfc-cap 8 macsec-bypass off delay 0
    prio-pfc 0:off 1:off 2:off 3:on 4:off 5:off 6:off 7:off

Format: mlnx-tools, python/mlnx_qos; iproute2, dcb/dcb_pfc.c.
"""

from __future__ import annotations

import re

from topodiag.evidence.interface import Blob, Parsed
from topodiag.evidence.network import rdma_words as words
from topodiag.evidence.network.ethtool import named_interface
from topodiag.evidence.network.network_records import Line, NetDevRecord, NetDevSource, Page
from topodiag.lazy import regex

UNNAMED = "the interface"
"""What an interface is called that the text does not name."""

PRIORITIES = 8
CODE_POINTS = 64

_COMMAND = regex(
    r"(?:\bmlnx_qos\b.{0,80}?\s(?:-i|--interface)[ =]?|\bdcb\s.{0,20}?pfc\s.{0,20}?dev\s{1,4})"
    r"([A-Za-z0-9_][A-Za-z0-9_.:@+-]{0,63})"
)
_TRUST = regex(r"Priority trust state: *(pcp|dscp|both)\b", re.IGNORECASE)
_ENABLED = regex(r"enabled((?:\s{1,8}[01]){8})\s*\Z")
_DCB = regex(r"prio-pfc((?: {1,8}[0-7]:(?:on|off)){1,8})\s*\Z")
_MAPPED = regex(r"prio: ?([0-7])\s{1,8}dscp: ?([0-9]{1,2}(?: ?,[0-9]{1,2}){0,63}),?\s*\Z")


class Qos(NetDevSource):
    """Flow control by priority, and what decides the priority, from `mlnx_qos` and `dcb`."""

    kind = "qos"
    trust = 70
    a_piece = "it speaks of one interface"

    def parse(self, blob: Blob) -> Parsed[NetDevRecord]:
        parsed: Parsed[NetDevRecord] = Parsed()
        page = Page(blob, parsed)
        name = named_interface(blob.item) or UNNAMED
        record: NetDevRecord | None = None
        mapped: dict[int, int] = {}
        for line in page.lines():
            text = line.bare
            asked = _COMMAND.search(text)
            if asked is not None:
                name, record, mapped = words.device_name(asked[1]) or UNNAMED, None, {}
                continue
            if not any(pattern.search(text) for pattern in (_TRUST, _ENABLED, _DCB, _MAPPED)):
                continue
            if record is None:
                record = NetDevRecord(name, line.number)
                parsed.records.append(record)
            _put(line, text, record, mapped)
        return parsed


def _put(line: Line, text: str, record: NetDevRecord, mapped: dict[int, int]) -> None:
    """What a line says of the interface. `mapped`: the priority of each DSCP that the lines so far gave."""
    if trust := _TRUST.search(text):
        line.put(record.facts, "trust", trust[1].lower())
    elif enabled := _ENABLED.search(text):
        marks = enabled[1].split()
        line.put(record.facts, "lossless", tuple(place for place in range(PRIORITIES) if marks[place] == "1"))
    elif dcb := _DCB.search(text):
        pairs = [pair.split(":") for pair in dcb[1].split()]
        line.put(record.facts, "lossless", tuple(int(number) for number, word in pairs if word == "on"))
    elif row := _MAPPED.search(text):
        mapped |= {int(code): int(row[1]) for code in row[2].split(",") if code.strip()}
        if len(mapped) <= CODE_POINTS:
            record.facts.pop("priority_of", None)
            pairs_of = tuple(f"{code}:{priority}" for code, priority in sorted(mapped.items()))
            line.put(record.facts, "priority_of", pairs_of)
