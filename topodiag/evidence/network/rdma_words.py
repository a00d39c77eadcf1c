"""The many spellings of RDMA port states, rates, MTUs, GUIDs and GIDs, brought to the model's one.

Numbers are those of the kernel's include/rdma/ib_verbs.h (enum ib_port_state, ib_port_phys_state, ib_port_width,
ib_port_speed); words are those of sysfs, of rdma-core's ibstat and ibv_devinfo, and of iproute2's rdma.
"""

from __future__ import annotations

import ipaddress
import re

from topodiag.evidence.interface import reading, to_float, to_int
from topodiag.lazy import dataclass, regex
from topodiag.model.busid import normalise_bus_id
from topodiag.words.own_data import own_data

_STATES = {0: "NOP", 1: "DOWN", 2: "INIT", 3: "ARMED", 4: "ACTIVE", 5: "ACTIVE_DEFER"}
# Physical state 0 stands for "no change": it says nothing of the link, so it is no value here.
_PHYS_STATES = {
    1: "Sleep", 2: "Polling", 3: "Disabled", 4: "PortConfigurationTraining", 5: "LinkUp", 6: "LinkErrorRecovery",
    7: "PhyTest",
}  # fmt: skip
_WORDS = own_data("evidence/network/words")
_SPEEDS: dict[int, tuple[float, str]] = {int(number): tuple(speed) for number, speed in _WORDS["speeds"].items()}
_WIDTHS = {1: 1, 2: 4, 4: 8, 8: 12, 16: 2}
"""enum ib_port_width to lanes."""

_NUMBERED = regex(r"(?:(?P<first>[0-9]{1,3})\s*:)?(?P<word>[^()]{0,80})(?:\((?P<last>[0-9]{1,3})\))?\s*\Z")
_RATE = regex(r"([0-9]{1,6}(?:\.[0-9]{1,3})?)\s*Gb/sec(?:\s*\(([0-9]{1,3})X\s*([A-Za-z0-9]{0,8})\))?")
_HEX64 = regex(r"(?:0x)?([0-9a-fA-F]{16})\Z")
_GUID = regex(r"[0-9a-fA-F]{4}(?::[0-9a-fA-F]{4}){3}\Z")
_FUNCTION = regex(r"[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]\Z")
_NAME = regex(r"[A-Za-z0-9_][A-Za-z0-9_.:@+-]{0,63}\Z")


@dataclass(frozen=True, slots=True)
class Rate:
    """A port's rate in Gb/s over all lanes; lanes and the generation's name where the source says them."""

    gbps: float
    lanes: int | None = None
    name: str | None = None


def device_name(text: str) -> str | None:
    """A kernel device name (RDMA devices have at most 63 characters, interfaces 15), or None."""
    return text if _NAME.match(text) else None


def _by_number_or_word(text: str, numbers: dict[int, str], words: dict[str, str]) -> str | None:
    """`4: ACTIVE`, `PORT_ACTIVE (4)`, `Active`: the number is the enum itself, so it decides where it is known."""
    match = _NUMBERED.match(text.strip()[:120])
    if match is None:
        return None
    number = match["first"] or match["last"]
    if number is not None and int(number) in numbers:
        return numbers[int(number)]
    word = re.sub(r"[^a-z0-9]", "", match["word"].lower())
    return words.get(word) or words.get(word.removeprefix("port"))


def port_state(text: str) -> str | None:
    """The logical state in the kernel's upper-case words."""
    return _by_number_or_word(text, _STATES, _WORDS["states"])


def phys_state(text: str) -> str | None:
    """The physical state in sysfs' words (`LinkUp`, `Polling`, ...)."""
    return _by_number_or_word(text, _PHYS_STATES, _WORDS["physical-states"])


def link_layer(text: str) -> str | None:
    found: str | None = _WORDS["layers"].get(text.strip().lower())
    return found


def transport(text: str) -> str | None:
    """From ibv_devinfo's `InfiniBand (0)` or sysfs' node type `1: CA`."""
    match = _NUMBERED.match(text.strip()[:120])
    return None if match is None else _WORDS["transports"].get(re.sub(r"[^a-z]", "", match["word"].lower()))


def sysfs_rate(text: str) -> Rate | None:
    """`400 Gb/sec (4X NDR)`; old kernels leave out the name of SDR."""
    match = _RATE.match(text.strip())
    if match is None or float(match[1]) <= 0:
        return None
    gbps, lanes = float(match[1]), int(match[2]) if match[2] else None
    name = match[3] or ("SDR" if lanes and gbps == 2.5 * lanes else None)
    return Rate(gbps, lanes or None, name)


def ibstat_rate(text: str) -> Rate | None:
    """`400`, `2.5`, or `40 (FDR10)`: Gb/s over all lanes."""
    gbps = to_float(text, low=0.1, high=1e6)
    if gbps is None:
        return None
    return Rate(gbps, name="FDR10" if "(FDR10)" in text else None)


def verbs_width(text: str) -> int | None:
    """Lanes from ibv_devinfo's `4X (2)`."""
    match = _NUMBERED.match(text.strip()[:120])
    if match is None:
        return None
    if match["last"] is not None and int(match["last"]) in _WIDTHS:
        return _WIDTHS[int(match["last"])]
    lanes = re.match(r"\s*([0-9]{1,2})[xX]\s*\Z", match["word"])
    return int(lanes[1]) if lanes and int(lanes[1]) in _WIDTHS.values() else None


def verbs_speed(text: str) -> tuple[float, str | None] | None:
    """Gb/s per lane and the generation from ibv_devinfo's `100.0 Gbps (128)`.

    A build that is older than the hardware prints `invalid speed (128)`: the number still says which it is.
    """
    match = _NUMBERED.match(text.strip()[:120])
    if match is None:
        return None
    if match["last"] is not None and int(match["last"]) in _SPEEDS:
        return _SPEEDS[int(match["last"])]
    per_lane = to_float(match["word"], low=0.1, high=1e4) if "gbps" in match["word"].lower() else None
    return None if per_lane is None else (per_lane, None)


def mtu(text: str) -> int | None:
    """Bytes from `4096 (5)`; an RDMA MTU is a power of two from 256 to 4096."""
    value = to_int(text)
    return value if value in (256, 512, 1024, 2048, 4096) else None


def lid(text: str) -> int | None:
    """A local identifier, decimal or hexadecimal, 16 bits (0 is a value: nobody assigned one)."""
    return to_int(text, low=0, high=0xFFFF)


def guid(text: str) -> str | None:
    """`a088:c203:0055:1234` from either spelling; all zeros is no GUID."""
    cleaned = text.strip().lower()
    plain = _HEX64.match(cleaned)
    if plain:
        cleaned = ":".join(plain[1][start : start + 4] for start in (0, 4, 8, 12))
    return cleaned if _GUID.match(cleaned) and cleaned.strip("0:") else None


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
    cleaned = reading(text)
    return cleaned[:200] if cleaned is not None else None


def firmware(text: str) -> str | None:
    """The version alone: ethtool adds the board in brackets, bnxt_en a package version after `/pkg`."""
    cleaned = value_text(text)
    return cleaned.split(" (", 1)[0].split("/pkg", 1)[0].strip() or None if cleaned else None


def bus_id_in(link: str) -> str | None:
    """The last PCI function on a path, e.g. the target of a `device` link."""
    for part in reversed(link.strip()[:4096].split("/")):
        if _FUNCTION.match(part):
            return normalise_bus_id(part)
    return None
