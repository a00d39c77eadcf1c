"""A picture of a node: sockets side by side, their PCIe trees below them, the NVLink fabric at the foot. A wide node
stands on both sides of its fabric, the second half of its sockets upside down.

Sick links and devices are red, thick and carry the id of the check that found them, so that the picture holds in black
and white too. A sick link whose fault has a price is three strokes: the pale one as wide as it is meant to be, the red
one what it trained to, the dark one what is used.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field
from math import fsum

from topodiag.draw.levels import Levels
from topodiag.draw.picture import NVSWITCH, Box, Edge, Line, Picture
from topodiag.draw.svg import Canvas, spelt, width_of
from topodiag.lazy import dataclass
from topodiag.words.units import in_gbs

LEAF_W, LEAF_H, GAP, ROW = 80, 60, 6, 96
"""A device's box, the room between two, and from one row of the tree to the next, in px."""
CPU_H, SWITCH_W, SWITCH_H = 38, 80, 42
MARGIN, PANEL, HEAD = 24, 14, 76
FABRIC_H = 30
BETWEEN = 60
"""Room between two sockets, for what joins them."""
WIDEST = 1100
"""A node wider than this is drawn on both sides of its fabric: a page shows it without scrolling, px."""
DROP = 34
"""From the devices to the fabric, px."""
ARCS = 44
"""Room below the GPUs for direct NVLinks, per distance."""

STROKE = 13
"""The widest stroke, for what is intended, px; the others are as much narrower as they carry less."""
EDGE_H, MOST_EDGES, SCALE = 78, 4, 300
"""Below the node: a faulty place with its three strokes, how many of them, the length of the longest stroke, px."""


@dataclass(slots=True)
class _Place:
    """Where a box is: the middle of its top side, its size, and whether its tree grows upwards."""

    box: Box
    x: float
    y: float
    w: float
    h: float
    upwards: bool = False

    @property
    def head(self) -> float:
        """The side that its link to the processor comes to."""
        return self.y + self.h if self.upwards else self.y

    @property
    def foot(self) -> float:
        """The side that its children hang on."""
        return self.y if self.upwards else self.y + self.h

    @property
    def down(self) -> int:
        """The way from head to foot: 1, or -1 for upwards."""
        return -1 if self.upwards else 1


@dataclass(slots=True)
class _Drawing:
    picture: Picture
    canvas: Canvas
    places: dict[str, _Place] = field(default_factory=dict)
    width: float = 0

    def text(self, x: float, y: float, text: str, kind: str = "", anchor: str = "middle") -> None:
        self.canvas.text(x, y, text, kind, "" if anchor == "start" else anchor)


def draw_node(picture: Picture, *, prefix: str = "") -> str:
    """The picture as SVG."""
    drawing = _Drawing(picture, Canvas(picture.title, f"{picture.title}: {picture.verdict}", prefix))
    bottom = _lay_out(drawing)
    _between_sockets(drawing)
    _tree(drawing)
    _c2c(drawing)
    _legend(drawing, bottom + 30)
    high = _strokes(drawing, bottom + 58)
    room = drawing.width - 2 * MARGIN
    size, kind = (16, "title") if width_of(picture.title, 16) <= room else (12, "name")
    drawing.canvas.text(MARGIN, 26, picture.title, kind, room=room, size=size)
    drawing.canvas.text(MARGIN, 46, picture.verdict, room=room)
    return drawing.canvas.document(drawing.width, high, margin=0)


def _strokes(drawing: _Drawing, y: float) -> float:
    """The faulty places with figures below the node; where the drawing ends."""
    for edge in drawing.picture.edges[:MOST_EDGES]:
        _edge(drawing.canvas, edge, y + 8, drawing.width)
        y += EDGE_H + 16
    return y


def _edge(canvas: Canvas, edge: Edge, y: float, width: float) -> None:
    levels = edge.levels
    canvas.text(MARGIN, y + 14, ", ".join(edge.checks), "badtext", room=190)
    canvas.text(MARGIN, y + 31, f"with {edge.name}", room=190)
    rows = (("intended", levels.intended), ("negotiated", levels.negotiated), ("used", levels.used))
    left = MARGIN + 200
    canvas.text(left, y + 71, edge.note, "small", room=width - left - MARGIN, size=10.5)
    for number, (name, value) in enumerate(rows):
        middle = y + 9 + number * 20
        canvas.text(left, middle + 4, name, "quiet")
        if value is None:
            canvas.text(left + 84, middle + 4, "not in the evidence", "quiet")
            continue
        share = value / levels.intended
        reach = max(SCALE * share, 2)
        canvas.rect(left + 84, middle - STROKE / 2, reach, STROKE, _STROKE_FILLS[number], name)
        canvas.text(left + 84 + reach + 8, middle + 4, in_gbs(value), "name" if share == 1 else "badtext")


