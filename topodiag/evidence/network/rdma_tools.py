"""RDMA devices and their ports, as tools print them.

`ibstat`, `ibstatus` and `ibv_devinfo`: rows of a name and a value, below a line that names a device, and one with the
number of a port.

    CA 'mlx5_0'                    Infiniband device 'mlx5_0' port 1 status:      hca_id: mlx5_0
            Port 1:                        state:           4: ACTIVE                     port:   1
                    State: Active          rate:            400 Gb/sec (4X NDR)                   state: PORT_ACTIVE (4)

Read by names, so that indentation and quoting marks of a paste do not matter; names that stand for no fact are passed
over. Formats: rdma-core, infiniband-diags/ibstat.c, infiniband-diags/scripts/ibstatus, libibverbs/examples/devinfo.c,
whose spellings (`TRAINNING`) are part of it and which prints the speed of a port with `-v` alone.

`ibdev2netdev` of MLNX_OFED: which interface belongs to which RDMA port, with and without `-v`.

    mlx5_0 port 1 ==> ens1f0np0 (Up)
    0000:18:00.0 mlx5_0 (MT4129 - MCX75310AAS-NEAT) ConnectX-7 ... fw 28.41.1000 port 1 (ACTIVE) ==> ibs1 (Up)

`Up` is the script's word for an operstate of `up`, `Down` for any other. Also as `column -t` widens it.

`show_gids` of MLNX_OFED: the addresses of each RoCE port, with their index, version and interface.

DEV     PORT  INDEX  GID                                      IPv4            VER  DEV
mlx5_0  1     3      0000:0000:0000:0000:0000:ffff:0a9c:8184  10.156.129.132  v2   net1

`rdma link show` and `rdma statistic show` of iproute2: state, interface and counters of each RDMA port.

    link mlx5_0/1 state ACTIVE physical_state LINK_UP netdev ens1f0np0
    link mlx5_0/1 rx_write_requests 12 out_of_sequence 41002 local_ack_timeout_err 2705

Older releases number the lines (`1/1: mlx5_0/1: state ...`), newer begin with `link`. The kernel says subnet and LID
of InfiniBand ports only (drivers/infiniband/core/nldev.c, fill_port_info), which tells the link layer.

`mlxlink` of NVIDIA's firmware tools: state, rate and error counters of one port of an adapter.

    # mlxlink -d mlx5_5 -c
    State                              : Active
    Physical state                     : LinkUp
    Speed                              : IB-NDR
    Width                              : 4x
    Symbol Errors                      : 3114

The device stands in the command alone: without it the figures are of a port that nobody can name, and speak for it only
where no other adapter is known. Format: MFT 4.20 to 4.30, user manual, mlxlink utility.
"""

from __future__ import annotations

import re

from topodiag.evidence.draft import UNNAMED_NIC, Entity
from topodiag.evidence.fabric_links import LANE_GBPS
from topodiag.evidence.interface import behind, to_int
from topodiag.evidence.json_values import line_of, load, objects, opens_list
from topodiag.evidence.network import rdma_words as words
from topodiag.evidence.page import Line, OfPage, Page
from topodiag.lazy import dataclass
from topodiag.model.busid import normalise_bus_id
from topodiag.model.provenance import NotObserved
from topodiag.words.own_data import own_data, patterns

_BEGINS = patterns("evidence/network/lines", "blocks")
_QUOTE = "'"
_MELLANOX = 0x02C9
"""NVIDIA's (Mellanox') vendor id in verbs, an IEEE OUI; its part ids are the numbers of its MT names."""


@dataclass(slots=True)
class _Place:
    """What the lines so far belong to. `numbered`: whether a line said which port of the device it is; where a pattern
    took these lines, ports stand in order."""

    name: str
    device: Entity
    port: Entity | None = None
    numbered: bool = False
    ports: int = 0
    """Ports that stand without their numbers."""
    vendor: int | None = None

    def number(self, line: Line, written: str) -> None:
        """The port of a line with its number. Facts of a port that cannot be must not fall to the port before it."""
        number = to_int(written, low=0, high=words.MAX_PORT)
        self.port, self.numbered = None, True
        if number is None:
            line.leave("not a port of a device")
        else:
            self.port = self.device.child("port", number)

    def port_with(self, page: Page, name: str) -> Entity | None:
        """The port that a field is of; without numbers a field that comes again is the next port's."""
        if not self.numbered and (self.port is None or page.said(self.port, name) is not None):
            self.ports += 1
            self.port = self.device.child("port", min(self.ports, words.MAX_PORT))
        return self.port


