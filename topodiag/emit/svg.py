"""A picture of a node as SVG: sockets side by side, their PCIe trees below them, the NVLink fabric at the foot.

Plain shapes and system fonts, no script, nothing loaded from elsewhere. Sick links and devices are red, thick and carry
the id of the check that found them, so that the picture holds in black and white too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from xml.sax.saxutils import escape, quoteattr

from topodiag.emit.picture import NVSWITCH, Box, Line, Picture

LEAF_W, LEAF_H, GAP, ROW = 88, 60, 10, 96
"""A device's box, the room between two, and from one row of the tree to the next, in px."""
CPU_H, SWITCH_W, SWITCH_H = 38, 88, 42
MARGIN, PANEL, HEAD = 24, 14, 76
FABRIC_H = 30
BETWEEN = 60
"""Room between two sockets, for what joins them."""
ARCS = 44
"""Room below the GPUs for direct NVLinks, per distance."""

STYLE = """
text { font-family: Helvetica, Arial, sans-serif; font-size: 11px; fill: #1f2328 }
.title { font-size: 17px; font-weight: bold } .verdict { font-size: 13px }
.small { font-size: 9.5px; fill: #57606a } .name { font-weight: bold }
.panel { fill: none; stroke: #8c959f; stroke-dasharray: 4 3 }
.cpu { fill: #eaeef2; stroke: #57606a } .switch { fill: #f6f8fa; stroke: #57606a }
.gpu, .nvswitch { fill: #dafbe1; stroke: #1a7f37 } .nic { fill: #ddf4ff; stroke: #0969da }
.dim { fill: #f6f8fa; stroke: #8c959f }
.pcie { stroke: #57606a; fill: none } .nvlink { stroke: #1a7f37; stroke-width: 2; fill: none }
.c2c { stroke: #9a6700; stroke-width: 2.5; fill: none } .smp { stroke: #57606a; stroke-width: 2; stroke-dasharray: 6 3 }
.sick { stroke: #cf222e; stroke-width: 3 } .sicktext { fill: #cf222e; font-weight: bold }
.halo { stroke: #ffffff; stroke-width: 3; paint-order: stroke }
""".strip()


@dataclass(slots=True)
class _Place:
    """Where a box is: the middle of its top side, and its size."""

    box: Box
    x: float
    y: float
    w: float
    h: float


@dataclass(slots=True)
class _Canvas:
    picture: Picture
    places: dict[str, _Place] = field(default_factory=dict)
    parts: list[str] = field(default_factory=list)
    over: list[str] = field(default_factory=list)
    """Labels, drawn last so that no line crosses them."""
    width: float = 0
    height: float = 0

    def text(self, x: float, y: float, text: str, cls: str = "", anchor: str = "middle") -> None:
        names = f' class="{cls}"' if cls else ""
        self.over.append(f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{names}>{escape(text)}</text>')

    def path(self, d: str, cls: str) -> None:
        self.parts.append(f'<path d="{d}" class="{cls}"/>')

    def rect(self, corner: tuple[float, float], size: tuple[float, float], cls: str, label: str = "") -> None:
        title = f"<title>{escape(label)}</title>" if label else ""
        (x, y), (w, h) = corner, size
        shape = f'<rect x="{x:.1f}" y="{y:.1f}" width="{w:.1f}" height="{h:.1f}" rx="5" class="{cls}"'
        self.parts.append(f"{shape}>{title}</rect>" if title else f"{shape}/>")


def to_svg(picture: Picture) -> str:
    """The whole file as text."""
    canvas = _Canvas(picture)
    rows = max((socket.depth() for socket in picture.sockets), default=1)
    _lay_out(canvas, rows)
    foot = HEAD + CPU_H + PANEL + (rows - 1) * ROW + LEAF_H if rows > 1 else HEAD + CPU_H + PANEL
    bottom = _fabric(canvas, foot + PANEL)
    _between_sockets(canvas)
    _tree(canvas)
    _c2c(canvas)
    _legend(canvas, bottom + 30)
    canvas.height = bottom + 58
    canvas.text(MARGIN, 26, picture.title, "title", "start")
    canvas.text(MARGIN, 46, picture.verdict, "verdict", "start")
    size = f'width="{canvas.width:.0f}" height="{canvas.height:.0f}"'
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} viewBox="0 0 {canvas.width:.0f} {canvas.height:.0f}"'
        f' role="img" aria-label={quoteattr(picture.title + ": " + picture.verdict)}>'
    )
    background = f'<rect width="{canvas.width:.0f}" height="{canvas.height:.0f}" fill="#ffffff"/>'
    body = "\n".join([*canvas.parts, *canvas.over])
    return f"{head}\n<title>{escape(picture.title)}</title>\n<style>{STYLE}</style>\n{background}\n{body}\n</svg>\n"


