"""PCI Express in numbers: speeds and widths as tools print them, and the registers of a captured config space.

Register offsets and encodings are those of the PCI Express Base Specification 6.0 (sections 7.5.3 PCI Express
Capability, 7.6.3 extended capability header, 7.7.11 Access Control Services) as the kernel names them in
include/uapi/linux/pci_regs.h.
"""

from __future__ import annotations

from topodiag.lazy import dataclass, regex

GENERATIONS = {2.5: 1, 5.0: 2, 8.0: 3, 16.0: 4, 32.0: 5, 64.0: 6}
"""Transfer rate in GT/s per lane to the PCIe generation that brought it."""

MAX_WIDTH = 32
"""Lanes of the widest link that PCIe defines. The kernel prints 0 or 255 where it does not know."""
ALL_ONES = "its config space reads all ones"
"""How a function that left the bus looks: nothing answers, and the root port completes each read with ones."""
ALL_ONES_WIDTH = 63
"""The six bits of a width read from a device that has left the bus, where every read returns ones."""

NO_ACS = "no ACS capability"
"""The device was seen whole and cannot redirect: not the same as not having seen it."""
NEEDS_ROOT = "needs root"
"""How every reason begins that root's eyes would remove."""
LIMITED_CONFIG = f"{NEEDS_ROOT}: config space past 64 bytes was not readable"

_SPEED = regex(r"([0-9]{1,3}(?:\.[0-9]{1,2})?) ?GT/s")
_USER_BYTES = 64
_EXTENDED = 0x100
_CONFIG_BYTES = 4096
_STATUS, _STATUS_CAP_LIST = 0x06, 0x10
_HEADER_TYPE, _CAP_POINTER, _CARDBUS_CAP_POINTER = 0x0E, 0x34, 0x14
_CAP_EXPRESS, _EXT_CAP_ACS = 0x10, 0x000D
_PORT_TYPES = {
    0x0: "endpoint", 0x1: "endpoint", 0x4: "root-port", 0x5: "upstream", 0x6: "downstream",
    0x7: "pci-bridge", 0x8: "pci-bridge", 0x9: "endpoint", 0xA: "endpoint",
}  # fmt: skip
_WITHOUT_LINK = (0x9, 0xA)
"""Root complex integrated endpoints and event collectors sit on no link."""


def gen_of_speed(text: str) -> int | None:
    """The PCIe generation of `32.0 GT/s PCIe`, `8 GT/s` or `16GT/s`; None for `Unknown` and for other rates."""
    match = _SPEED.search(text)
    return GENERATIONS.get(float(match[1])) if match is not None else None


@dataclass(frozen=True, slots=True)
class Config:
    """What a config space tells. A None has its reason in the field of the same name with `_why`."""

    acs: int | None = None
    acs_why: str = ""
    port_type: str | None = None
    port_type_why: str = ""
    gen: int | None = None
    width: int | None = None
    max_gen: int | None = None
    max_width: int | None = None
    lost: bool = False


def read_config(data: bytes) -> Config:
    """Read the capabilities of a config space of any length, with loops and dangling pointers taken as its end."""
    data = data[:_CONFIG_BYTES]
    if len(data) < _USER_BYTES:
        why = f"only {len(data)} bytes of config space"
        return Config(acs_why=why, port_type_why=why)
    if data.count(0xFF) == len(data):
        why = f"the device does not answer: {ALL_ONES}"
        return Config(acs_why=why, port_type_why=why, lost=True)
    if len(data) == _USER_BYTES:
        return Config(acs_why=LIMITED_CONFIG, port_type_why=LIMITED_CONFIG)
    express, whole = _find_express(data)
    acs, acs_why = _read_acs(data, express is not None or not whole)
    if express is None:
        return Config(acs, acs_why, *_port_without_express(data, whole))
    kind = data[express + 2] >> 4
    port_type = _PORT_TYPES.get(kind)
    port_why = "" if port_type else f"PCIe port type {kind} is not known"
    if kind in _WITHOUT_LINK:
        return Config(acs, acs_why, port_type, port_why)
    max_gen, max_width = _speed_width(data, express + 0x0C)
    gen, width = _speed_width(data, express + 0x12)
    return Config(acs, acs_why, port_type, port_why, gen, width, max_gen, max_width)


def _word(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 2], "little")


def _find_express(data: bytes) -> tuple[int | None, bool]:
    """Where the PCI Express capability begins, and whether the list of capabilities was seen to its end."""
    if not _word(data, _STATUS) & _STATUS_CAP_LIST:
        return None, True
    cardbus = data[_HEADER_TYPE] & 0x7F == 2
    at = data[_CARDBUS_CAP_POINTER if cardbus else _CAP_POINTER] & 0xFC
    seen: set[int] = set()
    while at:
        if at < _USER_BYTES or at in seen or at + 0x14 > len(data):
            return None, False
        seen.add(at)
        if data[at] == _CAP_EXPRESS:
            return at, True
        at = data[at + 1] & 0xFC
    return None, True


def _port_without_express(data: bytes, whole: bool) -> tuple[str | None, str]:
    if not whole:
        return None, "the list of capabilities in config space is broken"
    if data[_HEADER_TYPE] & 0x7F == 1:
        return "pci-bridge", ""
    return None, "conventional PCI device"


def _speed_width(data: bytes, at: int) -> tuple[int | None, int | None]:
    """Link speed (bits 3:0) and width (bits 9:4) of a link capabilities or link status register."""
    if at + 2 > len(data):
        return None, None
    register = _word(data, at)
    gen, width = register & 0xF, register >> 4 & 0x3F
    return (gen if 1 <= gen <= max(GENERATIONS.values()) else None, width if 1 <= width <= MAX_WIDTH else None)


def _read_acs(data: bytes, maybe_express: bool) -> tuple[int | None, str]:
    """The ACS control register, or why there is none."""
    if not maybe_express:
        return None, NO_ACS
    if len(data) < _EXTENDED + 4:
        return None, "the capture holds no extended config space"
    at = _EXTENDED
    seen: set[int] = set()
    while at:
        if at < _EXTENDED or at in seen or at + 8 > len(data):
            return None, "the list of extended capabilities leaves the captured config space"
        seen.add(at)
        head = int.from_bytes(data[at : at + 4], "little")
        if head in (0, 0xFFFFFFFF):
            break
        if head & 0xFFFF == _EXT_CAP_ACS:
            return _word(data, at + 6), ""
        at = head >> 20 & 0xFFC
    return None, NO_ACS
