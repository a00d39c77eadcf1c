"""The NCCL versions whose decisions are known, and their numbering of path types.

Versions are minor numbers throughout this package: 28 stands for NCCL 2.28 (its last patch). Path types step through
integers in the search, so each version keeps its own numbering (src/graph/topo.h at the last patch of every minor).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

OLDEST, NEWEST = 18, 30
DEFAULT = 28

TREES_BOUND_BY_PXN = range(25, 29)
"""These let trees use paths up to the longest from a GPU to a NIC only. Where PXN shortens all of those, GPUs before
Hopper find no tree, and the one channel of the stand-in is left for all algorithms (src/graph/search.cc,
ncclTopoCompute; 2.29.2 took the bound away again for them; github.com/NVIDIA/nccl/issues/1748)."""

_VERSION = re.compile(r"v?2\.([0-9]{1,3})(?:\.[0-9]{1,4})?(?:[-+].*)?")


class UnknownVersionError(ValueError):
    """A version of NCCL that this package does not know."""


def minor_of(text: str) -> int:
    """28 for `2.28`, `2.28.9`, `v2.28.9-1`. Raises UnknownVersionError outside 2.18 to 2.30."""
    match = _VERSION.fullmatch(text.strip())
    minor = int(match[1]) if match else -1
    if not OLDEST <= minor <= NEWEST:
        raise UnknownVersionError(f"{text!r} is not an NCCL version from 2.{OLDEST} to 2.{NEWEST}")
    return minor


_NAMES_27 = ("LOC", "NVL", "NVB", "C2C", "PIX", "PXB", "P2C", "PXN", "PHB", "SYS", "NET", "DIS")
_NAMES_26 = ("LOC", "NVL", "NVB", "C2C", "PIX", "PXB", "PXN", "PHB", "SYS", "NET", "DIS")
_NAMES_18 = ("LOC", "NVL", "NVB", "PIX", "PXB", "PXN", "PHB", "SYS", "NET", "DIS")


@dataclass(frozen=True, slots=True)
class PathTypes:
    """The numbers of a version's path types. A type that the version lacks has the number of what it used instead:
    C2C is NVL before 2.26; P2C does not arise before 2.27 and has PHB's number there."""

    names: tuple[str, ...]
    loc: int
    nvl: int
    nvb: int
    c2c: int
    pix: int
    pxb: int
    p2c: int
    pxn: int
    phb: int
    sys: int
    net: int
    dis: int

    @property
    def numbers(self) -> Mapping[str, int]:
        return {name: number for number, name in enumerate(self.names)}


@cache
def path_types(minor: int) -> PathTypes:
    names = _NAMES_27 if minor >= 27 else _NAMES_26 if minor == 26 else _NAMES_18
    of = {name: number for number, name in enumerate(names)}
    of.setdefault("C2C", of["NVL"])
    of.setdefault("P2C", of["PHB"])
    return PathTypes(names, **{name.lower(): number for name, number in of.items()})


def max_channels(minor: int) -> int:
    """MAXCHANNELS (src/include/device.h): 32 up to 2.24, 64 from 2.25 on."""
    return 64 if minor >= 25 else 32
