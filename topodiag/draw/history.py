"""Nodes over time: each capture with or without errors, and below it the parts that went down, on one axis."""

from __future__ import annotations

from collections.abc import Sequence

from topodiag.checks.fleet.places import label_of
from topodiag.draw.svg import Canvas, undrawn
from topodiag.lazy import dataclass
from topodiag.model.clock_text import LAST_S, stamp
from topodiag.model.history import PartStates, Spell, Track
from topodiag.words.hosts import short_names
from topodiag.words.units import few, plural

WIDE, LABEL, TOP, LANE = 640, 160, 62, 26
"""The picture, the names before the lanes, what stands above them, and a lane, px."""
COUNT, MARK, LEAST = 130, 5, 4
"""The words behind a lane, half the side of a mark, and the width of the shortest bar, px."""
MOST_NODES, MOST_PARTS, TICKS = 16, 6, 5
DAYS_S = 3 * 86_400.0
"""An axis that is longer has dates, a shorter one times of day."""
LEAST_SPAN_S = 60.0


@dataclass(frozen=True, slots=True)
class _Axis:
    start: float
    end: float

    def place(self, time: float) -> float:
        share = (min(max(time, self.start), self.end) - self.start) / (self.end - self.start)
        return LABEL + share * (WIDE - LABEL - COUNT)


def draw_history(tracks: Sequence[Track], *, prefix: str = "") -> str:
    """The picture, "" where no node has two captures or a part that changed."""
    shown = [track for track in tracks[:MOST_NODES] if len(_timed(track)) > 1 or track.states]
    times = [time for track in shown for time in _times(track)]
    if not times:
        return ""
    axis = _Axis(min(times), max(*times, min(times) + LEAST_SPAN_S))
    words = f"{plural(len(shown), 'node')} from {stamp(axis.start)[:16]} to {stamp(axis.end)[:16]}"
    canvas = Canvas("Nodes over time", f"{words}: {few([_in_words(track) for track in shown], 8, '; ')}", prefix)
    canvas.title_lines(words)
    y = float(TOP)
    for track, name in zip(shown, short_names([track.host for track in shown]), strict=True):
        y = _node(canvas, track, name, axis, y)
    _ticks(canvas, axis, y)
    note = "circle: a capture without errors; square: one with errors; thin bar: up; hatched bar: down"
    canvas.text(0, y + 44, undrawn(note, len(tracks) - len(shown), "node"), "small")
    return canvas.document(WIDE, y + 52)


def _timed(track: Track) -> list[tuple[float, tuple[str, ...]]]:
    return [(time, errors) for time, errors in track.captures if 0 <= time <= LAST_S]


def _times(track: Track) -> list[float]:
    spells = [spell for part in track.states for spell in part.spells]
    known = [time for spell in spells for time in (spell.time_s, spell.end_s)]
    return [time for time in (*(time for time, _ in track.captures), *known) if 0 <= time <= LAST_S]


def _in_words(track: Track) -> str:
    bad = sum(bool(errors) for _, errors in track.captures)
    parts = [f"{label_of(state.part)} down {_times_down(state)}" for state in track.states[:MOST_PARTS]]
    return f"{track.host}: " + ", ".join([f"{bad} of {plural(len(track.captures), 'capture')} with errors", *parts])


def _times_down(part: PartStates) -> str:
    return plural(sum(spell.down for spell in part.spells), "time")


def _node(canvas: Canvas, track: Track, name: str, axis: _Axis, top: float) -> float:
    """The lanes of one node; where they end."""
    middle, right = top + LANE / 2, axis.place(axis.end)
    canvas.text(0, middle + 4, name, "name", room=LABEL - 14)
    canvas.line(LABEL, middle, right, middle, "grid")
    groups: list[tuple[float, list[tuple[float, tuple[str, ...]]]]] = []
    for time, errors in sorted(_timed(track)):
        x = axis.place(time)
        if groups and x - groups[-1][0] < 2 * MARK + 2:
            groups[-1][1].append((time, errors))
        else:
            groups.append((x, [(time, errors)]))
    for x, pairs in groups:
        _capture(canvas, x, middle, pairs)
    bad = sum(bool(errors) for _, errors in track.captures)
    if bad:
        canvas.text(right + 12, middle + 4, f"errors in {bad} of {len(track.captures)}", "badtext", room=COUNT - 12)
    y = top + LANE
    for part in track.states[:MOST_PARTS]:
        _part(canvas, part, axis, y)
        y += LANE
    if words := undrawn("", len(track.states) - MOST_PARTS, "part"):
        canvas.text(16, y + 12, words, "small")
        y += LANE
    return y + 6


def _capture(canvas: Canvas, x: float, y: float, pairs: Sequence[tuple[float, tuple[str, ...]]]) -> None:
    """One mark for captures that would cover each other: bad where one of them is."""
    errors = list(dict.fromkeys(error for _, own in pairs for error in own))
    count = f" and {len(pairs) - 1} more" if len(pairs) > 1 else ""
    tip = f"{stamp(pairs[0][0])[:16]}{count}: {few(errors, 4) or 'no errors'}"
    if errors:
        canvas.rect(x - MARK, y - MARK, 2 * MARK, 2 * MARK, "bad", tip, hatch="badhatch")
    else:
        canvas.circle(x, y, MARK - 1, "good", tip)


def _part(canvas: Canvas, part: PartStates, axis: _Axis, top: float) -> None:
    middle = top + LANE / 2
    canvas.text(16, middle + 4, label_of(part.part), room=LABEL - 30)
    for left, right, spell in _bars([spell for spell in part.spells if not spell.down], axis, 1):
        canvas.rect(left, middle - 2, right - left, 4, "good" if spell.up else "plain", spell.state)
    for left, right, spell in _bars([spell for spell in part.spells if spell.down], axis, LEAST):
        tip = f"{spell.state} since {stamp(spell.time_s)}"
        canvas.rect(left, middle - 7, right - left, 14, "bad", tip, hatch="badhatch")
    canvas.text(axis.place(axis.end) + 12, middle + 4, f"down {_times_down(part)}", "badtext", room=COUNT - 12)


def _bars(spells: Sequence[Spell], axis: _Axis, least: float) -> list[tuple[float, float, Spell]]:
    """Where each spell begins and ends, px, at least so wide; those that touch are one bar with the first one's tip."""
    rows: list[tuple[float, float, Spell]] = []
    for spell in spells:
        left = axis.place(spell.time_s)
        right = max(axis.place(spell.end_s), left + least)
        if rows and left - rows[-1][1] < 1:
            rows[-1] = (rows[-1][0], max(right, rows[-1][1]), rows[-1][2])
        else:
            rows.append((left, right, spell))
    return rows


def _ticks(canvas: Canvas, axis: _Axis, y: float) -> None:
    right = axis.place(axis.end)
    canvas.line(LABEL, y, right, y, "axis")
    dated = axis.end - axis.start > DAYS_S
    for number in range(TICKS):
        time = axis.start + (axis.end - axis.start) * number / (TICKS - 1)
        x = axis.place(time)
        canvas.line(x, y, x, y + 5, "axis")
        words = stamp(time)
        side = "" if number == 0 else "end" if number == TICKS - 1 else "middle"
        canvas.text(x, y + 19, words[:10] if dated else words[5:16], "small", side)
