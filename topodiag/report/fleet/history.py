"""The answers of a store of captures: what changed, what comes and goes, who keeps failing, which counters rise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from topodiag.checks.fleet.places import label_of
from topodiag.model.finding import Severity, Status
from topodiag.model.history import FleetHistory, NodeFailures, RisingCounter, spell_time
from topodiag.model.provenance import NotObserved
from topodiag.report.documents.from_model import Document, document_of
from topodiag.report.findings import draw_findings
from topodiag.report.grid import Cell, Columns, Field, draw_listed, figure
from topodiag.report.text import Page
from topodiag.report.words import SIGNS
from topodiag.words.units import few, fold_hosts, grouped, number, plural

FEW = 8
"""Lines of a list; `-v` shows all."""


def draw_history(page: Page, answers: FleetHistory) -> None:
    """The answer first, then findings, worst first, then the lists."""
    _draw_answer(page, answers)
    draw_findings(page, answers.findings, several_nodes=answers.hosts > 1)
    for title, columns, rows, what in tables_of(answers):
        if rows:
            page.heading(title)
            draw_listed(page, columns, rows, FEW, what)
    if page.style.quiet:
        return
    for text in answers.aside:
        page.blank()
        page.add("? ", text)


def _draw_answer(page: Page, answers: FleetHistory) -> None:
    words, sign, hue = _answer(answers)
    page.add(page.text((sign, hue), " "), (words, "strong"))
    page.note_answer(words, sign=sign, hue=hue)
    span = f", {spell_time(answers.first_s)[:10]} to {spell_time(answers.last_s)[:10]}" if answers.captures else ""
    watched = f"; {plural(answers.watched, 'node')} watched" if answers.watched else ""
    page.add("  ", f"{plural(answers.captures, 'capture')} of {plural(answers.hosts, 'node')}{span}{watched}")
    if answers.added or answers.known_before:
        before = f"; {answers.known_before} were there before" if answers.known_before else ""
        page.add("  ", f"{answers.added} added{before}")


def _answer(answers: FleetHistory) -> tuple[str, str, str]:
    """The sentence with its sign and hue: a negative result names how much was compared."""
    parts = []
    for check, words in (("FLT004", "a link comes and goes"), ("FLT003", "changed since the last good capture")):
        findings = [finding for finding in answers.findings if finding.id == check and finding.severity > Severity.INFO]
        nodes = list(dict.fromkeys(node for item in findings for node in item.where.nodes))
        if nodes:
            parts.append(f"{fold_hosts(nodes)}: {words}")
    worst = max((finding.severity for finding in answers.findings), default=Severity.INFO)
    if answers.failing:
        parts.append(f"{fold_hosts([failure.host for failure in answers.failing])}: keeps failing")
        worst = max(worst, Severity.WARNING)
    if parts:
        return "; ".join(parts), SIGNS[worst], str(worst)
    if not answers.compared and not answers.watched:
        return "nothing to compare yet: one capture of each node", "?", "unknown"
    compared = f"{plural(answers.compared, 'node')} compared with an earlier capture"
    quiet = ", no link comes and goes" if answers.watched else ""
    return f"{compared}: nothing changed for the worse{quiet}", "✔", "ok"


def _part(count: int, total: int) -> Cell:
    return Cell(f"{count} of {total}", count / total)


FAILING: Columns[NodeFailures] = {
    Field("node", least=8): lambda failure: (failure.host, "strong"),
    Field("new failures", right=True): lambda failure: failure.times,
    Field("captures with errors", right=True, drop=1): lambda failure: failure.captures,
    Field("first"): lambda failure: failure.first,
    Field("last"): lambda failure: failure.last,
    Field("what", least=16): lambda failure: few([f"{name} ({count}x)" for name, count in failure.failures], 4),
}
"""The nodes that keep failing."""
RISING: Columns[RisingCounter] = {
    Field("node", least=8): lambda growth: (growth.host, "strong"),
    Field("part", least=8): lambda growth: label_of(growth.part),
    Field("counter", least=16): lambda growth: growth.key,
    Field("rose by", right=True): lambda growth: growth.count,
    Field("days", right=True): lambda growth: figure(growth.hours / 24, number),
    Field("rises on", right=True): lambda growth: _part(growth.parts, growth.total),
}
"""Counters that rise on few of the parts that have them."""
COMMON: Columns[tuple[str, int, int]] = {
    Field("counter"): lambda row: row[0],
    Field("rises on", right=True): lambda row: _part(*row[1:]),
}


def tables_of(answers: FleetHistory) -> tuple[tuple[str, Columns[Any], Sequence[Any], str], ...]:
    """The tables of a history: title, columns, rows, and what a row is of."""
    return (
        ("Nodes that keep failing", FAILING, answers.failing, "node"),
        ("Counters that rise on few parts", RISING, answers.rising, "counter"),
        ("Counters that rise on many parts, so no part's fault", COMMON, answers.common, "counter"),
    )


def document(answers: FleetHistory) -> Document:
    """The whole answer as one object."""
    return document_of("history.HistoryDocument", answers, not_observed=_unjudged(answers))


def _unjudged(answers: FleetHistory) -> list[NotObserved]:
    """Why a check could not judge, with the nodes that this holds for, and what was not read."""
    unknown = (outcome for outcome in answers.outcomes if outcome.status is Status.UNKNOWN)
    nodes = grouped(((outcome.check, outcome.why), outcome.node) for outcome in unknown)
    unjudged = [NotObserved(check, f"{why} ({fold_hosts(texts)})") for (check, why), texts in nodes.items()]
    return [*unjudged, *(NotObserved("part of the input", text) for text in answers.aside)]
