"""A text that is read line by line into a draft: every value is offered with the line that says it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from topodiag.evidence.draft import Entity, NodeDraft
from topodiag.evidence.interface import MAX_LINE, Blob, Parsed, Source
from topodiag.evidence.marks import delimiter
from topodiag.lazy import dataclass
from topodiag.model.errors import InputError
from topodiag.model.events import NO_FIELDS, Event, Trust, Value
from topodiag.model.provenance import MAX_QUOTE, Origin
from topodiag.words.node_sets import NodeSetError

MOST_OF_A_LIST = 256
"""GIDs of a port, and addresses of an interface, that are kept: a load balancer gives an interface some thousands."""
_HEAD = 1 << 16
"""Bytes of a file in which a NUL shows that it is no text."""
MARGIN = " \t>|"
"""What a quotation or a table puts before a line."""


def bare_lines(blob: Blob) -> Iterator[tuple[int, str]]:
    """Numbered lines without comments and blanks. Raises InputError for what is no text."""
    if b"\0" in blob.data[:_HEAD]:
        raise InputError(blob.name, "is a binary file, and no text", hint="give a text file")
    for number, text in blob.lines():
        if bare := text.partition("#")[0].strip():
            yield number, bare


def csv_rows(blob: Blob) -> list[tuple[int, list[str]]]:
    """The rows of a CSV with their lines, cells stripped, without comments and blanks; commas, semicolons or tabs part
    them. Raises InputError for what is none."""
    import csv  # noqa: PLC0415 - for tables alone
    import io  # noqa: PLC0415 - as above

    text = blob.text.lstrip("\ufeff")
    header = next((line for line in text.splitlines() if line.strip() and not line.startswith("#")), "")
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter(header))
    try:
        rows = [(reader.line_num, [cell.strip() for cell in row]) for row in reader]
    except csv.Error as error:
        raise InputError(blob.name, f"is no CSV: {error}", line=reader.line_num) from None
    return [(number, cells) for number, cells in rows if any(cells) and not cells[0].startswith("#")]


@contextmanager
def at_line(blob: Blob, number: int | None) -> Iterator[None]:
    """What is no set of nodes becomes an InputError with its line."""
    try:
        yield
    except NodeSetError as error:
        raise InputError(blob.name, str(error), line=number) from None


class Page:
    """A text on its way into a draft, and what it said so far. `parsed` records the numbers of lines that said
    something."""

    def __init__(self, blob: Blob, draft: NodeDraft) -> None:
        self.blob, self.draft = blob, draft
        self.parsed: Parsed[int] = Parsed()
        self._said: dict[tuple[Entity, str], object] = {}
        self._lists: dict[tuple[Entity, str], tuple[Line, dict[str, None]]] = {}

    def lines(self) -> Iterator[Line]:
        """The lines that can belong to a tool's format; longer ones are left aside."""
        for number, text in self.blob.lines():
            if len(text) > MAX_LINE:
                self.parsed.leave(self.blob, number, text[:MAX_QUOTE], "line too long for this format")
            else:
                yield Line(self, number, text)

    def cut_lines(self, most: int = MAX_LINE) -> Iterator[Line]:
        """All lines, cut to what can belong to a tool's format."""
        return (Line(self, number, text[:most]) for number, text in self.blob.lines())

    def bare_lines(self) -> Iterator[Line]:
        """The same without what a quotation puts around them."""
        return (Line(self, line.number, line.bare) for line in self.cut_lines())

    def mark(self, number: int) -> None:
        """A line said something."""
        if self.parsed.records[-1:] != [number]:
            self.parsed.records.append(number)

    def said(self, entity: Entity, name: str) -> object:
        """The value that this block of the text gave; None without one."""
        return self._said.get((entity, name))

    def begin(self) -> None:
        """Another block of the same tool begins: its values stand beside those of the blocks before."""
        self._said.clear()

    def end(self) -> Parsed[int]:
        """Offers the lists, which are whole now."""
        for (entity, name), (line, values) in self._lists.items():
            line.offer(entity, name, tuple(values)[:MOST_OF_A_LIST])
        self._lists.clear()  # its lines hold the page, and the page the draft
        return self.parsed


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a text being read, and what it offers."""

    page: Page
    number: int
    text: str

    @property
    def bare(self) -> str:
        return self.text.strip(MARGIN)

    @property
    def origin(self) -> Origin:
        return self.page.blob.origin(self.number, self.text)

    def offer(self, entity: Entity, name: str, value: object, why: str = "") -> None:
        """Offer a value of a field, or why the line has none; of a block's values the first good one stays."""
        self.page.mark(self.number)
        if (entity, name) in self.page._said and (value is None or self.page.said(entity, name) is not None):
            return
        self.page._said[entity, name] = value
        entity.offer(name, value, self.origin, why or "no value")

    def put(self, entity: Entity, **values: object) -> None:
        """Offer the values of some fields as they are; None is none."""
        self.page.mark(self.number)
        entity.put(self.origin, **values)

    def pair(self, table: str, word: str, a: Entity, b: Entity) -> None:
        """Offer a word on a pair of devices in a table."""
        self.page.mark(self.number)
        self.page.draft.pair(table, a, b, word, self.origin)

    def add(self, entity: Entity, name: str, *values: str) -> None:
        """Add to the values of a list, which knows the line of its first one."""
        self.page.mark(self.number)
        _, kept = self.page._lists.setdefault((entity, name), (self, {}))
        kept.update(dict.fromkeys(values))

    def count(self, entity: Entity, name: str, value: int | None) -> None:
        """Offer a reading of a cumulative counter; None is ignored."""
        self.page.mark(self.number)
        entity.count(name, value, self.origin)

    def report(
        self, kind: str, text: str, trust: Trust = Trust.AGENT, host: str = "", fields: Mapping[str, Value] = NO_FIELDS
    ) -> None:
        """Report what the reader concludes from the line, as an event of the node."""
        self.page.mark(self.number)
        event = Event(kind, self.page.blob.name, text, self.origin, fields=fields, trust=trust, host=host)
        self.page.draft.reports.append(event)

    def leave(self, why: str) -> None:
        """Leave the line: it says nothing that can be used."""
        self.page.parsed.leave(self.page.blob, self.number, self.text, why)


class OfPage(Source):
    """A source that reads a page."""

    @abstractmethod
    def read_page(self, page: Page) -> None:
        """Offer what the lines say."""

    def read(self, blob: Blob, draft: NodeDraft) -> Parsed[int]:
        page = Page(blob, draft)
        self.read_page(page)
        return page.end()