_STROKE_FILLS = ("meant", "badsolid", "inkfill")


def _wire(drawing: _Drawing, d: str, kind: str, sick: tuple[str, ...], levels: Levels | None) -> None:
    """A link; three strokes on top of each other where it is sick and has figures."""
    if not sick or levels is None:
        drawing.canvas.path(d, _cls(kind, sick))
        return
    drawing.canvas.path(d, "intended", f"intended {in_gbs(levels.intended)}")
    wide = max(STROKE * levels.negotiated / levels.intended, 2)
    drawing.canvas.path(d, _cls(kind, sick), f"negotiated {in_gbs(levels.negotiated)}", wide=wide)
    if levels.used is not None:
        used = max(STROKE * levels.used / levels.intended, 1.5)
        drawing.canvas.path(d, "usedline", f"used {in_gbs(levels.used)}", wide=used)


def _lay_out(drawing: _Drawing) -> float:
    """Places for all boxes and the fabric; where the node ends."""
    sockets = drawing.picture.sockets
    rows = max((socket.depth() for socket in sockets), default=1)
    last = HEAD + CPU_H + PANEL + (rows - 1) * ROW
    lines = [line for line in drawing.picture.lines if line.kind == "nvlink"]
    switched = [line for line in lines if NVSWITCH in (line.a, line.b)]
    direct = [line for line in lines if NVSWITCH not in (line.a, line.b)]
    half = len(sockets)
    if not direct and half > 1 and fsum(_width(socket) + BETWEEN for socket in sockets) > WIDEST:
        half = (half + 1) // 2
    lowest = _row(drawing, sockets[:half], last)
    if direct:
        lowest = _arcs(drawing, direct, lowest)
    bar = lowest + DROP
    if half == len(sockets):
        return _bar(drawing, switched, bar) if switched else lowest
    known = set(drawing.places)
    high = _row(drawing, sockets[half:], last)
    # The lower half is laid out as the upper one, and then turned over below the fabric.
    below = bar + FABRIC_H + DROP if switched else bar
    for key, place in drawing.places.items():
        if key not in known:
            place.y, place.upwards = below + high - place.y - place.h, True
    if switched:
        _bar(drawing, switched, bar)
    return below + high - HEAD + PANEL


def _width(socket: Box) -> float:
    """Of a socket's frame."""
    leaves = sum(box is not socket for box in socket.leaves())
    return max(leaves * (LEAF_W + GAP) - GAP, 220) + 2 * PANEL


def _row(drawing: _Drawing, sockets: Sequence[Box], last: float) -> float:
    """Sockets side by side, their leaves on one row, what holds them above their middle; where the row ends."""
    x, lowest = float(MARGIN), 0.0
    for socket in sockets:
        leaves = [box for box in socket.leaves() if box is not socket]
        wide = _width(socket)
        at = x + PANEL
        for leaf in leaves:
            drawing.places[leaf.key] = _Place(leaf, at + LEAF_W / 2, last - ROW + 40, LEAF_W, LEAF_H)
            at += LEAF_W + GAP
        _above(drawing, socket, 0)
        drawing.places[socket.key] = _Place(socket, x + wide / 2, HEAD, wide - 2 * PANEL, CPU_H)
        lowest = max(lowest, (last - ROW + 40 + LEAF_H if leaves else HEAD + CPU_H) + PANEL)
        x += wide + BETWEEN
    drawing.width = max(drawing.width, x - BETWEEN + MARGIN, 640)
    return lowest


def _above(drawing: _Drawing, box: Box, row: int) -> float:
    """Place what is above the leaves; the middle of the box."""
    if not box.children:
        place = drawing.places.get(box.key)
        return place.x if place is not None else 0.0
    middles = [_above(drawing, child, row + 1) for child in box.children]
    middle = (middles[0] + middles[-1]) / 2
    if box.kind != "cpu":
        drawing.places[box.key] = _Place(box, middle, HEAD + CPU_H + 26 + (row - 1) * ROW, SWITCH_W, SWITCH_H)
    return middle


