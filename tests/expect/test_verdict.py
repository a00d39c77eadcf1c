"""Normal, low, impossible or unknown: the greatest size against its expectation, and every size against the wires."""

from dataclasses import replace

from tests.expect.measured_runs import GIB, run
from tests.tables import examples
from topodiag.expect.expect import expected, is_severe, verdict_of
from topodiag.model.bench import BenchRow, BenchRun, Expectation, Timing
from topodiag.model.finding import Confidence
from topodiag.words.units import spell_gbs

EXPECTED = Expectation("the machine", 400.0, 350.0, 500.0, Confidence.HIGH, busbw={GIB: 390.0, 8192: 1.0})


EXPECTATIONS = {
    "known": EXPECTED,
    "guess": replace(EXPECTED, confidence=Confidence.LOW),
    "open": replace(EXPECTED, low_gbs=20.0, own_low_gbs=200.0, least_of="a small one", confidence=Confidence.LOW),
}


def word(measured: BenchRun, expectation: Expectation | None = EXPECTED) -> str:
    return verdict_of(measured, expectation).word


@examples("busbw", "expectation", "word", "severe", "why")
def test_a_run_beside_what_is_expected_of_it(
    *, busbw: float | dict[str, float], expectation: str | None, word: str, severe: bool | None, why: str | None
) -> None:
    """The bandwidth of a run, or by sizes in MiB; a machine that is known, a guess, or one of two that fit."""
    sizes = {int(float(size) * 2**20): gbs for size, gbs in busbw.items()} if isinstance(busbw, dict) else busbw
    verdict = verdict_of(run(busbw=sizes), EXPECTATIONS[expectation or "known"])
    assert verdict.word == word
    assert severe is None or verdict.severe is severe
    assert (why or "") in verdict.why


def test_a_shortfall_is_a_ratio_and_a_known_machine_is_no_guess() -> None:
    assert verdict_of(run(busbw=200), EXPECTED).ratio == 0.5
    assert "guess" not in verdict_of(run(busbw=10), EXPECTED).why


def test_what_a_capture_shows_makes_a_guess_severe() -> None:
    assert is_severe(verdict_of(run(busbw=190), EXPECTATIONS["guess"]), shown=True)
    assert not is_severe(verdict_of(run(busbw=400), EXPECTATIONS["guess"]), shown=True)


def test_the_better_block_counts() -> None:
    row = BenchRow(8 * GIB, out_of_place=Timing(busbw_gbs=100.0), in_place=Timing(busbw_gbs=400.0))
    assert word(replace(run(), rows=(row,))) == "normal"


def test_without_rows_ranks_or_a_machine_nothing_is_said() -> None:
    assert word(replace(run(), rows=())) == "unknown"
    assert word(run(ranks=1)) == "unknown"
    assert verdict_of(run(), None, "no GPU is named").why == "no GPU is named"


def test_a_two_fold_shortfall_on_a_guessed_machine_is_low_or_another_machine() -> None:
    half = run(gpu="NVIDIA H100 80GB HBM3", ranks=16, hosts=2, busbw=476 * 0.53)
    verdict = verdict_of(half, expected(half).expectation)
    assert verdict.word == "unknown"
    assert "low, or another machine" in verdict.why
    # The bar that is told is the one that is used.
    model = expected(half).expectation
    bar, low = (gbs * model.busbw[8 * GIB] / model.busbw_gbs for gbs in (model.normal_gbs, model.low_gbs))
    assert verdict_of(run(busbw=470), model).why.endswith(f"normal from {spell_gbs(bar)} (the machine is a guess)")
    assert verdict_of(run(busbw=40), model).why.endswith(f"low below {spell_gbs(low)} (the machine is a guess)")
    assert [word(run(busbw=bar + by), model) for by in (-1, 1)] == ["unknown", "normal"]


def test_the_machines_that_fit_gpu_names_are_told_apart() -> None:
    slow = run(gpu="NVIDIA A100-SXM4-40GB", ranks=16, hosts=2, busbw=20)
    expectation = expected(slow).expectation
    assert expectation.low_gbs < 20 < expectation.own_low_gbs
    assert word(slow, expectation) == "unknown"
    assert word(slow, expected(slow, nics=(8, 200.0)).expectation) == "low"


def test_one_nic_of_eight_missing_is_low_on_a_known_machine_and_no_alarm_on_a_guessed_one() -> None:
    sick = run(ranks=32, busbw=384 * 7 / 8)
    assert word(sick, expected(sick, system="DGX H100", nodes=4).expectation) == "low"
    guessed = run(ranks=32, busbw=384 * 7 / 8, gpu="NVIDIA H100 80GB HBM3", hosts=4)
    assert word(guessed, expected(guessed).expectation) == "normal"
