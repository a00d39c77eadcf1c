"""Published healthy results, each expected by a calibration that never saw its system: near enough, and never low."""

import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from benchmarks.calibrating import Observation, fit
from topodiag.expect.calibration import calibration
from topodiag.expect.expect import verdict_of

ROOT = Path(__file__).parents[2]
PUBLISHED = ROOT.parent / "shared" / "corpus" / "healthy.csv"

needs_results = pytest.mark.skipif(not PUBLISHED.exists(), reason=f"no published results at {PUBLISHED}")

WITHIN, SHARE = 0.15, 0.85


@cache
def published() -> tuple[list[Any], list[Observation], int]:
    """The rows that name a machine, what each measured over the raw model, and how many rows there are at all."""
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        from healthy_rows import MORE, observations, rows  # noqa: PLC0415 - a script beside the package
    finally:
        sys.path.pop(0)
    every = rows(PUBLISHED)
    healthy = [row for row in every if not row.none]
    more = [row for row in rows(MORE) if not row.none]
    return healthy, list(observations([*healthy, *more])), len(every)


@cache
def held_out() -> list[tuple[str, float, str]]:
    """Row, error of the expectation, verdict."""
    healthy, seen, _ = published()
    rows = []
    for row in healthy:
        fitted = fit((observation for observation in seen if observation.system != row.group), calibration().tolerances)
        expectation = row.expected(fitted).expectation
        assert expectation is not None, row.name
        wanted = expectation.busbw.get(row.size, expectation.busbw_gbs)
        rows.append((row.name, wanted / row.busbw - 1, verdict_of(row.run, expectation).word))
    return rows


@needs_results
def test_most_of_all_rows_are_expected_within_fifteen_percent() -> None:
    errors = [error for _, error, _ in held_out()]
    assert sum(abs(error) <= WITHIN for error in errors) / published()[2] >= SHARE


@needs_results
def test_no_healthy_row_is_called_low_or_impossible() -> None:
    assert [row for row in held_out() if row[2] not in ("normal", "unknown")] == []


@needs_results
def test_the_shipped_factors_are_those_of_a_fit_on_all_rows() -> None:
    shipped, factors = calibration().factors, fit(published()[1]).factors
    assert shipped.keys() == factors.keys()
    assert all(abs(shipped[key].factor - factors[key].factor) < 0.001 for key in factors)
