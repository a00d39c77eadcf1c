"""Residual factors by system, and fits of sweeps: alpha, beta and regimes come back from noisy data."""

import math
import random
from math import sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.calibrating import Observation, fit
from tests.tables import examples
from topodiag.expect.calibration import Calibration, calibration, generation_of
from topodiag.expect.fit import fit_points, fit_run, main_rows
from topodiag.model.bench import BenchRow, BenchRun, Timing


def seen(ratio: float, system: str = "a", *, transport: str = "rdma-ring", generation: str = "hopper") -> Observation:
    return Observation(generation, transport, "all_reduce", system, ratio)


@examples("sm", "name")
def test_a_generation_is_that_of_the_compute_capability(sm: int, name: str) -> None:
    assert generation_of(sm) == name


def test_nothing_published_is_no_factor() -> None:
    assert fit([]).of("hopper", "rdma-ring", "all_reduce").factor == 1.0


def test_one_system_moves_a_cell_half_way() -> None:
    model = fit([seen(0.81)])
    # The wire of the network, its rings, the generation's and the cell each lean on the one before.
    assert model.factors["", "rdma", ""].factor == pytest.approx(sqrt(0.81))
    assert model.of("hopper", "rdma-ring", "all_reduce").factor == pytest.approx(0.81 ** (15 / 16))


def test_a_system_with_many_rows_counts_once() -> None:
    many = fit([seen(0.8, "a") for _ in range(20)] + [seen(1.0, "b")])
    few = fit([seen(0.8, "a"), seen(1.0, "b")])
    key = ("hopper", "rdma-ring", "all_reduce")
    assert many.of(*key).factor == pytest.approx(few.of(*key).factor)
    assert many.of(*key).rows == 21


def test_an_unseen_cell_takes_the_factor_around_it() -> None:
    model = fit([seen(0.9, "a"), seen(0.9, "b"), seen(0.9, "c")])
    assert model.of("volta", "rdma-ring", "reduce") == model.factors["", "rdma-ring", ""]
    assert model.of("volta", "rdma-nvls", "all_reduce") == model.factors["", "rdma", ""]


def test_single_flows_say_nothing_of_rings() -> None:
    model = fit([seen(0.5, transport="rdma-flow")])
    assert model.of("hopper", "rdma-ring", "all_reduce").factor == 1.0
    assert model.of("hopper", "rdma-flow", "sendrecv").factor < 1.0


def test_a_ratio_of_another_machine_is_no_residual() -> None:
    assert not fit([seen(3.1), seen(0.01)]).factors


def test_the_tolerance_is_that_of_the_transport_else_of_its_wire_else_of_any() -> None:
    model = calibration()
    assert model.tolerance("rdma-flow").below > model.tolerance("rdma-ring").below
    assert model.tolerance("rdma-ring") == model.tolerance("rdma")
    assert model.tolerance("pigeons").transport == ""
    assert Calibration().tolerance("rdma").below > 0


def test_shipped_factors_are_residuals_with_their_spread_and_their_sources() -> None:
    factors = calibration().factors
    assert len(factors) > 20
    for (_, _, collective), factor in factors.items():
        assert 0.4 < factor.factor < 1.2
        assert factor.low <= factor.high
        assert factor.systems
        assert factor.rows >= len(factor.systems)
        assert not collective or all(source.startswith("https://") for source in factor.sources)


ratios = st.lists(st.floats(0.2, 1.3), min_size=1, max_size=12)


@given(ratios)
def test_a_factor_lies_between_what_was_seen_and_the_model(values: list[float]) -> None:
    model = fit(seen(ratio, str(number)) for number, ratio in enumerate(values))
    for factor in model.factors.values():
        assert min(*values, 1.0) - 1e-9 <= factor.factor <= max(*values, 1.0) + 1e-9


@given(st.floats(0.3, 1.2))
def test_many_systems_that_agree_are_believed(ratio: float) -> None:
    model = fit(seen(ratio, str(number)) for number in range(40))
    assert model.of("hopper", "rdma-ring", "all_reduce").factor == pytest.approx(ratio, rel=0.01)


SIZES = [8 << step for step in range(31)]


def sweep(alpha: float, beta: float, noise: float, seed: int) -> list[tuple[float, float]]:
    chance = random.Random(seed)
    return [(float(size), (alpha + size / beta / 1e3) * (1 + chance.gauss(0, noise))) for size in SIZES]


def run(points: list[tuple[float, float]], factor: float = 1.75) -> BenchRun:
    rows = tuple(
        BenchRow(int(size), 1, "float", "sum", -1, Timing(time, size / time / 1e3, size / time / 1e3 * factor, 0))
        for size, time in points
    )
    return BenchRun("all_reduce", rows)


