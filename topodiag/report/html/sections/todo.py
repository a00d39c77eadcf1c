"""What to do: the steps of each cause in the order of what they win back, the check that shows it worked, and the
command that settles what is open. Each step can be copied."""

from __future__ import annotations

from topodiag.model.result import Result
from topodiag.model.verdict import Cause
from topodiag.report.html.interface import NAMES_ROOM, Anchors, Section, Sheet, causes_of, distinct
from topodiag.report.verdict.cause import is_fault
from topodiag.report.words import title_of
from topodiag.words.units import grouped, plural, short_hosts

MOST = 12
"""Kinds of fixes listed; a reader does the first and looks again."""


def section(sheet: Sheet) -> Section | None:
    """None where nothing is to be done."""
    result = sheet.result
    anchors = Anchors(result)
    tasks = _tasks(result, anchors)
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


def _tasks(result: Result, anchors: Anchors) -> list[dict[str, object]]:
    """Each kind of fix, with all places that need it."""
    causes = [
        cause
        for cause in causes_of(result)
        if cause.confirm or (cause.finding.fix and (result.verdict is not None or is_fault(cause.finding)))
    ]
    groups = grouped(((cause.finding.id, cause.finding.fix), cause) for cause in causes)
    return [_task(group, anchors) for group in groups.values()]


def _task(group: list[Cause], anchors: Anchors) -> dict[str, object]:
    first, findings = group[0].finding, [cause.finding for cause in group]
    where = anchors.where(first)
    if len(group) > 1:
        nodes = short_hosts([node for finding in findings for node in finding.where.nodes], NAMES_ROOM)
        where = f"{plural(len(group), 'place')}{' on ' + nodes if nodes else ''}"
    alike = len({finding.message for finding in findings}) == 1
    return {
        "check": first.id,
        "message": first.message if alike else title_of(first.id, anchors.dialect),
        "anchor": anchors.of(first),
        "where": where,
        "steps": first.fix,
        "confirm": distinct(words for cause in group for words in cause.confirm),
    }


def _settings(result: Result) -> dict[str, str | None]:
    """Variables of NCCL that the fixes set, None for one that they remove."""
    values: dict[str, str | None] = {}
    for finding in result.findings:
        for name, value in finding.settings:
            values.setdefault(name, value)
    return values
