"""Plots as SVG: series on two axes, and bars. A series has a hue, a sign and its name; what was expected is dashed."""

from __future__ import annotations

from collections.abc import Sequence

from topodiag.draw.scale import SIZE, TIME, Axis, Mark, Series, Span, shown, spans
from topodiag.draw.svg import Canvas, spelt

HUES = ("good", "net", "warn", "other", "bad", "ink")
"""Of the series by their place; names of the drawings' palette."""
SIGNS = (
    "m-3.5 0a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0-7 0z", "m-3.5-3.5h7v7h-7z", "m0-4.5l4.5 8h-9z", "m0-5l5 5l-5 5l-5-5z",
    "m-4.5-3.5h9l-4.5 8z", "m-1-4h2v3h3v2h-3v3h-2v-3h-3v-2h3z",
)  # fmt: skip
"""A point of each series, round its middle: circle, square, triangle, diamond, triangle downwards, cross."""
WIDE, HIGH = 640, 400
_LEFT, _RIGHT, _TOP, _BOTTOM = 72, 24, 56, 64
_LINE = 20
"""Height of a line of the legend, pixels."""


def plot_svg(
    series: Sequence[Series], *, x: Axis = SIZE, y: Axis = TIME, title: str = "", marks: Sequence[Mark] = (),
    prefix: str = "",
) -> str:  # fmt: skip
    """The plot, 640 pixels wide: a document, or with a `prefix` an element for a page. Without a point to show it says
    so."""
    high = HIGH + _LINE * (len(series) + len(marks))
    desc = "; ".join([*(one_series.name for one_series in series), *(mark.label for mark in marks)])
    canvas = Canvas(title or "Plot", desc, prefix)
    if title:
        canvas.text(WIDE / 2, 28, title, "title", "middle", room=WIDE - 40, size=16)
    pair = spans(series, x, y, marks, (8, 7))
    if pair is None:
        canvas.text(WIDE / 2, HIGH / 2, "nothing to show", "", "middle")
        return canvas.document(WIDE, high, margin=0)
    across, up = pair
    _axes(canvas, across, up)
    for mark in marks:
        at = across.share(mark.x)
        if at is not None:
            canvas.line(_across(at), _TOP, _across(at), HIGH - _BOTTOM, "mark")
    for number, curve in enumerate(series):
        _line(canvas, curve, number, across, up)
    _legend(canvas, series, marks)
    return canvas.document(WIDE, high, margin=0)


def bars_svg(bars: Sequence[tuple[str, float, str]], *, title: str = "") -> str:
    """Horizontal bars of (name, value, words behind it), the first on top; values of at least 0."""
    row, left = 34, 150
    most = max((value for _, value, _ in bars), default=0.0) or 1.0
    canvas = Canvas(title or "Bars", "; ".join(f"{name} {words}" for name, _, words in bars))
    canvas.text(WIDE / 2, 28, title, "title", "middle", room=WIDE - 40, size=16)
    for number, (name, value, words) in enumerate(bars):
        y = _TOP + row * number
        wide = max(value, 0.0) / most * (WIDE - left - 220)
        canvas.text(left - 10, y + 17, name, "", "end", room=left - 14)
        canvas.rect(left, y, wide, row - 10, f"{HUES[number % len(HUES)]}solid")
        canvas.text(left + wide + 8, y + 17, words, "quiet")
    return canvas.document(WIDE, _TOP + row * len(bars) + 16, margin=0)


def _across(share: float) -> float:
    return _LEFT + share * (WIDE - _LEFT - _RIGHT)


def _up(share: float) -> float:
    return HIGH - _BOTTOM - share * (HIGH - _TOP - _BOTTOM)


def _axes(canvas: Canvas, across: Span, up: Span) -> None:
    for place, word in across.ticks:
        x = _across((place - across.low) / (across.high - across.low))
        canvas.line(x, _TOP, x, HIGH - _BOTTOM, "grid")
        canvas.text(x, HIGH - _BOTTOM + 20, word, "quiet", "middle")
    for place, word in up.ticks:
        y = _up((place - up.low) / (up.high - up.low))
        canvas.line(_LEFT, y, WIDE - _RIGHT, y, "grid")
        canvas.text(_LEFT - 8, y + 4, word, "quiet", "end")
    canvas.path(f"M{_LEFT} {_TOP}V{HIGH - _BOTTOM}H{WIDE - _RIGHT}", "axis")
    canvas.text((_LEFT + WIDE - _RIGHT) / 2, HIGH - _BOTTOM + 44, across.axis.title, "", "middle")
    canvas.text(20, (_TOP + HIGH - _BOTTOM) / 2, up.axis.title, "", "middle", turned=True)


def _line(canvas: Canvas, series: Series, number: int, across: Span, up: Span) -> None:
    points = [(_across(at), _up(height)) for at, height in shown(series, across, up)]
    if not points:
        return
    canvas.path("M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points), _stroke(series, number))
    if not series.dashed:
        for x, y in points:
            _sign(canvas, number, x, y)


def _stroke(series: Series, number: int) -> str:
    return f"{HUES[number % len(HUES)]}line linewide" + (" dashed" if series.dashed else "")


def _sign(canvas: Canvas, number: int, x: float, y: float) -> None:
    sign = SIGNS[number % len(SIGNS)]
    canvas.path(f"M{spelt(x)} {spelt(y)}{sign}", f"{HUES[number % len(HUES)]}solid")


def _legend(canvas: Canvas, series: Sequence[Series], marks: Sequence[Mark]) -> None:
    y = HIGH + 4
    for number, curve in enumerate(series):
        canvas.path(f"M{_LEFT} {y - 4}h28", _stroke(curve, number))
        if not curve.dashed:
            _sign(canvas, number, _LEFT + 14, y - 4)
        canvas.text(_LEFT + 36, y, curve.name, room=WIDE - _LEFT - 60)
        y += _LINE
    for mark in marks:
        canvas.line(_LEFT + 14, y - 13, _LEFT + 14, y + 3, "mark")
        canvas.text(_LEFT + 36, y, mark.label, room=WIDE - _LEFT - 60)
        y += _LINE
