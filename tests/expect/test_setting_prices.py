"""Which settings explain a low run: those that take a transport away, and poor choices among NCCL's own ways."""

import pytest

from tests.expect.measured_runs import run
from tests.tables import examples
from topodiag.expect.expect import expected
from topodiag.expect.hypotheses import explain
from topodiag.expect.setting_prices import setting_prices
from topodiag.expect.verdict import verdict_of
from topodiag.model.bench import SettingPrice


def prices(busbw: float, nodes: int, **env: str) -> tuple[SettingPrice, ...]:
    measured = run("all_reduce", 8 * nodes, busbw, env=env)
    estimate = expected(measured, system="DGX H100", nodes=nodes)
    verdict = verdict_of(measured, estimate.expectation, estimate.why)
    return setting_prices(measured, estimate, explain(measured, estimate, verdict).causes)


@examples("busbw", "nodes", "env")
def test_a_setting_that_does_it_has_a_price(busbw: float, nodes: int, env: dict[str, str]) -> None:
    (price,) = prices(busbw, nodes, NCCL_DEBUG="INFO", **env)
    assert (price.name, price.value) == next(iter(env.items()))
    assert price.without_gbs > 3 * busbw


def test_of_two_settings_only_the_one_that_costs_is_named() -> None:
    (price,) = prices(20.0, 2, NCCL_PROTO="LL", NCCL_MIN_NCHANNELS="1")
    assert price.name == "NCCL_PROTO"
    assert price.with_gbs < price.without_gbs / 3


@pytest.mark.parametrize("env", [{"NCCL_ALGO": "Ring"}, {"NCCL_DEBUG": "WARN"}, {"NCCL_IB_TIMEOUT": "22"}, {}])
def test_a_setting_that_costs_nothing_has_none(env: dict[str, str]) -> None:
    assert prices(200.0, 2, **env) == ()
