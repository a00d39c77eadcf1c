"""`ibv_devinfo`, with and without `-v`: RDMA devices and their ports as the verbs library sees them.

Read by keys, not by indentation. Format: rdma-core libibverbs/examples/devinfo.c, whose spellings (`TRAINNING`)
are part of it. A port's rate is width times speed, which only `-v` prints.

`ibdev2netdev` of MLNX_OFED: which interface belongs to which RDMA port, with and without `-v`.

    mlx5_0 port 1 ==> ens1f0np0 (Up)
    0000:18:00.0 mlx5_0 (MT4129 - MCX75310AAS-NEAT) ConnectX-7 ... fw 28.41.1000 port 1 (ACTIVE) ==> ibs1 (Up)

`Up` is the script's word for an operstate of `up`, `Down` for any other.

`show_gids` of MLNX_OFED: the addresses of each RoCE port, with their index, version and interface.

DEV     PORT  INDEX  GID                                      IPv4            VER  DEV
mlx5_0  1     3      0000:0000:0000:0000:0000:ffff:0a9c:8184  10.156.129.132  v2   net1
"""

from __future__ import annotations

import re
from dataclasses import field
from itertools import groupby

from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.interface import Blob, Parsed, Source, to_int
from topodiag.evidence.network import rdma_words as words
from topodiag.evidence.network.network_records import (
    MAX_PORT,
    Cell,
    Line,
    Page,
    PortRecord,
    RdmaRecord,
    RdmaSource,
    Target,
    fill_rdma,
    offer_cells,
)
from topodiag.evidence.sentences import report
from topodiag.lazy import dataclass, regex
from topodiag.model.busid import normalise_bus_id
from topodiag.model.provenance import MAX_QUOTE
from topodiag.model.topics import Topic

_MARGIN = " \t>|"
_MARK = regex(r"^[ \t>|]*(?:hca_id:[ \t]*\S|GID\[ *[0-9]{1,5}\]:[ \t]*[0-9a-f:])", re.MULTILINE)
_FIELD = regex(r"([A-Za-z][A-Za-z0-9_ ]{0,40}):(.*)\Z")
_GID = regex(r"GID\[ *([0-9]{1,5})\]:\s*([0-9a-fA-F:.]{2,64})(?:,\s*(.{0,40}))?\Z")
_PORT_LINE = regex(r"^[ \t>|]*port:[ \t]*[0-9]", re.MULTILINE)
_FLAG = regex(r"(?:[A-Z][A-Z0-9_ ]{2,60}|[A-Za-z][A-Za-z0-9_]{2,60})(?: \([0-9a-fx]{1,20}\))?\Z")

_MELLANOX = 0x02C9
"""NVIDIA's (Mellanox') vendor id in verbs, an IEEE OUI; its part ids are the numbers of its MT names."""

_DEVICE_FIELDS: dict[str, Target] = {
    "transport": ("transport", words.transport),
    "fw_ver": ("firmware", words.firmware),
    "node_guid": ("node_guid", words.guid),
    "sys_image_guid": ("sys_image_guid", words.guid),
    "board_id": ("board_id", words.value_text),
}
_PORT_FIELDS: dict[str, Target] = {
    "state": ("state", words.port_state),
    "phys_state": ("phys_state", words.phys_state),
    "max_mtu": ("max_mtu", words.mtu),
    "active_mtu": ("active_mtu", words.mtu),
    "sm_lid": ("sm_lid", words.lid),
    "port_lid": ("lid", words.lid),
    "link_layer": ("link_layer", words.link_layer),
    "active_width": ("lanes", words.verbs_width),
}

_CLOSED = "Failed to open device"
"""What it says of a device whose node is not there or not open to it, without its name."""


@dataclass(slots=True)
class _State:
    """What the lines so far belong to, and the pieces that only together make a fact."""

    device: RdmaRecord | None = None
    port: PortRecord | None = None
    vendor: int | None = None
    cut: bool = False
    """Whether the text was cut by a pattern, so that no line says which port is meant."""
    gids: list[tuple[PortRecord, Line, str]] = field(default_factory=list)


class IbvDevinfo(Source[RdmaRecord]):
    """RDMA devices from `ibv_devinfo`."""

    kind = "ibv-devinfo"
    speaks_of = frozenset({Topic.RDMA_DEVICES})
    trust = 70

    def recognises(self, head: str) -> bool:
        return _MARK.search(head) is not None

    def parse(self, blob: Blob) -> Parsed[RdmaRecord]:
        parsed: Parsed[RdmaRecord] = Parsed()
        state = _State(cut=_PORT_LINE.search(blob.text) is None)
        page = Page(blob, parsed)
        for line in page.lines():
            text = line.text.strip(_MARGIN)
            match = _FIELD.match(text)
            if match and match[1] == "hca_id":
                name = words.device_name(match[2].strip())
                state.device, state.port, state.vendor = RdmaRecord(name or "", line.number), None, None
                parsed.records.append(state.device)
                if name is None:
                    page.leave(line, "not a device name")
            elif match:
                _read_field(page, line, state)
            elif text.startswith("GID["):
                _read_gid(page, line, state)
            elif text == _CLOSED:
                parsed.records.append(RdmaRecord(_CLOSED, line.number))
            elif text and not text.startswith(("#", "$")) and not _FLAG.match(text):
                page.leave(line, "not a line of ibv_devinfo")
        _put_gids(state.gids)
        return parsed

    def fill(self, blob: Blob, parsed: Parsed[RdmaRecord], draft: NodeDraft) -> None:
        closed = next((record for record in parsed.records if record.name == _CLOSED), None)
        if closed is not None:
            draft.reports.append(report("rdma.device_closed", _CLOSED, blob, closed.line, _CLOSED))
        for record in parsed.records:
            if record.name != _CLOSED:
                fill_rdma(blob, record, draft)


