"""A plot as PNG, by matplotlib (the extra `plot`)."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from typing import TYPE_CHECKING

from topodiag.report.plot.scale import SIZE, TIME, Axis, Mark, Series, Span, spans
from topodiag.report.plot.svg import COLORS
from topodiag.words.text import clean

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class NoPlotLibraryError(RuntimeError):
    """matplotlib is not installed."""


def plot_png(
    series: Sequence[Series], *, x: Axis = SIZE, y: Axis = TIME, title: str = "", marks: Sequence[Mark] = ()
) -> bytes:
    """The plot as a PNG of 1350 x 780 pixels or higher. Raises NoPlotLibraryError without matplotlib."""
    figure = _figure(5.2 + 0.15 * (len(series) + len(marks)))
    axes = figure.add_subplot()
    axes.set_title(_safe(title), fontweight="bold")
    found = spans(series, x, y, marks, (8, 7))
    if found is not None:
        across, up = found
        for number, each in enumerate(series):
            pairs = sorted((a, b) for a, b in each.points if x.place(a) is not None and y.place(b) is not None)
            axes.plot(
                [x.place(a) or 0.0 for a, _ in pairs],
                [y.place(b) or 0.0 for _, b in pairs],
                color=COLORS[number % len(COLORS)],
                linestyle="--" if each.dashed else "-",
                marker="" if each.dashed else "o",
                markersize=4,
                clip_on=False,
                label=_safe(each.name),
            )
        for mark in marks:
            place = x.place(mark.x)
            if place is not None and across.low <= place <= across.high:
                axes.axvline(place, color="#888888", linestyle=":", linewidth=1, label=_safe(mark.label))
        _ticks(axes, "x", across)
        _ticks(axes, "y", up)
        figure.legend(loc="outside lower left", frameon=False, fontsize="small")
    axes.set_xlabel(_safe(x.title))
    axes.set_ylabel(_safe(y.title))
    axes.grid(visible=True, color="#dddddd")
    return _saved(figure, axes)


def bars_png(bars: Sequence[tuple[str, float, str]], *, title: str = "", unit: str = "") -> bytes:
    """Horizontal bars of (name, value, words behind it), the first on top. Raises NoPlotLibraryError."""
    figure = _figure(1.6 + 0.45 * len(bars))
    axes = figure.add_subplot()
    axes.set_title(_safe(title), fontweight="bold")
    places = list(range(len(bars)))
    drawn = axes.barh(
        places, [value for _, value, _ in bars], color=[COLORS[at % len(COLORS)] for at in places], height=0.7
    )
    axes.bar_label(drawn, [_safe(words) for _, _, words in bars], padding=4)
    axes.set_yticks(places, [_safe(name) for name, _, _ in bars])
    axes.invert_yaxis()
    axes.margins(x=0.25)
    axes.set_xlabel(_safe(unit))
    return _saved(figure, axes)


def _figure(high: float) -> Figure:
    """An empty figure, 9 inches wide at 150 dots per inch."""
    try:
        from matplotlib.figure import Figure as Made  # noqa: PLC0415 - an extra, and slow to load
    except ImportError:
        raise NoPlotLibraryError("PNG needs matplotlib") from None
    return Made(figsize=(9, high), dpi=150, layout="constrained")


def _saved(figure: Figure, axes: Axes) -> bytes:
    axes.spines[["top", "right"]].set_visible(False)
    made = BytesIO()
    figure.savefig(made, format="png", metadata={"Software": ""})
    return made.getvalue()


def _safe(text: str) -> str:
    """Without what matplotlib would read as mathematics."""
    return clean(text, limit=200).replace("$", r"\$")


def _ticks(axes: Axes, side: str, span: Span) -> None:
    setter = getattr(axes, f"set_{side}ticks")
    setter([place for place, _ in span.ticks], [word for _, word in span.ticks])
    getattr(axes, f"set_{side}lim")(span.low, span.high)
