"""The expectation where NCCL's model has no say; what settings cost, what jobs share, and runs that are unlike."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.expect.measured_runs import GIB, run
from tests.tables import examples
from topodiag.expect import expect
from topodiag.expect.calibration import Calibration, Factor, calibration
from topodiag.expect.expect import Expected, expected, verdict_of
from topodiag.expect.hypotheses import explain
from topodiag.expect.hypothesis_causes import causes_of
from topodiag.expect.rates import reached, reached_on
from topodiag.expect.setting_prices import setting_prices
from topodiag.expect.setup import NoSetupError, Setup, setup_of
from topodiag.expect.unlike import MOST_HOSTS, one_of
from topodiag.hardware import catalog
from topodiag.model.bench import BenchDevice, BenchRow, BenchRun, Hypothesis, SettingPrice, Timing
from topodiag.model.finding import Confidence
from topodiag.nccl.topo.changes import apply, nets_of, rate

RAW = Calibration()
NO_RANKS = BenchRun("all_reduce", (BenchRow(8 * GIB, out_of_place=Timing(busbw_gbs=48.0)),))


def raw(collective: str, ranks: int, nodes: int | None = None, **options: object) -> Expected:
    return expected(run(collective, ranks), nodes=nodes, fitted=RAW, **options)  # type: ignore[arg-type]


def peak(estimate: Expected) -> float:
    assert estimate.rates is not None, estimate.why
    return estimate.rates.peak


@pytest.mark.parametrize("collective", ["all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce"])
def test_a_ring_runs_at_the_rate_of_a_nodes_nics(collective: str) -> None:
    assert peak(raw(collective, 64, 8, nics=(8, 400.0))) == 400
    assert peak(raw(collective, 8, 2, nics=(1, 200.0))) == 25


def test_an_alltoall_runs_at_the_rate_at_which_bytes_for_other_nodes_leave() -> None:
    assert peak(raw("alltoall", 32, 8, nics=(4, 200.0))) == pytest.approx(100 * 31 / (4 * 28))


def test_neither_ranks_nor_nodes_need_be_known() -> None:
    estimate = expected(NO_RANKS, nics=(1, 400.0), fitted=RAW)
    assert peak(estimate) == 50
    assert estimate.expectation.confidence is Confidence.LOW
    assert any("--nodes" in formula for name, _, formula in estimate.expectation.terms if name == "assumed")


def test_only_what_no_network_can_carry_is_impossible() -> None:
    two = raw("all_reduce", 16, 2, nics=(8, 400.0)).expectation
    assert two.limit_gbs == pytest.approx(400 * 2 * 15 / 16)  # a tree of two nodes sends each byte once
    many = raw("all_gather", 64, 8, nics=(8, 400.0)).expectation
    assert many.limit_gbs == pytest.approx(400 * 63 / 64 * 8 / 7)


def test_a_known_machine_is_reckoned_by_nccl_and_the_nics_take_the_place_of_its_own() -> None:
    estimate = expected(run("all_gather", 32), system="DGX H100", nodes=4, nics=(4, 400.0), fitted=RAW)
    assert estimate.wires is None
    assert peak(estimate) == pytest.approx(4 * 48, rel=0.02)


def test_without_nics_the_reason_stays_that_of_the_machine() -> None:
    assert expected(NO_RANKS).why == expected(NO_RANKS, nics=None).why
    assert "--nics" in expected(run(ranks=16)).why


@pytest.mark.parametrize(
    ("measured", "options"),
    [
        (run(ranks=1), {}),
        (run(ranks=9), {"nodes": 2}),
        (run("sendrecv", 16), {"nodes": 2}),
        (run("hypercube", 16), {"nodes": 2}),
        (run(gpu="AMD Odd", ranks=8), {}),
    ],
)
def test_what_nics_do_not_bound_has_no_expectation(measured: BenchRun, options: dict[str, int]) -> None:
    estimate = expected(measured, nics=(8, 400.0), **options)
    assert estimate.expectation is None
    assert estimate.why


def test_gpus_that_are_not_in_the_catalogue_leave_the_wires() -> None:
    estimate = expected(run(gpu="Odd Accelerator", ranks=16, hosts=2), nics=(8, 100.0), fitted=RAW)
    assert peak(estimate) == 100
    assert estimate.wires.nodes == 2


def test_an_amd_machine_runs_at_the_slower_of_its_links_and_its_nics() -> None:
    assert peak(raw("all_reduce", 16, 2, system="BM.GPU.MI300X.8")) == 7 * 48
    assert peak(raw("all_reduce", 8, 1, system="MI300X")) == 7 * 48
    assert peak(raw("all_reduce", 4, 1, system="MI300X")) == 3 * 48
    assert peak(raw("all_reduce", 16, 2, system="BM.GPU.MI300X.8", nics=(4, 400.0))) == 200


@examples("ranks", "nodes", "published_gbs")
def test_published_mi300x_runs_lie_near_what_is_expected(ranks: int, nodes: int, published_gbs: float) -> None:
    """hisohara/ai-scripts, 01_rccl-smoketest: between nodes rings are faster than on one."""
    expectation = expected(run(ranks=ranks, hosts=nodes), system="MI300X", nics=(8, 400.0), nodes=nodes).expectation
    assert expectation.busbw_gbs == pytest.approx(published_gbs, rel=0.02)
    assert expectation.low_gbs < published_gbs


def test_amds_gpus_are_told_by_their_names() -> None:
    estimate = expected(run(gpu="AMD Instinct MI300X", ranks=8), fitted=RAW)
    assert peak(estimate) == 7 * 48
    assert estimate.wires is not None
    between = expected(run(gpu="AMD Instinct MI300X", ranks=16, hosts=2), fitted=RAW)
    assert between.expectation is None
    assert "--nics" in between.why


def test_factors_of_wires_are_fitted_apart_from_those_of_nccls_figure() -> None:
    half = Calibration({("", "rdma-wires", ""): Factor("rdma-wires", 0.5, rows=1), ("", "rdma", ""): Factor("rdma", 9)})
    expectation = expected(run("all_gather", 64), nodes=8, nics=(8, 400.0), fitted=half).expectation
    assert expectation.busbw_gbs == 200
    assert calibration().of("", "rdma-wires", "all_reduce").rows >= 8


def test_the_maintainers_rules_per_nic_are_normal() -> None:
    for gbps, usual in ((400.0, 48.0), (200.0, 20.0)):
        measured = BenchRun("all_reduce", (BenchRow(16 * GIB, out_of_place=Timing(busbw_gbs=usual)),))
        assert verdict_of(measured, expected(measured, nics=(1, gbps)).expectation).word == "normal"


def test_half_of_the_wires_is_low() -> None:
    measured = run(ranks=64, busbw=190.0)
    assert verdict_of(measured, expected(measured, nics=(8, 400.0), nodes=8).expectation).word == "low"


@examples("busbw", "cause")
def test_a_low_run_gets_the_causes_that_wires_can_have(busbw: float, cause: str) -> None:
    measured = run(ranks=64, busbw=busbw)
    estimate = expected(measured, nics=(8, 400.0), nodes=8, fitted=RAW)
    assert estimate.expectation is not None
    certain = replace(estimate.expectation, low_gbs=390.0)
    hypotheses = explain(measured, estimate, verdict_of(measured, certain)).causes
    assert any(cause in hypothesis.cause for hypothesis in hypotheses[:3])
    assert sum(hypothesis.likelihood for hypothesis in hypotheses) <= 1


def test_more_than_the_wires_carry_asks_for_ranks_and_machine() -> None:
    measured = run(ranks=64, busbw=5000.0)
    estimate = expected(measured, nics=(8, 400.0), nodes=8)
    hypotheses = explain(measured, estimate, verdict_of(measured, estimate.expectation)).causes
    assert any("nodes with 8 x 400 Gb/s" in hypothesis.cause for hypothesis in hypotheses)


names = st.sampled_from(["", "AMD Instinct MI300X", "odd"])
devices = st.builds(BenchDevice, st.integers(0, 9), st.sampled_from(["a", "b"]), st.integers(0, 9), names)
runs = st.builds(
    BenchRun,
    st.sampled_from(["all_reduce", "all_gather", "alltoall", "sendrecv", "gather", "", "odd"]),
    st.just((BenchRow(GIB, out_of_place=Timing(busbw_gbs=1.0)),)),
    st.lists(devices, max_size=4).map(tuple),
    st.one_of(st.none(), st.integers(-1, 1 << 20)),
)
nics = st.one_of(st.none(), st.tuples(st.integers(1, 64), st.floats(1, 2000)))
systems = st.sampled_from([None, "BM.GPU.MI300X.8", "MI325X"])


@given(runs, nics, systems, st.one_of(st.none(), st.integers(1, 64)))
def test_any_run_has_an_expectation_below_its_wires_or_a_reason(
    measured: BenchRun, wires: tuple[int, float] | None, system: str | None, nodes: int | None
) -> None:
    estimate = expected(measured, nics=wires, system=system, nodes=nodes, fitted=RAW)
    if estimate.expectation is None:
        assert estimate.why
    else:
        assert 0 < estimate.expectation.busbw_gbs <= estimate.expectation.limit_gbs * (1 + 1e-9)


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
    for kept in (expect._setup, expect.versions_of, expect.variants_of, expect.known_shares):
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
