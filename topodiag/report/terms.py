"""How a figure follows, term by term, and what was assumed for it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from topodiag.report.text import Page

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
