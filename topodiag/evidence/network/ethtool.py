"""`ethtool IF`: speed, link and the modes that an interface can do.

Keys are indented `Key: value`; lists of link modes go on in further lines without a key. Format: ethtool's
netlink/settings.c.
"""

from __future__ import annotations

import re

from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.interface import Blob, Item, Parsed, Source
from topodiag.evidence.network import rdma_words as words
from topodiag.evidence.network.network_records import Line, NetDevRecord, Page, Target, fill_netdev
from topodiag.evidence.network.sys_net import speed_mbps
from topodiag.lazy import regex
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


class Ethtool(Source[NetDevRecord]):
    """Interfaces from `ethtool IF`."""

    kind = "ethtool"
    speaks_of = frozenset({Topic.INTERFACES})
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

    def fill(self, blob: Blob, parsed: Parsed[NetDevRecord], draft: NodeDraft) -> None:
        for record in parsed.records:
            fill_netdev(blob, record, draft)


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