def _lay_out(canvas: _Canvas, rows: int) -> None:
    """Places for all boxes: leaves left to right on the last row, what holds them above their middle."""
    x = float(MARGIN)
    last = HEAD + CPU_H + PANEL + (rows - 1) * ROW
    for socket in canvas.picture.sockets:
        leaves = [box for box in socket.leaves() if box is not socket]
        inner = max(len(leaves) * (LEAF_W + GAP) - GAP, 220)
        at = x + PANEL
        for leaf in leaves:
            canvas.places[leaf.key] = _Place(leaf, at + LEAF_W / 2, last - ROW + 40, LEAF_W, LEAF_H)
            at += LEAF_W + GAP
        _above(canvas, socket, 0)
        canvas.places[socket.key] = _Place(socket, x + PANEL + inner / 2, HEAD, inner, CPU_H)
        panel = last - ROW + 40 + LEAF_H + PANEL - HEAD + PANEL if leaves else CPU_H + 2 * PANEL
        canvas.rect((x, HEAD - PANEL), (inner + 2 * PANEL, panel), "panel")
        x += inner + 2 * PANEL + BETWEEN
    canvas.width = max(x - BETWEEN + MARGIN, 640)


def _above(canvas: _Canvas, box: Box, row: int) -> float:
    """Place what is above the leaves; the middle of the box."""
    if not box.children:
        place = canvas.places.get(box.key)
        return place.x if place is not None else 0.0
    middles = [_above(canvas, child, row + 1) for child in box.children]
    middle = (middles[0] + middles[-1]) / 2
    if box.kind != "cpu":
        canvas.places[box.key] = _Place(box, middle, HEAD + CPU_H + 26 + (row - 1) * ROW, SWITCH_W, SWITCH_H)
    return middle


def _tree(canvas: _Canvas) -> None:
    for socket in canvas.picture.sockets:
        _edges(canvas, socket)
    for place in canvas.places.values():
        _draw_box(canvas, place)


def _edges(canvas: _Canvas, box: Box) -> None:
    parent = canvas.places[box.key]
    for child in box.children:
        place = canvas.places[child.key]
        start = place.x if box.kind == "cpu" else parent.x
        top, down = parent.y + parent.h, place.y
        knee = down - 16
        canvas.path(f"M{start:.1f} {top:.1f} V{knee:.1f} H{place.x:.1f} V{down:.1f}", _cls("pcie", child.link_sick))
        if child.link:
            canvas.text(place.x, down - 4, child.link, _text_cls("small halo", child.link_sick))
        _edges(canvas, child)


def _cls(name: str, sick: tuple[str, ...]) -> str:
    return f"{name} sick" if sick else name


def _text_cls(name: str, sick: tuple[str, ...]) -> str:
    return f"{name} sicktext" if sick else name


def _draw_box(canvas: _Canvas, place: _Place) -> None:
    box = place.box
    label = " ".join([*box.lines, *box.sick])
    cls = _cls("dim" if box.dim else box.kind, box.sick)
    canvas.rect((place.x - place.w / 2, place.y), (place.w, place.h), cls, label)
    if box.kind == "cpu":
        canvas.text(place.x, place.y + 23, "   ".join(box.lines), "name")
        return
    lines = [*box.lines[:3], *([",".join(box.sick)] if box.sick else [])]
    step = min(13.0, (place.h - 8) / max(len(lines), 1))
    top = place.y + (place.h - step * len(lines)) / 2 + step * 0.75
    for number, line in enumerate(lines):
        sick = box.sick and number == len(lines) - 1
        canvas.text(place.x, top + number * step, line, "sicktext" if sick else "name" if number == 0 else "small")


def _fabric(canvas: _Canvas, y: float) -> float:
    """The NVSwitch bar or the direct NVLinks below the GPUs; where the drawing ends."""
    lines = [line for line in canvas.picture.lines if line.kind == "nvlink"]
    switched = [line for line in lines if NVSWITCH in (line.a, line.b)]
    direct = [line for line in lines if NVSWITCH not in (line.a, line.b)]
    lowest = max((place.y + place.h for place in canvas.places.values()), default=y) + PANEL
    if direct:
        lowest = _arcs(canvas, direct, lowest)
    if switched:
        lowest = _bar(canvas, switched, lowest + 34)
    return lowest


