"""What a plot shows and on what axes: series, marks, scales and ticks, alike for a terminal and SVG."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import ceil, floor, log2, log10

from topodiag.lazy import dataclass
from topodiag.words.units import spell_bytes, spell_gbs, spell_us

Points = Sequence[tuple[float, float]]

MAX_POINTS = 4096
"""Points of one series that are drawn; further ones would share their pixels."""


_MOST = 1e300
"""Beyond it the distance of two values is no number any more."""
_MOST_POWER = {2: 1000.0, 10: 300.0}


@dataclass(frozen=True, slots=True)
class Series:
    """One line: points as (x, y). Points that an axis cannot show (not finite, not above 0 on a log axis) are left
    out. `dashed` sets what was expected apart from what was measured."""

    name: str
    points: Points
    dashed: bool = False


@dataclass(frozen=True, slots=True)
class Mark:
    """A vertical line at `x`, explained below the plot."""

    x: float
    label: str


@dataclass(frozen=True, slots=True)
class Axis:
    """`base` 2 or 10 for a logarithmic axis, 0 for a linear one; `spell` writes a tick."""

    title: str
    spell: Callable[[float], str]
    base: int = 10

    def holds(self, value: float) -> bool:
        """Whether a value has a place on the axis."""
        return abs(value) < _MOST and not (self.base and value <= 0)

    def place(self, value: float) -> float | None:
        """Where a value stands, in the axis' own unit (its logarithm where it has one); None where it cannot."""
        if not self.holds(value):
            return None
        return log2(value) if self.base == 2 else log10(value) if self.base else value

    def value(self, place: float) -> float:
        return float(self.base) ** min(place, _MOST_POWER[self.base]) if self.base else place


SIZE = Axis("size", lambda value: spell_bytes(round(value)), 2)
TIME = Axis("time", spell_us)
BANDWIDTH = Axis("GB/s", spell_gbs, 0)


@dataclass(frozen=True, slots=True)
class Span:
    """The part of an axis that is shown, in the axis' own unit, and its ticks as (place, word)."""

    axis: Axis
    low: float
    high: float
    ticks: tuple[tuple[float, str], ...]

    def share(self, value: float) -> float | None:
        """0 at the low end, 1 at the high one; None outside, or where the axis has no place for it."""
        place = self.axis.place(value)
        if place is None or self.high <= self.low:
            return None if place is None else 0.5
        share = (place - self.low) / (self.high - self.low)
        return share if -1e-9 <= share <= 1 + 1e-9 else None


def span_of(axis: Axis, values: Iterable[float], ticks: int) -> Span | None:
    """The span that holds all values, with about so many ticks; None where there is nothing to show."""
    held = [value for value in values if axis.holds(value)]
    if not held:
        return None
    low, high = axis.place(min(held)) or 0.0, axis.place(max(held)) or 0.0
    if not axis.base:
        low = min(low, 0.0)
    if high - low < 1e-9:
        low, high = (low - 1, high + 1) if axis.base else (min(low, 0.0), max(high, 1.0))
    step = _step(axis, high - low, max(ticks, 2))
    # Powers of two are taken as they are, a sweep starts and ends on one, where the span holds a tick.
    if axis.base != 2 or high - low < step:
        whole = min(step, 1.0) if axis.base else step
        low, high = floor(low / whole + 1e-9) * whole, ceil(high / whole - 1e-9) * whole
    first = ceil(low / step - 1e-9)
    count = floor((high - low) / step + 1e-9) + 1
    places = [(first + number) * step for number in range(count) if (first + number) * step <= high + 1e-9]
    return Span(axis, low, high, tuple((place, axis.spell(axis.value(place))) for place in places))


def _step(axis: Axis, wide: float, ticks: int) -> float:
    """A step of the axis' own unit: whole powers on a log axis, 1, 2 or 5 times a power of ten on a linear one."""
    if axis.base:
        # Below a decade the ends of one are far from the data: half and quarter steps follow.
        small = (0.25, 0.5) if axis.base == 10 and wide < 1 else ()
        return next((step for step in (*small, 1, 2, 3, 4, 5, 6, 8, 10, 20) if wide / step <= ticks), wide)
    rough = wide / ticks
    power = 10.0 ** floor(log10(rough))
    return next(power * times for times in (1, 2, 5, 10) if power * times >= rough - 1e-12)


def shown(series: Series, across: Span, up: Span) -> list[tuple[float, float]]:
    """The series' points as shares of the two spans, in the order of x. Of more than MAX_POINTS of them the lowest of
    some neighbours stands for these (a dip is what matters), and the last one stays."""
    points = sorted(series.points)
    step = -(-len(points) // MAX_POINTS)
    if step > 1:
        least = (min(points[at : at + step], key=lambda point: point[1]) for at in range(0, len(points) - 1, step))
        points = [*least, points[-1]]
    pairs = []
    for x, y in points:
        at, height = across.share(x), up.share(y)
        if at is not None and height is not None:
            pairs.append((at, height))
    return pairs


def spans(
    series: Sequence[Series], x: Axis, y: Axis, marks: Sequence[Mark], ticks: tuple[int, int]
) -> tuple[Span, Span] | None:
    """The spans of both axes over all series, with about so many ticks across and up. Marks do not widen them."""
    pairs = [
        (a, b)
        for one_series in series
        for a, b in one_series.points
        if x.holds(a) and y.holds(b)
    ]  # fmt: skip
    across = span_of(x, (a for a, _ in pairs), ticks[0])
    up = span_of(y, (b for _, b in pairs), ticks[1])
    return None if across is None or up is None else (across, up)