def _read_field(page: Page[RdmaRecord], line: Line, state: _State) -> None:
    key, _, cell = line.text.strip(_MARGIN).partition(":")
    key = key.strip()
    device = state.device
    if key == "port":
        number = to_int(cell, low=0, high=MAX_PORT)
        state.port = None
        if number is None:
            page.leave(line, "not a port number")
        elif device is not None:
            state.port = device.port(number, line.number)
    elif key in _DEVICE_FIELDS and device is not None:
        page.read(line, cell, device.facts, _DEVICE_FIELDS[key])
    elif key == "vendor_id":
        state.vendor = to_int(cell, low=0)
    elif key == "vendor_part_id" and device is not None and state.vendor == _MELLANOX:
        page.read(line, cell, device.facts, ("hca_type", _hca_type))
    elif key in _PORT_FIELDS:
        page.read(line, cell, _port(page, line, state, _PORT_FIELDS[key][0]).facts, _PORT_FIELDS[key])
    elif key == "active_speed":
        _read_speed(page, line, cell, _port(page, line, state))


def _port(page: Page[RdmaRecord], line: Line, state: _State, field_name: str = "") -> PortRecord:
    """The port that a port's line belongs to. A fragment without a header keeps its facts under no name. Where a
    pattern took the ports' own lines, a field that comes again is the next port's."""
    if state.cut and state.device is not None and state.device.name:
        ports = state.device.ports
        last = ports[max(ports)] if ports else state.device.port(1, line.number)
        if field_name in last.facts and last.number < MAX_PORT:
            last = state.device.port(last.number + 1, line.number)
        return last
    if state.port is None:
        if state.device is None:
            state.device = RdmaRecord("", line.number)
            page.parsed.records.append(state.device)
        # Port lines below a device but below no readable `port:` line: of a port that nobody can name.
        nameless = not state.device.name
        state.port = state.device.port(0, line.number) if nameless else PortRecord(0, line.number)
    return state.port


def _hca_type(cell: str) -> str | None:
    part = to_int(cell, low=1, high=0xFFFF)
    return None if part is None else f"MT{part}"


def _read_speed(page: Page[RdmaRecord], line: Line, text: str, port: PortRecord) -> None:
    speed = words.verbs_speed(text)
    lanes = port.facts.get("lanes")
    width = lanes.value if lanes is not None and isinstance(lanes.value, int) else None
    if speed is None:
        page.leave(line, "no link speed in it")
    elif speed[1] is not None:
        line.put(port.facts, "speed_name", speed[1])
    total = speed[0] * width if speed is not None and width is not None else None
    line.put(port.facts, "rate_gbps", total, "width or speed of the link is not readable")


def _read_gid(page: Page[RdmaRecord], line: Line, state: _State) -> None:
    match = _GID.match(line.text.strip(_MARGIN))
    if match is not None and not match[2].strip("0:"):
        return  # an empty entry of the table
    entry = words.gid(int(match[1]), match[2], match[3] or "") if match else None
    if entry is None:
        page.leave(line, "not a GID")
    else:
        state.gids.append((_port(page, line, state), line, entry))


def _put_gids(gids: list[tuple[PortRecord, Line, str]]) -> None:
    """Give each port its table, in the order of the text (a port's lines stand together)."""
    for _, table in groupby(gids, key=lambda entry: id(entry[0])):
        entries = list(table)
        port, first, _ = entries[0]
        port.facts["gids"] = Cell(tuple(entry for _, _, entry in entries), first.number, first.text.strip()[:MAX_QUOTE])


_RIGHT = regex(r"\s*(\S{1,64})\s+\((Up|Down)\)")
_LEFT = regex(
    r"(?:(?P<bus>[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7])\s+)?(?P<name>\S{1,64})(?=\s)"
    r"(?:\s+\((?P<hca>MT[0-9]{3,6})\s*-[^)]{0,80}\))?(?P<rest>.*)\sport\s+(?P<port>[0-9]{1,3})"
    r"(?:\s*\(\s*(?P<state>[A-Za-z_]{2,16})\s*\))?\s*\Z"
)
_FIRMWARE = regex(r"(?:^|\s)fw\s+(\S{1,40})\s*\Z")
_IBDEV2NETDEV_MARK = regex(
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
        return "==>" in head and _IBDEV2NETDEV_MARK.search(head) is not None

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


_SHOW_GIDS_MARK = regex(r"^[ \t>|]{0,20}DEV\s{1,20}PORT\s{1,20}INDEX\s{1,20}GID\s", re.MULTILINE)
_ROW = regex(
    r"(?P<name>[A-Za-z0-9_.-]{1,63})\s{1,40}(?P<port>[0-9]{1,3})\s{1,40}(?P<index>[0-9]{1,4})\s{1,40}"
    r"(?P<gid>[0-9a-fA-F:]{3,45})(?:\s{1,40}[0-9]{1,3}(?:\.[0-9]{1,3}){3})?(?:\s{1,60}(?P<version>v[12]))?"
    r"(?:\s{1,40}(?P<netdev>\S{1,15}))?\s*\Z"
)
MAX_GIDS = 4096


class ShowGids(RdmaSource):
    """GID tables of RoCE ports from `show_gids`."""

    kind = "rdma-gids"
    trust = 60
    a_piece = "ports without an address are left out"

    def recognises(self, head: str) -> bool:
        return _SHOW_GIDS_MARK.search(head) is not None

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
