"""Interfaces as tools print them.

`ethtool IF` (speed, link, the modes that an interface can do), `ethtool -i IF` (driver, firmware, PCI function) and
`ethtool -S IF` (the driver's own counters): rows of a name and a value.

    Settings for ens1f0np0:            driver: mlx5_core                            NIC statistics:
            Speed: 100000Mb/s          firmware-version: 28.41 (MT_0000000838)           rx_discards_phy: 17
            Link detected: yes         bus-info: 0000:18:00.0

The last two do not name the interface: it is the captured command's last word, or the echoed command line of a paste;
without either the facts go to the NIC of the function. A pattern after the command takes the head line away. Counters
of single queues are kept only where their name speaks of a loss: a driver has thousands of them, and their sums stand
beside them. Format: ethtool's netlink/settings.c and ethtool.c.

`mlnx_qos -i IF` and `dcb pfc show dev IF`: which priorities have flow control, and which DSCP rides which priority.

    Priority trust state: dscp
    dscp2prio mapping:
            prio:0 dscp:07,06,05,04,03,02,01,00,
    PFC configuration:
            priority    0   1   2   3   4   5   6   7
            enabled     0   0   0   1   0   0   0   0
    pfc-cap 8 macsec-bypass off delay 0
    prio-pfc 0:off 1:off 2:off 3:on 4:off 5:off 6:off 7:off

Format: mlnx-tools, python/mlnx_qos; iproute2, dcb/dcb_pfc.c.

`ip link`, `ip addr`, with `-s`, `-d`, `-o`, `-br` or `-j`, and `ifconfig`: state, MTU, addresses, counted errors.

    4: ens2np0: <NO-CARRIER,BROADCAST,MULTICAST,UP> mtu 9000 qdisc mq master bond0 state DOWN mode DEFAULT qlen 1000
        link/ether b8:ce:f6:11:22:35 brd ff:ff:ff:ff:ff:ff
        inet 10.24.6.50/24 brd 10.24.6.255 scope global ens2np0
        RX:  bytes packets errors dropped  missed   mcast
              1024      12      3       0       0       0
    ens2np0          DOWN           b8:ce:f6:11:22:35 <NO-CARRIER,BROADCAST,MULTICAST,UP>
    ens2np0          DOWN           10.24.6.50/24 fe80::6abf:1%ens2np0/64
    4: ens2np0    inet 10.24.6.50/24 brd 10.24.6.255 scope global ens2np0

Formats: iproute2 4.15 to 6.9 (ip/ipaddress.c, print_linkinfo, print_link_stats64, print_addrinfo); net-tools 1.60 and
2.10 (lib/interface.c, lib/inet.c).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import field
from itertools import pairwise
from operator import itemgetter
from typing import Any

from topodiag.evidence.draft import Entity
from topodiag.evidence.interface import Item, behind, to_int
from topodiag.evidence.json_values import integer, line_of, load, objects, opens_list
from topodiag.evidence.json_values import text as word_of
from topodiag.evidence.network import rdma_words as words
from topodiag.evidence.page import MARGIN, MOST_OF_A_LIST, Line, OfPage, Page
from topodiag.lazy import dataclass
from topodiag.words.hosts import address_of
from topodiag.words.own_data import own_data, patterns

MAX_COUNTERS = 20_000
"""Counters read of one interface; drivers with a counter for each of 128 queues and 40 names stay below."""
_LIKE = patterns("evidence/network/lines", "interfaces")
_SETTINGS = "Settings for "
_STATISTICS = "NIC statistics:"
_MODES = "Supported link modes"
_BOARDS = ("MT_", "DEL_", "HP_", "LNV_", "NVD_", "ISL_", "SM_")
_OF_A_LOSS = tuple(own_data("evidence/network/words")["ethtool_losses"])
_KEYS: Mapping[str, str] = own_data("evidence/network/words")["ethtool-keys"]


def named_interface(item: Item | None) -> str:
    """The interface of a captured command, its last word; empty when the manifest does not say one."""
    return (words.device_name(item.argv[-1]) or "") if item is not None and len(item.argv) > 1 else ""


@dataclass(slots=True)
class _Block:
    """What one command printed of an interface, "" where nothing names it."""

    name: str
    counts: bool
    lines: list[Line] = field(default_factory=list)


class Ethtool(OfPage):
    """Interfaces with their settings, driver and counters."""

    def read_page(self, page: Page) -> None:
        for block in _blocks(page):
            page.begin()
            if not block.counts:
                _read_settings(page, block)
            elif block.name:
                _read_counters(page, block)


def _blocks(page: Page) -> Iterator[_Block]:
    of_item = named_interface(page.blob.item)
    name, block = of_item, _Block("", False)
    for line in page.lines():
        text = line.bare
        if (asked := _LIKE["command"].search(text)) is not None:
            yield block
            name, block = asked[2], _Block(asked[2] if asked[3] else "", bool(asked[1] and asked[3]))
        elif text.startswith(_SETTINGS):
            yield block
            block = _Block(words.device_name(text.removeprefix(_SETTINGS).rstrip(":")) or "", False)
        elif text == _STATISTICS or (not block.counts and text.startswith("driver:")):
            yield block
            block = _Block(name, text == _STATISTICS, [line])
            name = of_item  # an echoed command names one block only
        else:
            block.lines.append(line)
    yield block


def _read_settings(page: Page, block: _Block) -> None:
    """Settings and driver; without a name the facts go to the NIC of the function."""
    key, rows = "", list[tuple[Line, str, str]]()
    for line in block.lines:
        word, colon, cell = line.bare.partition(":")
        key = word.strip() if colon else key
        rows.append((line, key, cell if colon else word))
    bus_id = next((bus for _, key, cell in rows if key == "bus-info" and (bus := words.bus_id_in(cell))), None)
    if not block.name and bus_id is None:
        return
    entity = page.draft.netdev(block.name) if block.name else page.draft.nic(bus_id=bus_id)
    for line, key, cell in rows:
        if key in _KEYS:
            words.offer_cell(line, entity, _KEYS[key], cell)
        if key == "firmware-version" and (board := cell.rpartition("(")[2].rstrip(") ")).startswith(_BOARDS):
            line.offer(entity, "board_id", board)
    if modes := [(speed, line) for line, key, cell in rows if key == _MODES and (speed := _fastest(cell))]:
        speed, line = max(modes, key=itemgetter(0))
        line.offer(entity, "max_speed_mbps", speed)


def _fastest(modes: str) -> int:
    """Mb/s of the fastest of the modes `100000baseKR4/Full 40000baseLR4/Full`, 0 where none is named."""
    return max((to_int(mode) or 0 for mode in modes.split() if "base" in mode), default=0)


def _read_counters(page: Page, block: _Block) -> None:
    kept = 0
    for line in block.lines:
        name, _, cell = line.bare.rpartition(":")
        count = words.count(cell) if name and cell.strip().isdecimal() else None
        of_a_queue = _LIKE["of_a_queue"].match(name) is not None and not any(word in name for word in _OF_A_LOSS)
        if count is None or kept >= MAX_COUNTERS or of_a_queue:
            continue
        kept += 1
        line.count(page.draft.netdev(block.name), name, count)


UNNAMED = "the interface"
"""What an interface is called that the text does not name."""
PRIORITIES = 8
CODE_POINTS = 64


class Qos(OfPage):
    """Flow control by priority, and what decides the priority, from `mlnx_qos` and `dcb`."""

    def read_page(self, page: Page) -> None:
        name = named_interface(page.blob.item) or UNNAMED
        mapped: dict[str, tuple[Line, dict[int, int]]] = {}
        for line in page.lines():
            if asked := _asked(line.bare):
                name = words.device_name(asked) or UNNAMED
                continue
            priority, _, listed = line.bare.replace(" ", "").removeprefix("prio:").partition("dscp:")
            codes = [code for code in listed.split(",") if code.isdecimal() and len(code) < 3]
            if codes and len(priority) == 1 and priority in "01234567":
                mapped.setdefault(name, (line, {}))[1].update(dict.fromkeys(map(int, codes), int(priority)))
            for key, value in _said(line.bare):
                line.offer(page.draft.netdev(name), key, value)
        for name, (line, priorities) in mapped.items():
            pairs = [f"{code}:{priority}" for code, priority in sorted(priorities.items())]
            line.offer(page.draft.netdev(name), "priority_of", tuple(pairs[:CODE_POINTS]))


def _asked(text: str) -> str:
    """The interface that a command names, "" in another line."""
    options = ("-i", "--interface") if "mlnx_qos " in text else ("dev",) if "dcb " in text and "pfc" in text else ()
    return behind(text, *options)


def _said(text: str) -> Iterator[tuple[str, object]]:
    """What a line says of the trust, and of the priorities with flow control."""
    key, *cells = text.split() or [""]
    if text.startswith("Priority trust state:") and cells[-1].lower() in ("pcp", "dscp", "both"):
        yield "trust", cells[-1].lower()
    elif key == "enabled" and len(cells) == PRIORITIES and set(cells) <= {"0", "1"}:
        yield "lossless", tuple(at for at, cell in enumerate(cells) if cell == "1")
    elif key == "prio-pfc":
        yield "lossless", tuple(int(cell[0]) for cell in cells if cell[:1].isdecimal() and cell[1:] == ":on")


_MAX_INTERFACES = 65_536
_COUNTED = ("bytes", "packets", "errors", "dropped")


class IpLink(OfPage):
    """Interfaces as `ip` and `ifconfig` show them."""

    def read_page(self, page: Page) -> None:
        if opens_list(page.blob.text):
            document, _ = load(page.blob)
            for _, entry in objects(document, _MAX_INTERFACES):
                _read_entry(page, entry)
            return
        entity: Entity | None = None
        way, columns = "", list[str]()
        for line in page.lines():
            text = line.text.lstrip(MARGIN).rstrip()
            if (begun := _begun(line, text)) is not None:
                entity, columns = begun, []
            elif (listed := _listed(text)) is not None:
                line.add(page.draft.netdev(listed[0]), "addresses", *listed[1])
                entity = None
            elif entity is None:
                continue
            elif own := _address(text):
                line.add(entity, "addresses", own)
            elif text.startswith(("link/ether", "link/infiniband", "link/loopback")):
                line.offer(entity, "kind", text.split()[0].removeprefix("link/"))
            elif columns and all(map(str.isdecimal, text.split())):
                # Counters by the kernel's names (statistics/rx_errors).
                for name, cell in zip(columns, text.split(), strict=False):
                    if name in _COUNTED:
                        line.count(entity, f"{way}_{name}", to_int(cell, low=0))
                columns = []
            elif text.startswith(("RX", "TX")) and "bytes" in text and not any(char.isdigit() for char in text):
                way, columns = text[:2].lower(), text[2:].lstrip(":").split()


def _read_entry(page: Page, entry: dict[str, Any]) -> None:
    """An interface of `ip -j`."""
    cells = {key: word_of(value) or "" for key, value in entry.items()}
    name = words.device_name(cells.get("ifname", ""))
    if name is None:
        return
    quote = " ".join(f"{key} {cell}" for key, cell in list(cells.items())[:12] if cell)
    line, entity = Line(page, line_of(page.blob.text, name), quote), page.draft.netdev(name)
    flags = entry.get("flags")
    _fill(
        line, entity, {flag for flag in flags if isinstance(flag, str)} if isinstance(flags, list) else set(),
        str(integer(entry.get("mtu")) or ""), cells.get("operstate", ""), cells.get("master", ""),
    )  # fmt: skip
    if cells.get("link_type") in ("ether", "infiniband"):
        line.offer(entity, "kind", cells["link_type"])
    locals_ = [word_of(item.get("local")) for _, item in objects(entry.get("addr_info"), MOST_OF_A_LIST)]
    if own := tuple(address for item in locals_ if item and (address := address_of(item))):
        line.add(entity, "addresses", *own)


def _begun(line: Line, text: str) -> Entity | None:
    """The interface that a line begins, with what the line says of it."""
    head, brief = _LIKE["head"].match(text), _LIKE["brief"].match(text)
    if head is not None and words.device_name(head[1]):
        entity, flags = line.page.draft.netdev(head[1]), set(head[3].split(","))
        named = dict(pairwise(text[head.end() :].split()))
        if head[2]:
            # net-tools tells a carrier by RUNNING, and none by its absence.
            flags.add("LOWER_UP" if not flags.isdisjoint({"LOWER_UP", "RUNNING"}) else "NO-CARRIER")
            named = {} if "UP" in flags else {"state": "down"}
        _fill(line, entity, flags, head[4], named.get("state", ""), named.get("master", ""))
        return entity
    if brief is not None and words.device_name(brief[1]) and brief[3]:
        entity = line.page.draft.netdev(brief[1])
        _fill(line, entity, set(brief[3].split(",")), state=brief[2])
        return entity
    return None


def _fill(  # noqa: PLR0917 - what the forms of the first line say
    line: Line, entity: Entity, flags: Set[str], mtu: str = "", state: str = "", master: str = ""
) -> None:
    """What the first line of an interface says; "" for what its form leaves out. The kernel tells no carrier of
    interfaces that are not switched on."""
    carrier = "LOWER_UP" in flags and "NO-CARRIER" not in flags
    if "UP" in flags and (carrier or "NO-CARRIER" in flags):
        line.offer(entity, "carrier", carrier)
    if "LOOPBACK" in flags:
        line.offer(entity, "kind", "loopback")
    if mtu:
        line.offer(entity, "mtu", to_int(mtu, low=1, high=2**31))
    if state:
        line.offer(entity, "operstate", state.lower())
    if master and words.device_name(master):
        line.offer(entity, "master", master)


def _listed(text: str) -> tuple[str, list[str]] | None:
    """Interface and addresses of a line that stands for itself (`-o`, `-br`); None for another line."""
    if (match := _LIKE["one_line"].match(text)) is not None:
        addresses = [_address(match[2])]
    elif (match := _LIKE["brief"].match(text)) is not None:
        addresses = [address_of(cell.partition("/")[0]) for cell in (match[4] or "").split()]
    return (match[1], addresses) if match is not None and words.device_name(match[1]) and all(addresses) else None


def _address(text: str) -> str:
    """The address of one line of a block, "" for another line."""
    match = _LIKE["inet"].match(text)
    return address_of(match[1]) if match else ""
