"""Odd nodes of simulated fleets are found, and healthy ones left alone (benchmarks/fleet_statistics.py, in small)."""

import numpy as np

from benchmarks.fleet_statistics import Score, judge, simulate
from tests.tables import examples
from topodiag.fleet.numbers import far, rises_faster
from topodiag.model.fleet import How


def test_of_simulated_fleets_the_odd_nodes_are_found_and_no_others() -> None:
    dice, score = np.random.default_rng(5), Score()
    for _ in range(20):
        judge(simulate(dice, most=150), score)
    assert score.odd >= 10
    assert score.found >= 0.99 * score.odd
    assert score.false <= max(1, score.nodes // 1000)


def test_three_values_have_no_rule() -> None:
    assert far(np.asarray([1.0, 1.0, 50.0]), "GB/s") is None


def test_four_to_nine_values_are_judged_by_the_range_of_the_others() -> None:
    outlier = far(np.asarray([370.0, 371.0, 369.0, 300.0]), "GB/s")
    assert (outlier.mask.tolist(), outlier.how) == ([False, False, False, True], How.RATIO)


def test_of_few_values_two_odd_ones_have_no_majority_against_them() -> None:
    outlier = far(np.asarray([370.0, 371.0, 200.0, 100.0]), "GB/s")
    assert not outlier.mask.any()


def test_a_difference_within_the_noise_of_the_instrument_is_none_at_any_number_of_deviations() -> None:
    values = np.full(50, 370.0) + np.linspace(0, 0.001, 50)
    values[7] = 365.0
    outlier = far(values, "GB/s")
    assert not outlier.mask.any()


def test_a_heavy_tail_is_not_odd() -> None:
    dice = np.random.default_rng(1)
    outlier = far(370 * np.exp(0.01 * dice.standard_t(5, 2000)), "GB/s")
    assert outlier.mask.sum() <= 2


def test_of_numbers_that_are_mostly_equal_any_other_one_is_odd() -> None:
    values = np.full(40, 1e12)
    values[3], values[4] = 7.5e11, 1.0001e12
    outlier = far(values, "bytes")
    assert np.flatnonzero(outlier.mask).tolist() == [3]


@examples("counts", "odd")
def test_a_counter_that_all_siblings_have_is_the_sites(counts: list[float], odd: bool) -> None:
    ndarray, _ = rises_faster(np.asarray(counts, float), np.full(5, 100.0))
    assert bool(ndarray[-1]) is odd
