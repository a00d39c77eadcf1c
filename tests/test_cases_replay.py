"""Every situation of every check: what fires it, each reason to stay silent, what leaves it unknown."""

import json
from pathlib import Path
from typing import Any

import pytest

from fixtures.generate.cases import standing
from topodiag.app.scan import scan as diagnose

FOLDER = Path(__file__).parent.parent / "fixtures" / "checks"
CASES = [
    pytest.param(place.parent.name, case, id=f"{place.parent.name}-{case['name']}")
    for place in sorted(FOLDER.glob("*/cases.json"))
    for case in json.loads(place.read_text())
]


@pytest.fixture(scope="module")
def bases(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("bases")


@pytest.mark.parametrize(("check", "case"), CASES)
def test_the_check_answers_as_the_situation_was_made(check: str, case: dict[str, Any], bases: Path) -> None:
    with standing(case, bases) as node:
        result = diagnose([str(node)])
    answers = {outcome.check: (outcome.status.value, outcome.why) for outcome in result.outcomes}
    status, why = answers[check]
    assert status == case["expect"], f"{case['why']}; the check says: {why}"
