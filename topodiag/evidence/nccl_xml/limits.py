"""What NCCL's XML parser accepts, by version: src/graph/xml.cc, xml.h and topo.h."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from topodiag.lazy import dataclass
from topodiag.model.nccl_features import Feature, has
from topodiag.model.nccl_versions import KNOWN, MAX_CHILDREN, MAX_ELEMENTS

MAX_STR_LEN = 255
"""xml.h: a name or value that has not ended at its 255th character is too long (the end itself counts for names of
elements and for values)."""
MAX_ATTR_COUNT = 16
TOPO_XML_VERSION = 1
RCCL_XML_VERSION = 2
RCCL_MINOR = 21
"""The RCCL whose rules are known: 2.21.5, which follows NCCL 2.21."""

MAX_FILE_BYTES = 8 * 2**20
"""A dump of a 72-GPU clique, the largest that NCCL writes, is under 5 MB."""
MAX_TOKENS = 50_000
"""Names of elements and attributes that the lexer reads: 1024 elements of 17 attributes are 18,000."""
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
    """Else NCCL writes past the table of children without a word."""
    quotes_kept: bool
    """The quote that opens a value closes it and its length is checked; else only `"` closes."""
    allowed: Mapping[str, tuple[str, ...]]
    """The elements that are read below an element; others are passed over with all they hold."""
    version: int = TOPO_XML_VERSION
    """What `system` must say."""


def _allowed(*, c2c: bool, pcilink: bool) -> Mapping[str, tuple[str, ...]]:
    return {
        "": ("system",),
        "system": ("cpu",),
        "cpu": ("pci", "nic"),
        "pci": ("pci", "gpu", "nic", "pcilink") if pcilink else ("pci", "gpu", "nic"),
        "gpu": ("nvlink", "c2c") if c2c else ("nvlink",),
        "nic": ("net",),
    }


def _rules(minor: int) -> Rules:
    return Rules(
        minor,
        minor,
        MAX_ELEMENTS[minor],
        MAX_CHILDREN[minor],
        has(minor, Feature.CHILDREN_CHECKED),
        has(minor, Feature.QUOTES_KEPT),
        _allowed(c2c=has(minor, Feature.C2C_LINKS), pcilink=has(minor, Feature.PCI_LINKS)),
    )


def _parsers() -> tuple[Rules, ...]:
    made: list[Rules] = []
    for minor in KNOWN:
        rules = _rules(minor)
        if made and replace(rules, since=made[-1].since) == replace(made[-1], until=minor):
            made[-1] = replace(made[-1], until=minor)
        else:
            made.append(rules)
    return tuple(made)


RULES = _parsers()
"""One parser for each run of versions that read alike, the oldest first."""

RCCL_RULES = Rules(
    RCCL_MINOR,
    RCCL_MINOR,
    max_elements=8192,
    max_children=512,
    children_checked=True,
    quotes_kept=False,
    allowed={**_allowed(c2c=True, pcilink=False), "gpu": ("xgmi",)},
    version=RCCL_XML_VERSION,
)
"""RCCL 2.21.5: NCCL's reader of that time with limits for partitioned GPUs (src/graph/xml.h, topo.h)."""
