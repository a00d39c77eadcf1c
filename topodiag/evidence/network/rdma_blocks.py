"""RDMA devices and their ports as `ibstat`, `ibstatus` and `ibv_devinfo` print them: rows of a name and a value, below
a line that names a device, and one with the number of a port.

    CA 'mlx5_0'                    Infiniband device 'mlx5_0' port 1 status:      hca_id: mlx5_0
            Port 1:                        state:           4: ACTIVE                     port:   1
                    State: Active          rate:            400 Gb/sec (4X NDR)                   state: PORT_ACTIVE (4)

Read by names, so that indentation and quoting marks of a paste do not matter; names that stand for no fact are passed
over. Formats: rdma-core, infiniband-diags/ibstat.c, infiniband-diags/scripts/ibstatus, libibverbs/examples/devinfo.c,
whose spellings (`TRAINNING`) are part of it and which prints the speed of a port with `-v` alone.
"""

from __future__ import annotations

import re
from typing import ClassVar

from topodiag.evidence.draft import Entity
from topodiag.evidence.interface import to_int
from topodiag.evidence.network import rdma_words as words
from topodiag.evidence.page import Line, OfPage, Page
from topodiag.lazy import dataclass, regex
from topodiag.model.provenance import NotObserved

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

    begins: ClassVar[re.Pattern[str]]
    """The line that names a device; its second group, where it has one, is the number of a port."""

    def read_page(self, page: Page) -> None:
        place: _Place | None = None
        for line in page.lines():
            text = line.bare
            if (head := self.begins.match(text)) is not None:
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

    begins = regex(r"CA:?\s+'([^']{1,64})'\s*\Z")


class Ibstatus(_Blocks):
    """RDMA ports from `ibstatus`. The default GID is left aside: it says neither its index nor its type."""

    begins = regex(r"Infiniband device '([^'\n]{1,64})' port ([0-9]{1,3}) status:")


class IbvDevinfo(_Blocks):
    """RDMA devices from `ibv_devinfo`, with and without `-v`."""

    begins = regex(r"hca_id:\s*(\S{1,64})\s*\Z")


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
    elif key in words.PORT_KEYS or key in ("rate", "active_speed"):
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
