"""The one helper of all drawings: elements with escaping, the vocabulary of classes, and a document that stands alone
or inside a page.

A drawing is made of plain shapes, text as text and system fonts: no script, nothing loaded from elsewhere. Its colours
are custom properties with a value for light, dark, forced colours and print, so that the same drawing works everywhere.
Colour never says anything alone: what is bad is also thick or hatched and carries a word or the id of a check.

A page holds `STYLE` once and gives each drawing a prefix of its own, which starts the drawing's ids. A drawing without
prefix is a file: it carries the style, a ground and its size.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping
from html import escape

from topodiag.lazy import regex
from topodiag.words.own_data import own_data, own_text
from topodiag.words.text import clean
from topodiag.words.units import plural

PALETTE: Mapping[str, tuple[str, str, str]] = own_data("draw/palette")["colours"]
HATCHES: Mapping[str, tuple[str, str, str]] = own_data("draw/palette")["hatches"]
"""Both by name, as palette.toml describes them."""

_RULES = own_text("draw/draw.css").strip()
"""The rules of all drawings, a `$name` for each colour of the palette."""

_SIZE = (
    ".draw{display:block;width:100%;height:auto;max-width:var(--w);min-width:calc(var(--w)*.72)}\n"
    "@media (max-width:40rem){.draw{min-width:calc(var(--w)*.55)}}\n@media print{.draw{min-width:0}}"
)
"""In a page a drawing takes the room that there is, and scrolls in its frame below the width at which text is read. A
telephone shows one of 640 pixels whole, and fingers make it larger."""

_HALO = regex(r'<text[^>]* class="[^"]*\bhalo\b[^"]*"[^>]*>[^<]*</text>')
_VARIABLE = regex(r"\$([a-z]+)")


def _values(place: int) -> str:
    return ";".join(f"--d-{name}:{colours[place]}" for name, colours in PALETTE.items())


def _style() -> str:
    rules = _VARIABLE.sub(r"var(--d-\1)", _RULES)
    light, dark, forced = (_values(place) for place in range(3))
    return (
        f".draw{{{light}}}\n@media screen and (prefers-color-scheme:dark){{.draw{{{dark}}}}}\n"
        f"@media (forced-colors:active){{.draw{{{forced};forced-color-adjust:none}}}}\n{rules}"
    )


STYLE = _style()
"""The style of all drawings; what a file on its own carries."""
PAGE_STYLE = f"{STYLE}\n{_SIZE}"
"""The style that a page with drawings holds once."""


def resolved(svg: str) -> str:
    """The same drawing with its light colours in place of custom properties and without media rules, for programs that
    know neither (converters to PNG and PDF)."""
    start, end = svg.find("<style>"), svg.find("</style>")
    if start < 0:
        return svg
    plain = _VARIABLE.sub(lambda match: PALETTE[match[1]][0], _RULES)
    # Not every converter draws the halo below the text (paint-order): the text is drawn once more, without it.
    rest = _HALO.sub(lambda match: f"{match[0]}{match[0].replace('halo', '', 1)}", svg[end:])
    return f"{svg[:start]}<style>{plain}{rest}"


def spelt(value: float) -> str:
    """A coordinate: one decimal at most."""
    return f"{value:.1f}".removesuffix(".0")


def tag(name: str, *, body: str = "", title: str = "", **attributes: str | float) -> str:
    """One element. `body` is markup that was made here; `title` is foreign text, the attributes are ours. `_` in the
    name of an attribute stands for `-`, and one at its end is left out (`class_`)."""
    lines = [f"<{name}"]
    for key, value in attributes.items():
        words = spelt(value) if isinstance(value, int | float) else escape(value, quote=True)
        if words:
            lines.append(f' {key.removesuffix("_").replace("_", "-")}="{words}"')
    inner = (f"<title>{_safe(title)}</title>" if title else "") + body
    lines.append(f">{inner}</{name}>" if inner else "/>")
    return "".join(lines)


def _safe(text: str) -> str:
    return escape(clean(text), quote=True)


_LEAST = 0.39
"""Width of the narrowest signs."""
_NARROW, _WIDE = frozenset("iljtfrI.,:;'|!()[]{}/ -"), frozenset("mwMW@%…")


def width_of(text: str, size: float = 12) -> float:
    """Pixels that a text takes at most, by the widths of DejaVu Sans, the widest of the fonts that are asked for."""
    total = 0.0
    for char in text:
        if unicodedata.east_asian_width(char) in "WF":
            total += 1.05
        else:
            total += _LEAST if char in _NARROW else 0.98 if char in _WIDE else 0.72 if char.isupper() else 0.63
    return total * size


def fit(text: str, room: float, size: float = 12) -> str:
    """As much of the text as fits, with `…` where something is left out: at the end of a sentence, in the middle of a
    name, since names of machines differ at their end."""
    text = clean(text)
    most = max(int(room / (_LEAST * size)), 0) + 1
    if len(text) <= most and width_of(text, size) <= room:
        return text
    head, tail = text, ""
    if len(text.rpartition(" ")[2]) > len(text) // 2:
        head, tail = text[: len(text) // 2], text[len(text) // 2 :]
    head, tail = head[:most], tail[-most:]
    while (head or tail) and width_of(head + tail, size) + size > room:
        if len(tail) > len(head):
            tail = tail[1:]
        else:
            head = head[:-1]
    return f"{head.rstrip()}…{tail}"


def wrap(text: str, room: float, size: float = 12, most: int = 3) -> list[str]:
    """The text in lines of this width, broken between words; what is beyond `most` lines is cut."""
    lines: list[str] = [""]
    words = clean(text).split()
    for number, word in enumerate(words):
        longer = f"{lines[-1]} {word}".strip()
        if not lines[-1] or width_of(longer, size) <= room:
            lines[-1] = longer
        elif len(lines) == most:
            lines[-1] = fit(f"{lines[-1]} {' '.join(words[number:])}", room, size)
            break
        else:
            lines.append(word)
    return [fit(line, room, size) for line in lines]


def undrawn(words: str, left: int, what: str) -> str:
    """The words below a drawing, with how many more there are than it shows, where there are."""
    rest = f"{plural(left, f'more {what}')} not drawn" if left > 0 else ""
    return "; ".join(filter(None, (words, rest)))


class Canvas:
    """What is drawn so far. Shapes lie below, all text above them, so that no line crosses a label."""

    def __init__(self, title: str, desc: str = "", prefix: str = "") -> None:
        self.title, self.desc, self.prefix = title, desc or title, prefix
        self._ids = prefix or "draw"
        self._shapes: list[str] = []
        self._labels: list[str] = []
        self._hatches: set[str] = set()
        self._top = 0.0

    def heading(self, words: str, room: float = 0) -> None:
        """The title and a line below it. In a page whose section has the same heading the title is left out."""
        if not self.prefix:
            self.title_lines(words, room)
            return
        self._top = 24.0
        self.text(0, 38, words, "quiet", room=room)

    def title_lines(self, words: str, room: float = 0) -> None:
        """The title and a line below it, in a page too."""
        self.text(0, 18, self.title, "title", room=room, size=16)
        self.text(0, 38, words, "quiet", room=room)

    def add(self, markup: str) -> None:
        """Markup that `tag` made."""
        self._shapes.append(markup)

    def text(  # noqa: PLR0917 - where, what, how
        self, x: float, y: float, words: str, kind: str = "", anchor: str = "", room: float = 0, *, size: float = 12,
        turned: bool = False,
    ) -> None:  # fmt: skip
        """A line of text at its base line. `room`: pixels that it may take; what is cut stands whole in its tooltip."""
        if not words:
            return
        shown = fit(words, room, size) if room else clean(words)
        rotate = f"rotate(-90 {spelt(x)} {spelt(y)})" if turned else ""
        title = _safe(words) if shown != clean(words) else ""
        body = escape(shown) + (f"<title>{title}</title>" if title else "")
        self._labels.append(tag("text", body=body, x=x, y=y, class_=kind, text_anchor=anchor, transform=rotate))

    def rect(  # noqa: PLR0917 - where, how large, what
        self, x: float, y: float, w: float, h: float, kind: str = "", title: str = "", *, radius: float = 0,
        hatch: str = "", colour: str = "",
    ) -> None:  # fmt: skip
        """A rectangle; with a `hatch` of HATCHES it is filled with that, with a `colour` alike in every theme."""
        fill = f"fill:{self.hatch(hatch)}" if hatch else f"fill:{colour}" if colour else ""
        corner = spelt(radius) if radius else ""
        self.add(tag("rect", title=title, x=x, y=y, width=w, height=h, class_=kind, rx=corner, style=fill))

    def path(self, d: str, kind: str, title: str = "", *, hatch: str = "", wide: float = 0) -> None:
        """A path, filled with a hatch of HATCHES or with a stroke `wide` px."""
        style = f"fill:{self.hatch(hatch)}" if hatch else f"stroke-width:{spelt(wide)}" if wide else ""
        self.add(tag("path", title=title, d=d, class_=kind, style=style))

    def line(self, x1: float, y1: float, x2: float, y2: float, kind: str) -> None:
        self.add(tag("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=kind))

    def circle(self, x: float, y: float, r: float, kind: str, title: str = "") -> None:
        self.add(tag("circle", title=title, cx=x, cy=y, r=r, class_=kind))

    def arrow(self, points: Iterable[tuple[float, float]], kind: str = "arrow") -> None:
        """A line with a head at its last point, which the line reaches upright or level."""
        places = list(points)
        (x0, y0), (x1, y1) = places[-2:]
        self.path("M" + "L".join(f"{spelt(x)} {spelt(y)}" for x, y in places), kind)
        along = (1 if x1 > x0 else -1, 0) if abs(x1 - x0) > abs(y1 - y0) else (0, 1 if y1 > y0 else -1)
        self.tip((x1, y1), along)

    def tip(self, at: tuple[float, float], along: tuple[int, int], kind: str = "head") -> None:
        """The head of an arrow that points along (1, 0), (-1, 0), (0, 1) or (0, -1)."""
        x, y = at
        back, side = (x - 7 * along[0], y - 7 * along[1]), (4 * along[1], 4 * along[0])
        corners = ((x, y), (back[0] + side[0], back[1] + side[1]), (back[0] - side[0], back[1] - side[1]))
        self.path("M" + "L".join(f"{spelt(a)} {spelt(b)}" for a, b in corners) + "z", kind)

    def hatch(self, name: str) -> str:
        """The filling of this name, for `fill`."""
        self._hatches.add(name)
        return f"url(#{self._ids}-{name})"

    def document(self, width: float, height: float, margin: float = 16) -> str:
        """The whole drawing. A file has a margin of so many pixels around it; in a page the page leaves the room."""
        standalone = not self.prefix
        out = margin if standalone else 0
        width, height = width + 2 * out, height - self._top + 2 * out
        size = f' width="{width:.0f}" height="{height:.0f}"' if standalone else f' style="--w:{width:.0f}px"'
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="draw"'
            f' viewBox="{-out:.0f} {self._top - out:.0f} {width:.0f} {height:.0f}"{size}'
            f' role="img" aria-labelledby="{self._ids}-title {self._ids}-desc">'
        )
        parts = [head, f'<title id="{self._ids}-title">{_safe(self.title)}</title>',
                 f'<desc id="{self._ids}-desc">{_safe(self.desc)}</desc>']  # fmt: skip
        if standalone:
            parts += [
                f"<style>{STYLE}</style>",
                tag("rect", x=-out, y=-out, width=width, height=height, class_="ground"),
            ]
        if self._hatches:
            parts.append("<defs>" + "".join(self._pattern(name) for name in sorted(self._hatches)) + "</defs>")
        return "\n".join([*parts, *self._shapes, *self._labels, "</svg>"]) + "\n"

    def _pattern(self, name: str) -> str:
        lines, stroke, fill = HATCHES[name]
        tile = tag("rect", width=6, height=6, class_=f"{fill}tile") + tag("path", d=lines, class_=f"{stroke}tile")
        return f'<pattern id="{self._ids}-{name}" width="6" height="6" patternUnits="userSpaceOnUse">{tile}</pattern>'