class _Blocks(OfPage):
    """Devices and ports in blocks."""

    def read_page(self, page: Page) -> None:
        place: _Place | None = None
        for line in page.lines():
            text = line.bare
            if (head := _BEGINS[self.kind].match(text)) is not None:
                place = _begin(line, head, place)
            elif "IB device" in text and ("' failed" in text or "can't be found" in text):
                line.leave("the tool could not read it")
                page.draft.missing.append(NotObserved(f"ibstat of {text.split(_QUOTE)[1]}", text))
            elif place is None:
                if text.startswith("GID["):
                    page.mark(line.number)  # a table of GIDs that somebody cut out
            elif text.startswith("GID["):
                _read_gid(line, place)
            else:
                _read(line, place, *text.partition(":"))


class Ibstat(_Blocks):
    """RDMA devices from `ibstat`: all of them (`CA 'mlx5_0'`), or one port (`CA: 'mlx5_0'`)."""


class Ibstatus(_Blocks):
    """RDMA ports from `ibstatus`. The default GID is left aside: it says neither its index nor its type."""


class IbvDevinfo(_Blocks):
    """RDMA devices from `ibv_devinfo`, with and without `-v`."""


def _begin(line: Line, head: re.Match[str], before: _Place | None) -> _Place | None:
    """The device of a line that names one, and its port."""
    page = line.page
    if words.device_name(head[1]) is None:
        line.leave("not a device name")
        return None
    if before is None or before.name != head[1] or head.re.groups == 1:
        page.begin()
    page.mark(line.number)
    place = _Place(head[1], page.draft.nic(rdma=head[1]))
    if head.re.groups > 1:
        place.number(line, head[2])
    return place


def _read(line: Line, place: _Place, name: str, colon: str, cell: str) -> None:
    """Keep what a row says, a name and a value behind a colon."""
    key = name.strip().lower().replace(" ", "_")
    if not colon:
        return
    if key == "port" or (key.startswith("port_") and key[5:].isdecimal()):
        place.number(line, cell.strip() or key[5:])
    elif key in words.DEVICE_KEYS:
        words.offer_cell(line, place.device, words.DEVICE_KEYS[key], cell)
    elif key == "vendor_id":
        place.vendor = to_int(cell, low=0)
    elif key == "vendor_part_id" and place.vendor == _MELLANOX:
        part = to_int(cell, low=1, high=0xFFFF)
        line.offer(place.device, "hca_type", None if part is None else f"MT{part}", "no part of Mellanox")
    elif key in words.PORT_KEYS or key == "active_speed":
        name = words.PORT_KEYS.get(key, "rate_gbps")
        port = place.port_with(line.page, name)
        if port is None:
            line.leave("of a port that cannot be")
        elif key == "rate":
            words.offer_rate(line, port, cell)
        elif key == "active_speed":
            _read_speed(line, port, cell)
        else:
            words.offer_cell(line, port, name, cell)


def _read_speed(line: Line, port: Entity, text: str) -> None:
    """The speed of a lane, which makes a rate with the width that stands before it."""
    speed, lanes = words.verbs_speed(text), line.page.said(port, "lanes")
    if speed is None:
        line.leave("no link speed in it")
    total = speed * lanes if speed is not None and isinstance(lanes, int) else None
    line.offer(port, "rate_gbps", total, "width or speed of the link is not readable")


def _read_gid(line: Line, place: _Place) -> None:
    index, _, rest = line.bare.removeprefix("GID[").partition("]:")
    address, _, kind = rest.strip().partition(",")
    number = to_int(index, low=0, high=99_999)
    if number is not None and address and not address.strip("0:"):
        return  # an empty entry of the table
    entry = words.gid(number, address, kind) if number is not None else None
    port = place.port or place.port_with(line.page, "")
    if entry is None or port is None:
        line.leave("not a GID of a port")
    else:
        line.add(port, "gids", entry)


