"""`place look` as SVG: a panel per switch or rack, a row per node, a square per GPU filled by group, split groups
outlined in red. Plain shapes and system fonts, no script, nothing loaded from elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from xml.sax.saxutils import escape

from topodiag.model.errors import TopodiagError
from topodiag.report.place_look import NOBODY, UNUSABLE, Look, View
from topodiag.report.text import clean

CELL, GAP, LABEL, ROW = 18, 3, 110, 22
"""A GPU's square, the room between two, the room of a node's name, and from one node to the next, in px."""
MARGIN, HEAD, PANEL = 20, 58, 30
PER_COLUMN = 32
"""Nodes below each other; a longer panel goes on in the next column."""
ACROSS = 4
"""Panels beside each other in one view."""
MOST_NODES = 2048
_STYLE = """
text { font-family: Helvetica, Arial, sans-serif; font-size: 11px; fill: #1f2328 }
.title { font-size: 16px; font-weight: bold } .small { font-size: 9px } .dim { fill: #57606a }
.free { fill: #ffffff; stroke: #8c959f; stroke-dasharray: 2 2 } .out { fill: #d0d7de }
.split { stroke: #cf222e; stroke-width: 2.5 } .panel { fill: none; stroke: #8c959f }
""".strip()


def look_svg(look: Look) -> str:
    """The picture. Raises TopodiagError for more nodes than a picture can show."""
    nodes = look.shown.tolist()
    if len(nodes) > MOST_NODES:
        raise TopodiagError(f"{len(nodes)} nodes make no picture", hint=f"choose up to {MOST_NODES} with --nodelist")
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
    width = MARGIN + len(look.views) * (one + MARGIN)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{tops[-1]}" '
        f'viewBox="0 0 {width} {tops[-1]}" role="img">\n<style>{_STYLE}</style>\n'
        f'<rect width="100%" height="100%" fill="#ffffff"/>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def _said(look: Look, view: View) -> str:
    split = f"{view.split_groups} of {view.groups} groups split" if view.split_groups else "no group split"
    return escape(clean(f"{view.title}, {look.dimension}: {split}"))


def _columns(look: Look, nodes: list[int]) -> Iterator[tuple[str, list[int]]]:
    for home, members in groupby(nodes, key=look.home):
        listed = list(members)
        for first in range(0, len(listed), PER_COLUMN):
            yield home, listed[first : first + PER_COLUMN]


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
    text = f'<text class="small" x="{x + CELL / 2:g}" y="{y + 12}" text-anchor="middle">{number}</text>'
    return f'<rect {at} fill="{fill}"{outline}/>{text}'
