"""Events in lanes by host on one axis of time: the first event is marked, a band shows how far a clock can be off.

Long stretches without an event are cut out of the axis. Events that share their place are one mark; the list below says
what each mark is.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import fsum

from topodiag.draw.svg import Canvas, spelt, undrawn
from topodiag.lazy import dataclass, regex
from topodiag.model.clock_text import LAST_S, stamp
from topodiag.model.result import Moment
from topodiag.words.hosts import short_names
from topodiag.words.units import grouped, plural, spell_s

WIDE, LABEL, TOP, LANE = 640, 130, 96, 34
"""The picture, the room of the hosts' names, what stands above the lanes, and a lane, px."""
MARK, CUT = 9, 46
"""Radius of a mark, and the room of a stretch that is cut out, px."""
MOST_LANES, MOST_MARKS, MOST_CUTS = 16, 24, 6
LONG_SHARE, LONG_S = 0.3, 60.0
"""A stretch without events is cut out where it is more than this share of what is drawn, and longer than a minute."""
LEAST_SPAN_S = 1.0
_NUMBERS = regex(r"[0-9a-f]*\d[0-9a-f:.<>]*")


@dataclass(frozen=True, slots=True)
class _Mark:
    """Events of one lane that share a place: their number in the list, where they stand."""

    number: int
    lane: int
    x: float
    moments: tuple[Moment, ...]


@dataclass(frozen=True, slots=True)
class _Axis:
    """Stretches of time that are drawn, each (from, to, x of its start, x of its end)."""

    parts: tuple[tuple[float, float, float, float], ...]

    def place(self, time: float) -> float:
        for start, end, left, right in self.parts:
            if time <= end:
                return left + (right - left) * max(time - start, 0.0) / (end - start)
        return self.parts[-1][3]


def draw_timeline(moments: Sequence[Moment], *, prefix: str = "") -> str:
    """The picture, "" for fewer than two events with a time that tell of a fault: one alone has no order to show."""
    shown = [
        moment for moment in moments if moment.time is not None and 0 <= moment.time <= LAST_S and not moment.frames
    ]
    if len(shown) < 2:
        return ""
    shown.sort(key=lambda moment: moment.time or 0.0)
    first, begin = shown[0], shown[0].time or 0.0
    hosts = list(dict.fromkeys(moment.host for moment in shown))
    lanes = {host: number for number, host in enumerate(hosts[:MOST_LANES])}
    axis = _axis([moment.time or 0.0 for moment in shown])
    marks = _marks([moment for moment in shown if moment.host in lanes], lanes, axis)
    desc = f"{plural(len(shown), 'event')} on {plural(len(hosts), 'host')}; the first at {stamp(begin)}"
    canvas = Canvas("Timeline", f"{desc}: {first.what}", prefix)
    canvas.heading(desc, WIDE)
    bottom = TOP + len(lanes) * LANE
    _lanes(canvas, [*lanes], axis, bottom)
    _ticks(canvas, axis, begin, bottom)
    _bands(canvas, shown, lanes, axis)
    for mark in marks[:MOST_MARKS]:
        _mark(canvas, mark, first in mark.moments)
    y = _list(canvas, marks[:MOST_MARKS], bottom + 58)
    y = _notes(canvas, moments, shown, hosts, marks, y)
    return canvas.document(WIDE, y)


def _axis(times: Sequence[float]) -> _Axis:
    """The axis with its cuts: the longest stretches first, as long as they are most of what is left."""
    span = times[-1] - times[0]
    cuts: list[tuple[float, float]] = []
    for start, end in sorted(pairwise(times), key=lambda pair: pair[0] - pair[1])[:MOST_CUTS]:
        if end - start > max(LONG_SHARE * span, LONG_S):
            cuts.append((start, end))
            span -= end - start
    edges = [times[0], *(time for cut in sorted(cuts) for time in cut), times[-1]]
    parts = [(edges[at], edges[at + 1]) for at in range(0, len(edges), 2)]
    room = WIDE - LABEL - 2 * MARK - 8 - CUT * len(cuts)
    # A lone event has no length: it gets some, so that its mark stands in the middle of a stretch.
    lengths = [max(end - start, LEAST_SPAN_S, 0.06 * span) for start, end in parts]
    scale = room / fsum(lengths)
    rows, x = [], float(LABEL + MARK + 4)
    for (start, end), length in zip(parts, lengths, strict=True):
        middle, half = (start + end) / 2, length / 2
        rows.append((middle - half, middle + half, x, x + length * scale))
        x += length * scale + CUT
    return _Axis(tuple(rows))


def _marks(shown: Sequence[Moment], lanes: dict[str, int], axis: _Axis) -> list[_Mark]:
    """Events of one lane whose marks would cover each other are one, numbered in the order of time."""
    open_at: dict[str, int] = {}
    groups: list[tuple[str, float, list[Moment]]] = []
    for moment in shown:
        x = axis.place(moment.time or 0.0)
        last = open_at.get(moment.host)
        if last is not None and x - groups[last][1] < 2 * MARK + 2:
            groups[last][2].append(moment)
            continue
        open_at[moment.host] = len(groups)
        groups.append((moment.host, x, [moment]))
    return [_Mark(number, lanes[host], x, tuple(moments)) for number, (host, x, moments) in enumerate(groups, 1)]


