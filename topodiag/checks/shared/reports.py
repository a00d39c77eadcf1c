"""Findings from sentences: what a program, an agent or a person reports, where the check itself found no fault.

reports.toml names the events that a check answers for, with the words for each. The sentence is a verdict without
its evidence: of a program or an agent an error of medium confidence, of a person a warning of low confidence, and
nothing where the check looked and found all well.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache

from topodiag.lazy import dataclass
from topodiag.model.events import Event, Trust
from topodiag.model.finding import Confidence, Cost, Finding, Outcome, Severity, Status, Where
from topodiag.model.node import Node
from topodiag.words.own_data import own_data
from topodiag.words.units import grouped, plural

MOST_SHOWN = 8
MAX_QUOTE = 160
_SPEAKERS = {
    Trust.PROGRAM: "as a program says",
    Trust.AGENT: "by the word of a scheduler or a monitor",
    Trust.PERSON: "by the words of the text",
}


@dataclass(frozen=True, slots=True)
class Report:
    """The words for one kind of event: what is wrong, what should be, what it costs, and what to look at first.
    `passing` for what connections live through: a remark. `optional` for a part that a node may do without, by what
    its GPUs are: nothing is said of it where the check does not apply to them."""

    event: str
    wrong: str
    expected: str
    look: str
    cost: str = "a job on this node meets the fault, or does not start there"
    passing: bool = False
    optional: bool = False


@cache
def answered_by(check_id: str) -> tuple[Report, ...]:
    """What a check answers for, in the order of reports.toml."""
    return tuple(Report(**entry) for entry in own_data("checks/shared/reports").get(check_id, ()))


def with_reports(outcome: Outcome, node: Node, reports: Sequence[Report]) -> Outcome:
    """The outcome of a check with what others report of the same fault, where it found none itself."""
    if any(finding.severity > Severity.INFO for finding in outcome.findings):
        return outcome
    findings = tuple(_findings(outcome, node, reports))
    if not findings:
        return outcome
    return Outcome(outcome.check, Status.FINDING, node.host, (*findings, *outcome.findings), coverage=outcome.coverage)


def _findings(outcome: Outcome, node: Node, reports: Sequence[Report]) -> Iterator[Finding]:
    for report in reports:
        if report.optional and outcome.status is Status.NOT_APPLICABLE and node.gpus:
            continue
        by_place = grouped(
            ((event.host or node.host, event.trust), event)
            for event in _of_kind(node, report.event)
            if not (event.trust is Trust.PERSON and outcome.status is Status.CLEAN)
        )
        for (host, trust), events in by_place.items():
            yield _finding(outcome.check, report, host, trust, events)


def _of_kind(node: Node, kind: str) -> Iterable[Event]:
    """The events of a kind, one for a line: where two readers take it, the one that names its host."""
    by_line = grouped(((event.origin.source, event.origin.line), event) for event in node.reports if event.kind == kind)
    return [next((event for event in own if event.host), own[0]) for own in by_line.values()]


def _finding(check: str, report: Report, host: str, trust: Trust, events: Sequence[Event]) -> Finding:
    quote = events[0].text[:MAX_QUOTE]
    others = len(events) - 1
    more = f", and {plural(others, 'other line')} alike" if others else ""
    known = trust is not Trust.PERSON
    fields = events[0].fields
    counted = f" ({fields['count']} of {fields['expected']})" if {"count", "expected"} <= fields.keys() else ""
    return Finding(
        id=check,
        severity=Severity.INFO if report.passing else Severity.ERROR if known else Severity.WARNING,
        message=f"{report.wrong}{counted}, {_SPEAKERS[trust]}: {quote}{more}",
        observed=quote,
        expected=report.expected,
        fix=(report.look, "this sentence is all that was given: `topodiag scan` on the node shows more"),
        where=Where(nodes=(host,)),
        cost=Cost(text=report.cost),
        evidence=tuple(event.origin for event in events[:MOST_SHOWN]),
        confidence=Confidence.MEDIUM if known else Confidence.LOW,
    )
