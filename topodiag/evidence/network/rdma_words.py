"""The many spellings of RDMA port states, rates, MTUs, GUIDs and GIDs, brought to the model's one.

Numbers are those of the kernel's include/rdma/ib_verbs.h (enum ib_port_state, ib_port_phys_state, ib_port_width,
ib_port_speed); words are those of sysfs, of rdma-core's ibstat and ibv_devinfo, and of iproute2's rdma.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Mapping

from topodiag.evidence.draft import Entity
from topodiag.evidence.interface import reading, to_int, whole
from topodiag.evidence.page import Line
from topodiag.evidence.readings import says_nothing
from topodiag.model.busid import normalise_bus_id
from topodiag.words.own_data import own_data, patterns

Value = str | int | float | bool | tuple[str, ...] | tuple[int, ...]
Convert = Callable[[str], Value | None]

_WORDS: Mapping[str, Mapping[str, str]] = own_data("evidence/network/words")
_LANES: Mapping[str, int] = own_data("evidence/network/words")["lanes"]
_SPEEDS: Mapping[str, tuple[float, str]] = own_data("evidence/network/words")["speeds"]
_OPERSTATES = frozenset({"unknown", "notpresent", "down", "lowerlayerdown", "testing", "dormant", "up"})
_MAX_SPEED_MBPS = 100_000_000
"""Above any interface there is: the kernel's 2^32 - 1 and 65535 (checked apart) stand for unknown."""
_HEX = frozenset("0123456789abcdef")

_LIKE = patterns("evidence/network/words", "spellings")


def device_name(text: str) -> str | None:
    """A kernel device name (RDMA devices have at most 63 characters, interfaces 15), or None."""
    return text if _LIKE["name"].match(text) else None


def _numbered(text: str) -> tuple[str, int]:
    """The word and the number of `4: ACTIVE`, `PORT_ACTIVE (4)`, `Active`; -1 without one, and "" for what is none."""
    match = _LIKE["numbered"].match(text.strip()[:120])
    return ("", -1) if match is None else (match["word"], int(match["first"] or match["last"] or -1))


def _by_number_or_word(text: str, words: Mapping[str, str]) -> str | None:
    """The number is the enum itself, so it decides where it is known."""
    word, number = _numbered(text)
    word = re.sub(r"[^a-z0-9]", "", word.lower())
    return words.get(f"{number}:") or words.get(word) or words.get(word.removeprefix("port"))


def port_state(text: str) -> str | None:
    """The logical state in the kernel's upper-case words."""
    return _by_number_or_word(text, _WORDS["states"])


def phys_state(text: str) -> str | None:
    """The physical state in sysfs' words (`LinkUp`, `Polling`, ...)."""
    return _by_number_or_word(text, _WORDS["physical-states"])


def link_layer(text: str) -> str | None:
    return _WORDS["layers"].get(text.strip().lower())


def transport(text: str) -> str | None:
    """From ibv_devinfo's `InfiniBand (0)` or sysfs' node type `1: CA`."""
    return _by_number_or_word(text, _WORDS["transports"])


def rate(text: str) -> tuple[float | None, int | None]:
    """Gb/s over all lanes, and the lanes where they are said: sysfs' `400 Gb/sec (4X NDR)`, ibstat's `40 (FDR10)`."""
    match = _LIKE["rate"].match(text.strip())
    if match is None or not 0.1 <= float(match[1]) <= 1e6:
        return None, None
    return float(match[1]), int(match[2] or 0) or None


def gbps(text: str) -> float | None:
    """The rate of `rate` alone."""
    return rate(text)[0]


def verbs_width(text: str) -> int | None:
    """Lanes from ibv_devinfo's `4X (2)`: rdma-core prints the number with each."""
    return _LANES.get(f"{_numbered(text)[1]}")


def verbs_speed(text: str) -> float | None:
    """Gb/s per lane from ibv_devinfo's `100.0 Gbps (128)`.

    A build that is older than the hardware prints `invalid speed (128)`: the number still says which it is.
    """
    return _SPEEDS.get(f"{_numbered(text)[1]}", (None, ""))[0]


def mtu(text: str) -> int | None:
    """Bytes from `4096 (5)`; an RDMA MTU is a power of two from 256 to 4096."""
    value = to_int(text)
    return value if value in (256, 512, 1024, 2048, 4096) else None


lid = whole(0, 0xFFFF)
"""A local identifier, decimal or hexadecimal, 16 bits (0 is a value: nobody assigned one)."""


def guid(text: str) -> str | None:
    """`a088:c203:0055:1234` from either spelling; all zeros is no GUID."""
    digits = text.strip().lower().replace(":", "").removeprefix("0x")
    known = len(digits) == 16 and _HEX.issuperset(digits) and digits.strip("0")
    return ":".join(digits[start : start + 4] for start in (0, 4, 8, 12)) if known else None


