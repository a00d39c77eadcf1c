"""`ethtool IF` (speed, link, the modes that an interface can do), `ethtool -i IF` (driver, firmware, PCI function) and
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
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from itertools import pairwise

from topodiag.evidence.draft import Entity
from topodiag.evidence.interface import Item, to_int
from topodiag.evidence.network import rdma_words as words
from topodiag.evidence.page import Line, OfPage, Page
from topodiag.lazy import dataclass
from topodiag.model.provenance import NotObserved
from topodiag.words.own_data import own_data, patterns

MAX_COUNTERS = 20_000
"""Counters read of one interface; drivers with a counter for each of 128 queues and 40 names stay below."""
_LIKE = patterns("evidence/network/lines", "ethtool")
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
            if block.counts:
                _count(page, block)
            else:
                _read(page, block)


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


def _read(page: Page, block: _Block) -> None:
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
    fastest: tuple[int, Line] | None = None
    for line, key, cell in rows:
        if key in _KEYS:
            words.offer_cell(line, entity, _KEYS[key], cell)
        if key == "firmware-version" and (board := cell.rpartition("(")[2].rstrip(") ")).startswith(_BOARDS):
            line.offer(entity, "board_id", board)
        if key == _MODES:
            speed = _fastest(cell)
            fastest = (speed, line) if speed > (fastest[0] if fastest else 0) else fastest
    if fastest is not None:
        fastest[1].offer(entity, "max_speed_mbps", fastest[0])


def _fastest(modes: str) -> int:
    """Mb/s of the fastest of the modes `100000baseKR4/Full 40000baseLR4/Full`, 0 where none is named."""
    return max((to_int(mode) or 0 for mode in modes.split() if "base" in mode), default=0)


def _count(page: Page, block: _Block) -> None:
    entity: Entity | None = page.draft.netdev(block.name) if block.name else None
    kept = 0
    for line in block.lines:
        name, _, cell = line.bare.rpartition(":")
        count = words.count(cell) if name and cell.strip().isdecimal() else None
        of_a_queue = _LIKE["of_a_queue"].match(name) is not None and not any(word in name for word in _OF_A_LOSS)
        if count is None or kept >= MAX_COUNTERS or of_a_queue:
            continue
        kept += 1
        if entity is not None:
            line.count(entity, name, count)
    if entity is None and kept:
        page.parsed.records.append(block.lines[0].number)
        why = "the output does not name the interface"
        page.draft.missing.append(NotObserved(f"counters of ethtool -S in {page.blob.name}", why))


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
    return next((name for option, name in pairwise(text.replace("=", " ").split()) if option in options), "")


def _said(text: str) -> Iterator[tuple[str, object]]:
    """What a line says of the trust, and of the priorities with flow control."""
    key, *cells = text.split() or [""]
    if text.startswith("Priority trust state:") and cells[-1].lower() in ("pcp", "dscp", "both"):
        yield "trust", cells[-1].lower()
    elif key == "enabled" and len(cells) == PRIORITIES and set(cells) <= {"0", "1"}:
        yield "lossless", tuple(at for at, cell in enumerate(cells) if cell == "1")
    elif key == "prio-pfc":
        yield "lossless", tuple(int(cell[0]) for cell in cells if cell[:1].isdecimal() and cell[1:] == ":on")
