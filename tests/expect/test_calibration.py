"""Residual factors: each system counts once, a cell leans on the wider one, and the data say where they are from."""

from math import sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.calibrating import Observation, fit
from tests.tables import examples
from topodiag.expect.calibration import Calibration, calibration, generation_of


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
