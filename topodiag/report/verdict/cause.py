"""One cause on the page: what to do, what it costs, how it acts, where and when, what proves it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from topodiag.model.clock_text import stamp
from topodiag.model.finding import Finding, Severity
from topodiag.model.provenance import Origin
from topodiag.model.result import Moment, Result
from topodiag.model.verdict import Cause, CauseStatus, Consequence, State
from topodiag.report.findings import STEPS_SHOWN, draw_steps, price_words, step_words, where_words
from topodiag.report.places import Places
from topodiag.report.text import BELOW, LABEL, Page
from topodiag.verdict.timeline import around_first_error
from topodiag.words.hosts import short_name
from topodiag.words.units import neighbours, plural

CONSEQUENCES_SHOWN = 2
EVIDENCE_SHOWN = 2
MOMENTS_SHOWN = 2
MOST = 200
"""Events that `-v` prints; the JSON has all that were kept."""
LINKS_SHOWN = 6
"""More links than these are left out where their devices are named (`-v` shows all)."""

STATUS = {
    CauseStatus.ESTABLISHED: ("established", "", "ok"),
    CauseStatus.LIKELY: ("likely", ", not proven: other causes remain possible", "doubtful"),
    CauseStatus.HYPOTHESIS: ("hypothesis", ": the evidence does not show it", "doubtful"),
    CauseStatus.UNKNOWN: ("unknown", "", "unknown"),
}
"""How well a cause is founded: the word, what it means, its hue."""


def draw_do(page: Page, cause: Cause) -> None:
    """The first step, numbered where the page has more of them."""
    if steps := cause.finding.fix:
        number = "1. " if len(steps) > 1 and not page.style.quiet else ""
        page.entry("do", (number + steps[0], "strong"), hue="ok")


def draw_answer(page: Page, cause: Cause) -> None:
    """What it costs, how that compares with what was measured, and how well it is founded."""
    price = cause.price
    text = price.text if page.style.verbose else price.text.split("; ")[0]
    is_free = price.gbs_lost is not None and round(price.gbs_lost, 1) == 0
    cost = "nothing, by what the links of this machine carry" if is_free else price_words(price, text)
    remark = f": {price.step_said}" if price.step_said else ""
    rows = ((cost, "", 3), (step_words(price), remark, 2), (price.step_says, "", 1), (price.says, "", 1))
    for number, (words, note, lines) in enumerate(row for row in rows if row[0]):
        page.entry("" if number else "cost", words, (note, "dim"), most=lines)
    status, meaning, hue = STATUS[cause.status]
    page.entry("verdict", (status, hue), (meaning, "dim"))


def draw_cause(page: Page, cause: Cause, result: Result, places: Places, *, first: bool) -> None:
    """All of a cause; of the `first` one the head of the page has what it costs and what to do first. Below what the
    check saw stand the lines that show it, then those that speak against it."""
    _draw_where(page, cause, result)
    if not first:
        draw_answer(page, cause)
    _draw_fix(page, cause, first=int(first))
    _draw_chain(page, cause)
    _draw_lines(page, "", cause.finding.evidence, cause.finding, places)
    _draw_lines(page, "against it", cause.contradicted_by, cause.finding, places)


def _draw_chain(page: Page, cause: Cause) -> None:
    """The check that found the cause, and what follows from it as a tree."""
    seen = cause.finding.observed or cause.finding.message
    page.entry("evidence", (f"{cause.finding.id}  ", str(cause.finding.severity)), seen, most=1)
    groups = groups_below(cause)
    shown = page.some(groups, CONSEQUENCES_SHOWN)
    left = sum(len(group) for group in groups[len(shown) :])
    for group in shown:
        _draw_consequence(page, group, left if group is shown[-1] else 0)


def groups_below(cause: Cause) -> list[list[Consequence]]:
    """What follows from a cause, neighbours of one check together."""
    return neighbours(cause.consequences, key=lambda following: (following.finding.id, following.depth))


def _draw_consequence(page: Page, group: Sequence[Consequence], left: int) -> None:
    """Consequences of one check; `left` are not shown, and counted."""
    first, indent = group[0], " " * (LABEL + 2 * group[0].depth)
    lead = page.text(indent, ("└ ", "dim"), (first.finding.id, str(first.finding.severity)), "  ")
    if not page.style.verbose:
        rest = f" ×{len(group)}" if len(group) > 1 else ""
        rest += f"  … and {left} more" if left else ""
        room = page.width - lead.cell_len - len(rest)
        page.add(lead, page.cut(page.text(first.finding.message), room), (rest, "strong"))
        return
    for consequence in group:
        page.add(lead, consequence.finding.message)
        page.add(" " * lead.cell_len, (consequence.why, "dim"))


def _draw_where(page: Page, cause: Cause, result: Result) -> None:
    """The place, and how many of the nodes it is."""
    finding = cause.finding
    place = finding.where
    if len(place.links) > LINKS_SHOWN and (place.gpus or place.nics) and not page.style.verbose:
        place = replace(place, links=())
    words = where_words(place, several_nodes=True)
    names = {host for job in result.jobs for host in job.hosts} | {node.host for node in result.nodes}
    hosts = {short_name(result.identity.name(host)) for host in names}
    own = len(finding.where.nodes)
    share = f" ({own} of {plural(len(hosts), 'node')})" if 0 < own < len(hosts) else ""
    page.entry("where", words, (share, "strong"))


def _draw_fix(page: Page, cause: Cause, *, first: int) -> None:
    """The steps from the number `first` on, numbered where there are several, and the commands that show whether it
    worked."""
    draw_steps(page, cause.finding.fix, first, STEPS_SHOWN - first)
    for at, command in enumerate(cause.confirm if page.style.verbose else cause.confirm[:1]):
        label = "" if at else "check with"
        if LABEL + 2 + len(command) <= page.width:
            page.entry(label, (command, "close"), hue="ok")
        else:  # a line of its own can be copied whole
            page.add(page.text("  ", (label, "ok")))
            page.add("    ", (command, "close"))


def _draw_lines(page: Page, label: str, lines: Sequence[Origin], finding: Finding, places: Places) -> None:
    """Lines of the evidence that speak of a finding."""
    shown = page.some(lines, EVIDENCE_SHOWN)
    rest = f"  … and {len(lines) - len(shown)} more" if len(lines) > len(shown) else ""
    names = [page.fitting(places.spell(line, finding), LABEL + 2) for line in shown]
    widest = max((len(name) for name in names if len(name) <= page.width // 2), default=0)
    for number, (line, name) in enumerate(zip(shown, names, strict=True)):
        first, quote = label if number == 0 else "", f"  {' '.join(line.text.split())}" if line.text else ""
        head = page.text("  ", (f"{first:<{LABEL}}", "dim"), (f"{name:<{widest}}", "close"), quote)
        head.rstrip()
        last = rest if number == len(shown) - 1 else ""
        page.lines.append(page.text(page.cut(head, page.width - len(last)), (last, "dim")))


def is_fault(finding: Finding) -> bool:
    return finding.severity > Severity.INFO


def draw_when(page: Page, result: Result) -> None:
    """The events that a reader needs for the cause; nothing where no job failed or no time is known."""
    verdict = result.verdict
    if page.style.verbose:
        _draw_moments(page, result.timeline.moments[:MOST])
        page.add_more(len(result.timeline.moments) - MOST, "event", indent=BELOW)
        from topodiag.report.grid import draw_table  # noqa: PLC0415 - only where all is printed
        from topodiag.report.verdict.clocks import CLOCKS  # noqa: PLC0415 - as above

        draw_table(page, CLOCKS, result.timeline.clocks, len(BELOW))
        return
    if verdict is None or verdict.state not in (State.FAILED, State.HUNG):
        return
    _draw_moments(page, around_first_error(result)[:MOMENTS_SHOWN])


def _draw_moments(page: Page, moments: Sequence[Moment]) -> None:
    days = {int(moment.time // 86_400) for moment in moments if moment.time is not None}
    for number, one in enumerate(moments):
        place = one.host + (f" rank {one.rank}" if one.rank >= 0 else "")
        count = f" ×{one.count}" if one.count > 1 else ""
        label = f"{'when' if number == 0 else '':<{LABEL}}"
        at = _clock(one, dated=len(days) > 1)
        what = " ".join(one.what.split())
        head = page.text("  ", (label, "dim"), (at, "close"), "  ", (f"{place}  " if place else "", "name"), what)
        page.lines.append(page.text(page.cut(head, page.width - len(count)), (count, "strong")))


def _clock(moment: Moment, *, dated: bool = False) -> str:
    """`08:38:47`, in the time of the case's axis; the stamp as it was written where there is no time."""
    words = stamp(moment.time) if moment.time is not None and moment.time >= 0 else ""
    return words[0 if dated else 11 :] or moment.stamp or "?"
