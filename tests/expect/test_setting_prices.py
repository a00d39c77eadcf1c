"""What settings cost, what jobs share, and runs that are unlike."""

from dataclasses import replace

import pytest

from tests.expect.measured_runs import run
from tests.tables import examples
from topodiag.expect import expect as module
from topodiag.expect.expect import expected, verdict_of
from topodiag.expect.hypotheses import explain
from topodiag.expect.hypothesis_causes import causes_of
from topodiag.expect.rates import reached, reached_on
from topodiag.expect.setting_prices import setting_prices
from topodiag.expect.setup import NoSetupError, Setup, setup_of
from topodiag.expect.unlike import MOST_HOSTS, one_of
from topodiag.hardware import catalog
from topodiag.model.bench import BenchRun, Hypothesis, SettingPrice
from topodiag.nccl.topo.changes import apply, nets_of, rate


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


# --- Runs that tell the same of ranks and devices share what is reckoned for them; nothing that was measured is shared
#


def low(busbw: float) -> BenchRun:
    return run("all_reduce", 32, busbw)


def causes(busbw: float) -> tuple[Hypothesis, ...]:
    measured = run("all_gather", 8, busbw)
    estimate = expected(measured, system="DGX H100", nodes=1)
    return explain(measured, estimate, verdict_of(measured, estimate.expectation, estimate.why)).causes


def test_runs_that_differ_in_what_they_measured_share_their_set_up() -> None:
    expecteds = [expected(low(busbw), system="DGX H100", nodes=4) for busbw in (342, 300)]
    assert expecteds[0].setup is expecteds[1].setup


def test_the_process_ids_of_another_start_make_no_other_set_up() -> None:
    first = run(gpu="NVIDIA H100 80GB HBM3", ranks=16, hosts=2)
    again = replace(first, devices=tuple(replace(device, pid=device.pid + 7) for device in first.devices))
    assert expected(first).setup is expected(again).setup


@pytest.mark.parametrize("other", [{"env": {"NCCL_ALGO": "Ring"}}, {"version": "2.21"}, {"nodes": 2}])
def test_what_else_a_run_tells_makes_another_set_up(other: dict[str, object]) -> None:
    asked: dict[str, object] = {"system": "DGX H100", "nodes": 4, "version": "2.28"}
    whole, changed = (expected(low(342), **given) for given in (asked, {**asked, **other}))  # type: ignore[arg-type]
    assert whole.setup != changed.setup


def test_a_run_after_others_has_the_causes_that_it_has_alone() -> None:
    after = [causes(busbw) for busbw in (300, 200, 40)][-1]
    for kept in (module._setup, module.versions_of, module.variants_of, module.known_shares):
        kept.cache_clear()
    assert after
    assert causes(40) == after


@pytest.mark.parametrize("nodes", [1, 2])
def test_no_two_causes_of_a_machine_go_by_the_same_words(nodes: int) -> None:
    for spec in catalog.systems():
        try:
            setup = setup_of(run(ranks=spec.gpus * nodes), system=spec.name, nodes=nodes)
        except NoSetupError:  # its NICs are the integrator's choice
            continue
        words = [cause.words for cause in causes_of(setup, "all_reduce", 100.0)]
        assert len(set(words)) == len(words), spec.name


# --- a run of which one host differs: NCCL takes what all hosts have, which is less than what equal hosts agree on


def setup(nodes: int = 2) -> Setup:
    estimate = expected(run("all_reduce", 8 * nodes, 180.0), system="DGX A100", nodes=nodes)
    assert estimate.setup is not None
    return estimate.setup


def with_slow_port(built: Setup) -> Setup:
    changed = apply(built.tree, (rate(f"{nets_of(built.tree)[0]}=100"),), built.env)
    return replace(built, tree=changed.tree, env=dict(changed.env))


def test_a_slow_port_of_one_host_is_set_among_hosts_as_built() -> None:
    built = setup()
    hosts = one_of(built, with_slow_port(built)).unlike
    assert len(hosts.kinds) == 2
    assert [member.host for member in hosts.members] == [0] * 8 + [1] * 8


def test_it_leaves_no_more_than_the_same_port_on_all_hosts() -> None:
    estimate = expected(run("all_reduce", 16, 180.0), system="DGX A100", nodes=2)
    assert estimate.setup is not None
    assert estimate.rates is not None
    slow = with_slow_port(estimate.setup)
    value = reached_on(estimate.rates, one_of(estimate.setup, slow), "all_reduce")
    assert 0 < value <= reached_on(estimate.rates, slow, "all_reduce")
    assert reached(estimate.rates, estimate.rates) == 1.0


@pytest.mark.parametrize("nodes", [1, MOST_HOSTS * 2])
def test_one_host_and_hundreds_are_taken_as_they_are(nodes: int) -> None:
    built = setup(nodes)
    slow = with_slow_port(built)
    assert one_of(built, slow) is slow
