"""`place look` as SVG: a panel per switch or rack, a row per node, a square per GPU filled by group, split groups
outlined in red. Of more nodes than can be told apart, a square per node, by how much of it is split. Plain shapes and
system fonts, no script, nothing loaded from elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from math import isqrt
from xml.sax.saxutils import escape

import numpy as np

from topodiag.model.cluster import Ints
from topodiag.placement.price import Floats
from topodiag.placement.view import NOBODY, UNUSABLE, Look, View
from topodiag.report.place.overview import shares
from topodiag.words.text import clean

CELL, GAP, LABEL, ROW = 18, 3, 110, 22
"""A GPU's square, the room between two, the room of a node's name, and from one node to the next, in px."""
MARGIN, HEAD, PANEL = 20, 58, 30
PER_COLUMN = 32
"""Nodes below each other; a longer panel goes on in the next column."""
ACROSS = 4
"""Panels beside each other in one view."""
MOST_NODES = 256
"""Nodes drawn GPU by GPU: beyond that nobody reads the numbers, and the file takes megabytes."""
DOT, STEP, BLOCK_GAP, PER_LINE = 6, 7, 6, 16
"""A node's square, from one to the next, between two switches, and the most squares beside each other, in px."""
OVERVIEW_WIDE = 1000
"""Of one view, in px."""
_SHADES = ("#d0d7de", "#aceebb", "#ffd8b5", "#ffb77c", "#ff8182", "#cf222e")
"""Of a node: nothing runs, no group split, up to a third of its GPUs in split groups, two thirds, more, all."""
_SHADE_WORDS = ("idle", "no group split", "up to a third of its GPUs in split groups", "two thirds", "more", "all")
_STYLE = """
text { font-family: Helvetica, Arial, sans-serif; font-size: 11px; fill: #1f2328 }
.title { font-size: 16px; font-weight: bold } .small { font-size: 9px } .tiny { font-size: 7px } .dim { fill: #57606a }
.free { fill: #ffffff; stroke: #8c959f; stroke-dasharray: 2 2 } .out { fill: #d0d7de }
.split { stroke: #cf222e; stroke-width: 2.5 } .panel { fill: none; stroke: #8c959f }
""".strip()