def _bar(canvas: _Canvas, lines: list[Line], y: float) -> float:
    gpus = [(canvas.places[line.a if line.b == NVSWITCH else line.b], line) for line in lines]
    left = min(place.x for place, _ in gpus) - LEAF_W / 2
    right = max(place.x for place, _ in gpus) + LEAF_W / 2
    for place, line in gpus:
        canvas.path(f"M{place.x:.1f} {place.y + place.h:.1f} V{y:.1f}", _cls("nvlink", line.sick))
        words = line.label + (f" {','.join(line.sick)}" if line.sick else "")
        canvas.text(place.x + 5, y - 8, words, _text_cls("small halo", line.sick), "start")
    count = canvas.picture.nvswitches
    name = f"{count} NVSwitches" if count > 1 else "NVSwitch fabric"
    canvas.rect((left, y), (right - left, FABRIC_H), "nvswitch", name)
    canvas.text((left + right) / 2, y + 19, f"{name} (links per GPU beside each line)", "name")
    return y + FABRIC_H


def _arcs(canvas: _Canvas, lines: list[Line], y: float) -> float:
    """Direct links as arcs, the longer the deeper."""
    order = sorted((place for place in canvas.places.values() if place.box.kind == "gpu"), key=lambda place: place.x)
    rank = {place.box.key: number for number, place in enumerate(order)}
    deepest = y
    for line in lines:
        a, b = sorted((canvas.places[line.a], canvas.places[line.b]), key=lambda place: place.x)
        span = abs(rank[line.a] - rank[line.b])
        depth = 26 + ARCS * span**0.7
        top = a.y + a.h
        canvas.path(f"M{a.x + 4 * span:.1f} {top:.1f} C{a.x:.1f} {top + depth:.1f} {b.x:.1f} {top + depth:.1f}"
                    f" {b.x - 4 * span:.1f} {top:.1f}", _cls("nvlink", line.sick))  # fmt: skip
        low = top + depth * 0.75
        words = line.label + (f" {','.join(line.sick)}" if line.sick else "")
        canvas.text((a.x + b.x) / 2, low + 3, words, _text_cls("small halo", line.sick))
        deepest = max(deepest, low + 8)
    return deepest


def _between_sockets(canvas: _Canvas) -> None:
    """SMP links between neighbouring processors; those of farther ones are told by nobody's eye."""
    keys = [socket.key for socket in canvas.picture.sockets]
    for line in canvas.picture.lines:
        if line.kind != "smp" or not {line.a, line.b} <= set(keys) or abs(keys.index(line.a) - keys.index(line.b)) != 1:
            continue
        a, b = sorted((canvas.places[line.a], canvas.places[line.b]), key=lambda place: place.x)
        y = HEAD + CPU_H / 2
        canvas.path(f"M{a.x + a.w / 2:.1f} {y:.1f} H{b.x - b.w / 2:.1f}", "smp")
        if line.label:
            canvas.text((a.x + a.w / 2 + b.x - b.w / 2) / 2, y - 6, line.label, "small halo")


def _c2c(canvas: _Canvas) -> None:
    for line in canvas.picture.lines:
        if line.kind == "c2c" and {line.a, line.b} <= canvas.places.keys():
            gpu, cpu = sorted((canvas.places[line.a], canvas.places[line.b]), key=lambda place: -place.y)
            x = gpu.x + 16
            canvas.path(f"M{x:.1f} {cpu.y + cpu.h:.1f} V{gpu.y:.1f}", "c2c")
            canvas.text(x + 4, (cpu.y + cpu.h + gpu.y) / 2 - 8, line.label, "small halo", "start")


def _legend(canvas: _Canvas, y: float) -> None:
    x = float(MARGIN)
    for cls, text in _legend_items(canvas):
        if cls in ("pcie", "nvlink", "c2c", "smp", "pcie sick"):
            canvas.path(f"M{x:.1f} {y:.1f} h26", cls)
        else:
            canvas.rect((x, y - 7), (26, 13), cls)
        canvas.text(x + 32, y + 4, text, "small", "start")
        x += 44 + 5.6 * len(text)
    canvas.width = max(canvas.width, x + MARGIN)


_LINES = (("nvlink", "NVLink: number of links"), ("c2c", "NVLink-C2C"), ("smp", "between sockets, as NCCL reckons"))


def _legend_items(canvas: _Canvas) -> Iterator[tuple[str, str]]:
    kinds = {place.box.kind for place in canvas.places.values()}
    lines = {line.kind for line in canvas.picture.lines}
    yield "pcie", "PCIe: generation, lanes"
    for kind, text in (
        ("nvlink", "NVLink: number of links"),
        ("c2c", "NVLink-C2C"),
        ("smp", "between sockets, as NCCL reckons"),
    ):
        if kind in lines:
            yield kind, text
    if any(place.box.dim for place in canvas.places.values()) and "nic" in kinds:
        yield "dim", "NIC for storage or management"
    sick = any(place.box.sick or place.box.link_sick for place in canvas.places.values())
    if sick or any(line.sick for line in canvas.picture.lines):
        yield "pcie sick", "found by a check: topodiag explain ID"
