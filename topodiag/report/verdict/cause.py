"""One cause on the page: what to do, what it costs, why, where, what proves it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby

from topodiag.model.finding import Cost, Finding, Severity
from topodiag.model.provenance import Origin
from topodiag.model.result import Result
from topodiag.model.verdict import Agreement, Cause, CauseStatus, Consequence
from topodiag.report.findings import cost_words, step_words, where_words
from topodiag.report.node.marks import more
from topodiag.report.text import Page
from topodiag.report.verdict.places import Places
from topodiag.words.fold import plural
from topodiag.words.hosts import short_name

LABEL = 8
CONSEQUENCES_SHOWN = 6
EVIDENCE_SHOWN = 4
STEPS_SHOWN = 4
LINKS_SHOWN = 6
"""More links than these are left out beside their devices (`-v` shows all)."""

STATUS = {
    CauseStatus.ESTABLISHED: ("established", "ok"),
    CauseStatus.SUPPORTED: ("supported: other causes remain possible", "doubtful"),
    CauseStatus.HYPOTHESIS: ("hypothesis: the evidence does not show it", "doubtful"),
    CauseStatus.UNKNOWN: ("unknown", "unknown"),
}


def entry(page: Page, label: str, *words: str | tuple[str, str], hue: str = "dim") -> None:
    """A line of the page: a label, then words wrapped beside it."""
    page.add(page.text("  ", (f"{label:<{LABEL}}", hue)), *words)


def draw_answer(page: Page, cause: Cause) -> None:
    """What to do, what it costs, and how sure that is."""
    if cause.finding.fix:
        entry(page, "do", (cause.finding.fix[0], "strong"), hue="ok")
    draw_cost(page, cause)
    status, hue = STATUS[cause.status]
    entry(page, "sure", (status, hue), (f", confidence {cause.finding.confidence}", "dim"))


def draw_cost(page: Page, cause: Cause) -> None:
    """What a cause costs, and below it how that compares with what was measured."""
    price = cause.price
    text = price.text if page.style.verbose else price.text.split("; ")[0]
    whole = price.gbs_lost is None and price.share == 1.0  # a job that ended: the text says it all
    if words := (text if whole and text else cost_words(Cost(price.gbs_lost, price.share, text))):
        entry(page, "cost", words)
    if step := step_words(price):
        entry(page, "step", step, (f": {price.step_said}" if price.step_said else "", "dim"))
    if price.step_says:
        entry(page, "steps", price.step_says)
    if price.says:
        entry(page, "agrees" if price.agreement is Agreement.AGREES else "compare", price.says)


def draw_why(page: Page, cause: Cause) -> None:
    """The cause and what follows from it, as a tree with the ids of the checks."""
    severity = str(cause.finding.severity)
    page.add(page.text("  ", (f"{'why':<{LABEL}}", "dim"), (cause.finding.id, severity), "  "), cause.finding.message)
    if cause.finding.observed:
        page.add(" " * (LABEL + 10), (_short(page, cause.finding.observed), "dim"))
    groups = [list(group) for _, group in groupby(cause.consequences, key=lambda each: (each.finding.id, each.depth))]
    shown = groups if page.style.verbose else groups[:CONSEQUENCES_SHOWN]
    for group in shown:
        _draw_consequence(page, group)
    left = sum(len(group) for group in groups[len(shown) :])
    if left:
        page.add(" " * (LABEL + 2), (more(left, "consequence"), "dim"))


def _draw_consequence(page: Page, group: Sequence[Consequence]) -> None:
    first = group[0]
    lead = page.text(
        " " * (LABEL + 2 * first.depth), ("└ ", "dim"), (first.finding.id, str(first.finding.severity)), "  "
    )
    if not page.style.verbose:
        rest = f" ×{len(group)}" if len(group) > 1 else ""
        room = page.width - lead.cell_len - len(rest)
        page.add(lead, page.cut(page.text(first.finding.message), room), (rest, "strong"))
        return
    for each in group:
        page.add(lead, each.finding.message)
        page.add(" " * lead.cell_len, (each.why, "dim"))


def draw_where(page: Page, cause: Cause, result: Result) -> None:
    """The place, and of how many alike it is the odd one out."""
    finding = cause.finding
    place = finding.where
    if len(place.links) > LINKS_SHOWN and (place.gpus or place.nics) and not page.style.verbose:
        place = replace(place, links=())
    words = where_words(place, several_nodes=True)
    names = {host for job in result.jobs for host in job.hosts} | {node.host for node in result.nodes}
    hosts = {short_name(result.identity.name(host)) for host in names}
    own = len(finding.where.nodes)
    odd = f" ({own} of {plural(len(hosts), 'node')})" if 0 < own < len(hosts) else ""
    if words:
        entry(page, "where", words, (odd, "strong"))


def draw_change(page: Page, cause: Cause, *, told: bool = False) -> None:
    """The steps, numbered where there are several, and the commands that show whether it worked. `told`: the page has
    the first step already."""
    steps = cause.finding.fix if not told or len(cause.finding.fix) > 1 else ()
    shown = steps if page.style.verbose else steps[:STEPS_SHOWN]
    for number, step in enumerate(shown, start=1):
        count = f"{number}. " if len(steps) > 1 else ""
        entry(page, "change" if number == 1 else "", f"{count}{step}", hue="ok")
    commands = cause.confirm if page.style.verbose else cause.confirm[:1]
    for number, command in enumerate(commands):
        entry(page, "" if steps or number else "check", ("check: ", "dim") if steps else "", (command, "close"))


def draw_proof(page: Page, cause: Cause, places: Places) -> None:
    """Lines that show it, and below them those that speak against it."""
    _draw_lines(page, "proof", cause.finding.evidence, cause.finding, places)
    _draw_lines(page, "against", cause.contradicted_by, cause.finding, places)


def _draw_lines(page: Page, label: str, lines: Sequence[Origin], finding: Finding, places: Places) -> None:
    shown = lines if page.style.verbose else lines[:EVIDENCE_SHOWN]
    names = [page.fitting(places.spell(line, finding), LABEL + 2) for line in shown]
    widest = max((len(name) for name in names if len(name) <= page.width // 2), default=0)
    for number, (line, name) in enumerate(zip(shown, names, strict=True)):
        head = page.text("  ", (f"{label if number == 0 else '':<{LABEL}}", "dim"), (f"{name:<{widest}}", "close"))
        quote = page.text("  " + " ".join(line.text.split()))
        head.append_text(quote if line.text else page.text(""))
        head.rstrip()
        page.lines.append(page.cut(head, page.width))
    if len(lines) > len(shown):
        page.add(" " * (LABEL + 2), (more(len(lines) - len(shown), "line"), "dim"))


def is_fault(finding: Finding) -> bool:
    return finding.severity > Severity.INFO


def _short(page: Page, words: str) -> str:
    most = 2 * (page.width - LABEL - 10)
    return words if page.style.verbose or len(words) <= most else words[: most - 1] + "…"
