"""Normal, low, impossible or unknown: the greatest size against its expectation, and every size against the wires."""

from __future__ import annotations

from dataclasses import replace

from tests.expect.measured_runs import GIB, run
from topodiag.expect.expect import expect
from topodiag.expect.verdict import is_severe, verdict_of
from topodiag.model.bench import BenchRow, BenchRun, Expectation, Timing
from topodiag.model.finding import Confidence
from topodiag.words.units import spell_gbs

EXPECTED = Expectation("the machine", 400.0, 350.0, 500.0, Confidence.HIGH, busbw={GIB: 390.0, 8192: 1.0})


def word(measured: BenchRun, expectation: Expectation | None = EXPECTED) -> str:
    return verdict_of(measured, expectation).word


def test_within_the_spread_of_healthy_machines_is_normal() -> None:
    assert word(run(busbw=400)) == "normal"
    assert word(run(busbw=351)) == "normal"
    assert word(run(busbw=450)) == "normal"


def test_below_it_is_low_and_says_by_how_much() -> None:
    verdict = verdict_of(run(busbw=200), EXPECTED)
    assert verdict.word == "low"
    assert verdict.ratio == 0.5
    assert "50 % short" in verdict.why


def test_a_size_is_held_to_its_own_expectation() -> None:
    assert word(run(busbw={GIB: 345})) == "normal"
    assert word(run(busbw={GIB: 340})) == "low"


def test_above_what_wires_carry_is_impossible_at_any_size() -> None:
    assert word(run(busbw={GIB: 390, 1 << 20: 600})) == "impossible"
    assert word(run(busbw=510)) == "normal"


def test_sizes_that_are_bound_by_latency_say_nothing_of_bandwidth() -> None:
    assert word(run(busbw={8192: 0.2})) == "unknown"


def test_the_better_block_counts() -> None:
    row = BenchRow(8 * GIB, out_of_place=Timing(busbw_gbs=100.0), in_place=Timing(busbw_gbs=400.0))
    assert word(replace(run(), rows=(row,))) == "normal"


def test_without_rows_ranks_or_a_machine_nothing_is_said() -> None:
    assert word(replace(run(), rows=())) == "unknown"
    assert word(run(ranks=1)) == "unknown"
    assert verdict_of(run(), None, "no GPU is named").why == "no GPU is named"


def test_a_guess_is_told_with_the_verdict() -> None:
    assert "guess" in verdict_of(run(busbw=10), replace(EXPECTED, confidence=Confidence.LOW)).why
    assert "guess" not in verdict_of(run(busbw=10), EXPECTED).why


def test_what_only_another_machine_that_fits_would_call_normal_is_left_open() -> None:
    guessed = replace(EXPECTED, low_gbs=20.0, own_low_gbs=200.0, least_of="a small one", confidence=Confidence.LOW)
    assert word(run(busbw=300), guessed) == "normal"
    open_ = verdict_of(run(busbw=100), guessed)
    assert open_.word == "unknown"
    assert "normal for a small one" in open_.why
    assert word(run(busbw=10), guessed) == "low"


def test_a_two_fold_shortfall_on_a_guessed_machine_is_low_or_another_machine() -> None:
    half = run(gpu="NVIDIA H100 80GB HBM3", ranks=16, hosts=2, busbw=476 * 0.53)
    verdict = verdict_of(half, expect(half))
    assert verdict.word == "unknown"
    assert "low, or another machine" in verdict.why
    # The bar that is told is the one that is used.
    expected = expect(half)
    bar, low = (gbs * expected.busbw[8 * GIB] / expected.busbw_gbs for gbs in (expected.normal_gbs, expected.low_gbs))
    assert verdict_of(run(busbw=470), expected).why.endswith(f"normal from {spell_gbs(bar)} (the machine is a guess)")
    assert verdict_of(run(busbw=40), expected).why.endswith(f"low below {spell_gbs(low)} (the machine is a guess)")
    assert [word(run(busbw=bar + by), expected) for by in (-1, 1)] == ["unknown", "normal"]


def test_far_below_is_severe_and_a_guess_asks_for_more() -> None:
    assert verdict_of(run(busbw=190), EXPECTED).severe
    assert not verdict_of(run(busbw=210), EXPECTED).severe
    guessed = replace(EXPECTED, confidence=Confidence.LOW)
    assert not verdict_of(run(busbw=190), guessed).severe
    assert verdict_of(run(busbw=170), guessed).severe
    assert is_severe(verdict_of(run(busbw=190), guessed), shown=True)
    assert not is_severe(verdict_of(run(busbw=400), guessed), shown=True)


def test_the_machines_that_fit_gpu_names_are_told_apart() -> None:
    slow = run(gpu="NVIDIA A100-SXM4-40GB", ranks=16, hosts=2, busbw=20)
    expectation = expect(slow)
    assert expectation is not None
    assert expectation.own_low_gbs is not None
    assert expectation.low_gbs < 20 < expectation.own_low_gbs
    assert word(slow, expectation) == "unknown"
    assert word(slow, expect(slow, nics=(8, 200.0))) == "low"


def test_one_nic_of_eight_missing_is_low_on_a_known_machine_and_no_alarm_on_a_guessed_one() -> None:
    sick = run(ranks=32, busbw=384 * 7 / 8)
    assert word(sick, expect(sick, system="DGX H100", nodes=4)) == "low"
    guessed = run(ranks=32, busbw=384 * 7 / 8, gpu="NVIDIA H100 80GB HBM3", hosts=4)
    assert word(guessed, expect(guessed)) == "normal"
