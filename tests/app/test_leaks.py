"""What `--redact` leaves in any channel of lines with names, addresses and secrets planted in them: nothing."""

import pytest

from benchmarks.field import Case, cases
from benchmarks.leaks import leaks

SAMPLE = cases()[::110]
"""All of them take some minutes: `python benchmarks/leaks.py`."""


@pytest.mark.parametrize("case", SAMPLE, ids=[case.name for case in SAMPLE])
def test_nothing_that_is_planted_in_a_known_text_comes_out(case: Case) -> None:
    assert leaks(case) == []


def test_nothing_that_is_planted_in_a_fleet_or_a_sweep_comes_out() -> None:
    assert leaks(None) == []
