"""What happened when, on one axis: the events round the first error, and how far the clocks can be trusted."""

from __future__ import annotations

from topodiag.draw.timeline import draw_timeline
from topodiag.draw.waits import draw_waits
from topodiag.model.clock_text import LAST_S
from topodiag.model.result import Result
from topodiag.model.timeline import Clock, Moment
from topodiag.report.html.interface import Cell, Drawing, Grid, Section, Sheet
from topodiag.report.job.words import clock
from topodiag.report.places import Places
from topodiag.report.verdict.when import around_first_error
from topodiag.words.units import signed_s, spell_s

MOST = 300
HANGS_SHOWN = 4


def section(sheet: Sheet) -> Section | None:
    """None where nothing has a time."""
    timeline = sheet.result.timeline
    drawings = (*sheet.of("timeline"), *_drawn(sheet.result))
    if not (timeline.moments or drawings):
        return None
    near = {id(moment) for moment in around_first_error(sheet.result)}
    shown = timeline.moments[:MOST]
    places = Places(sheet.result)
    left = len(timeline.moments) - len(shown)
    events = Grid(
        "events", "Events in order", ("Time (UTC)", "Node", "Rank", "What", "Times", "Where it stands"),
        [_row(moment, places, near=id(moment) in near) for moment in shown], right=frozenset({2, 4}),
        left_out=f"{left} more events are in the JSON" if left > 0 else "",
    )  # fmt: skip
    clocks = Grid("clocks", "Clocks", ("Source", "Node", "Ahead", "Within", "How it is known"),
                  [_clock(one) for one in timeline.clocks[:MOST]], right=frozenset({2, 3}))  # fmt: skip
    values = {"drawings": drawings, "grids": [grid for grid in (events, clocks) if grid.rows], "near": len(near)}
    return Section("timeline", "Timeline", values, note=str(len(timeline.moments)))


def _drawn(result: Result) -> list[Drawing]:
    """Who waits in a hang, by job; then the events round the first error, all of them where there is none."""
    waits = (draw_waits(job, prefix=f"waits{number}") for number, job in enumerate(result.jobs[:HANGS_SHOWN]))
    drawn = [Drawing("timeline", "Who waits", svg, inline=True) for svg in waits if svg]
    lanes = draw_timeline(around_first_error(result) or result.timeline.moments, prefix="timeline")
    return [*drawn, Drawing("timeline", "Events in lanes by host", lanes, inline=True)] if lanes else drawn


def _row(moment: Moment, places: Places, *, near: bool) -> list[Cell]:
    within = f" ± {spell_s(moment.within_s)}" if moment.within_s else ""
    return [
        Cell(
            (clock(moment.time, date=True) or moment.stamp or "no time") + within,
            moment.time if moment.time is not None else float(LAST_S),
        ),
        Cell(moment.host),
        Cell(str(moment.rank) if moment.rank >= 0 else "", moment.rank),
        Cell(" ".join(moment.what.split()), mark="warning" if near else ""),
        Cell(str(moment.count) if moment.count > 1 else "", moment.count),
        Cell(places.spell(moment.origin) if moment.origin is not None else ""),
    ]


def _clock(clock: Clock) -> list[Cell]:
    skew = signed_s(clock.skew_s) if clock.skew_s is not None else "not known"
    within = spell_s(clock.within_s) if clock.within_s is not None else "not known"
    return [Cell(clock.source), Cell(clock.host), Cell(skew, clock.skew_s), Cell(within, clock.within_s),
            Cell(clock.how)]  # fmt: skip
