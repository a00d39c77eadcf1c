"""`ibdev2netdev` of MLNX_OFED: which interface belongs to which RDMA port, with and without `-v`.

    mlx5_0 port 1 ==> ens1f0np0 (Up)
    0000:18:00.0 mlx5_0 (MT4129 - MCX75310AAS-NEAT) ConnectX-7 ... fw 28.41.1000 port 1 (ACTIVE) ==> ibs1 (Up)

`Up` is the script's word for an operstate of `up`, `Down` for any other. Also as `column -t` widens it.

`show_gids` of MLNX_OFED: the addresses of each RoCE port, with their index, version and interface.

DEV     PORT  INDEX  GID                                      IPv4            VER  DEV
mlx5_0  1     3      0000:0000:0000:0000:0000:ffff:0a9c:8184  10.156.129.132  v2   net1
"""

from __future__ import annotations

from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.interface import Blob, Parsed
from topodiag.evidence.network import rdma_words as words
from topodiag.evidence.network.network_records import MAX_PORT, Page, RdmaRecord, RdmaSource, offer_cells
from topodiag.lazy import regex
from topodiag.model.busid import normalise_bus_id

_RIGHT = regex(r"\s*(\S{1,64})\s+\((Up|Down)\)")
_LEFT = regex(
    r"(?:(?P<bus>[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7])\s+)?(?P<name>\S{1,64})(?=\s)"
    r"(?:\s+\((?P<hca>MT[0-9]{3,6})\s*-[^)]{0,80}\))?(?P<rest>.*)\sport\s+(?P<port>[0-9]{1,3})"
    r"(?:\s*\(\s*(?P<state>[A-Za-z_]{2,16})\s*\))?\s*\Z"
)
_FIRMWARE = regex(r"(?:^|\s)fw\s+(\S{1,40})\s*\Z")


class Ibdev2netdev(RdmaSource):
    """Interfaces of RDMA ports from `ibdev2netdev`."""

    kind = "ibdev2netdev"
    trust = 60

    def parse(self, blob: Blob) -> Parsed[RdmaRecord]:
        parsed: Parsed[RdmaRecord] = Parsed()
        page = Page(blob, parsed)
        for line in page.lines():
            text = line.bare
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
        super().fill(blob, parsed, draft)
        for record in parsed.records:
            for name, read in record.netdevs.items():
                offer_cells(blob, draft.netdev(name), {"operstate": read})


_ROW = regex(
    r"(?P<name>[A-Za-z0-9_.-]{1,63})\s{1,40}(?P<port>[0-9]{1,3})\s{1,40}(?P<index>[0-9]{1,4})\s{1,40}"
    r"(?P<gid>[0-9a-fA-F:]{3,45})(?:\s{1,40}[0-9]{1,3}(?:\.[0-9]{1,3}){3})?(?:\s{1,60}(?P<version>v[12]))?"
    r"(?:\s{1,40}(?P<netdev>\S{1,15}))?\s*\Z"
)


class ShowGids(RdmaSource):
    """GID tables of RoCE ports from `show_gids`."""

    kind = "rdma-gids"
    trust = 60
    a_piece = "ports without an address are left out"

    def parse(self, blob: Blob) -> Parsed[RdmaRecord]:
        parsed: Parsed[RdmaRecord] = Parsed()
        page = Page(blob, parsed)
        devices: dict[str, RdmaRecord] = {}
        for line in page.lines():
            match = _ROW.match(line.bare)
            if match is None or not 0 < int(match["port"]) <= MAX_PORT:
                continue
            entry = words.gid(int(match["index"]), match["gid"], f"RoCE {match['version']}" if match["version"] else "")
            if entry is None:
                page.leave(line, "not a GID")
                continue
            record = devices.setdefault(match["name"], RdmaRecord(match["name"], line.number))
            port = record.port(int(match["port"]), line.number)
            if match["version"]:
                line.put(port.facts, "link_layer", "Ethernet")
            if match["netdev"] and words.device_name(match["netdev"]):
                line.put(port.facts, "netdev", match["netdev"])
            line.add(port.facts, "gids", entry)
        parsed.records.extend(devices.values())
        return parsed
