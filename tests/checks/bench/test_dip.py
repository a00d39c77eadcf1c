"""BEN003: a size that is slower than smaller ones; noise, small sizes and what the model expects stay silent."""

from dataclasses import replace

import pytest

from tests.checks.benches import GROWING, MIB, Given, benchmark, expectation, judge, of_row, sweep
from tests.checks.nodes import only
from tests.checks.wanted import Wanted, shown
from tests.tables import examples
from topodiag.model.bench import BenchRow, Timing
from topodiag.model.finding import Status

DIP = GROWING | {64 * MIB: 120.0}


@examples("given", "wanted")
def test_sizes_that_fall_behind_smaller_ones(given: Given, wanted: Wanted) -> None:
    assert shown(judge("BEN003", of_row(given)), wanted) == wanted


def test_a_size_with_a_fraction_is_an_option_of_nccl_tests() -> None:
    finding = only(judge("BEN003", benchmark(sweep(GROWING | {12562575360: 30.0}))))
    assert finding.confirm == (("LOW", "8G"), ("HIGH", "11.7G"))


def test_a_size_that_is_slow_in_one_block_only_is_noise() -> None:
    run = sweep(DIP)
    rows = tuple(replace(row, in_place=Timing(1.0, 160.0, 300.0)) if row.size == 64 * MIB else row for row in run.rows)
    assert judge("BEN003", benchmark(replace(run, rows=rows))).status is Status.CLEAN


def test_one_slow_repetition_among_others_is_noise() -> None:
    run = sweep(GROWING)
    again = BenchRow(64 * MIB, out_of_place=Timing(1.0, 50.0, 90.0))
    assert judge("BEN003", benchmark(replace(run, rows=(*run.rows, again)))).status is Status.CLEAN


@pytest.mark.parametrize(("in_place", "unsteady"), [(70.0, True), (20.0, False)])
def test_blocks_of_one_size_that_lie_far_apart_show_an_unsteady_run_and_no_algorithm(
    in_place: float, unsteady: bool
) -> None:
    run = sweep(DIP | {MIB: 15.0})
    rows = tuple(replace(row, in_place=Timing(1.0, 9.0, in_place)) if row.size == MIB else row for row in run.rows)
    expected = expectation(terms=(("NCCL runs", "Ring/Simple", f"from {64 * MIB} B"),))
    finding = only(judge("BEN003", benchmark(replace(run, rows=rows), expected=expected)))
    assert ("(unsteady: 15 and 70 GB/s at 1 MiB)" in finding.message) is unsteady
    assert ("may go over to Ring/Simple" in finding.message) is not unsteady
    assert any("NCCL_PROTO" in step for step in finding.fix) is not unsteady
