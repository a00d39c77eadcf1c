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
FOUND = Outcome("NVL001", Status.FINDING, findings=(FINDING,))
CLEAN = Outcome("NVL001", Status.CLEAN, why="left to NVL005")


@pytest.mark.parametrize(
    ("outcome", "right", "wrong"),
    [
        (CLEAN, "clean", "finding"),
        (CLEAN, {"status": "clean", "why": "*NVL005*"}, {"status": "clean", "why": "NVL005"}),
        (FOUND, {"severity": "ERROR", "confidence": "MEDIUM"}, {"severity": "ERROR", "confidence": "HIGH"}),
        (FOUND, {"message": "GPU3*"}, {"message": "GPU4*"}),
        (FOUND, {"message": ["*GPU3*", "*18"]}, {"message": ["*GPU3*", "*17"]}),
        (FOUND, {"gpus": ["GPU3"]}, {"gpus": ["GPU3", "GPU4"]}),
        (FOUND, {"gpus": ["GPU3"]}, {"gpus": []}),
        (FOUND, {"fix": "Replace*", "first_step": "Reset*"}, {"first_step": "Replace*"}),
        (FOUND, {"gbs_lost": 41.2, "share": "null"}, {"gbs_lost": 41.0}),
        (FOUND, {"gbs_lost": "> 41"}, {"gbs_lost": "> 42"}),
    ],
)
def test_what_an_outcome_has_is_shown_as_wanted_or_as_it_is(outcome: Outcome, right: Wanted, wrong: Wanted) -> None:
    assert shown(outcome, right) == right
    assert shown(outcome, wrong) != wrong


@examples("changes")
def test_a_change_of_what_is_not_there_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises((AssertionError, AttributeError, TypeError, KeyError)):
        machine("hgx_h100", changes)
