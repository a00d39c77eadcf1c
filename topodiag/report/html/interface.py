"""What a page is made of: a sheet goes in, each section turns part of it into values for its template.

Adding a section is a module in `sections/` with a function of the sheet, a template of the same name (pictures and
tables alone need none), and a line in `registry.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from topodiag.lazy import dataclass
from topodiag.model.result import Result

if TYPE_CHECKING:
    from topodiag.report.documents.from_model import Document
    from topodiag.report.text import Page


@dataclass(frozen=True, slots=True)
class Drawing:
    """A picture that a command made: `svg` is a whole document, or an element that may stand in a page where `inline`.
    `section` names the section that shows it."""

    section: str
    title: str
    svg: str
    inline: bool = False
    caption: str = ""


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a table: its text, the number by which it is sorted (None: by its text), and a mark: `error`,
    `warning`, `ok`."""

    text: str
    value: float | None = None
    mark: str = ""


@dataclass(frozen=True, slots=True)
class Grid:
    """A table: a name that is unique on the page, a caption, headings (those in `right` are of numbers) and rows.
    `left_out` says what was not listed, "" for nothing."""

    name: str
    caption: str
    heads: tuple[str, ...]
    rows: Sequence[Sequence[Cell | str]]
    right: frozenset[int] = frozenset()
    left_out: str = ""


@dataclass(frozen=True, slots=True)
class Extras:
    """What only a command can add to its page: pictures, and tables by their section."""

    drawings: tuple[Drawing, ...] = ()
    grids: Mapping[str, tuple[Grid, ...]] = field(default_factory=dict)


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
    None where it prints none;
    `drawings` are pictures that only the command can make, `grids` tables by their section."""

    command: str
    result: Result
    page: Page
    document: Document | None
    drawings: tuple[Drawing, ...] = ()
    grids: Mapping[str, tuple[Grid, ...]] = field(default_factory=dict)
    lacks: str = ""
    """What `document` leaves out, in words."""
    leading: bool = False
    """Whether the terminal's text is the content of the page, as where a command answers with no findings."""

    def of(self, section: str) -> tuple[Drawing, ...]:
        """The drawings of a section."""
        return tuple(drawing for drawing in self.drawings if drawing.section == section)


def markup(text: str) -> Markup:
    """Markup of our own drawings, which have escaped what is foreign."""
    return Markup(text)  # noqa: S704 - made by our own drawings, never of foreign text
