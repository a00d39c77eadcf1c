"""`ibnetdiscover`: the width and speed of the links between the switches and hosts of an InfiniBand fabric.

    Switch  41 "S-946dae0300aabbcc"  # "MF0;leaf-03:MQM9700/U1" enhanced port 0 lid 12 lmc 0
    [3]     "H-946dae0300112235"[1](946dae0300112235)   # "gpu-003 mlx5_0" lid 43 4xHDR

With `-p` one row for each port, of either end:

    CA   206  1 0xa088c20300064f10 4x HDR - SW    31  6 0xfc6a1c0300a1b200 ( 'gpu-006 mlx5_0' - 'leaf-07' )

It says what runs, and not what the ends could do: a check compares adapters of one name below one switch. Format:
rdma-core, infiniband-diags/ibnetdiscover.c (dump_topology, dump_ports_report).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.interface import Blob, Parsed, Source
from topodiag.evidence.network.fabric_links import MAX_LINKS, LinkRecord, offer_links
from topodiag.evidence.network.network_records import Page
from topodiag.lazy import regex
from topodiag.model.topics import Topic

_SWITCH = regex(r'Switch\s{1,20}\d{1,4}\s{1,20}"S-[0-9a-f]{1,16}"\s{0,40}#\s{1,20}"([^"]{1,200})"', re.ASCII)
_HOST = regex(
    r'\[(\d{1,4})\](?:\[ext \d{1,4}\])?\s{1,20}"H-[0-9a-f]{1,16}"\[(\d{1,4})\](?:\([0-9a-fx]{1,18}\))?\s{0,40}'
    r'#\s{1,20}"([^"]{1,200})" lid \d{1,6} (\d{1,2}x[A-Z]{2,4}\d{0,3})\b',
    re.ASCII,
)  # fmt: skip
_PORT = regex(
    r"(CA|SW)\s{1,8}\d{1,6}\s{1,4}(\d{1,4}) 0x[0-9a-f]{1,16} (\d{1,2})x ([A-Z]{2,4}\d{0,3})\b.{0,12}? - (CA|SW)"
    r"\s{1,8}\d{1,6}\s{1,4}(\d{1,4}) 0x[0-9a-f]{1,16} \( '([^']{1,200})' - '([^']{1,200})' \)",
    re.ASCII,
)
_MARK = regex(r'^[ \t>|]{0,20}Switch\s{1,20}\d{1,4}\s{1,20}"S-[0-9a-f]{1,16}"', re.MULTILINE)
_ENDS = regex(r"^[ \t>|]{0,20}(?:Ca|Rt|vendid=)")


class IbNet(Source[LinkRecord]):
    """Links between switches and hosts as `ibnetdiscover` lists them."""

    kind = "ib-net"
    speaks_of = frozenset({Topic.FABRIC})
    trust = 55
    a_piece = "what the ends of a link could do is not in it"

    def recognises(self, head: str) -> bool:
        if "0x" in head and any(_PORT.match(line.strip(" \t>|")) for line in head.split("\n")):
            return True
        return _MARK.search(head) is not None and any(_HOST.match(line.strip(" \t>|")) for line in head.split("\n"))

    def parse(self, blob: Blob) -> Parsed[LinkRecord]:
        parsed: Parsed[LinkRecord] = Parsed()
        page = Page(blob, parsed)
        here = ""
        for line in page.lines():
            text = line.text.strip(" \t>|")
            if (port := _PORT.match(text)) and len(parsed.records) < MAX_LINKS:
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
