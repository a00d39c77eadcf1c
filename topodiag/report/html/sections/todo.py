"""What to do: the steps of each cause in the order of what they win back, the check that shows it worked, and the
command that settles what is open. Each step can be copied."""

from __future__ import annotations

from topodiag.model.finding import Finding, Severity
from topodiag.model.result import Result
from topodiag.model.verdict import Verdict
from topodiag.report.html.interface import Section, Sheet
from topodiag.report.html.sections.shared import NAMES_ROOM, Anchors, distinct
from topodiag.report.words import title_of
from topodiag.words.fold import grouped, plural, short_hosts

MOST = 12
"""Kinds of fixes listed; a reader does the first and looks again."""


def section(sheet: Sheet) -> Section | None:
    """None where nothing is to be done."""
    result = sheet.result
    anchors = Anchors(result)
    tasks = _of_verdict(result.verdict, anchors) if result.verdict is not None else _of_findings(result, anchors)
    settings = _settings(result)
    unset = [f"unset {name}" for name, value in settings.items() if value is None]
    open_steps = result.verdict.next_evidence if result.verdict is not None else ()
    if not (tasks or settings or open_steps):
        return None
    values = {
        "tasks": tasks[:MOST],
        "left": max(len(tasks) - MOST, 0),
        "unset": unset,
        "next_evidence": open_steps,
        "settings": [f"{name}={value}" for name, value in settings.items() if value is not None],
    }
    return Section("todo", "What to do", values)


def _of_verdict(verdict: Verdict, anchors: Anchors) -> list[dict[str, object]]:
    tasks = []
    for (_, fix), causes in grouped(((cause.finding.id, cause.finding.fix), cause) for cause in verdict.causes).items():
        confirm = distinct(words for cause in causes for words in cause.confirm)
        if fix or any(cause.confirm for cause in causes):
            tasks.append(_task([cause.finding for cause in causes], anchors, confirm))
    return tasks


def _of_findings(result: Result, anchors: Anchors) -> list[dict[str, object]]:
    groups = grouped(
        ((finding.id, finding.fix), finding)
        for finding in result.findings
        if finding.fix and finding.follows is None and finding.severity > Severity.INFO
    )
    return [_task(group, anchors, []) for group in groups.values()]


def _task(group: list[Finding], anchors: Anchors, confirm: list[str]) -> dict[str, object]:
    """One kind of fix, with all places that need it."""
    first = group[0]
    where = anchors.where(first)
    if len(group) > 1:
        nodes = short_hosts([node for finding in group for node in finding.where.nodes], NAMES_ROOM)
        where = f"{plural(len(group), 'place')}{' on ' + nodes if nodes else ''}"
    alike = len({finding.message for finding in group}) == 1
    return {
        "check": first.id,
        "message": first.message if alike else title_of(first.id, anchors.dialect),
        "anchor": anchors.of(first),
        "where": where,
        "steps": list(first.fix),
        "confirm": confirm,
    }


def _settings(result: Result) -> dict[str, str | None]:
    """Variables of NCCL that the fixes set, None for one that they remove."""
    values: dict[str, str | None] = {}
    for finding in result.findings:
        for name, value in finding.settings:
            values.setdefault(name, value)
    return values
