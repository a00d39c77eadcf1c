"""What a page is made of: a sheet goes in, each section turns part of it into values for its template; and what several
sections say alike: severities as sign and word, findings by their anchor, places, steps.

Adding a section is a module in `sections/` with a function of the sheet, a template of the same name (pictures and
tables alone need none), and a line in `sections.toml`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from markupsafe import Markup

from topodiag.lazy import dataclass
from topodiag.model.finding import Finding
from topodiag.model.maker import dialect_of_all
from topodiag.model.provenance import Origin
from topodiag.model.result import Result
from topodiag.model.verdict import Cause, CauseStatus, Consequence
from topodiag.report.documents.from_model import Document
from topodiag.report.findings import cost_words, where_words
from topodiag.report.grid import Cell, Columns, cell_of
from topodiag.report.places import Places
from topodiag.report.text import Page
from topodiag.words.units import grouped

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Drawing:
    """A picture: `svg` is an element that may stand in a page."""

    title: str
    svg: str
    caption: str = ""


def drawings_of(*pictures: tuple[str, str]) -> tuple[Drawing, ...]:
    """Those of these pictures, each a title and its SVG, that show something."""
    return tuple(Drawing(title, svg) for title, svg in pictures if svg)


@dataclass(frozen=True, slots=True)
class Grid:
    """A table: a name that is unique on the page, a caption, headings (those in `right` are of numbers) and rows.
    `left_out` says what was not listed, "" for nothing."""

    name: str
    caption: str
    heads: tuple[str, ...]
    rows: Sequence[Sequence[Cell]]
    right: frozenset[int] = frozenset()
    left_out: str = ""


ROWS_SHOWN = 500
IN_JSON = "rows are in the JSON"


def grid_of(  # noqa: PLR0917 - what a table is made of
    name: str, caption: str, columns: Columns[T], items: Sequence[T], most: int = ROWS_SHOWN, rest: str = IN_JSON
) -> Grid:
    """A table with a row for each item, of `most` at most; `rest` says where the others are."""
    heads = tuple(field.title[:1].upper() + field.title[1:] for field in columns)
    rows = [[cell_of(cell(item)) for cell in columns.values()] for item in items[:most]]
    left = len(items) - most
    right = frozenset(at for at, field in enumerate(columns) if field.right)
    return Grid(name, caption, heads, rows, right, f"{left} more {rest}" if left > 0 else "")


@dataclass(frozen=True, slots=True)
class Extras:
    """What only a command can add to its page: pictures and tables of a section."""

    section: str = ""
    drawings: tuple[Drawing, ...] = ()
    grids: tuple[Grid, ...] = ()


@dataclass(frozen=True, slots=True)
class Section:
    """One part of the page: `name` is its anchor, `title` its heading, `label` the word for it in the navigation,
    `note` stands behind the heading. `template` is the file that shows it, its name where it has one of its own."""

    name: str
    title: str
    values: Mapping[str, Any]
    note: str = ""
    template: str = ""
    label: str = ""


@dataclass(frozen=True, slots=True)
class Sheet:
    """All that a page shows. `page` is what the command prints on a terminal, `document` what it prints as JSON,
    None where it prints none, `extras` what only the command can add."""

    command: str
    result: Result
    page: Page
    document: Document | None
    extras: Extras = Extras()
    lacks: str = ""
    """What `document` leaves out, in words."""
    leading: bool = False
    """Whether the terminal's text is the content of the page, as where a command answers with no findings."""


def figures(  # noqa: PLR0917 - what the section shows
    sheet: Sheet, name: str, title: str, drawings: Iterable[Drawing] = (), grids: Iterable[Grid] = (), note: str = ""
) -> Section | None:
    """A section of pictures and tables, those of the command first; None without any. Tables without rows are left
    out."""
    own = sheet.extras if sheet.extras.section == name else Extras()
    shown = [grid for grid in (*own.grids, *grids) if grid.rows]
    drawn = (*own.drawings, *drawings)
    values = {"drawings": drawn, "grids": shown}
    return Section(name, title, values, note, template="figures") if drawn or shown else None


def markup(text: str) -> Markup:
    """Markup of our own drawings, which have escaped what is foreign."""
    return Markup(text)  # noqa: S704 - made by our own drawings, never of foreign text


FINDINGS_SHOWN = 1000
"""Findings in full; of more the page says how many, and the JSON has them."""
NAMES_ROOM = 160
"""Characters of a set of nodes that stands among other words: all of them are in the tables below."""

Quote = tuple[str, str, str]
"""A line of evidence: where it stands, what it says, and the command that printed it."""


def quotes(lines: Iterable[Origin], finding: Finding, places: Places) -> list[Quote]:
    """Lines that speak of a finding."""
    return [(places.spell(line, finding), " ".join(line.text.split()), line.command) for line in lines]


class Anchors:
    """Where on the page each finding of a result stands, and where in the cluster. `named` has the findings that are
    shown behind their anchors: the check and a number among those of this check."""

    def __init__(self, result: Result) -> None:
        seen: Counter[str] = Counter()
        self.named: list[tuple[str, Finding]] = []
        for finding in result.findings[:FINDINGS_SHOWN]:
            seen[finding.id] += 1
            self.named.append((f"{finding.id}-{seen[finding.id]}", finding))
        self._exact = {finding: anchor for anchor, finding in reversed(self.named)}
        self._near = {(finding.id, finding.message): anchor for anchor, finding in reversed(self.named)}
        self._several = len(result.nodes) != 1 or bool(result.jobs)
        self.dialect = dialect_of_all(result)

    def of(self, finding: Finding) -> str:
        """The anchor of a finding, "" where the list of findings has it not."""
        return self._exact.get(finding) or self._near.get((finding.id, finding.message), "")

    def where(self, finding: Finding) -> str:
        """The place of a finding in words; its node is named where there are several."""
        return where_words(finding.where, self._several)


def causes_of(result: Result) -> Sequence[Cause]:
    """The causes of a verdict; of other reports the findings that follow from no other, each with those that do."""
    if result.verdict is not None:
        return result.verdict.causes
    below = grouped(
        ((one.follows.check, one.follows.message), Consequence(one, one.follows.why))
        for one in result.findings
        if one.follows is not None
    )
    first = (finding for finding in result.findings if finding.follows is None)
    return [
        Cause(one, CauseStatus.UNKNOWN, cost_words(one.cost), consequences=tuple(below.pop((one.id, one.message), ())))
        for one in first
    ]


def distinct(words: Iterable[str]) -> list[str]:
    """Each once, in order, without empty ones."""
    return [word for word in dict.fromkeys(words) if word]


def by_host(result: Result) -> dict[str, list[Finding]]:
    """The findings of each node that has one; one that names no node is everybody's and stands under no host."""
    return grouped((host, finding) for finding in result.findings for host in finding.where.nodes)
