"""What the rows of a table want of an outcome: its status, fields of it, or fields of its one finding."""

from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from typing import Any

import pytest

from tests.checks.nodes import only
from topodiag.model.finding import Cost, Finding, Outcome, Status, Where

Wanted = str | dict[str, Any]
"""A status by its value, or values by the names of fields: those of the outcome where its status is among them, or else
those of its one finding, with its `where` and its `cost`.

A text with `*` is a pattern that a text matches, or one of several texts; several of them are matched by one text. A
number may be wanted as above another one: `> 0.1`."""

_OF_FINDING: dict[str, Callable[[Finding], Any]] = {
    "severity": lambda finding: finding.severity.name,
    "confidence": lambda finding: finding.confidence.name,
    "cost": lambda finding: finding.cost.text,
    "coverage": lambda finding: str(finding.coverage),
    "evidence": lambda finding: [origin.text for origin in finding.evidence],
    "sources": lambda finding: [origin.source for origin in finding.evidence],
    "places": lambda finding: [str(origin) for origin in finding.evidence],
    "first_step": lambda finding: finding.fix[0],
}


def shown(outcome: Outcome, wanted: Wanted) -> Wanted:
    """What an outcome has where `wanted` says what it should have; what is as wanted is shown as it was written."""
    if isinstance(wanted, str):
        return outcome.status.value
    if "status" in wanted:
        have = {"status": outcome.status.value, "why": outcome.why, "coverage": str(outcome.coverage)}
    else:
        finding = only(outcome)
        have = {name: _part(finding, name) for name in wanted}
    return {name: value if matches(have[name], value) else have[name] for name, value in wanted.items()}


def expect(judged: Outcome | Sequence[Finding], **wanted: Any) -> Any:
    """Assert that an outcome is as wanted, or its one finding, or that of a list; gives back which of them it was."""
    outcome = judged if isinstance(judged, Outcome) else Outcome("", Status.FINDING, findings=tuple(judged))
    assert shown(outcome, wanted) == wanted
    return outcome if "status" in wanted else only(outcome)


def _part(finding: Finding, name: str) -> Any:
    if name in _OF_FINDING:
        return _OF_FINDING[name](finding)
    owner = finding.where if name in Where.__slots__ else finding.cost if name in Cost.__slots__ else finding
    return getattr(owner, name)


def matches(value: Any, wanted: Any) -> bool:
    """Whether a value is as a row wants it."""
    if isinstance(value, str) and isinstance(wanted, list):
        return all(matches(value, pattern) for pattern in wanted)
    if isinstance(value, list | tuple) and isinstance(wanted, str):
        return any(matches(item, wanted) for item in value)
    if isinstance(value, list | tuple):
        return len(value) == len(wanted) and all(map(matches, value, wanted))
    if isinstance(value, str) and "*" in wanted:
        return fnmatchcase(value, wanted)
    if isinstance(value, float) and isinstance(wanted, str):
        return wanted.startswith("> ") and value > float(wanted[2:])
    if isinstance(value, float):
        return bool(value == pytest.approx(wanted))
    return bool(("null" if value is None else value) == wanted)


def assert_complete(finding: Finding) -> None:
    """A finding says in one line what is wrong, what was observed and expected, what to do and what it costs."""
    assert finding.message
    assert "\n" not in finding.message
    assert finding.observed
    assert finding.expected
    assert finding.fix
    assert finding.cost.text or finding.cost.gbs_lost is not None or finding.cost.share is not None
