"""The XML tree from which NCCL decides everything, as plain elements: NCCL_TOPO_FILE and the dump.

RCCL's files have version 2, and `xgmi` where NCCL's have `nvlink`: in a tree both are `nvlink`, and the version tells.

Values stay text as they stand in the file: NCCL compares and writes them back as text, and reads numbers out of them
where it needs one. Element and attribute names are NCCL's (src/graph/xml.h): system, cpu, pci, gpu, nvlink, c2c, nic,
net, pcilink.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from typing import TYPE_CHECKING

from topodiag.lazy import dataclass
from topodiag.model.nccl_versions import NEWEST, OLDEST
from topodiag.model.provenance import Origin
from topodiag.words.dialect import Maker

if TYPE_CHECKING:
    from topodiag.model.node import Node


@dataclass(frozen=True, slots=True)
class Element:
    """One element: its attributes in the order of the file, its children, and where it starts (not compared)."""

    tag: str
    attributes: tuple[tuple[str, str], ...] = ()
    children: tuple[Element, ...] = ()
    line: int = field(default=0, compare=False)

    def get(self, name: str) -> str | None:
        """The value of an attribute, the first one of that name; None where it is not there."""
        return next((value for key, value in self.attributes if key == name), None)

    def number(self, name: str, default: int = 0) -> int:
        """An attribute that is a whole number of up to nine digits; `default` for any other."""
        text = (self.get(name) or "").strip()
        return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else default

    def having(self, tag: str) -> tuple[Element, ...]:
        """The children of a tag."""
        return tuple(child for child in self.children if child.tag == tag)

    @property
    def nets(self) -> tuple[Element, ...]:
        """The ports of the NICs on a PCI function."""
        return tuple(net for nic in self.having("nic") for net in nic.having("net"))

    def holds(self, tag: str) -> bool:
        """Whether there is an element of a tag in it."""
        return any(element.tag == tag for element in self.walk())

    def walk(self) -> Iterator[Element]:
        """This element and all below it, in the order of the file."""
        stack = [self]
        while stack:
            element = stack.pop()
            yield element
            stack.extend(reversed(element.children))


RCCL_FILE = "2"
"""The version of RCCL's topology files (src/graph/xml.h of ROCm/rccl 2.21.5); NCCL's have 1."""


def of_rccl(tree: Element) -> bool:
    """Whether a tree is RCCL's: its rules then hold, not NCCL's."""
    return tree.get("version") == RCCL_FILE


def first_host(tree: Element) -> tuple[Element, ...]:
    """The processors of the first host: a dump of a multi-node NVLink clique holds several, by host_hash."""
    cpus = tree.having("cpu")
    return tuple(cpu for cpu in cpus if cpu.get("host_hash") == cpus[0].get("host_hash"))


def renamed(tree: Element, tags: Mapping[str, str], version: str | None = None) -> Element:
    """The tree with elements called otherwise, and with another version where one is given."""
    children = tuple(renamed(child, tags) for child in tree.children)
    attributes = tree.attributes
    if version is not None:
        attributes = (("version", version), *((name, value) for name, value in attributes if name != "version"))
    return replace(tree, tag=tags.get(tree.tag, tree.tag), attributes=attributes, children=children)


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why NCCL's parser would not take a file: its own words, the place, and the versions (2.x) that refuse.

    `rule` is a short name of the rule that is broken: `prolog`, `tab`, `text`, `newline-in-tag`, `too-long`,
    `too-many-elements`, `version`, ... `since`..`until` are minor versions, both included.
    """

    rule: str
    words: str
    line: int
    column: int
    text: str = ""
    since: int = OLDEST
    until: int = NEWEST


@dataclass(frozen=True, slots=True)
class NcclFile:
    """A topology file as it was given: the tree that a tolerant reader found in it, and who would refuse it.

    `notes` are what NCCL's parser passes over in silence or with an INFO line (ignored elements, surplus attributes).
    """

    name: str
    tree: Element
    refusals: tuple[Refusal, ...] = ()
    notes: tuple[Refusal, ...] = ()
    origin: Origin | None = None
    maker: Maker | None = None
    """Whose library reads the file: RCCL takes version 2 and xGMI; None where nothing in it tells."""
    asked: tuple[int, ...] = ()
    """The versions for which the file is meant, where somebody said so; () are all."""
    against: Node | None = None
    """The machine that the file is said to be of, by another source: a bundle, a log, another file."""

    def refusal(self, minor: int) -> Refusal | None:
        """Why NCCL 2.`minor` refuses the file, the first reason that it meets; None when its parser takes it."""
        return next((refusal for refusal in self.refusals if refusal.since <= minor <= refusal.until), None)


_BASE = 0xF


def family_of(written: int) -> int:
    """The CPUID family: 25 for AMD's Zen 3 and 4, whether a file says 25 or 175.

    NCCL up to 2.30 writes the extended family above the base family (15 + (10 << 4) = 175), where the processor's
    manual adds the two (15 + 10 = 25): ncclTopoGetXmlFromCpu in src/graph/xml.cc. From 2.31 on it writes 25, and reads
    both.
    """
    extended = written >> 4
    return _BASE + extended if extended > 0 and written & _BASE == _BASE else written
