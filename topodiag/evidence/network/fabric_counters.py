"""`ibqueryerrors` and `perfquery`: error counters of ports anywhere in an InfiniBand fabric.

    Errors for "node041 HCA-1"
       GUID 0xb8599f0300ae11d2 port 1: [SymbolErrorCounter == 4411] [LinkDownedCounter == 17]
       Link info:     21   1[  ] ==( 4X  25.78125 Gbps Active/  LinkUp)==>  0x... 3  12[  ] "switch" ( )

    # Port counters: Lid 21 port 1 (CapMask: 0x5A00)
    SymbolErrorCounter:..............0

`ibqueryerrors` lists ports above its thresholds, `perfquery` one port. Format: rdma-core, infiniband-diags.

`iblinkinfo`: the width and speed of links anywhere in an InfiniBand fabric, and what both their ends could do.

    CA: node07 mlx5_2:
          0x0c42a103002f1b2c   41  1[  ] ==( 2X 106.25 Gbps Active/  LinkUp)==>  12 17[  ] "leaf-03" ( Could be 4X)

The tool compares what is enabled on both ends with what is active. With `--line` a row names its own end. Format:
rdma-core, infiniband-diags/iblinkinfo.c (print_port). Ports without a link are none of a fault.

`ibnetdiscover`: the width and speed of the links between the switches and hosts of an InfiniBand fabric.

    Switch  41 "S-946dae0300aabbcc"  # "MF0;leaf-03:MQM9700/U1" enhanced port 0 lid 12 lmc 0
    [3]     "H-946dae0300112235"[1](946dae0300112235)   # "gpu-003 mlx5_0" lid 43 4xHDR

With `-p` one row for each port, of either end:

    CA   206  1 0xa088c20300064f10 4x HDR - SW    31  6 0xfc6a1c0300a1b200 ( 'gpu-006 mlx5_0' - 'leaf-07' )

It says what runs, and not what the ends could do: a check compares adapters of one name below one switch. Format:
rdma-core, infiniband-diags/ibnetdiscover.c (dump_topology, dump_ports_report).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import field

from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.iblinkinfo import link_row
from topodiag.evidence.interface import Blob, Parsed, Source
from topodiag.evidence.network.network_records import Cells, Page, offer_counters
from topodiag.lazy import dataclass, regex
from topodiag.model.topics import Topic
from topodiag.words.own_data import own_data

_NAMES = "evidence/network/counters"
MAX_PORTS = 100_000
MAX_NUMBER = 1024

_MARGIN = " \t>|"
_NODE = regex(r'Errors for (?:0x[0-9a-fA-F]{1,16} )?"([^"\n]{1,160})"')
_PORT = regex(r"GUID (0x[0-9a-fA-F]{1,16}) port (ALL|[0-9]{1,4}): ?(\[.{0,3000})")
_COUNT = regex(r"\[([A-Za-z0-9]{3,40}) == ([0-9]{1,20})\b")
_ONE = regex(
    r"# (?:Port|Port extended) counters: (?:Lid ([0-9]{1,6}|0x[0-9a-fA-F]{1,6})|DR path [^ ]{1,80}) port ([0-9]{1,4})"
)
_FIELD = regex(r"([A-Za-z0-9]{3,40}):\.{2,60}([0-9]{1,20}|0x[0-9a-fA-F]{1,16})\s*\Z")
_MARK = regex(
    r"^[ \t>|]{0,20}(?:Errors for (?:0x[0-9a-fA-F]{1,16} )?\"|GUID 0x[0-9a-fA-F]{1,16} port (?:ALL|[0-9]{1,4}): ?\["
    r"|# (?:Port|Port extended) counters: |(?:SymbolErrorCounter|LinkDownedCounter|PortXmitData):\.{2,60}[0-9])",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class FabricRecord:
    """One port: the node that it belongs to as the tool names it, its GUID where it is told, its counters."""

    name: str
    guid: str
    number: int
    line: int
    counters: Cells = field(default_factory=dict)


class FabricCounters(Source[FabricRecord]):
    """Counters of ports from `ibqueryerrors` and `perfquery`."""

    kind = "ib-counters"
    speaks_of = frozenset({Topic.FABRIC})
    trust = 60

    def recognises(self, head: str) -> bool:
        return _MARK.search(head) is not None

    def parse(self, blob: Blob) -> Parsed[FabricRecord]:
        parsed: Parsed[FabricRecord] = Parsed()
        page = Page(blob, parsed)
        names = own_data(_NAMES)["infiniband-diags"]
        name, single = "", None
        for line in page.lines():
            text = line.text.strip(_MARGIN)
            if len(parsed.records) >= MAX_PORTS:
                break
            if (node := _NODE.search(text)) is not None:
                name, single = node[1].strip(), None
            elif (port := _PORT.search(text)) is not None:
                number = 0 if port[2] == "ALL" else int(port[2])
                record = FabricRecord(name or port[1], port[1].lower(), number, line.number)
                for count in _COUNT.finditer(port[3]):
                    if count[1] in names:
                        line.put(record.counters, names[count[1]], int(count[2]))
                parsed.records.append(record)
            elif (one := _ONE.search(text)) is not None:
                single = FabricRecord(f"LID {one[1]}" if one[1] else "", "", int(one[2]), line.number)
                parsed.records.append(single)
            elif (cell := _FIELD.match(text)) is not None:
                if single is None:
                    single = FabricRecord("", "", 0, line.number)
                    parsed.records.append(single)
                if cell[1] in names and not cell[2].startswith("0x"):
                    line.put(single.counters, names[cell[1]], int(cell[2]))
            elif text and not text.startswith(("#", "$", "Link info")):
                page.leave(line, "not a line of ibqueryerrors or perfquery")
        return parsed

    def fill(self, blob: Blob, parsed: Parsed[FabricRecord], draft: NodeDraft) -> None:
        for record in parsed.records:
            if record.number <= MAX_NUMBER:
                entity = draft.fabric_port(record.name or "the port", record.guid, record.number)
                offer_counters(blob, entity, record.counters, f"{record.name} port {record.number}", draft)


MAX_LINKS = 100_000

_SECTION = regex(r"(?:Switch|CA|Rt):? {1,4}(?:0x[0-9a-f]{1,16} )?\s{0,20}(.{1,200}?):\s{0,9}\Z", re.ASCII)
_COULD = regex(r"Could be ([^,;()]{1,40}?)\s{0,20}(?:\Z|[,;)]|Could)")
_LINKS_MARK = regex(
    r"\] ==\(\s{0,10}[0-9]{1,2}X\s{1,20}[0-9.]{1,12} Gbps[^)/]{0,20} Active/\s{0,4}LinkUp\)==>", re.ASCII
)


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
        return _LINKS_MARK.search(head) is not None

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


_SWITCH = regex(r'Switch\s{1,20}\d{1,4}\s{1,20}"S-[0-9a-f]{1,16}"\s{0,40}#\s{1,20}"([^"]{1,200})"', re.ASCII)
_HOST = regex(
    r'\[(\d{1,4})\](?:\[ext \d{1,4}\])?\s{1,20}"H-[0-9a-f]{1,16}"\[(\d{1,4})\](?:\([0-9a-fx]{1,18}\))?\s{0,40}'
    r'#\s{1,20}"([^"]{1,200})" lid \d{1,6} (\d{1,2}x[A-Z]{2,4}\d{0,3})\b',
    re.ASCII,
)  # fmt: skip
_IB_NET_PORT = regex(
    r"(CA|SW)\s{1,8}\d{1,6}\s{1,4}(\d{1,4}) 0x[0-9a-f]{1,16} (\d{1,2})x ([A-Z]{2,4}\d{0,3})\b.{0,12}? - (CA|SW)"
    r"\s{1,8}\d{1,6}\s{1,4}(\d{1,4}) 0x[0-9a-f]{1,16} \( '([^']{1,200})' - '([^']{1,200})' \)",
    re.ASCII,
)
_IB_NET_MARK = regex(r'^[ \t>|]{0,20}Switch\s{1,20}\d{1,4}\s{1,20}"S-[0-9a-f]{1,16}"', re.MULTILINE)
_ENDS = regex(r"^[ \t>|]{0,20}(?:Ca|Rt|vendid=)")


class IbNet(Source[LinkRecord]):
    """Links between switches and hosts as `ibnetdiscover` lists them."""

    kind = "ib-net"
    speaks_of = frozenset({Topic.FABRIC})
    trust = 55
    a_piece = "what the ends of a link could do is not in it"

    def recognises(self, head: str) -> bool:
        if "0x" in head and any(_IB_NET_PORT.match(line.strip(" \t>|")) for line in head.split("\n")):
            return True
        return _IB_NET_MARK.search(head) is not None and any(
            _HOST.match(line.strip(" \t>|")) for line in head.split("\n")
        )

    def parse(self, blob: Blob) -> Parsed[LinkRecord]:
        parsed: Parsed[LinkRecord] = Parsed()
        page = Page(blob, parsed)
        here = ""
        for line in page.lines():
            text = line.text.strip(" \t>|")
            if (port := _IB_NET_PORT.match(text)) and len(parsed.records) < MAX_LINKS:
                parsed.records.extend(_switch_end(port, line.number, text))
            elif switch := _SWITCH.match(text):
                here = switch[1].strip()
            elif _ENDS.match(line.text):
                here = ""
            elif here and (host := _HOST.match(text)) and len(parsed.records) < MAX_LINKS:
                peer = f"{host[3].strip()} port {host[2]}"
                parsed.records.append(LinkRecord(here, int(host[1]), peer, host[4], None, line.number, text))
        return parsed

    def fill(self, blob: Blob, parsed: Parsed[LinkRecord], draft: NodeDraft) -> None:
        offer_links(blob, parsed.records, draft)


def _switch_end(row: re.Match[str], number: int, text: str) -> Iterator[LinkRecord]:
    """The link between a switch and a host from the switch's end, whichever end the row is of."""
    ends = [(row[1], int(row[2]), row[7].strip()), (row[5], int(row[6]), row[8].strip())]
    if ends[0][0] == "CA":
        ends.reverse()
    (kind, port, name), (other, peer_port, peer) = ends
    if (kind, other) == ("SW", "CA"):
        yield LinkRecord(name, port, f"{peer} port {peer_port}", f"{row[3]}x{row[4]}", None, number, text)
