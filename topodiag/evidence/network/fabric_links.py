"""`iblinkinfo`: the width and speed of links anywhere in an InfiniBand fabric, and what both their ends could do.

    CA: node07 mlx5_2:
          0x0c42a103002f1b2c   41  1[  ] ==( 2X 106.25 Gbps Active/  LinkUp)==>  12 17[  ] "leaf-03" ( Could be 4X)

The tool compares what is enabled on both ends with what is active. With `--line` a row names its own end. Format:
rdma-core, infiniband-diags/iblinkinfo.c (print_port). Ports without a link are none of a fault.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.iblinkinfo import link_row
from topodiag.evidence.interface import Blob, Parsed, Source
from topodiag.evidence.network.network_records import Page
from topodiag.lazy import dataclass, regex
from topodiag.model.topics import Topic

MAX_LINKS = 100_000
MAX_NUMBER = 1024

_SECTION = regex(r"(?:Switch|CA|Rt):? {1,4}(?:0x[0-9a-f]{1,16} )?\s{0,20}(.{1,200}?):\s{0,9}\Z", re.ASCII)
_COULD = regex(r"Could be ([^,;()]{1,40}?)\s{0,20}(?:\Z|[,;)]|Could)")
_MARK = regex(r"\] ==\(\s{0,10}[0-9]{1,2}X\s{1,20}[0-9.]{1,12} Gbps[^)/]{0,20} Active/\s{0,4}LinkUp\)==>", re.ASCII)


@dataclass(frozen=True, slots=True)
class LinkRecord:
    """One active link from one end: the names and numbers of both ends, what it runs at, and what it could be."""

    name: str
    number: int
    peer: str
    runs: str
    able: str | None
    """None where the text does not say; "" where neither end could be more."""
    line: int
    text: str


def offer_links(blob: Blob, records: Iterable[LinkRecord], draft: NodeDraft) -> None:
    """Give the links to the draft, each at its port."""
    for record in records:
        if record.number <= MAX_NUMBER:
            entity = draft.fabric_port(record.name, "", record.number)
            origin = blob.origin(record.line, record.text)
            entity.offer("runs", record.runs, origin)
            if record.able is not None:
                entity.offer("able", record.able, origin)
            entity.offer("peer", record.peer, origin)


class FabricLinks(Source[LinkRecord]):
    """Links of a fabric that run below what both ends can do."""

    kind = "ib-links"
    speaks_of = frozenset({Topic.FABRIC})
    trust = 60

    def recognises(self, head: str) -> bool:
        return _MARK.search(head) is not None

    def parse(self, blob: Blob) -> Parsed[LinkRecord]:
        parsed: Parsed[LinkRecord] = Parsed()
        page = Page(blob, parsed)
        here = ""
        for line in page.lines():
            text = line.text.strip(" \t>|")
            section, row = _SECTION.match(text), link_row(text)
            if section is not None:
                here = section[1].strip(' "')
            elif row is not None and row.could is not None and len(parsed.records) < MAX_LINKS:
                name = row.name or here or f"LID {row.lid}"
                peer = f"{row.peer or 'an unnamed end'} port {row.peer_port}"
                able = ", ".join(each.strip() for each in _COULD.findall(row.could))
                runs = f"{row.lanes}X {row.speed} Gbps"
                parsed.records.append(LinkRecord(name, row.port, peer, runs, able, line.number, text))
        return parsed

    def fill(self, blob: Blob, parsed: Parsed[LinkRecord], draft: NodeDraft) -> None:
        offer_links(blob, parsed.records, draft)


__all__ = ["FabricLinks", "LinkRecord", "offer_links"]
