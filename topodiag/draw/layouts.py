"""`place look` as SVG: a panel per switch or rack, a row per node, a square per GPU filled by group, split groups
outlined in red. Of more nodes than can be told apart, a square per node, by how much of it is split."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from math import isqrt

import numpy as np

from topodiag.draw.svg import Canvas, tag, width_of
from topodiag.model.cluster import Ints
from topodiag.placement.price import Floats
from topodiag.placement.view import NOBODY, UNUSABLE, Look, View, shares
from topodiag.words.hosts import short_names

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
_SHADES = (
    ("shade0", "idle"), ("shade1", "no group split"), ("shade2", "up to a third of its GPUs in split groups"),
    ("shade3", "two thirds"), ("shade4", "more"), ("shade5", "all"),
)  # fmt: skip
"""Of a node, by how much of it is split: darker on light ground, brighter on dark."""
NARROWEST = 420
"""Of one view, px: its title has room."""


def look_svg(look: Look, *, prefix: str = "") -> str:
    """The picture: a document, or with a `prefix` an element for a page."""
    texts = [f"{view.title}, {look.dimension}: {view.summary}" for view in look.views]
    canvas = Canvas(f"Layout of {look.dimension} groups", "; ".join(texts), prefix)
    nodes = look.shown.tolist()
    if len(nodes) > MOST_NODES:
        return _overview(canvas, look)
    columns = list(_columns(look, nodes))
    names = short_names(look.cluster.names)
    wide = LABEL + look.cluster.slots * (CELL + GAP) + MARGIN
    one = max(min(len(columns), ACROSS) * wide, NARROWEST)
    tops = [HEAD]
    for first in range(0, len(columns), ACROSS):
        longest = max(len(column) for _, column in columns[first : first + ACROSS])
        tops.append(tops[-1] + PANEL + longest * ROW + MARGIN)
    across, down = (0, tops[-1]) if prefix else (one + MARGIN, 0)  # a page may be as narrow as a telephone
    for place, view in enumerate(look.views):
        left, top = MARGIN + place * across, place * down
        canvas.text(left, top + MARGIN + 14, texts[place], "title", room=one, size=16)
        for number, (home, column) in enumerate(columns):
            at = (left + number % ACROSS * wide, top + tops[number // ACROSS])
            _panel(canvas, look, view, home, column, names, at)
    _words(canvas, look, top + tops[-1] + 4)
    return canvas.document(left + one + MARGIN, top + tops[-1] + MARGIN, margin=0)


def _words(canvas: Canvas, look: Look, y: float) -> None:
    words = "number: group, frame: split, dashed: free, grey: unusable"
    together = any(view.together for view in look.views)
    canvas.text(MARGIN, y, words if together else words.replace("frame: split, ", ""), "quiet")


def _overview(canvas: Canvas, look: Look) -> str:
    """Blocks of squares: a block per group of the innermost level, a square per node."""
    nodes = look.shown
    columns = list(_columns(look, nodes.tolist(), PER_LINE * PER_LINE))
    places, wide, high = _flow([len(column) for _, column in columns])
    wide = max(wide, NARROWEST)
    at = [(x + n % across * STEP, y + n // across * STEP)
          for (x, y, across), (_, column) in zip(places, columns, strict=True) for n in range(len(column))]  # fmt: skip
    for place, view in enumerate(look.views):
        left = MARGIN + place * (wide + MARGIN)
        canvas.text(left, MARGIN + 14, f"{view.title}, {look.dimension}: {view.summary}", "title", room=wide, size=16)
        shade = shades(shares(look, view, np.arange(nodes.size)))
        for number, (kind, words) in enumerate(_SHADES):
            squares = "".join(f"M{at[n][0]} {at[n][1]}h{DOT}v{DOT}h-{DOT}z" for n in np.flatnonzero(shade == number))
            if squares:
                canvas.add(tag("path", title=words, d=squares, class_=kind, transform=f"translate({left} {HEAD})"))
    x, y = MARGIN, HEAD + high + MARGIN
    for kind, words in _SHADES:
        canvas.path(f"M{x} {y}h12v12h-12z", kind)
        canvas.text(x + 17, y + 10, words)
        x += 36 + round(width_of(words))
    unit = next((level.kind for level in look.cluster.levels if level.groups > 1), "")
    canvas.text(MARGIN, y + MARGIN + 14, f"a square is a node{f', a block a {unit}' if unit else ''}", "quiet")
    width = MARGIN + max(len(look.views) * (wide + MARGIN), x)
    return canvas.document(width, HEAD + high + 3 * MARGIN + 10, margin=0)


def shades(share: Floats) -> Ints:
    """The number of its shade, by the share of a node that is split (-1: nothing runs)."""
    shade = np.where(share < 0, 0, np.where(share == 0, 1, np.where(share >= 1, 5, 2 + np.floor(share * 3))))
    return shade.astype(np.int64)


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


def _columns(look: Look, nodes: list[int], most: int = PER_COLUMN) -> Iterator[tuple[str, list[int]]]:
    for home, members in groupby(nodes, key=look.home):
        listed = list(members)
        for first in range(0, len(listed), most):
            yield home, listed[first : first + most]


def _panel(  # noqa: PLR0917 - what and where
    canvas: Canvas, look: Look, view: View, home: str, nodes: Sequence[int], names: Sequence[str],
    at: tuple[int, int],
) -> None:  # fmt: skip
    left, top = at
    wide = LABEL + look.cluster.slots * (CELL + GAP)
    canvas.rect(left, top, wide, PANEL + len(nodes) * ROW, "panel", radius=4)
    if home:
        canvas.text(left + 8, top + 18, home, "quiet", room=wide - 16)
    for row, node in enumerate(nodes):
        y = top + PANEL + row * ROW
        canvas.text(left + 8, y + 13, names[node], room=LABEL - 16)
        for gpu, number in enumerate(view.group[node].tolist()):
            _square(canvas, number, left + LABEL + gpu * (CELL + GAP) - GAP, y, split=bool(view.split[node, gpu]))


def _square(canvas: Canvas, number: int, x: int, y: int, *, split: bool) -> None:
    if number in (UNUSABLE, NOBODY):
        canvas.rect(x, y, CELL, CELL, "out" if number == UNUSABLE else "free")
        return
    # The golden angle keeps neighbours apart however many groups there are.
    fill = f"hsl({number * 137.508 % 360:.0f} 65% {72 if number % 2 else 80}%)"
    canvas.rect(x, y, CELL, CELL, "split" if split else "", colour=fill)
    canvas.text(x + CELL / 2, y + 13, str(number), "oncolour" if number < 1000 else "oncolour tiny", "middle")
