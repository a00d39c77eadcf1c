"""What NCCL's XML parser accepts, by version: src/graph/xml.cc, xml.h and topo.h at the last patch of 2.18 to 2.30."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

MAX_STR_LEN = 255
"""xml.h: a name or value that has not ended at its 255th character is too long (the end itself counts for names of
elements and for values)."""
MAX_ATTR_COUNT = 16
TOPO_XML_VERSION = 1
OLDEST, NEWEST = 18, 30

MAX_FILE_BYTES = 8 * 2**20
"""A dump of a 72-GPU clique, the largest that NCCL writes, is under 5 MB."""
MAX_TOKENS = 50_000
"""Names of elements and attributes that the lexer reads: 1024 elements of 17 attributes are 18,000 (2.18 to 2.20)."""
MAX_TAGS = 50_000
"""Tags that the tolerant reader reads: the fused dump of 72 ranks, 256 elements each, has 37,000."""
MAX_DEPTH = 256
"""NCCL takes 255 known elements, so no deeper a tree."""

MAX_NOTES = 1000


@dataclass(frozen=True, slots=True)
class Rules:
    """One parser: the minor versions `since`..`until` that share it, and its limits."""

    since: int
    until: int
    max_elements: int
    max_children: int
    children_checked: bool
    """2.18 to 2.20 write past the table of children without a word."""
    quotes_kept: bool
    """From 2.27 the quote that opens a value closes it and its length is checked; before, only `"` closes."""
    allowed: Mapping[str, tuple[str, ...]]
    """The elements that are read below an element; others are passed over with all they hold."""


def _allowed(*, c2c: bool, pcilink: bool) -> Mapping[str, tuple[str, ...]]:
    return {
        "": ("system",),
        "system": ("cpu",),
        "cpu": ("pci", "nic"),
        "pci": ("pci", "gpu", "nic", "pcilink") if pcilink else ("pci", "gpu", "nic"),
        "gpu": ("nvlink", "c2c") if c2c else ("nvlink",),
        "nic": ("net",),
    }


_OLD = _allowed(c2c=False, pcilink=False)
_C2C = _allowed(c2c=True, pcilink=False)
_ALL = _allowed(c2c=True, pcilink=True)

RULES = (
    Rules(18, 18, 1024, 32, False, False, _OLD),
    Rules(19, 20, 1024, 32, False, False, _C2C),
    Rules(21, 21, 256, 128, True, False, _C2C),
    Rules(22, 26, 256, 128, True, False, _ALL),
    Rules(27, 28, 256, 128, True, True, _ALL),
    Rules(29, 30, 256, 640, True, True, _ALL),
)
