"""How well each cause is founded, and what speaks against it: never more certain than the evidence."""

from dataclasses import replace
from typing import Any

import pytest

from tests.tables import examples
from tests.verdict.judged import LOG, Given, running, seen, shown, verdict, verdict_of
from tests.verdict.test_order import found
from topodiag.model.finding import Cost, Follows, Severity
from topodiag.model.result import Result
from topodiag.model.verdict import CauseStatus
from topodiag.verdict.judge import judge

# -- how well a cause is founded --


@examples("case", "findings", "benchmarks", "wanted")
def test_how_well_a_cause_is_founded(
    case: Given, findings: list[Any], benchmarks: list[Any] | None, wanted: Given
) -> None:
    assert shown(verdict_of(case, findings, benchmarks=benchmarks), wanted) == wanted


@pytest.mark.parametrize("check", ["BEN001", "NET006", "NET007", "NET008", "NIC005", "TOP004", "NET001", "JOB001"])
def test_an_effect_that_is_seen_without_its_cause_is_never_established(check: str) -> None:
    [cause] = verdict(seen(check, line=LOG, cost=Cost(1.0, 0.3)), case=running()).causes
    assert cause.status is not CauseStatus.ESTABLISHED


def test_a_note_that_a_job_follows_from_is_never_established() -> None:
    note, below = seen("HST006", Severity.INFO), seen("JOB006", line=LOG)
    above = Follows("HST006", note.message, "it lasted as long")
    [cause] = judge(Result(findings=(note, replace(below, follows=above))), running()).causes
    assert (cause.finding.id, cause.status) == ("HST006", CauseStatus.LIKELY)


def test_a_cause_without_a_line_of_evidence_is_not_established() -> None:
    assert verdict(found("PCI001")).causes[0].status is CauseStatus.LIKELY
