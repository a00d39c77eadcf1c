"""What happened when: the events round the first error, on the axis of the case, and all of them with `-v`."""

from __future__ import annotations

from collections.abc import Sequence

from topodiag.model.clock_text import stamp
from topodiag.model.finding import Finding
from topodiag.model.result import Result
from topodiag.model.timeline import Moment
from topodiag.model.verdict import State
from topodiag.report.text import LABEL, Page, more
from topodiag.words.units import signed_s, spell_s

BEFORE_S, AFTER_S = 600.0, 300.0
"""An event counts for a failure from ten minutes before to five after it (join of RSC, arXiv 2410.21680)."""
SHOWN = 2
MOST = 200
"""Events that `-v` prints; the JSON has all that were kept."""


def draw_when(page: Page, result: Result) -> None:
    """The events that a reader needs for the cause; nothing where no job failed or no time is known."""
    verdict = result.verdict
    if page.style.verbose:
        _draw(page, result.timeline.moments[:MOST], len(result.timeline.moments))
        for clock in result.timeline.clocks:
            skew = signed_s(clock.skew_s) if clock.skew_s is not None else "offset unknown"
            within = f" within {spell_s(clock.within_s)}" if clock.within_s is not None else ""
            page.add(" " * (LABEL + 2), (f"clock of {clock.source} on {clock.host or 'no host'}: {skew}{within}: "
                                          f"{clock.how}", "dim"))  # fmt: skip
        return
    if verdict is None or verdict.state not in (State.FAILED, State.HUNG):
        return
    moments = around_first_error(result)
    _draw(page, moments[:SHOWN], len(moments))


def around_first_error(result: Result) -> list[Moment]:
    """Events in the window round the first cause, in order, without those that only frame a job. Where its own lines
    have no time, the first of what follows from it is taken."""
    verdict = result.verdict
    if verdict is None or not verdict.causes:
        return []
    first = verdict.causes[0]
    timed = [moment for moment in result.timeline.moments if moment.time is not None]
    below = [consequence.finding for consequence in first.consequences]
    begin = next(filter(None, (_begins(timed, group) for group in ([first.finding], below))), None)
    if begin is None:
        return []
    return [
        moment
        for moment in timed
        if moment.time is not None and begin - BEFORE_S <= moment.time <= begin + AFTER_S and not moment.frames
    ]


def _begins(timed: Sequence[Moment], findings: Sequence[Finding]) -> float | None:
    """The time of the first event that stands in the evidence of these findings."""
    lines = {(line.source, line.line) for finding in findings for line in finding.evidence}
    hits = [moment.time for moment in timed if moment.origin and (moment.origin.source, moment.origin.line) in lines]
    return min((time for time in hits if time is not None), default=None)


def _draw(page: Page, moments: Sequence[Moment], total: int) -> None:
    days = {int(moment.time // 86_400) for moment in moments if moment.time is not None}
    for number, one in enumerate(moments):
        place = one.host + (f" rank {one.rank}" if one.rank >= 0 else "")
        count = f" ×{one.count}" if one.count > 1 else ""
        label = f"{'when' if number == 0 else '':<{LABEL}}"
        at = _clock(one, dated=len(days) > 1)
        head = page.text("  ", (label, "dim"), (at, "close"), "  ", (f"{place}  " if place else "", "name"))
        head.append_text(page.text(" ".join(one.what.split())))
        line = page.cut(head, page.width - len(count))
        line.append_text(page.text((count, "strong")))
        page.lines.append(line)
    if total > len(moments) and page.style.verbose:
        page.add(" " * (LABEL + 2), (more(total - len(moments), "event"), "dim"))


def _clock(moment: Moment, *, dated: bool = False) -> str:
    """`08:38:47`, in the time of the case's axis; the stamp as it was written where there is no time."""
    words = stamp(moment.time) if moment.time is not None and moment.time >= 0 else ""
    return words[0 if dated else 11 :] or moment.stamp or "?"
