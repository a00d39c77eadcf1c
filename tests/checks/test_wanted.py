"""Rows that want something else than there is are seen, and rows that change what is not there are refused."""

from typing import Any

import pytest

from tests.checks.bent import machine
from tests.checks.wanted import Wanted, shown
from tests.tables import examples
from topodiag.model.finding import Confidence, Cost, Finding, Outcome, Severity, Status, Where

FINDING = Finding(
    "NVL001", Severity.ERROR, "GPU3 has 16 of 18", "", "", ("Reset it.", "Replace it."), Where(gpus=("GPU3",)),
    Cost(gbs_lost=41.2), confidence=Confidence.MEDIUM,
)  # fmt: skip
OUTCOMES = {
    "FOUND": Outcome("NVL001", Status.FINDING, findings=(FINDING,)),
    "CLEAN": Outcome("NVL001", Status.CLEAN, why="left to NVL005"),
}


@examples("outcome", "right", "wrong")
def test_what_an_outcome_has_is_shown_as_wanted_or_as_it_is(outcome: str, right: Wanted, wrong: Wanted) -> None:
    assert shown(OUTCOMES[outcome], right) == right
    assert shown(OUTCOMES[outcome], wrong) != wrong


@examples("changes")
def test_a_change_of_what_is_not_there_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises((AssertionError, AttributeError, TypeError, KeyError)):
        machine("hgx_h100", changes)
