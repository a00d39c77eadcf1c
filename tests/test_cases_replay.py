"""Every situation of every check: what fires it, each reason to stay silent, what leaves it unknown."""

import json
from pathlib import Path
from typing import Any

import pytest

from fixtures.generate.cases import materialise
from topodiag.app.scan import scan as diagnose

FOLDER = Path(__file__).parent.parent / "fixtures" / "checks"
CASES = [
    pytest.param(place.parent.name, case, id=f"{place.parent.name}-{case['name']}")
    for place in sorted(FOLDER.glob("*/cases.json"))
    for case in json.loads(place.read_text())
]


@pytest.mark.parametrize(("check", "case"), CASES)
def test_the_check_answers_as_the_situation_was_made(check: str, case: dict[str, Any], tmp_path: Path) -> None:
    materialise(case, tmp_path / "node")
    result = diagnose([str(tmp_path / "node")])
    answers = {outcome.check: (outcome.status.value, outcome.why) for outcome in result.outcomes}
    status, why = answers[check]
    assert status == case["expect"], f"{case['why']}; the check says: {why}"
