"""`show_gids` of MLNX_OFED: the addresses of each RoCE port, with their index, version and interface.

DEV     PORT  INDEX  GID                                      IPv4            VER  DEV
mlx5_0  1     3      0000:0000:0000:0000:0000:ffff:0a9c:8184  10.156.129.132  v2   net1
"""

from __future__ import annotations

import re

from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.interface import Blob, Parsed, Source
from topodiag.evidence.network import rdma_words as words
from topodiag.evidence.network.network_records import MAX_PORT, Cell, Page, RdmaRecord, fill_rdma
from topodiag.lazy import regex
from topodiag.model.provenance import MAX_QUOTE
from topodiag.model.topics import Topic

_MARGIN = " \t>|"
_MARK = regex(r"^[ \t>|]{0,20}DEV\s{1,20}PORT\s{1,20}INDEX\s{1,20}GID\s", re.MULTILINE)
_ROW = regex(
    r"(?P<name>[A-Za-z0-9_.-]{1,63})\s{1,40}(?P<port>[0-9]{1,3})\s{1,40}(?P<index>[0-9]{1,4})\s{1,40}"
    r"(?P<gid>[0-9a-fA-F:]{3,45})(?:\s{1,40}[0-9]{1,3}(?:\.[0-9]{1,3}){3})?(?:\s{1,60}(?P<version>v[12]))?"
    r"(?:\s{1,40}(?P<netdev>\S{1,15}))?\s*\Z"
)
MAX_GIDS = 4096


class ShowGids(Source[RdmaRecord]):
    """GID tables of RoCE ports from `show_gids`."""

    kind = "rdma-gids"
    speaks_of = frozenset({Topic.RDMA_DEVICES})
    trust = 60
    a_piece = "ports without an address are left out"

    def recognises(self, head: str) -> bool:
        return _MARK.search(head) is not None

    def parse(self, blob: Blob) -> Parsed[RdmaRecord]:
        parsed: Parsed[RdmaRecord] = Parsed()
        page = Page(blob, parsed)
        devices: dict[str, RdmaRecord] = {}
        gids: dict[tuple[str, int], list[tuple[int, str, str]]] = {}
        for line in page.lines():
            match = _ROW.match(line.text.strip(_MARGIN))
            if match is None or not 0 < int(match["port"]) <= MAX_PORT:
                continue
            name, number = match["name"], int(match["port"])
            entry = words.gid(int(match["index"]), match["gid"], f"RoCE {match['version']}" if match["version"] else "")
            if entry is None or sum(map(len, gids.values())) >= MAX_GIDS:
                page.leave(line, "not a GID, or one of too many")
                continue
            if name not in devices:
                devices[name] = RdmaRecord(name, line.number)
                parsed.records.append(devices[name])
            port = devices[name].port(number, line.number)
            if match["version"]:
                line.put(port.facts, "link_layer", "Ethernet")
            if match["netdev"] and words.device_name(match["netdev"]):
                line.put(port.facts, "netdev", match["netdev"])
            gids.setdefault((name, number), []).append((line.number, line.text.strip()[:MAX_QUOTE], entry))
        for (name, number), entries in gids.items():
            first, text, _ = entries[0]
            table = tuple(entry for _, _, entry in entries)
            devices[name].ports[number].facts["gids"] = Cell(table, first, text)
        return parsed

    def fill(self, blob: Blob, parsed: Parsed[RdmaRecord], draft: NodeDraft) -> None:
        for record in parsed.records:
            fill_rdma(blob, record, draft)