_OF_IBDEV2NETDEV = patterns("evidence/network/lines", "ibdev2netdev")


class Ibdev2netdev(OfPage):
    """Interfaces of RDMA ports from `ibdev2netdev`."""

    def read_page(self, page: Page) -> None:
        for line in page.lines():
            if not line.bare or line.bare.startswith(("#", "$")):
                continue
            left, _, right = line.bare.partition("==>")
            match, (target, state, *_) = _OF_IBDEV2NETDEV["left"].match(left.rstrip()), (*right.split(), "", "")
            name = words.device_name(match["name"]) if match else None
            interface = words.device_name(target) if state in ("(Up)", "(Down)") else None
            number = to_int(match["port"], high=words.MAX_PORT) if match else None
            if match is None or not name or not interface or number is None:
                line.leave("not a line of ibdev2netdev")
                continue
            bus_id = normalise_bus_id(match["bus"] or "")
            nic, netdev = page.draft.nic(rdma=name, bus_id=bus_id), page.draft.netdev(interface)
            port = nic.child("port", number)
            page.begin()
            line.offer(port, "netdev", interface)
            line.put(netdev, operstate=state.strip("()").lower(), bus_id=bus_id)
            if match["state"]:
                line.offer(port, "state", words.port_state(match["state"]), "not a port state")
            rest = match["rest"].split()
            line.put(nic, hca_type=match["hca"], firmware=rest[-1][:40] if rest[-2:-1] == ["fw"] else None)


class ShowGids(OfPage):
    """GID tables of RoCE ports from `show_gids`."""

    def read_page(self, page: Page) -> None:
        for line in page.lines():
            name, place, index, gid, *rest = *line.bare.split(), "", "", "", ""
            number = to_int(place, low=1, high=words.MAX_PORT) if place.isdecimal() and index.isdecimal() else None
            if number is None or ":" not in gid or words.device_name(name) is None:
                continue
            version = next((word for word in rest if word in ("v1", "v2")), "")
            entry = words.gid(int(index[:4]), gid, f"RoCE {version}")
            if entry is None:
                line.leave("not a GID")
                continue
            port = page.draft.nic(rdma=name).child("port", number)
            line.add(port, "gids", entry)
            if version:
                line.offer(port, "link_layer", "Ethernet")
            others = [word for word in rest if word and word != version and word.count(".") != 3]
            if others and words.device_name(others[-1]):
                line.offer(port, "netdev", others[-1])


_NO_COUNTERS = {"ifindex", "port", "lmc", "subnet_prefix", "netdev_index"}
_MAX_PORTS = 4096


class RdmaLink(OfPage):
    """Ports from `rdma link show`, and their counters from `rdma statistic show`, with or without `-j`."""

    def read_page(self, page: Page) -> None:
        # Counters alone do not say which devices there are.
        page.parsed.partial = "state" not in page.blob.text
        if opens_list(page.blob.text):
            document, why = load(page.blob)
            if why:
                page.parsed.leave(page.blob, 1, page.blob.text[:80], why)
            for _, entry in objects(document, _MAX_PORTS):
                pairs = {key: str(cell)[:80] for key, cell in entry.items() if isinstance(cell, str | int)}
                quote = " ".join(f"{key} {cell}" for key, cell in list(pairs.items())[:12])
                name = pairs.get("ifname", "")
                _offer_port(Line(page, line_of(page.blob.text, name), quote), name, pairs.get("port", ""), pairs)
            return
        for line in page.lines():
            text = line.bare
            first, place, *pieces = *text.split(), "", ""
            device, slash, number = place.rstrip(":").partition("/")
            if slash and (first == "link" or (first.endswith(":") and first[:1].isdecimal())):
                _offer_port(line, device, number, dict(zip(pieces[::2], pieces[1::2], strict=False)))
            elif text and not text.startswith(("#", "$", "caps:")):
                line.leave("not a line of rdma link")