def _lanes(canvas: Canvas, hosts: Sequence[str], axis: _Axis, bottom: float) -> None:
    for number, name in enumerate(short_names(hosts)):
        y = TOP + number * LANE + LANE / 2
        canvas.text(0, y + 4, name or "no host", "name" if name else "quiet", room=LABEL - 10)
        for _, _, left, right in axis.parts:
            canvas.line(left - MARK - 2, y, right + MARK + 2, y, "grid")
    for (_, end, _, right), (start, _, left, _) in pairwise(axis.parts):
        middle = (right + left) / 2
        canvas.path(
            f"M{spelt(middle - 3)} {TOP}v{spelt(bottom - TOP)}M{spelt(middle + 3)} {TOP}v{spelt(bottom - TOP)}", "mark"
        )
        canvas.text(middle, TOP - 24, spell_s(start - end), "small", "middle")


def _ticks(canvas: Canvas, axis: _Axis, begin: float, bottom: float) -> None:
    """The start of each stretch, as time after the first event."""
    last = -100.0
    for start, end, left, right in axis.parts:
        for time, x in ((start, left), (end, right)):
            words = _after(min(max(time, begin), end) - begin)
            if x - last >= 90:
                canvas.line(x, bottom, x, bottom + 5, "axis")
                canvas.text(x, bottom + 18, words, "small", "middle" if x < WIDE - 40 else "end")
                last = x
        canvas.line(left, bottom, right, bottom, "axis")


def _bands(canvas: Canvas, shown: Sequence[Moment], lanes: dict[str, int], axis: _Axis) -> None:
    """How far each event can be off; bands of one lane that meet are one."""
    known = [moment for moment in shown if moment.within_s and moment.host in lanes]
    widest: dict[str, list[tuple[float, float]]] = {}
    for moment in sorted(known, key=lambda moment: (moment.time or 0.0) - (moment.within_s or 0.0)):
        time, within = moment.time or 0.0, moment.within_s or 0.0
        left, right = axis.place(time - within), axis.place(time + within)
        bands = widest.setdefault(moment.host, [])
        if bands and left <= bands[-1][1]:
            bands[-1] = (bands[-1][0], max(right, bands[-1][1]))
        else:
            bands.append((left, right))
    for host, bands in widest.items():
        for left, right in bands:
            canvas.rect(left, TOP + lanes[host] * LANE + 6, max(right - left, 1), LANE - 12, "band")


def _mark(canvas: Canvas, mark: _Mark, is_first: bool) -> None:
    y = TOP + mark.lane * LANE + LANE / 2
    tip = mark.moments[0].what
    if is_first:
        canvas.circle(mark.x, y, MARK + 4, "outline")
        canvas.text(mark.x, y - MARK - 8, "first", "badtext halo", "middle")
    canvas.circle(mark.x, y, MARK, "badsolid" if is_first else "netsolid", tip)
    canvas.text(mark.x, y + 4, str(mark.number), "small onsolid", "middle")


def _list(canvas: Canvas, marks: Sequence[_Mark], y: float) -> float:
    dated = len({int((moment.time or 0.0) // 86_400) for mark in marks for moment in mark.moments}) > 1
    host = 166 if dated else 96
    what = host + 156
    for mark in marks:
        folded = grouped(((moment.rank, _NUMBERS.sub("#", moment.what)[:60]), moment) for moment in mark.moments)
        for place, group in enumerate(list(folded.values())[:3]):
            one = group[0]
            if not place:
                canvas.text(14, y, str(mark.number), "name", "end")
                canvas.text(26, y, stamp(one.time or 0.0)[0 if dated else 11 :], "quiet")
            rank = f" rank {one.rank}" if one.rank >= 0 else ""
            total = sum(moment.count for moment in group)
            canvas.text(host, y, f"{one.host}{rank}", "name", room=150)
            canvas.text(what, y, f"{one.what}{f' x {total}' if total > 1 else ''}", room=WIDE - what)
            y += 18
        if len(folded) > 3:
            canvas.text(what, y, f"and {plural(len(folded) - 3, 'other kind')} of events", "quiet")
            y += 18
    return y


def _notes(  # noqa: PLR0917 - what was drawn of what there was
    canvas: Canvas, moments: Sequence[Moment], shown: Sequence[Moment], hosts: Sequence[str], marks: Sequence[_Mark],
    y: float,
) -> float:  # fmt: skip
    untimed = sum(moment.time is None for moment in moments)
    unseen = undrawn(undrawn("", len(marks) - MOST_MARKS, "mark"), len(hosts) - MOST_LANES, "host")
    words = [unseen] if unseen else []
    words += [f"{plural(untimed, 'event')} without a time"] if untimed else []
    if any(moment.within_s for moment in shown):
        words.append("a pale band is how far a clock can be off: inside it the order is not known")
    if words:
        canvas.text(0, y + 8, "; ".join(words), "small", room=WIDE, size=10.5)
        y += 20
    return y


def _after(seconds: float) -> str:
    return "0" if seconds < 0.0005 else f"+{spell_s(seconds)}"