def _tree(drawing: _Drawing) -> None:
    for socket in drawing.picture.sockets:
        own = [drawing.places[box.key] for box in socket.tree()]
        wide, top = _width(socket), min(place.y for place in own) - PANEL
        left = drawing.places[socket.key].x - wide / 2
        high = max(place.y + place.h for place in own) + PANEL - top
        drawing.canvas.rect(left, top, wide, high, "panel", radius=5)
        _edges(drawing, socket)
    for place in drawing.places.values():
        _draw_box(drawing, place)


def _edges(drawing: _Drawing, box: Box) -> None:
    parent = drawing.places[box.key]
    for child in box.children:
        place = drawing.places[child.key]
        start = place.x if box.kind == "cpu" else parent.x
        knee = place.head - 16 * place.down
        d = f"M{spelt(start)} {spelt(parent.foot)}V{spelt(knee)}H{spelt(place.x)}V{spelt(place.head)}"
        _wire(drawing, d, "pcie", child.link_sick, child.levels)
        if child.link:
            above = place.head + 12 if place.upwards else place.head - 4
            drawing.text(place.x, above, child.link, _label_cls(child.link_sick))
        _edges(drawing, child)


def _cls(name: str, sick: tuple[str, ...]) -> str:
    return f"{name} sick" if sick else name


def _label_cls(sick: tuple[str, ...]) -> str:
    return "small halo sicktext" if sick else "small halo"


def _codes(sick: tuple[str, ...]) -> str:
    """The first code and how many more, which a box has room for; its tip names all."""
    return f"{sick[0]} +{len(sick) - 1}" if len(sick) > 1 else "".join(sick)


def _draw_box(drawing: _Drawing, place: _Place) -> None:
    box = place.box
    label = " ".join([*box.lines, *box.sick])
    cls = _cls("dim" if box.dim else box.kind, box.sick)
    drawing.canvas.rect(place.x - place.w / 2, place.y, place.w, place.h, cls, label, radius=5)
    if box.kind == "cpu":
        whole = " · ".join(box.lines)
        if width_of(whole) < place.w:
            drawing.text(place.x, place.y + 23, whole, "name")
        else:
            drawing.text(place.x, place.y + 16, " · ".join(box.lines[:-1]), "name")
            drawing.canvas.text(place.x, place.y + 31, box.lines[-1], "small", "middle", room=place.w, size=10.5)
        return
    lines = [*box.lines[:3], *([_codes(box.sick)] if box.sick else [])]
    step = min(13.0, (place.h - 8) / max(len(lines), 1))
    top = place.y + (place.h - step * len(lines)) / 2 + step * 0.75
    for number, line in enumerate(lines):
        sick = box.sick and number == len(lines) - 1
        drawing.text(place.x, top + number * step, line, "sicktext" if sick else "name" if number == 0 else "small")


def _bar(drawing: _Drawing, lines: list[Line], y: float) -> float:
    """The NVSwitches at this height, and the links of each GPU; where they end."""
    gpus = [(drawing.places[line.a if line.b == NVSWITCH else line.b], line) for line in lines]
    left = min(place.x for place, _ in gpus) - LEAF_W / 2
    right = max(place.x for place, _ in gpus) + LEAF_W / 2
    for place, line in gpus:
        side = y + FABRIC_H if place.upwards else y
        _wire(drawing, f"M{spelt(place.x)} {spelt(place.foot)}V{spelt(side)}", "nvlink", line.sick, line.levels)
        x = place.x + (STROKE / 2 + 4 if line.levels else 5)
        label = side + 17 if place.upwards else side - 8
        drawing.text(x, label, line.label, _label_cls(line.sick), "start")
        # On a line of its own: beside the count it would cover the count of the next GPU.
        drawing.text(x, label - 13 * place.down, _codes(line.sick), "halo sicktext", "start")
    count = drawing.picture.nvswitches
    name = f"{count} NVSwitches" if count > 1 else "NVSwitch fabric"
    drawing.canvas.rect(left, y, right - left, FABRIC_H, "nvswitch", name, radius=5)
    drawing.text((left + right) / 2, y + 19, f"{name} (links per GPU beside each line)", "name")
    return y + FABRIC_H


