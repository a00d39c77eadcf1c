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

from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.interface import Blob, Parsed, to_int
from topodiag.evidence.network import rdma_words as words
from topodiag.evidence.network.network_records import MAX_PORT, Line, Page, PortRecord, RdmaRecord, RdmaSource
from topodiag.lazy import dataclass, regex
from topodiag.model.provenance import NotObserved

_PORT = regex(r"(?:[Pp]ort ([0-9]{1,3}):|port:\s*(\S{1,20}))\s*\Z")
_FIELD = regex(r"([A-Za-z][A-Za-z0-9_ ]{0,40}):(.*)\Z")
_GID = regex(r"GID\[ *([0-9]{1,5})\]:\s*([0-9a-fA-F:.]{2,64})(?:,\s*(.{0,40}))?\Z")
_FLAG = regex(r"(?:[A-Z][A-Z0-9_ ]{2,60}|[A-Za-z][A-Za-z0-9_]{2,60})(?: \([0-9a-fx]{1,20}\))?\Z")
"""Flags of a device stand below their name, one a line."""
_FAILED = regex(r"(?:stat of IB device '([^']{1,64})' failed|'([^']{1,64})' IB device can't be found)")
_MELLANOX = 0x02C9
"""NVIDIA's (Mellanox') vendor id in verbs, an IEEE OUI; its part ids are the numbers of its MT names."""


@dataclass(slots=True)
class _Place:
    """What the lines so far belong to."""

    device: RdmaRecord
    port: PortRecord | None = None
    numbered: bool = False
    """Whether a line said which port of the device it is. Where a pattern took these lines, ports stand in order."""
    vendor: int | None = None

    def port_with(self, name: str, number: int) -> PortRecord | None:
        """The port that a field on a line is of; without numbers a field that comes again is the next port's."""
        if not self.numbered and (self.port is None or name in self.port.facts):
            self.port = self.device.port(min(len(self.device.ports) + 1, MAX_PORT), number)
        return self.port


class _Blocks(RdmaSource):
    """Devices and ports in blocks."""

    trust = 70
    begins: ClassVar[re.Pattern[str]]
    """The line that names a device; its second group, where it has one, is the number of a port."""

    def parse(self, blob: Blob) -> Parsed[RdmaRecord]:
        parsed: Parsed[RdmaRecord] = Parsed()
        page = Page(blob, parsed)
        headless = RdmaRecord("", 1)
        place = _Place(headless)
        for line in page.lines():
            text = line.bare
            if (head := self.begins.match(text)) is not None:
                place = _begin(page, line, head)
            elif (port := _PORT.match(text)) is not None:
                _number(page, line, place, port[1] or port[2])
            elif text and not text.startswith(("#", "$")):
                _read(page, line, place)
        if any("gids" in port.facts for port in headless.ports.values()):
            parsed.records.append(headless)  # somebody cut the table of GIDs out, which says much without the device
        return parsed

    def fill(self, blob: Blob, parsed: Parsed[RdmaRecord], draft: NodeDraft) -> None:
        super().fill(blob, parsed, draft)
        for left in parsed.unread:
            if (failed := _FAILED.search(left.text)) is not None:
                draft.missing.append(NotObserved(f"ibstat of {failed[1] or failed[2]}", left.text))


class Ibstat(_Blocks):
    """RDMA devices from `ibstat`: all of them (`CA 'mlx5_0'`), or one port (`CA: 'mlx5_0'`)."""

    kind = "ibstat"
    begins = regex(r"CA:?\s+'([^']{1,64})'\s*\Z")


class Ibstatus(_Blocks):
    """RDMA ports from `ibstatus`. The default GID is left aside: it says neither its index nor its type."""

    kind = "ibstatus"
    begins = regex(r"Infiniband device '([^'\n]{1,64})' port ([0-9]{1,3}) status:")


class IbvDevinfo(_Blocks):
    """RDMA devices from `ibv_devinfo`, with and without `-v`."""

    kind = "ibv-devinfo"
    begins = regex(r"hca_id:\s*(\S{1,64})\s*\Z")


def _begin(page: Page[RdmaRecord], line: Line, head: re.Match[str]) -> _Place:
    """The device of a line that names one, and its port."""
    name, last = words.device_name(head[1]), page.parsed.records[-1] if page.parsed.records else None
    if name is None:
        page.leave(line, "not a device name")
        return _Place(RdmaRecord("", line.number))
    if last is not None and last.name == name and head.re.groups > 1:
        place = _Place(last)
    else:
        place = _Place(last := RdmaRecord(name, line.number))
        page.parsed.records.append(last)
    if head.re.groups > 1:
        _number(page, line, place, head[2])
    return place


def _number(page: Page[RdmaRecord], line: Line, place: _Place, written: str) -> None:
    """Facts of a port that cannot be must not fall to the port before it."""
    number = to_int(written, low=0, high=MAX_PORT)
    place.port, place.numbered = None, True
    if number is None:
        page.leave(line, "not a port of a device")
    else:
        place.port = place.device.port(number, line.number)


def _read(page: Page[RdmaRecord], line: Line, place: _Place) -> None:
    """Keep what a row says."""
    text = line.bare
    if text.startswith("GID["):
        _read_gid(page, line, place)
        return
    field = _FIELD.match(text) if _FAILED.search(text) is None else None
    if field is None:
        if _FLAG.match(text) is None:
            page.leave(line, "no name and value")
        return
    key, cell = field[1].strip().lower().replace(" ", "_"), field[2]
    if key in words.DEVICE_KEYS:
        page.read(line, cell, place.device.facts, words.DEVICE_KEYS[key])
    elif key == "vendor_id":
        place.vendor = to_int(cell, low=0)
    elif key == "vendor_part_id" and place.vendor == _MELLANOX:
        part = to_int(cell, low=1, high=0xFFFF)
        line.put(place.device.facts, "hca_type", None if part is None else f"MT{part}", "no part of Mellanox")
    elif key in words.PORT_KEYS or key in ("rate", "active_speed"):
        _read_port(page, line, place, key, cell)


def _read_port(page: Page[RdmaRecord], line: Line, place: _Place, key: str, cell: str) -> None:
    name = words.PORT_KEYS.get(key, "rate_gbps")
    port = place.port_with(name, line.number)
    if port is None:
        page.leave(line, "of a port that cannot be")
    elif key == "rate":
        page.rate(line, cell, port.facts)
    elif key == "active_speed":
        _read_speed(page, line, cell, port)
    else:
        page.read(line, cell, port.facts, name)


def _read_speed(page: Page[RdmaRecord], line: Line, text: str, port: PortRecord) -> None:
    """The speed of a lane, which makes a rate with the width that stands before it."""
    speed = words.verbs_speed(text)
    lanes = port.facts.get("lanes")
    width = lanes.value if lanes is not None and isinstance(lanes.value, int) else None
    if speed is None:
        page.leave(line, "no link speed in it")
    elif speed[1] is not None:
        line.put(port.facts, "speed_name", speed[1])
    total = speed[0] * width if speed is not None and width is not None else None
    line.put(port.facts, "rate_gbps", total, "width or speed of the link is not readable")


def _read_gid(page: Page[RdmaRecord], line: Line, place: _Place) -> None:
    match = _GID.match(line.bare)
    if match is not None and not match[2].strip("0:"):
        return  # an empty entry of the table
    entry = words.gid(int(match[1]), match[2], match[3] or "") if match else None
    port = place.port or place.port_with("", line.number)
    if entry is None or port is None:
        page.leave(line, "not a GID of a port")
    else:
        line.add(port.facts, "gids", entry)
