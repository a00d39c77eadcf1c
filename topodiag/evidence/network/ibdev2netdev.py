"""`ibdev2netdev` of MLNX_OFED: which interface belongs to which RDMA port, with and without `-v`.

    mlx5_0 port 1 ==> ens1f0np0 (Up)
    0000:18:00.0 mlx5_0 (MT4129 - MCX75310AAS-NEAT) ConnectX-7 ... fw 28.41.1000 port 1 (ACTIVE) ==> ibs1 (Up)

`Up` is the script's word for an operstate of `up`, `Down` for any other.
"""

from __future__ import annotations

import re

from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.interface import Blob, Parsed, Source
from topodiag.evidence.network import rdma_words as words
from topodiag.evidence.network.network_records import MAX_PORT, Page, RdmaRecord, fill_rdma, offer_cells
from topodiag.lazy import regex
from topodiag.model.busid import normalise_bus_id
from topodiag.model.topics import Topic

_MARGIN = " \t>|"
_RIGHT = regex(r"\s*(\S{1,64})\s+\((Up|Down)\)")
_LEFT = regex(
    r"(?:(?P<bus>[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7])\s+)?(?P<name>\S{1,64})(?=\s)"
    r"(?:\s+\((?P<hca>MT[0-9]{3,6})\s*-[^)]{0,80}\))?(?P<rest>.*)\sport\s+(?P<port>[0-9]{1,3})"
    r"(?:\s*\(\s*(?P<state>[A-Za-z_]{2,16})\s*\))?\s*\Z"
)
_FIRMWARE = regex(r"(?:^|\s)fw\s+(\S{1,40})\s*\Z")
_MARK = regex(
    r"^[^\n]{1,400}? port {1,20}[0-9]{1,3}(?: \([A-Z_ ]{2,16}\))? {1,20}==> {1,20}\S{1,64} {1,40}\((?:Up|Down)\)",
    re.MULTILINE,
)
"""Also as `column -t` widens it."""


class Ibdev2netdev(Source[RdmaRecord]):
    """Interfaces of RDMA ports from `ibdev2netdev`."""

    kind = "ibdev2netdev"
    speaks_of = frozenset({Topic.RDMA_DEVICES})
    trust = 60

    def recognises(self, head: str) -> bool:
        return "==>" in head and _MARK.search(head) is not None

    def parse(self, blob: Blob) -> Parsed[RdmaRecord]:
        parsed: Parsed[RdmaRecord] = Parsed()
        page = Page(blob, parsed)
        for line in page.lines():
            text = line.text.strip(_MARGIN)
            if not text or text.startswith(("#", "$")):
                continue
            left, arrow, right = text.partition("==>")
            match, target = _LEFT.match(left.rstrip()), _RIGHT.match(right)
            name = words.device_name(match["name"]) if match else None
            interface = words.device_name(target[1]) if target else None
            number = int(match["port"]) if match else MAX_PORT + 1
            if not arrow or match is None or target is None or not name or not interface or number > MAX_PORT:
                page.leave(line, "not a line of ibdev2netdev")
                continue
            record = RdmaRecord(name, line.number, normalise_bus_id(match["bus"] or ""))
            parsed.records.append(record)
            port = record.port(number, line.number)
            line.put(port.facts, "netdev", interface)
            line.put(record.netdevs, interface, target[2].lower())
            if match["state"]:
                line.put(port.facts, "state", words.port_state(match["state"]), "not a port state")
            if match["hca"]:
                line.put(record.facts, "hca_type", match["hca"])
            version = _FIRMWARE.search(match["rest"])
            if version:
                line.put(record.facts, "firmware", version[1])
        return parsed

    def fill(self, blob: Blob, parsed: Parsed[RdmaRecord], draft: NodeDraft) -> None:
        for record in parsed.records:
            fill_rdma(blob, record, draft)
            for name, read in record.netdevs.items():
                offer_cells(blob, draft.netdev(name), {"operstate": read})