def _arcs(drawing: _Drawing, lines: list[Line], y: float) -> float:
    """Direct links as arcs, the longer the deeper."""
    order = sorted((place for place in drawing.places.values() if place.box.kind == "gpu"), key=lambda place: place.x)
    rank = {place.box.key: number for number, place in enumerate(order)}
    deepest = y
    for line in lines:
        a, b = sorted((drawing.places[line.a], drawing.places[line.b]), key=lambda place: place.x)
        span = abs(rank[line.a] - rank[line.b])
        depth = 26 + ARCS * span**0.7
        top = a.y + a.h
        down, start, end = spelt(top + depth), spelt(a.x + 4 * span), spelt(b.x - 4 * span)
        d = f"M{start} {spelt(top)}C{spelt(a.x)} {down} {spelt(b.x)} {down} {end} {spelt(top)}"
        _wire(drawing, d, "nvlink", line.sick, line.levels)
        low = top + depth * 0.75
        words = line.label + (f" {','.join(line.sick)}" if line.sick else "")
        drawing.text((a.x + b.x) / 2, low + 3, words, _label_cls(line.sick))
        deepest = max(deepest, low + 8)
    return deepest


def _between_sockets(drawing: _Drawing) -> None:
    """SMP links between neighbouring processors; those between farther ones are not drawn."""
    keys = [socket.key for socket in drawing.picture.sockets]
    for line in drawing.picture.lines:
        if line.kind != "smp" or not {line.a, line.b} <= set(keys) or abs(keys.index(line.a) - keys.index(line.b)) != 1:
            continue
        a, b = sorted((drawing.places[line.a], drawing.places[line.b]), key=lambda place: (place.y, place.x))
        if a.upwards == b.upwards:
            y = a.y + CPU_H / 2
            drawing.canvas.line(a.x + a.w / 2, y, b.x - b.w / 2, y, "smp")
            drawing.text((a.x + a.w / 2 + b.x - b.w / 2) / 2, y - 6, line.label, "small halo")
        elif len(keys) == 2:
            x, low, high = MARGIN - 10, a.y + a.h / 2, b.y + b.h / 2
            d = f"M{spelt(a.x - a.w / 2)} {spelt(low)}H{x}V{spelt(high)}H{spelt(b.x - b.w / 2)}"
            drawing.canvas.path(d, "smp")
            drawing.canvas.text(x - 4, (low + high) / 2, line.label, "small", "middle", turned=True)


def _c2c(drawing: _Drawing) -> None:
    for line in drawing.picture.lines:
        if line.kind == "c2c" and {line.a, line.b} <= drawing.places.keys():
            ends = (drawing.places[line.a], drawing.places[line.b])
            cpu, gpu = sorted(ends, key=lambda place: place.box.kind != "cpu")
            x = gpu.x + 16
            drawing.canvas.line(x, cpu.foot, x, gpu.head, "c2c")
            drawing.text(x + 4, (cpu.foot + gpu.head) / 2 - 8, line.label, "small halo", "start")


def _legend(drawing: _Drawing, y: float) -> None:
    x = float(MARGIN)
    for cls, text in _legend_items(drawing):
        if cls in ("pcie", "nvlink", "c2c", "smp", "pcie sick"):
            drawing.canvas.path(f"M{spelt(x)} {spelt(y)}h26", cls)
        else:
            drawing.canvas.rect(x, y - 7, 26, 13, cls, radius=3)
        drawing.text(x + 32, y + 4, text, "small", "start")
        x += 48 + width_of(text, 10.5)
    drawing.width = max(drawing.width, x + MARGIN)


_LINES = (("nvlink", "NVLink: number of links"), ("c2c", "NVLink-C2C"), ("smp", "between sockets, modelled"))


def _legend_items(drawing: _Drawing) -> Iterator[tuple[str, str]]:
    kinds = {place.box.kind for place in drawing.places.values()}
    lines = {line.kind for line in drawing.picture.lines}
    yield "pcie", "PCIe: generation, lanes"
    for kind, text in _LINES:
        if kind in lines:
            yield kind, text.replace("NVLink", drawing.picture.links) if kind == "nvlink" else text
    if any(place.box.dim for place in drawing.places.values()) and "nic" in kinds:
        yield "dim", "NIC for storage or management"
    sick = any(place.box.sick or place.box.link_sick for place in drawing.places.values())
    if sick or any(line.sick for line in drawing.picture.lines):
        yield "pcie sick", "found by a check: topodiag explain ID"
