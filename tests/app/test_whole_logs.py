"""Whole logs of many frameworks: the state and the first cause are right, and nobody is accused or cleared wrongly."""

from pathlib import Path

import pytest

from fixtures.whole import CASES, Case
from tests.files import laid
from topodiag.api import diagnose


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_verdict_of_a_whole_log(case: Case, tmp_path: Path) -> None:
    verdict = diagnose([str(laid(tmp_path, case.files))]).verdict
    causes = [cause.finding.id for cause in verdict.causes]
    assert verdict.state.value in case.states
    assert (causes[0] if causes else "") in case.first
    assert not set(causes) & set(case.must_not)
