"""BEN003: a size that is slower than smaller ones; noise, small sizes and what the model expects stay silent."""

from __future__ import annotations

from dataclasses import replace

from tests.checks.benches import GIB, GROWING, KIB, MIB, benchmark, expectation, judge, sweep
from topodiag.model.bench import BenchRow, Timing
from topodiag.model.finding import Severity, Status

DIP = GROWING | {64 * MIB: 120.0}


def test_a_dip_is_told_with_both_sizes_and_where_it_recovers() -> None:
    outcome = judge("BEN003", benchmark(sweep(DIP)))
    (finding,) = outcome.findings
    assert "falls from 200 GB/s at 16 MiB to 120 at 64 MiB" in finding.message
    assert "is back at 256 MiB" in finding.message
    assert finding.severity is Severity.INFO


def test_a_switch_of_algorithm_between_the_sizes_is_named() -> None:
    switching = expectation(terms=(("NCCL runs", "Ring/Simple", f"from {64 * MIB} B"),))
    finding = judge("BEN003", benchmark(sweep(DIP), expected=switching)).findings[0]
    assert "goes over to Ring/Simple" in finding.message
    assert "NCCL_PROTO=^Simple" in finding.fix[-1]


def test_a_cliff_does_not_recover() -> None:
    cliff = GROWING | {256 * MIB: 50.0, GIB: 50.0, 8 * GIB: 48.0}
    finding = judge("BEN003", benchmark(sweep(cliff))).findings[0]
    assert "does not recover" in finding.message
    assert finding.severity is Severity.WARNING


def test_a_cliff_shows_with_four_sizes() -> None:
    four = {16 * MIB: 40.0, 64 * MIB: 43.0, 256 * MIB: 5.0, GIB: 5.0}
    made = benchmark(sweep(four), expected=None)
    assert "does not recover" in judge("BEN003", made).findings[0].message


def test_four_sizes_are_too_few_for_a_dip_of_less_than_half() -> None:
    four = {16 * MIB: 40.0, 64 * MIB: 43.0, 256 * MIB: 30.0, GIB: 43.0}
    assert judge("BEN003", benchmark(sweep(four), expected=None)).status is Status.UNKNOWN


def test_a_single_row_at_a_fiftieth_is_an_error() -> None:
    finding = judge("BEN003", benchmark(sweep(GROWING | {64 * MIB: 4.0}))).findings[0]
    assert finding.severity is Severity.ERROR


def test_a_growing_sweep_is_clean() -> None:
    assert judge("BEN003", benchmark()).status is Status.CLEAN


def test_a_tenth_less_is_no_dip() -> None:
    assert judge("BEN003", benchmark(sweep(GROWING | {64 * MIB: 180.0}))).status is Status.CLEAN


def test_a_size_that_is_slow_in_one_block_only_is_noise() -> None:
    run = sweep(DIP)
    rows = tuple(replace(row, in_place=Timing(1.0, 160.0, 300.0)) if row.size == 64 * MIB else row for row in run.rows)
    assert judge("BEN003", benchmark(replace(run, rows=rows))).status is Status.CLEAN


def test_one_slow_repetition_among_others_is_noise() -> None:
    run = sweep(GROWING)
    again = BenchRow(64 * MIB, out_of_place=Timing(1.0, 50.0, 90.0))
    assert judge("BEN003", benchmark(replace(run, rows=(*run.rows, again)))).status is Status.CLEAN


def test_small_sizes_are_not_looked_at() -> None:
    assert judge("BEN003", benchmark(sweep(GROWING | {8: 5.0}))).status is Status.CLEAN


def test_a_fall_that_the_model_expects_is_none() -> None:
    falling = expectation(busbw={16 * MIB: 200.0, 64 * MIB: 110.0})
    assert judge("BEN003", benchmark(sweep(DIP), expected=falling)).status is Status.CLEAN


def test_few_sizes_are_unknown_and_one_rank_is_not_applicable() -> None:
    assert judge("BEN003", benchmark(sweep({MIB: 9.0, GIB: 1.0}))).status is Status.UNKNOWN
    assert judge("BEN003", benchmark(replace(sweep(DIP), nranks=1))).status is Status.NOT_APPLICABLE


def test_it_needs_no_expectation() -> None:
    assert judge("BEN003", benchmark(sweep(DIP), expected=None)).status is Status.FINDING
    assert judge("BEN003", benchmark(sweep(DIP | {64 * KIB: 0.01}), expected=None)).status is Status.FINDING
