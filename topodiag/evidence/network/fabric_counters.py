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
from collections.abc import Mapping

from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.iblinkinfo import LINK_ROW
from topodiag.evidence.interface import Blob, Direct, Parsed
from topodiag.evidence.page import MARGIN, MAX_LINE
from topodiag.lazy import regex
from topodiag.model.provenance import Origin
from topodiag.model.topics import Topic
from topodiag.words.own_data import own_data

_NAMES = "evidence/network/counters"
MAX_PORTS = 100_000
MAX_NUMBER = 1024
UNNAMED_PORT = "the port"

_NODE = regex(r'Errors for (?:0x[0-9a-fA-F]{1,16} )?"([^"\n]{1,160})"')
_PORT = regex(r"GUID (0x[0-9a-fA-F]{1,16}) port (ALL|[0-9]{1,4}): ?(\[.{0,3000})")
_COUNT = regex(r"\[([A-Za-z0-9]{3,40}) == ([0-9]{1,20})\b")
_ONE = regex(
    r"# (?:Port|Port extended) counters: (?:Lid ([0-9]{1,6}|0x[0-9a-fA-F]{1,6})|DR path [^ ]{1,80}) port ([0-9]{1,4})"
)
_FIELD = regex(r"([A-Za-z0-9]{3,40}):\.{2,60}([0-9]{1,20}|0x[0-9a-fA-F]{1,16})\s*\Z")


class FabricCounters(Direct):
    """Counters of ports from `ibqueryerrors` and `perfquery`."""

    kind = "ib-counters"
    speaks_of = frozenset({Topic.FABRIC})
    trust = 60

    def read(self, blob: Blob, draft: NodeDraft) -> Parsed[int]:
        parsed: Parsed[int] = Parsed()
        names: Mapping[str, str] = own_data(_NAMES)["infiniband-diags"]
        name, single = "", None
        for number, whole in blob.lines():
            text, counts = whole[:MAX_LINE].strip(MARGIN), list[tuple[str, str]]()
            port_of = None
            if len(parsed.records) >= MAX_PORTS:
                break
            if (node := _NODE.search(text)) is not None:
                name, single = node[1].strip(), None
            elif (port := _PORT.search(text)) is not None:
                place = 0 if port[2] == "ALL" else int(port[2])
                port_of, counts = (name or port[1], port[1].lower(), place), _COUNT.findall(port[3])
            elif (one := _ONE.search(text)) is not None:
                single = (f"LID {one[1]}" if one[1] else UNNAMED_PORT, "", int(one[2]))
                port_of = single
            elif (cell := _FIELD.match(text)) is not None:
                single = single or (UNNAMED_PORT, "", 0)
                port_of, counts = single, [(cell[1], cell[2])]
            elif text and not text.startswith(("#", "$", "Link info")):
                parsed.leave(blob, number, text, "not a line of ibqueryerrors or perfquery")
            if port_of is not None and port_of[2] <= MAX_NUMBER:
                entity = draft.fabric_port(*port_of)
                for counter, count in counts:
                    if counter in names and count.isdecimal():
                        entity.count(names[counter], int(count), blob.origin(number, text))
                parsed.records.append(number)
        return parsed


MAX_LINKS = 100_000

_SECTION = regex(r"(?:Switch|CA|Rt):? {1,4}(?:0x[0-9a-f]{1,16} )?\s{0,20}(.{1,200}?):\s{0,9}\Z", re.ASCII)
_COULD = regex(r"Could be ([^,;()]{1,40}?)\s{0,20}(?:\Z|[,;)]|Could)")


def _offer_link(draft: NodeDraft, origin: Origin, port: tuple[str, int], said: tuple[str, str, str | None]) -> None:
    """What an active link says from one end, by the name and number of its port: what it runs at, the other end, and
    what both could be: "" where neither could be more, None where the text does not say."""
    runs, peer, able = said
    if port[1] <= MAX_NUMBER:
        entity = draft.fabric_port(port[0], "", port[1])
        for name, value in (("runs", runs), ("able", able), ("peer", peer)):
            entity.offer(name, value, origin)


class FabricLinks(Direct):
    """Links of a fabric that run below what both ends can do."""

    kind = "ib-links"
    speaks_of = frozenset({Topic.FABRIC})
    trust = 60

    def read(self, blob: Blob, draft: NodeDraft) -> Parsed[int]:
        parsed: Parsed[int] = Parsed()
        here = ""
        for number, whole in blob.lines():
            text = whole[:MAX_LINE].strip(MARGIN)
            section, row = _SECTION.match(text), LINK_ROW.match(text)
            if section is not None:
                here = section[1].strip(' "')
            elif row is not None and row["could"] is not None and len(parsed.records) < MAX_LINKS:
                able = ", ".join(words.strip() for words in _COULD.findall(row["could"]))
                peer = f"{row['peer'].strip() or 'an unnamed end'} port {row['peer_port']}"
                said = f"{row['lanes']}X {row['speed']} Gbps", peer, able
                name = (row["name"] or "").strip() or here or f"LID {row['lid']}"
                _offer_link(draft, blob.origin(number, text), (name, int(row["port"])), said)
                parsed.records.append(number)
        return parsed


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
_ENDS = regex(r"^[ \t>|]{0,20}(?:Ca|Rt|vendid=)")


class IbNet(Direct):
    """Links between switches and hosts as `ibnetdiscover` lists them."""

    kind = "ib-net"
    speaks_of = frozenset({Topic.FABRIC})
    trust = 55
    a_piece = "what the ends of a link could do is not in it"

    def read(self, blob: Blob, draft: NodeDraft) -> Parsed[int]:
        parsed: Parsed[int] = Parsed()
        here = ""
        for number, whole in blob.lines():
            text = whole[:MAX_LINE].strip(MARGIN)
            link = None
            if (port := _IB_NET_PORT.match(text)) is not None:
                link = _switch_end(port)
            elif switch := _SWITCH.match(text):
                here = switch[1].strip()
            elif _ENDS.match(whole):
                here = ""
            elif here and (host := _HOST.match(text)):
                link = (here, int(host[1])), (host[4], f"{host[3].strip()} port {host[2]}", None)
            if link is not None and len(parsed.records) < MAX_LINKS:
                _offer_link(draft, blob.origin(number, text), *link)
                parsed.records.append(number)
        return parsed


def _switch_end(row: re.Match[str]) -> tuple[tuple[str, int], tuple[str, str, None]] | None:
    """The link between a switch and a host from the switch's end, whichever end the row is of."""
    ends = [(row[1], int(row[2]), row[7].strip()), (row[5], int(row[6]), row[8].strip())]
    if ends[0][0] == "CA":
        ends.reverse()
    (kind, port, name), (other, peer_port, peer) = ends
    if (kind, other) != ("SW", "CA"):
        return None
    return (name, port), (f"{row[3]}x{row[4]}", f"{peer} port {peer_port}", None)
