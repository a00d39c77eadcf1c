"""Plots: `draw_plot` on a page of the terminal, `plot_svg` as text.

>>> from topodiag.draw.scale import SIZE, BANDWIDTH, Mark, Series
>>> from topodiag.draw.plot import plot_svg
>>> from topodiag.report.plot import draw_plot
>>> measured = Series("measured", [(1 << 20, 12.0), (1 << 24, 90.0), (1 << 28, 180.0)])
>>> svg = plot_svg([measured], x=SIZE, y=BANDWIDTH, title="all_reduce", marks=[Mark(1 << 22, "bandwidth-bound")])
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby, pairwise

from topodiag.draw.scale import SIZE, TIME, Axis, Mark, Series, Span, shown, spans
from topodiag.report.text import Page, Part

HUES = ("nvlink", "close", "doubtful", "unknown", "error", "strong")
"""By the series' place."""
_SIGNS, _PLAIN_SIGNS = "●▲■◆○△", "ox*#@%"
_LEAST_ROWS, _MOST_ROWS = 10, 18
_MOST_COLUMNS = 100


def draw_plot(
    page: Page, series: Sequence[Series], *, x: Axis = SIZE, y: Axis = TIME, marks: Sequence[Mark] = ()
) -> None:
    """The series on the page, each point with its series' sign and joined by dots; the legend and the marks below.

    The height follows the width. Draws nothing where no point can be shown.
    """
    height = min(max(page.width // 8, _LEAST_ROWS), _MOST_ROWS)
    wide = min(page.width, _MOST_COLUMNS + 12)
    pair = spans(series, x, y, marks, (max(wide // 14, 2), max(height // 3, 2)))
    if pair is None:
        return
    across, up = pair
    left = max(len(page.clean(word)) for _, word in up.ticks) + 2
    columns = max(wide - left - 2, 16)
    cells: list[list[tuple[str, str]]] = [[(" ", "")] * columns for _ in range(height)]
    for mark in marks:
        at = across.share(mark.x)
        if at is not None:
            column = round(at * (columns - 1))
            for row in cells:
                row[column] = ("┊", "dim")
    signs = _PLAIN_SIGNS if page.style.ascii else _SIGNS
    for number in reversed(range(len(series))):  # the first is drawn last: it is the one that matters
        curve = series[number]
        dot = "." if page.style.ascii else "·"
        _trace(cells, shown(curve, across, up), signs[number % len(signs)], dot, HUES[number % len(HUES)])
    page.add(" " * max(left - len(y.title) - 1, 0), (y.title, "dim"))
    _rows(page, cells, up, left)
    _foot(page, across, left, columns)
    _legend(page, series, signs)
    for mark in marks:
        if across.share(mark.x) is not None:
            page.add(page.text("  ", ("┊", "dim"), " "), mark.label)


def _trace(
    cells: list[list[tuple[str, str]]], points: Sequence[tuple[float, float]], sign: str, dot: str, hue: str
) -> None:
    """Dots along the line, then the sign on each point."""
    height, columns = len(cells), len(cells[0])
    places = [(at * (columns - 1), (1 - up) * (height - 1)) for at, up in points]
    for (x0, y0), (x1, y1) in pairwise(places):
        for column in range(round(x0) + 1, round(x1)):
            part = (column - x0) / (x1 - x0)
            row = round(y0 + part * (y1 - y0))
            if cells[row][column][0] in " ┊":
                cells[row][column] = (dot, hue)
    for at, row_at in places:
        cells[round(row_at)][round(at)] = (sign, hue)


def _rows(page: Page, cells: list[list[tuple[str, str]]], up: Span, left: int) -> None:
    height = len(cells)
    wide = up.high - up.low
    words = {round((1 - (place - up.low) / wide) * (height - 1)): word for place, word in up.ticks if wide > 0}
    for number, row in enumerate(cells):
        word = words.get(number, "")
        head = page.clean(word).rjust(left - 2) + (" ├" if word else " │")
        page.add_line(page.text((head, "dim"), *_runs(row)))


def _runs(row: Sequence[tuple[str, str]]) -> list[Part]:
    """Neighbouring cells of one hue as one part: a colour code per cell would be most of the output."""
    runs = groupby(row, key=lambda cell: cell[1])
    return [("".join(char for char, _ in cells), hue) for hue, cells in runs]


def _foot(page: Page, across: Span, left: int, columns: int) -> None:
    """The axis with its ticks, and their words where they do not touch."""
    line, words = ["─"] * columns, [" "] * (columns + 12)
    free = 0
    wide = across.high - across.low
    for place, word in across.ticks:
        column = round((place - across.low) / wide * (columns - 1)) if wide > 0 else 0
        line[column] = "┴"
        spelt = page.clean(word)
        start = min(max(column - len(spelt) // 2, 0), columns + 2 - len(spelt))
        if start >= free:
            words[start : start + len(spelt)] = spelt
            free = start + len(spelt) + 2
    page.add_line(page.text((" " * (left - 1) + "└" + "".join(line), "dim")))
    page.add_line(page.text((" " * left + "".join(words), "dim")))


def _legend(page: Page, series: Sequence[Series], signs: str) -> None:
    items: list[Part] = [
        page.text((signs[number % len(signs)], HUES[number % len(HUES)]), " ", curve.name)
        for number, curve in enumerate(series)
    ]
    page.add_pieces("  ", [page.text(item, "   ") for item in items])


def draw_bars(page: Page, bars: Sequence[tuple[str, float, str, str]]) -> None:
    """Horizontal bars of (name, value, words behind it, hue), drawn to the greatest value; a bar of 0 has no length."""
    most = max((value for _, value, _, _ in bars), default=0.0)
    if most <= 0:
        return
    name_wide = max(len(page.clean(name)) for name, *_ in bars)
    words_wide = max(len(page.clean(words)) for _, _, words, _ in bars)
    room = max(min(page.width - name_wide - words_wide - 6, 60), 8)
    for name, value, words, hue in bars:
        length = round(value / most * room)
        bar = "█" * length if length or value <= 0 else "▏"
        head = page.text("  ", (page.clean(name).ljust(name_wide), "name"), "  ", (bar, hue or "close"))
        page.add_line(page.text(page.pad(head, name_wide + room + 5), (words, "dim")))
