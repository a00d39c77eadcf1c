"""A plot as SVG: one text without scripts, fonts or links, readable in a browser and by every converter."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from topodiag.report.plot.scale import SIZE, TIME, Axis, Mark, Series, Span, shown, spans
from topodiag.words.text import clean

COLORS = ("#1b7837", "#2166ac", "#b35806", "#762a83", "#b2182b", "#4d4d4d")
"""Dark enough on white, and told apart by readers who do not see red and green apart."""
WIDE, HIGH = 900, 520
_LEFT, _RIGHT, _TOP, _BOTTOM = 84, 24, 56, 64
_LINE = 20
"""Height of a line of the legend, pixels."""
_STYLE = (
    "text{font-family:system-ui,'Segoe UI','DejaVu Sans',sans-serif;font-size:13px;fill:#222}"
    ".title{font-size:16px;font-weight:600}.tick{fill:#555}.grid{stroke:#ddd}.axis{stroke:#888}"
    ".mark{stroke:#888;stroke-dasharray:2 4}"
)


def plot_svg(
    series: Sequence[Series], *, x: Axis = SIZE, y: Axis = TIME, title: str = "", marks: Sequence[Mark] = ()
) -> str:
    """The plot as a whole SVG document, 900 pixels wide. Without a point to show it says so."""
    foot = _LINE * (len(series) + len(marks))
    high = HIGH + foot
    body = [f'<rect width="{WIDE}" height="{high}" fill="#fff"/>']
    if title:
        body.append(_text(WIDE / 2, 28, title, "middle", "title"))
    found = spans(series, x, y, marks, (8, 7))
    if found is None:
        body.append(_text(WIDE / 2, HIGH / 2, "nothing to show", "middle"))
        return _document(body, high, title)
    across, up = found
    body += _axes(across, up)
    for mark in marks:
        at = across.share(mark.x)
        if at is not None:
            column = _across(at)
            body.append(f'<line class="mark" x1="{column:.1f}" x2="{column:.1f}" y1="{_TOP}" y2="{HIGH - _BOTTOM}"/>')
    for number, each in enumerate(series):
        body += _line(each, number, across, up)
    body += _legend(series, marks)
    return _document(body, high, title)


def bars_svg(bars: Sequence[tuple[str, float, str]], *, title: str = "") -> str:
    """Horizontal bars of (name, value, words behind it), the first on top; values of at least 0."""
    row, left = 34, 150
    high = _TOP + row * len(bars) + 16
    most = max((value for _, value, _ in bars), default=0.0) or 1.0
    body = [f'<rect width="{WIDE}" height="{high}" fill="#fff"/>', _text(WIDE / 2, 28, title, "middle", "title")]
    for number, (name, value, words) in enumerate(bars):
        y = _TOP + row * number
        wide = max(value, 0.0) / most * (WIDE - left - 220)
        color = COLORS[number % len(COLORS)]
        body.append(_text(left - 10, y + 17, name, "end"))
        body.append(f'<rect x="{left}" y="{y}" width="{wide:.1f}" height="{row - 10}" fill="{color}"/>')
        body.append(_text(left + wide + 8, y + 17, words, "start", "tick"))
    return _document(body, high, title)


def _document(body: Sequence[str], high: int, title: str) -> str:
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDE}" height="{high}" viewBox="0 0 {WIDE} {high}" role="img"'
        f' aria-label="{_safe(title or "plot")}">\n<style>{_STYLE}</style>\n'
    )
    return head + "\n".join(body) + "\n</svg>\n"


def _safe(text: str) -> str:
    return escape(clean(text, limit=200), quote=True)


def _text(x: float, y: float, words: str, anchor: str = "start", kind: str = "", *, turn: bool = False) -> str:
    name = f' class="{kind}"' if kind else ""
    turned = f' transform="rotate(-90 {x:.1f} {y:.1f})"' if turn else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{name}{turned}>{_safe(words)}</text>'


def _across(share: float) -> float:
    return _LEFT + share * (WIDE - _LEFT - _RIGHT)


def _up(share: float) -> float:
    return HIGH - _BOTTOM - share * (HIGH - _TOP - _BOTTOM)


def _axes(across: Span, up: Span) -> list[str]:
    made = []
    for place, word in across.ticks:
        x = _across((place - across.low) / (across.high - across.low))
        made.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP}" y2="{HIGH - _BOTTOM}"/>')
        made.append(_text(x, HIGH - _BOTTOM + 20, word, "middle", "tick"))
    for place, word in up.ticks:
        y = _up((place - up.low) / (up.high - up.low))
        made.append(f'<line class="grid" x1="{_LEFT}" x2="{WIDE - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        made.append(_text(_LEFT - 8, y + 4, word, "end", "tick"))
    made.append(f'<path class="axis" fill="none" d="M{_LEFT} {_TOP}V{HIGH - _BOTTOM}H{WIDE - _RIGHT}"/>')
    made.append(_text((_LEFT + WIDE - _RIGHT) / 2, HIGH - _BOTTOM + 44, across.axis.title, "middle"))
    made.append(_text(20, (_TOP + HIGH - _BOTTOM) / 2, up.axis.title, "middle", turn=True))
    return made


def _line(series: Series, number: int, across: Span, up: Span) -> list[str]:
    points = [(_across(at), _up(height)) for at, height in shown(series, across, up)]
    if not points:
        return []
    color = COLORS[number % len(COLORS)]
    dash = ' stroke-dasharray="7 5"' if series.dashed else ""
    path = "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
    made = [f'<path fill="none" stroke="{color}" stroke-width="2"{dash} d="M{path}"/>']
    if not series.dashed:
        made += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{color}"/>' for x, y in points]
    return made


def _legend(series: Sequence[Series], marks: Sequence[Mark]) -> list[str]:
    made = []
    y = HIGH + 4
    for number, each in enumerate(series):
        color = COLORS[number % len(COLORS)]
        dash = ' stroke-dasharray="7 5"' if each.dashed else ""
        made.append(
            f'<line x1="{_LEFT}" x2="{_LEFT + 28}" y1="{y - 4}" y2="{y - 4}" stroke="{color}" stroke-width="2"{dash}/>'
        )
        made.append(_text(_LEFT + 36, y, each.name))
        y += _LINE
    for mark in marks:
        made.append(f'<line class="mark" x1="{_LEFT + 14}" x2="{_LEFT + 14}" y1="{y - 13}" y2="{y + 3}"/>')
        made.append(_text(_LEFT + 36, y, mark.label))
        y += _LINE
    return made
