"""BEN004: wrong elements are an error; validation that was off says nothing."""

from dataclasses import replace

from tests.checks.benches import MIB, benchmark, judge, sweep
from tests.checks.wanted import expect
from topodiag.model.bench import BenchRow, Timing
from topodiag.model.finding import Status


def with_wrong(*wrong: float | None) -> object:
    rows = tuple(BenchRow((1 << at) * MIB, out_of_place=Timing(1.0, 1.0, 1.0, each)) for at, each in enumerate(wrong))
    return benchmark(sweep(rows=rows, out_of_bounds=None))


def test_wrong_elements_are_an_error_at_their_sizes() -> None:
    outcome = judge("BEN004", with_wrong(0.0, 3.0, 0.0))  # type: ignore[arg-type]
    expect(outcome, severity="ERROR", message="*3 wrong values at 2 MiB*")


def test_values_out_of_bounds_count_without_a_column() -> None:
    outcome = judge("BEN004", benchmark(sweep(out_of_bounds=7)))
    assert outcome.status is Status.FINDING
    assert "7 wrong values" in outcome.findings[0].message


def test_checked_and_right_is_clean() -> None:
    assert judge("BEN004", benchmark()).status is Status.CLEAN


def test_validation_that_was_off_is_not_applicable() -> None:
    assert judge("BEN004", with_wrong(None, None)).status is Status.NOT_APPLICABLE  # type: ignore[arg-type]
    off = replace(sweep(), parameters={"validation": "0"})
    assert judge("BEN004", benchmark(off)).status is Status.NOT_APPLICABLE


def test_a_run_without_rows_is_unknown() -> None:
    assert judge("BEN004", benchmark(replace(sweep(), rows=()))).status is Status.UNKNOWN


def test_it_needs_no_machine() -> None:
    assert judge("BEN004", benchmark(sweep(out_of_bounds=1), expected=None)).status is Status.FINDING
