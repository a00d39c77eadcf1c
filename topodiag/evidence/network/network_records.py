"""What the network sources read: RDMA devices with their ports, and interfaces; and how they are offered to a draft.

Facts are kept under the field names of `model.devices` (Nic, NicPort, NetDev), each as a `Cell` that knows its
line, so that all formats share one way into the draft.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from typing import Generic, TypeVar

from topodiag.evidence.draft import Entity, NodeDraft
from topodiag.evidence.interface import NO_READING, Blob, Parsed, Source
from topodiag.evidence.network import rdma_words as words
from topodiag.evidence.network.rdma_words import Convert, Value
from topodiag.evidence.readings import quote
from topodiag.evidence.tree import Tree, TreeFile
from topodiag.lazy import dataclass
from topodiag.model.provenance import MAX_QUOTE, NotObserved
from topodiag.model.result import UnreadLine
from topodiag.model.topics import Topic

R = TypeVar("R")

MAX_LINE = 4096
"""Characters of the longest line worth reading: none of these formats comes near it."""

MAX_PORT = 255
MOST_OF_A_LIST = 256
"""GIDs of a port, and addresses of an interface, that are kept: a load balancer gives an interface some thousands."""
MARGIN = " \t>|"
"""What a quotation or a table puts before a line."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One value as it was read, or the reason why there is none; `line` from 1, `text` the line's own words."""

    value: Value | None
    line: int
    text: str
    why: str = ""


Cells = dict[str, Cell]


@dataclass(frozen=True, slots=True)
class PortRecord:
    """One port; facts by field name of `NicPort`, counters by the kernel's name."""

    number: int
    line: int
    facts: Cells = field(default_factory=dict)
    counters: Cells = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RdmaRecord:
    """One RDMA device; facts by field name of `Nic`. Without a name nothing says which device the facts are of."""

    name: str
    line: int
    bus_id: str | None = None
    facts: Cells = field(default_factory=dict)
    counters: Cells = field(default_factory=dict)
    ports: dict[int, PortRecord] = field(default_factory=dict)
    netdevs: Cells = field(default_factory=dict)
    """Interfaces of the same PCI function by name."""

    def port(self, number: int, line: int) -> PortRecord:
        return self.ports.setdefault(number, PortRecord(number, line))


