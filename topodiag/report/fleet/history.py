"""The answers of a store of captures: what changed, what comes and goes, who keeps failing, which counters rise."""

from __future__ import annotations

from topodiag.checks.fleet.places import label_of
from topodiag.model.finding import Severity, Status
from topodiag.model.history import FleetHistory, spell_time
from topodiag.model.provenance import NotObserved
from topodiag.report.documents.from_model import Document, document_of
from topodiag.report.findings import draw_findings
from topodiag.report.text import Page
from topodiag.report.words import SIGNS
from topodiag.words.fold import fold_hosts, grouped, plural
from topodiag.words.units import spell_s

FEW = 8
"""Lines of a list; `-v` shows all."""
CLEAN = ("✔", "ok")
UNKNOWN = ("?", "unknown")


def draw_history(page: Page, answers: FleetHistory) -> None:
    """The answer first, then findings, worst first, then the lists."""
    _draw_answer(page, answers)
    draw_findings(page, answers.findings, several_nodes=answers.hosts > 1)
    _draw_failing(page, answers)
    _draw_rising(page, answers)
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
        return "nothing to compare yet: one capture of each node", *UNKNOWN
    compared = f"{plural(answers.compared, 'node')} compared with an earlier capture"
    quiet = ", no link comes and goes" if answers.watched else ""
    return f"{compared}: nothing changed for the worse{quiet}", *CLEAN


def _draw_failing(page: Page, answers: FleetHistory) -> None:
    if not answers.failing:
        return
    page.heading("nodes that keep failing")
    for failure in page.listed(answers.failing, FEW, "node"):
        what = ", ".join(f"{name} ({count}x)" if count > 1 else name for name, count in failure.failures[:3])
        words = f"{plural(failure.times, 'new failure')} from {failure.first} to {failure.last}: {what}"
        page.add(page.text("  ", (failure.host, "strong"), "  "), words)


def _draw_rising(page: Page, answers: FleetHistory) -> None:
    if not (answers.rising or answers.common):
        return
    page.heading("counters that rise")
    for growth in page.listed(answers.rising, FEW, "counter"):
        words = f"{growth.key} +{growth.count} in {spell_s(growth.hours * 3600)}"
        lead = page.text("  ", (growth.host, "strong"), " ", label_of(growth.part), "  ")
        page.add(lead, f"{words}; rises on {growth.parts} of {growth.total}")
    if answers.common:
        words = ", ".join(f"{key} ({parts} of {total})" for key, parts, total in answers.common[:FEW])
        page.add("  ", (f"on many parts, so no part's fault: {words}", "dim"))


def document(answers: FleetHistory) -> Document:
    """The whole answer as one object."""
    return document_of("history.HistoryDocument", answers, not_observed=_unjudged(answers))


def _unjudged(answers: FleetHistory) -> list[NotObserved]:
    """Why a check could not judge, with the nodes that this holds for, and what was not read."""
    unknown = (outcome for outcome in answers.outcomes if outcome.status is Status.UNKNOWN)
    nodes = grouped(((outcome.check, outcome.why), outcome.node) for outcome in unknown)
    unjudged = [NotObserved(check, f"{why} ({fold_hosts(texts)})") for (check, why), texts in nodes.items()]
    return [*unjudged, *(NotObserved("part of the input", text) for text in answers.aside)]