def _offer_port(line: Line, device: str, place: str, pairs: dict[str, str]) -> None:
    name, number = words.device_name(device), to_int(place, low=0, high=words.MAX_PORT)
    if name is None or number is None:
        line.leave("not a device and its port")
        return
    port = line.page.draft.nic(rdma=name).child("port", number)
    line.page.begin()
    for key, cell in pairs.items():
        if key in words.PORT_KEYS:
            words.offer_cell(line, port, words.PORT_KEYS[key], cell)
        elif key not in _NO_COUNTERS and (count := to_int(cell, low=0)) is not None:
            line.count(port, key, count)
    if "subnet_prefix" in pairs or "lid" in pairs:
        line.offer(port, "link_layer", "InfiniBand")
    elif "netdev" in pairs:
        line.offer(port, "link_layer", "Ethernet")


_FIRST = "Operational Info"
_SECTIONS = (_FIRST, "Troubleshooting Info", "Module Info", "Physical Counters and BER Info")
_STATES = {"polling": "Polling", "disable": "Disabled", "disabled": "Disabled", "sleep": "Sleep"}
"""States of mlxlink that the kernel tells as a logical one, down, and a physical one."""
_OF_SIGNAL = ("signal integrity", "high ber", "ber is high")
"""In its recommendations that blame the signal; others explain why a link is down, which its state says."""
_AFTER_CORRECTION = {"Effective Physical BER": "effective_ber", "Symbol BER": "symbol_ber"}
_MlxlinkRows = dict[str, tuple[Line, str]]


class Mlxlink(OfPage):
    """State, rate and counters of a port from `mlxlink`."""

    def read_page(self, page: Page) -> None:
        device, above = "", ""
        blocks: list[tuple[str, _MlxlinkRows]] = []
        for line in page.lines():
            text = line.bare
            if "mlxlink" in text and (given := behind(text, "-d", "--device")):
                name = given.rpartition("/")[2]
                device = "" if name.startswith("mt") or ":" in name else words.device_name(name) or ""
            elif above in _SECTIONS and text.startswith("------") and (above == _FIRST or not blocks):
                blocks.append((device, {}))
            elif blocks and ":" in text:
                key, _, value = text.partition(":")
                blocks[-1][1].setdefault(key.strip(), (line, value.strip()))
            above = text
        for name, rows in blocks:
            page.parsed.records.extend(line.number for line, _ in rows.values())
            if name or len(blocks) == 1:
                page.begin()
                _offer_mlxlink(page.draft.nic(rdma=name or UNNAMED_NIC).child("port", 1), rows)


def _offer_mlxlink(port: Entity, rows: _MlxlinkRows) -> None:
    counters = own_data("evidence/network/counters")["mlxlink"]
    lane_gbps, sum_gbps = None, None
    for name, (line, value) in rows.items():
        if name == "State" and (physical := _STATES.get(value.lower())) is not None:
            line.offer(port, "state", "DOWN")
            line.offer(port, "phys_state", physical)
        elif name == "State":
            words.offer_cell(line, port, "state", value)
        elif name == "Physical state" and words.phys_state(value) is not None:
            # Of an Ethernet port it is that of its negotiation (ETH_AN_FSM_ENABLE), no word of the kernel.
            words.offer_cell(line, port, "phys_state", value)
        elif name == "Speed":
            generation, digits = value.removeprefix("IB-"), value.partition("G")[0]
            lane_gbps = LANE_GBPS.get(generation)
            if lane_gbps is not None:
                line.offer(port, "link_layer", "InfiniBand")
            elif digits.isdecimal():
                sum_gbps = float(digits) or None
                line.offer(port, "link_layer", "Ethernet")
        elif name == "Width" and (lanes := to_int(value, low=1)) is not None:
            line.offer(port, "lanes", lanes)
            line.offer(port, "rate_gbps", lane_gbps * lanes if lane_gbps else sum_gbps, "no speed that is known")
        elif name == "Recommendation" and any(word in value.lower() for word in _OF_SIGNAL):
            line.offer(port, "signal", value[:100])
        elif name in _AFTER_CORRECTION:
            line.offer(port, _AFTER_CORRECTION[name], value[:20])
        elif name in counters:
            line.count(port, counters[name], to_int(value, low=0))