def look_svg(look: Look) -> str:
    """The picture."""
    nodes = look.shown.tolist()
    if len(nodes) > MOST_NODES:
        return _overview(look)
    columns = list(_columns(look, nodes))
    wide = LABEL + look.cluster.slots * (CELL + GAP) + MARGIN
    one = min(len(columns), ACROSS) * wide
    tops = [HEAD]
    for first in range(0, len(columns), ACROSS):
        longest = max(len(column) for _, column in columns[first : first + ACROSS])
        tops.append(tops[-1] + PANEL + longest * ROW + MARGIN)
    parts: list[str] = []
    for place, view in enumerate(look.views):
        left = MARGIN + place * (one + MARGIN)
        parts.append(f'<text class="title" x="{left}" y="{MARGIN + 14}">{_said(look, view)}</text>')
        for number, (home, column) in enumerate(columns):
            parts += _panel(look, view, home, column, left + number % ACROSS * wide, tops[number // ACROSS])
    return _whole(parts, MARGIN + len(look.views) * (one + MARGIN), tops[-1])


def _whole(parts: list[str], width: int, height: int) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" role="img">\n<style>{_STYLE}</style>\n'
        f'<rect width="100%" height="100%" fill="#ffffff"/>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def _overview(look: Look) -> str:
    """Blocks of squares: a block per group of the innermost level, a square per node."""
    nodes = look.shown
    columns = list(_columns(look, nodes.tolist(), PER_LINE * PER_LINE))
    places, wide, high = _flow([len(column) for _, column in columns])
    at = [(x + n % across * STEP, y + n // across * STEP)
          for (x, y, across), (_, column) in zip(places, columns, strict=True) for n in range(len(column))]  # fmt: skip
    parts: list[str] = []
    for place, view in enumerate(look.views):
        left = MARGIN + place * (wide + MARGIN)
        parts.append(f'<text class="title" x="{left}" y="{MARGIN + 14}">{_said(look, view)}</text>')
        parts.append(f'<g transform="translate({left} {HEAD})">')
        shade = shades(shares(look, view, np.arange(nodes.size)))
        for number, color in enumerate(_SHADES):
            squares = "".join(f"M{at[n][0]} {at[n][1]}h{DOT}v{DOT}h-{DOT}z" for n in np.flatnonzero(shade == number))
            if squares:
                parts.append(f'<path fill="{color}" d="{squares}"/>')
        parts.append("</g>")
    x = MARGIN
    for color, words in zip(_SHADES, _SHADE_WORDS, strict=True):
        y = HEAD + high + MARGIN
        parts.append(f'<path fill="{color}" d="M{x} {y}h12v12h-12z"/><text x="{x + 17}" y="{y + 10}">{words}</text>')
        x += 36 + 11 * len(words) // 2
    unit = next((level.kind for level in look.cluster.levels if level.groups > 1), "")
    words = f"a square is a node{f', a block a {unit}' if unit else ''}"
    parts.append(f'<text class="dim" x="{MARGIN}" y="{HEAD + high + 2 * MARGIN + 14}">{escape(words)}</text>')
    return _whole(parts, MARGIN + max(len(look.views) * (wide + MARGIN), x), HEAD + high + 3 * MARGIN + 10)


def shades(share: Floats) -> Ints:
    """The number of its shade, by the share of a node that is split (-1: nothing runs)."""
    made = np.where(share < 0, 0, np.where(share == 0, 1, np.where(share >= 1, 5, 2 + np.floor(share * 3))))
    return made.astype(np.int64)


def _flow(sizes: list[int]) -> tuple[list[tuple[int, int, int]], int, int]:
    """Blocks of so many squares beside and below each other: (x, y, squares beside each other) of each, and the width
    and height of all."""
    places: list[tuple[int, int, int]] = []
    x = y = tall = wide = 0
    for size in sizes:
        across = min(isqrt(size - 1) + 1, PER_LINE)
        if x and x + across * STEP > OVERVIEW_WIDE:
            x, y, tall = 0, y + tall + BLOCK_GAP, 0
        places.append((x, y, across))
        x += across * STEP + BLOCK_GAP
        wide, tall = max(wide, x), max(tall, -(-size // across) * STEP)
    return places, wide, y + tall


def _said(look: Look, view: View) -> str:
    return escape(clean(f"{view.title}, {look.dimension}: {view.said}"))


def _columns(look: Look, nodes: list[int], most: int = PER_COLUMN) -> Iterator[tuple[str, list[int]]]:
    for home, members in groupby(nodes, key=look.home):
        listed = list(members)
        for first in range(0, len(listed), most):
            yield home, listed[first : first + most]


def _panel(look: Look, view: View, home: str, nodes: list[int], left: int, top: int) -> Iterator[str]:  # noqa: PLR0917 - where and what
    wide = LABEL + look.cluster.slots * (CELL + GAP)
    yield f'<rect class="panel" x="{left}" y="{top}" width="{wide}" height="{PANEL + len(nodes) * ROW}" rx="4"/>'
    if home:
        yield f'<text class="dim" x="{left + 8}" y="{top + 18}">{escape(clean(home)[:40])}</text>'
    for row, node in enumerate(nodes):
        y = top + PANEL + row * ROW
        yield f'<text x="{left + 8}" y="{y + 13}">{escape(clean(look.cluster.names[node])[:16])}</text>'
        for gpu, number in enumerate(view.group[node].tolist()):
            x = left + LABEL + gpu * (CELL + GAP) - GAP
            yield _square(number, x, y, split=bool(view.split[node, gpu]))


def _square(number: int, x: int, y: int, *, split: bool) -> str:
    at = f'x="{x}" y="{y}" width="{CELL}" height="{CELL}"'
    if number == UNUSABLE:
        return f'<rect class="out" {at}/>'
    if number == NOBODY:
        return f'<rect class="free" {at}/>'
    # The golden angle keeps neighbours apart however many groups there are.
    fill = f"hsl({number * 137.508 % 360:.0f} 65% {72 if number % 2 else 80}%)"
    outline = ' class="split"' if split else ""
    size = "small" if number < 1000 else "tiny"
    text = f'<text class="{size}" x="{x + CELL / 2:g}" y="{y + 12}" text-anchor="middle">{number}</text>'
    return f'<rect {at} fill="{fill}"{outline}/>{text}'
