"""The pair matrix of a sweep: each cell the slowest run between two nodes, the diagonal the runs inside a node."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from topodiag.model.sweep import Fabric, JudgedRun, Standing, SweepJudgement
from topodiag.report.sweep.words import SEVERE_SHARE, run_words
from topodiag.report.text import Page, Part
from topodiag.words.fold import fold_hosts
from topodiag.words.text import clean

_LEAST_LABEL, _MOST_LABEL = 4, 24
_SIDE = 96
"""Cells of a side of the SVG at most; more nodes are folded, since a cell must be seen."""
_WORST = {Standing.FAILED: 0, Standing.LOW: 1, Standing.NORMAL: 2, Standing.UNKNOWN: 3}


@dataclass(frozen=True, slots=True)
class Heat:
    """`labels` of rows and columns (blocks of nodes where there are many); a cell is its worst run, if there is one."""

    labels: tuple[str, ...]
    cells: dict[tuple[int, int], JudgedRun]
    block: int


def heat(judged: SweepJudgement, fabric: Fabric, most: int) -> Heat:
    """The matrix with at most `most` rows. Only runs of one or two nodes say something of a cell."""
    nodes = [node for members in fabric.by_rack().values() for node in members]
    nodes += [node for node in fabric.nodes if node not in fabric.racks]
    block = -(-len(nodes) // max(most, 1))
    at = {node: place // block for place, node in enumerate(nodes)}
    repeats: dict[tuple[object, ...], JudgedRun] = {}
    for each in judged.runs:
        if len(each.run.nodes) > 2 or each.run.kind == "settings":
            continue
        # Of the same run done again the best counts: the other was slow by chance.
        key = (frozenset(each.run.nodes), each.run.gpus, each.run.rail, each.run.program)
        if key not in repeats or _rank(each) > _rank(repeats[key]):
            repeats[key] = each
    cells: dict[tuple[int, int], JudgedRun] = {}
    for each in repeats.values():
        a, b = sorted((at[each.run.nodes[0]], at[each.run.nodes[-1]]))
        known = cells.get((a, b))
        if known is None or _rank(each) < _rank(known):
            cells[a, b] = each
    labels = tuple(fold_hosts(nodes[start : start + block]) for start in range(0, len(nodes), block))
    return Heat(labels, cells, block)


def _rank(each: JudgedRun) -> tuple[int, float]:
    return _WORST[each.standing], each.share if each.share is not None else 1.0


def draw_heat(page: Page, judged: SweepJudgement, fabric: Fabric) -> None:
    """The matrix on the page, one character a cell, and what the characters mean."""
    longest = max((len(node) for node in fabric.nodes), default=0) + 8
    label = min(max(longest, _LEAST_LABEL), _MOST_LABEL, page.width // 3)
    room = page.width - label - 4
    made = heat(judged, fabric, room)
    wide = 2 if len(made.labels) * 2 <= room else 1
    normal = "#" if page.style.ascii else "■"
    none = "." if page.style.ascii else "·"
    for row, name in enumerate(made.labels):
        parts: list[Part] = []
        for column in range(len(made.labels)):
            char, hue = _char(made.cells.get((min(row, column), max(row, column))), normal, none)
            parts.append((char.ljust(wide), hue))
        line = page.text("  ", (page.cut(page.text(name), label).plain.ljust(label), "dim"), "  ", *parts)
        line.rstrip()
        page.lines.append(page.cut(line, page.width))
    block = f"a cell is {made.block} x {made.block} nodes, its worst run: " if made.block > 1 else ""
    page.add("  ", f"{block}{normal} normal, 0-9 tenths of normal, x failed, ? not judged, {none} not measured")


def _char(each: JudgedRun | None, normal: str, none: str) -> tuple[str, str]:
    if each is None:
        return none, "dim"
    match each.standing:
        case Standing.NORMAL:
            return normal, "nvlink"
        case Standing.LOW:
            share = each.share or 0.0
            return str(min(int(share * 10), 9)), "error" if share < SEVERE_SHARE else "doubtful"
        case Standing.FAILED:
            return "x", "error"
        case _:
            return "?", "unknown"


_CELL, _LEFT, _TOP = 14, 170, 60
_STYLE = (
    "text{font-family:system-ui,'Segoe UI','DejaVu Sans',sans-serif;font-size:11px;fill:#222}"
    ".title{font-size:16px;font-weight:600}.c{stroke:#fff;stroke-width:1}"
)
_NONE, _UNJUDGED, _FAILED_COLOR, _NORMAL_COLOR = "#f2f2f2", "#bdbdbd", "#000000", "#a6dba0"
_LOW_COLORS = ((0.7, "#fe9929"), (0.5, "#cc4c02"), (0.0, "#7f2704"))
"""From the share on; darker is slower, so that the order is seen without telling red from green."""


def heat_svg(judged: SweepJudgement, fabric: Fabric, title: str) -> str:
    """The matrix as a whole SVG document; a cell's run is in its tooltip."""
    made = heat(judged, fabric, _SIDE)
    side = len(made.labels) * _CELL
    wide, high = max(_LEFT + side + 30, 640), _TOP + side + 60
    body = [f'<rect width="{wide}" height="{high}" fill="#fff"/>', _text(14, 28, title, "title")]
    for row, name in enumerate(made.labels):
        y = _TOP + row * _CELL
        short = clean(name) if len(name) <= 26 else clean(name[:25]) + "…"
        body.append(f'<text x="{_LEFT - 6}" y="{y + 11}" text-anchor="end">{escape(short)}</text>')
        for column in range(len(made.labels)):
            each = made.cells.get((min(row, column), max(row, column)))
            box = f'<rect class="c" x="{_LEFT + column * _CELL}" y="{y}" width="{_CELL}" height="{_CELL}"'
            box += f' fill="{_color(each)}"'
            told = f"><title>{escape(clean(run_words(each)))}</title></rect>" if each is not None else "/>"
            body.append(box + told)
    body += _legend(_TOP + side + 24, made.block)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide}" height="{high}" viewBox="0 0 {wide} {high}"'
    head += f' role="img" aria-label="{escape(clean(title))}">'
    return "\n".join([head, f"<style>{_STYLE}</style>", *body, "</svg>"]) + "\n"


