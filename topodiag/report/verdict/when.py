"""What happened when: the events round the first error, on the axis of the case, and all of them with `-v`."""

from __future__ import annotations

from collections.abc import Sequence

from topodiag.model.clock_text import stamp
from topodiag.model.result import Result
from topodiag.model.timeline import Moment
from topodiag.model.verdict import State
from topodiag.report.text import LABEL, Page, more
from topodiag.verdict.around_error import around_first_error
from topodiag.words.units import signed_s, spell_s

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
