"""Where NCCL's model has no say, the expectation is that of the wires: NICs of unknown nodes, and AMD's machines."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.expect.measured_runs import GIB, run
from tests.tables import examples
from topodiag.expect.calibration import Calibration, Factor, calibration
from topodiag.expect.expect import Expected, expected
from topodiag.expect.hypotheses import explain
from topodiag.expect.verdict import verdict_of
from topodiag.model.bench import BenchDevice, BenchRow, BenchRun, Timing
from topodiag.model.finding import Confidence

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