@given(st.floats(3, 200), st.floats(0.5, 400), st.integers(0, 10_000))
def test_alpha_and_beta_come_back_from_a_noisy_sweep_within_five_percent(alpha: float, beta: float, seed: int) -> None:
    regimes = fit_points(sweep(alpha, beta, 0.03, seed))
    assert regimes[0].alpha_us == pytest.approx(alpha, rel=0.05)
    assert regimes[-1].beta_gbs == pytest.approx(beta, rel=0.05)


def test_noise_alone_rarely_makes_a_second_regime() -> None:
    assert sum(len(fit_points(sweep(20, 100, 0.03, seed))) > 1 for seed in range(100)) <= 5


def test_the_interval_holds_the_truth_nineteen_times_in_twenty() -> None:
    alpha = beta = 0
    for seed in range(200):
        first, last = (fitted := fit_points(sweep(20, 100, 0.03, seed)))[0], fitted[-1]
        alpha += first.alpha_range[0] <= 20 <= first.alpha_range[1]
        beta += last.beta_range[0] <= 100 <= last.beta_range[1]
    assert alpha >= 180
    assert beta >= 180


def test_one_slow_size_does_not_bend_the_line() -> None:
    points = sweep(20, 100, 0.01, 1)
    points[20] = (points[20][0], points[20][1] * 5)
    (regime,) = fit_points(points)
    assert regime.alpha_us == pytest.approx(20, rel=0.05)
    assert regime.beta_gbs == pytest.approx(100, rel=0.05)


@pytest.mark.parametrize("seed", range(10))
def test_a_change_of_protocol_is_found_where_it_is(seed: int) -> None:
    chance = random.Random(seed)
    points = [
        (float(size), (12 + size / 8e3 if size < 1 << 18 else 60 + size / 180e3) * (1 + chance.gauss(0, 0.02)))
        for size in SIZES
    ]
    regimes = fit_points(points)
    assert len(regimes) == 2
    assert regimes[0].high < 1 << 18 <= regimes[1].low <= 1 << 19
    assert regimes[0].alpha_us == pytest.approx(12, rel=0.05)
    assert regimes[0].beta_gbs == pytest.approx(8, rel=0.1)
    assert regimes[1].beta_gbs == pytest.approx(180, rel=0.05)


def test_times_that_do_not_grow_have_no_bandwidth() -> None:
    (regime,) = fit_points([(8.0, 12.0), (16.0, 11.9), (32.0, 12.1), (64.0, 12.0)])
    assert regime.beta_range[1] == math.inf
    assert regime.alpha_us == pytest.approx(12, rel=0.02)


def test_plateau_floor_and_bound_are_read_off_the_curve() -> None:
    fit = fit_run(run(sweep(20, 100, 0.0, 0)))
    assert fit.plateau_gbs == pytest.approx(175, rel=0.01)
    assert fit.latency_us == pytest.approx(20, rel=0.01)
    # Half of the plateau is reached at alpha x beta = 20 us x 100 GB/s = 2 MB: the next size that was measured.
    assert fit.bound_from == 1 << 21


def test_a_sweep_that_still_rises_has_no_bound() -> None:
    assert fit_run(run(sweep(20, 100, 0.0, 0)[:12])).bound_from is None


def test_a_sweep_of_large_sizes_has_no_latency_floor() -> None:
    fit = fit_run(run(sweep(20, 100, 0.0, 0)[-6:]))
    assert fit.latency_us is None
    assert fit.bound_from is None


def test_of_several_types_the_one_with_most_rows_is_fitted() -> None:
    float_rows = run(sweep(20, 100, 0.0, 0)).rows
    other = BenchRow(8, 1, "half", "sum", -1, Timing(99.0, 0.1, 0.1, 0))
    assert main_rows((other, *float_rows, BenchRow(1 << 40, cut=True))) == list(float_rows)


def test_a_sweep_in_steps_of_bytes_is_thinned() -> None:
    points = [(float(1 << 20) * step, 20 + (1 << 20) * step / 100e3) for step in range(1, 4000)]
    fit = fit_run(run(points))
    assert fit.regimes[-1].beta_gbs == pytest.approx(100, rel=0.01)


NUMBER = st.floats(allow_nan=False, min_value=0, max_value=1e12)


@given(st.lists(st.tuples(st.integers(0, 1 << 50), NUMBER, NUMBER), max_size=24))
def test_any_rows_are_fitted_without_a_complaint(rows: list[tuple[int, float, float]]) -> None:
    bench_rows = tuple(BenchRow(size, 0, "float", "", -1, Timing(time, bus, bus, 0)) for size, time, bus in rows)
    fit = fit_run(BenchRun("", bench_rows))
    assert all(regime.low <= regime.high and regime.alpha_us >= 0 for regime in fit.regimes)
