"""PCI bus ids in their many spellings, brought to one: `dddd:bb:dd.f` in lower case, as sysfs writes it."""

from __future__ import annotations

import re
from functools import lru_cache

from topodiag.lazy import regex

_SPELLINGS = regex(
    r"^(?:PCI:)?(?:(?P<domain>[0-9a-f]{4,8}):)?(?P<bus>[0-9a-f]{2}):(?P<dev>[0-9a-f]{2})(?:\.(?P<fn>[0-7f]))?$",
    re.IGNORECASE,
)

NVSWITCH_BUS_ID = "ffffffff:ff:ff.f"
"""What NVML reports as the far end of an NVLink whose NVSwitch this host cannot see."""


@lru_cache(maxsize=4096)
def normalise_bus_id(text: str) -> str | None:
    """The sysfs spelling of a bus id, or None when `text` is not one.

    Knows nvidia-smi's and NVML's 8-digit domain in upper case, lspci's without a domain, the kernel log's
    `PCI:0000:1b:00` without a function. NVSwitches that report all ones keep their own spelling.
    """
    match = _SPELLINGS.match(text.strip())
    if match is None:
        return None
    domain = int(match["domain"] or "0", 16)
    fn = (match["fn"] or "0").lower()
    bus, dev = match["bus"].lower(), match["dev"].lower()
    if domain >= 0xFFFFFF and bus == "ff":
        return NVSWITCH_BUS_ID
    if fn == "f" or int(dev, 16) > 0x1F:
        return None
    return f"{domain:04x}:{bus}:{dev}.{fn}"


def slot_of(bus_id: str) -> str:
    """The bus id without its function: functions of one slot are one card."""
    return bus_id.rpartition(".")[0]


def unplaced(index: int) -> str:
    """What stands for the bus id of a GPU whose PCIe link a source tells of without saying where the GPU is."""
    return f"gpu{index}"
