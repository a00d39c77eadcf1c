"""What happened when, on one axis: the events round the first error, and how far the clocks can be trusted."""

from __future__ import annotations

from topodiag.draw.timeline import draw_timeline
from topodiag.draw.waits import draw_waits
from topodiag.model.clock_text import LAST_S
from topodiag.model.result import Moment, Result
from topodiag.report.grid import Cell, Columns, Field
from topodiag.report.html.interface import Drawing, Section, Sheet, drawings_of, grid_of
from topodiag.report.job.words import clock
from topodiag.report.places import Places
from topodiag.report.verdict.clocks import CLOCKS
from topodiag.verdict.timeline import around_first_error
from topodiag.words.units import spell_s

MOST = 300
HANGS_SHOWN = 4


def section(sheet: Sheet) -> Section | None:
    """None where nothing has a time."""
    timeline = sheet.result.timeline
    drawings = _drawn(sheet.result)
    if not (timeline.moments or drawings):
        return None
    near = {id(moment) for moment in around_first_error(sheet.result)}
    places = Places(sheet.result)
    columns: Columns[Moment] = {
        Field("Time (UTC)"): _time,
        Field("Node"): lambda moment: moment.host,
        Field("Rank", right=True): lambda moment: Cell(str(moment.rank) if moment.rank >= 0 else "", moment.rank),
        Field("What"): lambda moment: (" ".join(moment.what.split()), "warning" if id(moment) in near else ""),
        Field("Times", right=True): lambda moment: Cell(str(moment.count) if moment.count > 1 else "", moment.count),
        Field("Where it stands"): lambda moment: places.spell(moment.origin) if moment.origin is not None else "",
    }
    grids = (
        grid_of("events", "Events in order", columns, timeline.moments, MOST, "events are in the JSON"),
        grid_of("clocks", "Clocks", CLOCKS, timeline.clocks, MOST, "clocks are in the JSON"),
    )
    values = {"drawings": drawings, "grids": grids, "near": len(near)}
    return Section("timeline", "Timeline", values, note=str(len(timeline.moments)))


def _drawn(result: Result) -> tuple[Drawing, ...]:
    """Who waits in a hang, by job; then the events round the first error, all of them where there is none."""
    waits = (draw_waits(job, prefix=f"waits{number}") for number, job in enumerate(result.jobs[:HANGS_SHOWN]))
    lanes = draw_timeline(around_first_error(result) or result.timeline.moments, prefix="timeline")
    return drawings_of(*(("Who waits", svg) for svg in waits), ("Events in lanes by host", lanes))


def _time(moment: Moment) -> Cell:
    """Without a time it stands last."""
    within = f" ± {spell_s(moment.within_s)}" if moment.within_s else ""
    words = clock(moment.time, date=True) or moment.stamp or "no time"
    return Cell(words + within, moment.time if moment.time is not None else float(LAST_S))