def gid(index: int, address: str, kind: str) -> str | None:
    """`3 ::ffff:198.51.100.6 RoCE v2`: index, address in its shortest form, type; None for an empty entry.

    InfiniBand GIDs have one type only, which is left out as ibv_devinfo does; sysfs' `IB/RoCE v1` is `RoCE v1`.
    """
    try:
        parsed = ipaddress.IPv6Address(address.strip()[:64])
    except ValueError:
        return None
    if int(parsed) == 0:
        return None
    mapped = parsed.ipv4_mapped
    shown = f"::ffff:{mapped}" if mapped else parsed.compressed
    version = re.search(r"RoCE v[12]", kind[:40])
    return f"{index} {shown} {version[0] if version else ''}".rstrip()


def value_text(text: str) -> str | None:
    """A cell that is a name or a version: as it stands, at most 200 characters, None for no reading."""
    return (reading(text) or "")[:200] or None


def firmware(text: str) -> str | None:
    """The version alone: ethtool adds the board in brackets, bnxt_en a package version after `/pkg`."""
    return (value_text(text) or "").partition(" (")[0].partition("/pkg")[0].strip() or None


def bus_id_in(link: str) -> str | None:
    """The last PCI function on a path, e.g. the target of a `device` link."""
    for part in reversed(link.strip()[:4096].split("/")):
        if "." in part and (bus_id := normalise_bus_id(part)) is not None:
            return bus_id
    return None


def interface_speed(text: str) -> int | None:
    """Mb/s; -1 and the unsigned spellings of it, and 0, stand for unknown."""
    value = to_int(text, low=1, high=_MAX_SPEED_MBPS)
    return None if value == 0xFFFF else value


def carrier(text: str) -> bool | None:
    """The kernel's `1`, and ethtool's `yes` or `no (No cable)`."""
    return {"1": True, "yes": True, "0": False, "no": False}.get(text.partition("(")[0].strip())


def driver(text: str) -> str | None:
    """`mlx5_core[ib_ipoib]` is mlx5_core with IP over InfiniBand on top."""
    return (value_text(text) or "").partition("[")[0].strip() or None


def operstate(text: str) -> str | None:
    return text.strip().lower() if text.strip().lower() in _OPERSTATES else None


def kind(text: str) -> str | None:
    number = to_int(text, low=0, high=65535)
    return None if number is None else _WORDS["interfaces"].get(str(number), str(number))


count = whole(0)
"""A counter's reading, or None."""


def traffic_class(text: str) -> int | None:
    """`Global tclass=106`."""
    return to_int(text.removeprefix("Global ").removeprefix("tclass="), low=0, high=255) if "tclass=" in text else None


CONVERT: Mapping[str, Convert] = {
    "state": port_state, "phys_state": phys_state, "link_layer": link_layer, "transport": transport, "lid": lid,
    "sm_lid": lid, "guid": guid, "node_guid": guid, "sys_image_guid": guid, "max_mtu": mtu, "active_mtu": mtu,
    "lanes": verbs_width, "netdev": device_name, "hca_type": value_text, "board_id": value_text, "firmware": firmware,
    "driver": driver, "bus_id": bus_id_in, "speed_mbps": interface_speed, "carrier": carrier, "operstate": operstate,
    "kind": kind, "rate_gbps": gbps, "traffic_class": traffic_class, "numa": whole(-1, 65535), "mtu": whole(1, 2**31),
}  # fmt: skip
"""How a tool's words become the value of a field of the model."""
DEVICE_KEYS: Mapping[str, str] = _WORDS["device-keys"]
PORT_KEYS: Mapping[str, str] = _WORDS["port-keys"]
"""Names that tools and the kernel give to these fields."""
MAX_PORT = 255


def offer_cell(line: Line, entity: Entity, name: str, cell: str) -> None:
    """Offer a tool's words as a field; those that are no value lose themselves only, and are reported unless empty."""
    value = CONVERT[name](cell)
    why = f"no {name.replace('_', ' ')} in {cell.strip()[:40]!r}"
    line.offer(entity, name, value, why)
    if value is None and not says_nothing(cell):
        line.leave(why)


def offer_rate(line: Line, entity: Entity, cell: str) -> None:
    """Offer the rate of a port, and the lanes that stand with it."""
    total, lanes = rate(cell)
    why = f"no rate in {cell.strip()[:40]!r}"
    line.offer(entity, "rate_gbps", total, why)
    if total is None:
        line.leave(why)
    elif lanes is not None:
        line.offer(entity, "lanes", lanes)
