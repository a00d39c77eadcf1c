"""The page of `topodiag diagnose`: the answer first, then why, where, what to change, its proof, what is open."""

from __future__ import annotations

from collections import Counter

from topodiag.model.result import Result
from topodiag.model.verdict import State, Verdict
from topodiag.report.drawn import DrawnReport
from topodiag.report.findings import where_words
from topodiag.report.gaps import draw_gaps
from topodiag.report.node.marks import more
from topodiag.report.text import Page, Part
from topodiag.report.verdict.cause import (
    draw_answer,
    draw_change,
    draw_cost,
    draw_proof,
    draw_where,
    draw_why,
    entry,
    is_fault,
)
from topodiag.report.verdict.places import Places
from topodiag.report.verdict.when import draw_when
from topodiag.words.fold import few, plural

SIGNS = {
    State.FAILED: ("✖", "FAILED", "error"),
    State.HUNG: ("✖", "HUNG", "error"),
    State.SLOW: ("▲", "SLOW", "warning"),
    State.AT_RISK: ("▲", "AT RISK", "warning"),
    State.HEALTHY: ("✔", "HEALTHY", "ok"),
    State.UNKNOWN: ("?", "UNKNOWN", "unknown"),
}
"""Sign, word and hue of a state: never the hue alone."""
CAUSES_SHOWN = 4
LINES_SHOWN = 4
FEW_LINES = 10
"""A page that is on the screen as a whole needs no repetition."""


class VerdictTable(DrawnReport):
    """What a person reads of a whole case."""

    def draw(self, page: Page, result: Result) -> None:
        assert result.verdict is not None  # noqa: S101 - only a diagnosis is drawn so
        draw_verdict(page, result, result.verdict)


def draw_verdict(page: Page, result: Result, verdict: Verdict) -> None:
    """The whole page."""
    _draw_headline(page, verdict)
    if verdict.causes:
        draw_answer(page, verdict.causes[0])
        _draw_others(page, verdict)
    for words in verdict.first:
        entry(page, "first", (words, "strong"))
    if page.style.quiet:
        return
    _draw_jobs(page, verdict)
    if verdict.causes:
        page.blank()
        _draw_causes(page, result, verdict)
        draw_when(page, result)
    page.blank()
    _draw_rest(page, result, verdict)
    if page.style.verbose:
        draw_gaps(page, result)
    if len(page.lines) > FEW_LINES:
        page.blank()
        _draw_headline(page, verdict)


def _draw_headline(page: Page, verdict: Verdict) -> None:
    sign, word, hue = SIGNS[verdict.state]
    page.add(page.text((f"{sign} {word}", hue), "  "), (verdict.headline, "strong"))


def _draw_others(page: Page, verdict: Verdict) -> None:
    """The other causes by their checks, so that the first lines hide none."""
    others = Counter(cause.finding.id for cause in verdict.causes[1:])
    if others:
        words = [f"{check} ×{count}" if count > 1 else check for check, count in others.items()]
        entry(page, "also", f"{plural(len(verdict.causes) - 1, 'more cause')}: {few(words, 8)}")


def _draw_jobs(page: Page, verdict: Verdict) -> None:
    """Where there are several jobs and runs, the state of each."""
    if len(verdict.jobs) < 2:
        return
    shown = verdict.jobs if page.style.verbose else verdict.jobs[: 2 * LINES_SHOWN]
    for number, job in enumerate(shown):
        sign, word, hue = SIGNS[job.state]
        cause = ", ".join(verdict.causes[at].finding.id for at in job.causes)
        words: list[str | tuple[str, str]] = [(f"{sign} {word.lower()}", hue), f"  {job.name}"]
        if cause:
            words.append((f"  {cause}", "dim"))
        entry(page, "jobs" if number == 0 else "", *words)
    if len(verdict.jobs) > len(shown):
        entry(page, "", (more(len(verdict.jobs) - len(shown), "job"), "dim"))


def _draw_causes(page: Page, result: Result, verdict: Verdict) -> None:
    places = Places(result)
    shown = verdict.causes if page.style.verbose else verdict.causes[:CAUSES_SHOWN]
    for number, cause in enumerate(shown):
        if number:
            page.blank()
            page.add(page.text("  ", (f"cause {number + 1} of {len(verdict.causes)}", "strong")))
        draw_why(page, cause)
        draw_where(page, cause, result)
        if number:
            draw_cost(page, cause)
        draw_change(page, cause, told=number == 0)
        draw_proof(page, cause, places)
    if len(verdict.causes) > len(shown):
        page.blank()
        page.add("  ", (more(len(verdict.causes) - len(shown), "cause"), "dim"))


def _draw_rest(page: Page, result: Result, verdict: Verdict) -> None:
    """What bears on nothing, what it is not, what is open, what it rests on, and what would settle it."""
    _draw_beside(page, verdict)
    for number, conflict in enumerate(result.identity.conflicts[: _most(page)]):
        entry(page, "clash" if number == 0 else "", (conflict.subject, "strong"), f": {conflict.text}", hue="doubtful")
    _draw_ruled_out(page, verdict)
    told = {cause.price.says for cause in verdict.causes}
    open_ = [words for words in verdict.not_explained if words not in told]
    for number, words in enumerate(open_[: _most(page)]):
        entry(page, "open" if number == 0 else "", words, hue="doubtful")
    _draw_more(page, len(open_), "line")
    _items(page, "joined", list(verdict.joined))
    for number, step in enumerate(verdict.next_evidence):
        on = f" on {step.where}" if step.where else ""
        entry(page, "next" if number == 0 else "", (step.command, "close"), f"{on}: {step.why or step.what}", hue="ok")


def _draw_beside(page: Page, verdict: Verdict) -> None:
    """Faults that no job met. Where nothing else is said, what was seen without being a fault is all there is to go
    on."""
    everything = page.style.verbose or verdict.state is State.UNKNOWN
    beside = [each for each in verdict.unrelated if everything or is_fault(each)]
    for number, finding in enumerate(beside[: _most(page)]):
        where = where_words(finding.where, several_nodes=True)
        entry(page, "beside" if number == 0 else "", (finding.id, str(finding.severity)), "  ", finding.message,
              (f"  {where}" if where else "", "dim"))  # fmt: skip
    _draw_more(page, len(beside), "finding")


def _most(page: Page) -> int | None:
    """Lines of one kind that the page shows; None for all."""
    return None if page.style.verbose else LINES_SHOWN


def _draw_more(page: Page, count: int, what: str) -> None:
    if count > LINES_SHOWN and not page.style.verbose:
        entry(page, "", (more(count - LINES_SHOWN, what), "dim"))


def _draw_ruled_out(page: Page, verdict: Verdict) -> None:
    if not verdict.ruled_out:
        return
    if not page.style.verbose:
        entry(page, "not", few([each.what for each in verdict.ruled_out], 12), (" (-v says by what)", "dim"))
        return
    for number, each in enumerate(verdict.ruled_out):
        entry(page, "not" if number == 0 else "", (each.what, "strong"), f": {each.by}")


def _items(page: Page, label: str, items: list[Part]) -> None:
    if items:
        page.add_items(page.text("  ", (f"{label:<8}", "dim")), items)
