"""The plugin line: one line, the right state, and unknown is never OK."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.printed import written
from tests.report import machines
from topodiag.model.finding import Severity
from topodiag.model.result import Result
from topodiag.report.formats.nagios import State, state_of
from topodiag.report.registry import report


def rendered(result):
    return written(report("nagios"), result)


def with_severity(severity):
    return replace(machines.sick(), findings=(machines.finding(severity=severity),))


@pytest.mark.parametrize(
    ("result", "state"),
    [
        (machines.healthy(), State.OK),
        (with_severity(Severity.INFO), State.OK),
        (with_severity(Severity.WARNING), State.WARNING),
        (machines.sick(), State.CRITICAL),
        (machines.without_gpus(), State.UNKNOWN),
        (machines.without_gpus(hung=True), State.UNKNOWN),
        (Result(), State.UNKNOWN),
        (replace(machines.healthy(), outcomes=()), State.UNKNOWN),
    ],
)
def test_the_state_follows_the_worst_finding_and_unknown_is_not_ok(result, state):
    assert state_of(result) is state
    assert rendered(result).startswith(f"TOPODIAG {state.name} - ")


def test_the_line_names_the_worst_findings_and_has_performance_data():
    text, _, data = rendered(machines.sick()).partition(" | ")
    assert "2 errors, 1 warning: NVL001 GPU3 has 12 of 18 NVLinks active" in text
    assert data.split()[:2] == ["errors=2;;1;0", "warnings=1;1;;0"]


@given(st.text())
def test_any_message_stays_one_line_with_one_bar(message):
    made = rendered(replace(machines.sick(), findings=(machines.finding(message=message),)))
    assert made.count("\n") == 1
    assert made.count("|") == 1
    assert made.isascii()