def _color(each: JudgedRun | None) -> str:
    if each is None:
        return _NONE
    if each.standing is Standing.FAILED:
        return _FAILED_COLOR
    if each.standing is Standing.UNKNOWN:
        return _UNJUDGED
    if each.standing is Standing.NORMAL:
        return _NORMAL_COLOR
    share = each.share or 0.0
    return next(color for least, color in _LOW_COLORS if share >= least)


def _legend(y: int, block: int) -> list[str]:
    items: Sequence[tuple[str, str]] = (
        (_NORMAL_COLOR, "normal"),
        (_LOW_COLORS[0][1], "70-85 %"),
        (_LOW_COLORS[1][1], "50-70 %"),
        (_LOW_COLORS[2][1], "below 50 %"),
        (_FAILED_COLOR, "failed"),
        (_UNJUDGED, "not judged"),
        (_NONE, "not measured"),
    )
    made: list[str] = []
    for number, (color, words) in enumerate(items):
        x = 14 + number * 88
        made.append(f'<rect x="{x}" y="{y - 10}" width="11" height="11" fill="{color}" stroke="#999"/>')
        made.append(_text(x + 15, y, words))
    if block > 1:
        made.append(_text(14, y + 20, f"a cell is {block} x {block} nodes and shows its worst run"))
    return made


def _text(x: int, y: int, text: str, cls: str = "") -> str:
    names = f' class="{cls}"' if cls else ""
    return f'<text x="{x}" y="{y}"{names}>{escape(clean(text))}</text>'