@dataclass(frozen=True, slots=True)
class NetDevRecord:
    """One network interface; facts by field name of `NetDev`, counters by the kernel's or the driver's name."""

    name: str
    line: int
    facts: Cells = field(default_factory=dict)
    counters: Cells = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a text being read."""

    number: int
    text: str

    @property
    def bare(self) -> str:
        return self.text.strip(MARGIN)

    def cell(self, value: Value | None, why: str = "") -> Cell:
        """A value that this line says, or why it says none."""
        return Cell(value, self.number, self.text.strip()[:MAX_QUOTE], why if value is None else "")

    def put(self, facts: Cells, name: str, value: Value | None, why: str = "") -> None:
        """Keep a value under a field name; the first good one stays."""
        kept = facts.get(name)
        if kept is None or (kept.value is None and value is not None):
            facts[name] = self.cell(value, why)

    def add(self, facts: Cells, name: str, *values: str) -> None:
        """Keep values beside those that a list has; it knows the line of its first one."""
        kept = facts.get(name) or self.cell(())
        before = [str(each) for each in kept.value] if isinstance(kept.value, tuple) else []
        facts[name] = replace(kept, value=tuple(dict.fromkeys((*before, *values)))[:MOST_OF_A_LIST])


@dataclass(frozen=True, slots=True)
class Page(Generic[R]):
    """A text being read, and what came of it so far."""

    blob: Blob
    parsed: Parsed[R]

    def lines(self) -> Iterator[Line]:
        """The lines that can belong to one of these formats; longer ones are left aside."""
        for number, text in self.blob.lines():
            if len(text) > MAX_LINE:
                self.parsed.leave(self.blob, number, text[:MAX_QUOTE], "line too long for this format")
            else:
                yield Line(number, text)

    def leave(self, line: Line, why: str) -> None:
        self.parsed.leave(self.blob, line.number, line.text, why)

    def read(self, line: Line, cell: str, facts: Cells, name: str) -> None:
        """Convert one cell and keep it; one that is no value loses itself only, and is reported unless empty."""
        value = words.CONVERT[name](cell)
        why = f"no {name.replace('_', ' ')} in {cell.strip()[:40]!r}"
        line.put(facts, name, value, why)
        if value is None and not _says_nothing(cell):
            self.leave(line, why)

    def rate(self, line: Line, cell: str, facts: Cells) -> None:
        """Keep the rate of a port, and the lanes and the generation that stand with it."""
        rate = words.rate(cell)
        why = f"no rate in {cell.strip()[:40]!r}"
        line.put(facts, "rate_gbps", rate.gbps if rate is not None else None, why)
        if rate is None:
            self.leave(line, why)
        else:
            put_generation(line, facts, rate)


def put_generation(line: Line, facts: Cells, rate: words.Rate) -> None:
    for name, value in (("lanes", rate.lanes), ("speed_name", rate.name)):
        if value is not None:
            line.put(facts, name, value)


def _says_nothing(text: str) -> bool:
    """Whether a text was understood and is no reading: `N/A`, a speed of -1, a GUID of zeros that nobody has set."""
    cleaned = text.strip().lower()
    return cleaned in NO_READING or cleaned == "-1" or not cleaned.strip("0x:")


def offer_cells(blob: Blob, entity: Entity, facts: Mapping[str, Cell]) -> None:
    for name, read in facts.items():
        origin = blob.origin(read.line, read.text)
        if read.value is None:
            entity.unread(name, read.why or "no value", origin)
        else:
            entity.offer(name, read.value, origin)


def offer_counters(blob: Blob, entity: Entity, counters: Mapping[str, Cell], subject: str, draft: NodeDraft) -> None:
    """Offer the counters that have a value; what failed is one line for all of them, not one each."""
    failed: list[str] = []
    why = ""
    for name, read in counters.items():
        if isinstance(read.value, int):
            entity.count(name, read.value, blob.origin(read.line, read.text))
        else:
            failed.append(name)
            why = why or read.why
    if failed and draft.sample == 0:
        named = ", ".join(failed[:4]) + (f" and {len(failed) - 4} more" if len(failed) > 4 else "")
        draft.missing.append(NotObserved(f"counters of {subject}: {named}", why))


def fill_rdma(blob: Blob, record: RdmaRecord, draft: NodeDraft) -> None:
    """Offer one RDMA device, its ports and the interfaces of its function."""
    if not record.name:
        return
    nic = draft.nic(rdma=record.name, bus_id=record.bus_id)
    offer_cells(blob, nic, record.facts)
    offer_counters(blob, nic, record.counters, record.name, draft)
    for number, port in record.ports.items():
        child = nic.child("port", number)
        offer_cells(blob, child, port.facts)
        offer_counters(blob, child, port.counters, f"{record.name} port {number}", draft)
    if record.bus_id is not None:
        for name, read in record.netdevs.items():
            draft.netdev(name).offer("bus_id", record.bus_id, blob.origin(read.line, read.text))


def fill_netdev(blob: Blob, record: NetDevRecord, draft: NodeDraft) -> None:
    """Offer one interface."""
    if record.name:
        entity = draft.netdev(record.name)
        offer_cells(blob, entity, record.facts)
        offer_counters(blob, entity, record.counters, record.name, draft)


class RdmaSource(Source[RdmaRecord]):
    """A source whose records are RDMA devices and nothing else."""

    speaks_of = frozenset({Topic.RDMA_DEVICES})

    def fill(self, blob: Blob, parsed: Parsed[RdmaRecord], draft: NodeDraft) -> None:
        for record in parsed.records:
            fill_rdma(blob, record, draft)


class NetDevSource(Source[NetDevRecord]):
    """A source whose records are interfaces and nothing else."""

    speaks_of = frozenset({Topic.INTERFACES})

    def fill(self, blob: Blob, parsed: Parsed[NetDevRecord], draft: NodeDraft) -> None:
        for record in parsed.records:
            fill_netdev(blob, record, draft)


def by_device(tree: Tree, folder: str) -> dict[str, dict[str, TreeFile]]:
    """Files below a folder by the first name under it, in one pass: `{"mlx5_0": {"ports/1/state": file, "": link}}`."""
    start = folder + "/"
    groups: dict[str, dict[str, TreeFile]] = {}
    for path, file in tree.files.items():
        if path.startswith(start):
            name, _, rest = path[len(start) :].partition("/")
            groups.setdefault(name, {})[rest] = file
    return groups


def read_file(file: TreeFile, convert: Convert, what: str) -> Cell:
    """The converted content of a captured file, or why there is none."""
    line = file.lines[0][0] if file.lines else file.at
    shown = quote(file)[:MAX_QUOTE]
    if file.error is not None:
        return Cell(None, line, shown, file.error[:80])
    text = file.text
    if text is None:
        return Cell(None, line, shown, "no content was captured")
    value = convert(text) if len(text) <= MAX_LINE else None
    why = f"the kernel gives none ({text[:40]})" if _says_nothing(text) else f"no {what} in {text[:40]!r}"
    return Cell(value, line, shown, "" if value is not None else why)


def presence(file: TreeFile, value: Value) -> Cell:
    """A value that a name or a link says, rather than content."""
    return Cell(value, file.at, quote(file)[:MAX_QUOTE])


def leave_bad(blob: Blob, parsed: Parsed[RdmaRecord] | Parsed[NetDevRecord], file: TreeFile, read: Cell) -> None:
    """Report a file whose text was not understood; one that the kernel refused was understood well."""
    if read.value is None and file.error is None and not _says_nothing(file.text or ""):
        parsed.leave(blob, read.line, read.text, read.why)


def carry_over(parsed: Parsed[RdmaRecord] | Parsed[NetDevRecord], tree_parsed: Parsed[TreeFile]) -> None:
    """Take the line count and the unread lines of the tree itself."""
    parsed.partial = tree_parsed.partial
    parsed.unread_count += tree_parsed.unread_count
    kept: list[UnreadLine] = tree_parsed.unread
    parsed.unread.extend(kept)
