"""Tables as their columns describe them, for terminal and page of HTML alike. On a terminal columns give way, then go,
before a line would be too long. Figures that follow term by term are tables, too."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from rich.text import Text

from topodiag.lazy import dataclass
from topodiag.report.text import Page, Part, plain

_GAP = 2
UNKNOWN = -1e300
"""By this value what is not known is sorted before every number."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Field:
    """One column. `least` columns are kept when it must give way (0: it never does); the column with the highest
    `drop` goes first when all have given way (0: it stays)."""

    title: str
    right: bool = False
    least: int = 0
    drop: int = 0


@dataclass(frozen=True, slots=True)
class Cell:
    """Words, and the number by which a page sorts them (None: by themselves)."""

    part: Part
    value: float | None = None

    @property
    def text(self) -> str:
        return plain(self.part)

    @property
    def hue(self) -> str:
        return self.part[1] if isinstance(self.part, tuple) else ""


Entry = Cell | Part | int
"""What is written into a cell: a cell, words alone, or a count."""
Columns = Mapping[Field, Callable[[T], Entry]]
"""The columns of a table of items, each with what gives its cells."""


def cell_of(entry: Entry) -> Cell:
    """A count is its own value."""
    if isinstance(entry, Cell):
        return entry
    return Cell(str(entry), entry) if isinstance(entry, int) else Cell(entry)


def figure(value: float | None, words: Callable[[float], str], unknown: str = "", hue: str = "") -> Cell:
    """A number in these words, sorted by itself; what is not known comes first."""
    return Cell(unknown, UNKNOWN) if value is None else Cell((words(value), hue), value)


def draw_table(page: Page, columns: Columns[T], items: Iterable[T], indent: int = 2) -> None:
    """A row for each item."""
    draw_grid(page, tuple(columns), [[cell(item) for cell in columns.values()] for item in items], indent)


def draw_listed(page: Page, columns: Columns[T], items: Sequence[T], most: int, *what: str) -> None:
    """A row for each of the first `most` items, and a line that counts the others (`what`: one, many)."""
    shown = page.some(items, most)
    draw_table(page, columns, shown)
    page.add_more(len(items) - len(shown), *what)


def draw_sides(page: Page, titles: tuple[str, str, str], rows: Iterable[tuple[str, str, str]]) -> None:
    """Rows of a name and its two sides, such as before and after; a second one that differs is marked."""
    name, first, second = titles
    fields = (Field(name), Field(first, least=12), Field(second, least=12))
    draw_grid(page, fields, [[what, old, (new, "doubtful" if old != new else "dim")] for what, old, new in rows])


def draw_grid(page: Page, fields: Sequence[Field], rows: Sequence[Sequence[Entry]], indent: int = 2) -> None:
    """Heading and rows. A column whose cells are all empty is left out."""
    cells = [[page.text(cell_of(entry).part) for entry in row] for row in rows]
    kept = [i for i in range(len(fields)) if any(row[i].plain for row in cells)]
    widths = {i: max(len(fields[i].title), *(row[i].cell_len for row in cells)) for i in kept}
    _fit(fields, widths, kept, page.width - indent)
    heading: list[Text] = [page.text((fields[i].title, "dim")) for i in kept]
    for line in ([heading] if kept else []) + [[row[i] for i in kept] for row in cells]:
        drawn = []
        for i, cell in zip(kept, line, strict=True):
            short = page.cut(cell, widths[i])
            blank = " " * (widths[i] - short.cell_len)
            drawn.append(page.text(blank, short) if fields[i].right else page.text(short, blank))
        page.add_line(page.text(" " * indent, page.join(drawn, " " * _GAP)))


def _fit(fields: Sequence[Field], widths: dict[int, int], kept: list[int], room: int) -> None:
    """Narrow columns, then leave out whole ones, until the rest fits or nothing more can give way."""
    while kept and (over := sum(widths[i] for i in kept) + _GAP * (len(kept) - 1) - room) > 0:
        if _shrink(fields, widths, kept, over) <= 0:
            return
        goes = max(kept, key=lambda i: (fields[i].drop, i))
        if fields[goes].drop == 0:
            return
        kept.remove(goes)


def _shrink(fields: Sequence[Field], widths: dict[int, int], kept: Sequence[int], over: int) -> int:
    """Take columns from the widest that can give way, one by one; how much is still too much."""
    while over > 0:
        able = [i for i in kept if fields[i].least and widths[i] > max(fields[i].least, len(fields[i].title))]
        if not able:
            return over
        widths[max(able, key=lambda i: widths[i])] -= 1
        over -= 1
    return over


MAX_TERM, MAX_VALUE = 34, 16
"""Columns of a term's name and of its value; what is longer takes room from the other, or a line of its own."""


def draw_terms(page: Page, terms: Sequence[tuple[str, str, str]], title: str = "how it follows", room: int = 0) -> None:
    """Each term: name, value and formula, which has a line of its own where fewer than `room` columns are left."""
    if not terms:
        return
    page.heading(title, lead="  ")
    wide = min(max(len(name) for name, _, _ in terms), MAX_TERM, page.width // 2)
    least = max((len(value) for _, value, _ in terms if len(value) <= MAX_VALUE), default=0)
    for name, value, formula in terms:
        spelt = value.rjust(least - max(len(name) - wide, 0))
        head = page.text("  ", (name.ljust(wide), "name"), "  ", spelt, "  ")
        if page.width - head.cell_len >= room or not room:
            page.add(head, (formula, "dim"))
            continue
        page.add("  ", (name, "name"), f"  {value}")
        page.add("      ", (formula, "dim"))


def draw_assumed(page: Page, sentences: Iterable[str], *, fold: bool = False) -> None:
    """What the evidence did not hold and was taken as built; with `fold` as much of it as the screen has room for, and
    with -v all."""
    drawn = Page(page.style)
    for sentence in sentences:
        drawn.add("  ", ("assumed: ", "doubtful"), sentence)
    if drawn.lines:
        page.blank()
    if fold:
        page.add_rest(drawn)
    else:
        page.lines.extend(drawn.lines)
