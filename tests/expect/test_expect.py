"""The expectation: NCCL's model times what healthy machines make of it, by options that set a run up."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.expect.measured_runs import GIB, run
from tests.tables import examples, parts
from topodiag.expect.calibration import Calibration, Factor
from topodiag.expect.expect import expected
from topodiag.expect.setup import NoSetupError, setup_of
from topodiag.expect.tree import Layout, layout_of, tree_of_layout
from topodiag.hardware import catalog
from topodiag.hardware.specs import SystemSpec
from topodiag.model.bench import BenchDevice, BenchRow, BenchRun, Timing
from topodiag.model.finding import Confidence
from topodiag.model.nccl_enums import busbw_factor
from topodiag.model.nccl_tree import Element
from topodiag.model.nccl_versions import NEWEST, spell_version
from topodiag.nccl.predict import predict_tree
from topodiag.nccl.prediction import Prediction
from topodiag.nccl.topo.changes import gpus_of, nets_of

RAW = Calibration()


def raw(collective: str, ranks: int, system: str, nodes: int, **options: object) -> float:
    estimate = expected(run(collective, ranks), system=system, nodes=nodes, fitted=RAW, **options)  # type: ignore[arg-type]
    assert estimate.rates is not None, estimate.why
    return estimate.rates.peak


def prediction(system: str, nodes: int, env: dict[str, str] | None = None) -> Prediction:
    estimate = expected(run(ranks=8 * nodes), system=system, nodes=nodes, fitted=RAW)
    return predict_tree(estimate.setup.tree, nodes=nodes, version="2.28", env=env, sizes=(16 * GIB,))


def test_within_a_node_it_is_nccls_own_prediction() -> None:
    choices = {choice.collective: choice.busbw_gbs for choice in prediction("DGX H100", 1).choices}
    assert raw("all_reduce", 8, "DGX H100", 1) == pytest.approx(choices["AllReduce"])
    assert raw("all_gather", 8, "DGX H100", 1) == pytest.approx(choices["AllGather"])


@examples("collective", "ranks", "system", "nodes", "options", "peak", "within")
def test_the_wires_and_channels_carry(
    *,
    collective: str,
    ranks: int,
    system: str,
    nodes: int,
    options: dict[str, Any] | None,
    peak: float,
    within: float | None,
) -> None:
    assert raw(collective, ranks, system, nodes, **options or {}) == pytest.approx(peak, rel=within)


@examples("collective", "ranks", "system", "nodes", "limit")
def test_no_more_is_expected_than_the_wires_carry(
    *, collective: str, ranks: int, system: str, nodes: int, limit: float | None
) -> None:
    expectation = expected(run(collective, ranks), system=system, nodes=nodes).expectation
    assert expectation.low_gbs < expectation.busbw_gbs <= expectation.limit_gbs
    assert limit is None or expectation.limit_gbs == pytest.approx(limit)


def test_nvls_tree_runs_at_its_slowest_stage() -> None:
    assert raw("all_reduce", 16, "DGX H100", 2) == pytest.approx(raw("all_reduce", 8, "DGX H100", 1))
    across = 8 * 24 * busbw_factor("AllReduce", 16)
    assert raw("all_reduce", 16, "a3-megagpu-8g", 2) == pytest.approx(across)


@pytest.mark.parametrize(("ranks", "system", "nodes"), [(8, "DGX B200", 1), (72, "GB200 NVL72", 18)])
def test_nvls_on_blackwell_is_as_fast_under_every_version(ranks: int, system: str, nodes: int) -> None:
    old, new = (raw("all_reduce", ranks, system, nodes, version=version) for version in ("2.27.1", "2.29.2"))
    assert old == pytest.approx(new)


def test_nvls_on_hopper_is_as_fast_as_its_own_version_says() -> None:
    (choice,) = [choice for choice in prediction("DGX H100", 1).choices if choice.collective == "AllReduce"]
    assert raw("all_reduce", 8, "DGX H100", 1, version="2.28") == pytest.approx(choice.busbw_gbs)


def test_a_tree_over_more_than_two_racks_slows_down_as_nccls_own_bounds_do() -> None:
    two, many = (raw("all_reduce", 72 * racks, "GB200 NVL72", 18 * racks, version="2.28.9") for racks in (2, 20))
    assert many / two == pytest.approx(43.8 / 96)
    newer = [raw("all_reduce", 72 * racks, "GB200 NVL72", 18 * racks, version="2.30.4") for racks in (2, 20)]
    assert newer[1] / newer[0] == pytest.approx(80 / 96)


def test_nics_whose_slots_are_slower_than_their_ports_are_calibrated_apart() -> None:
    slow, fast = (
        expected(run(ranks=8), system="GB300 NVL72", nodes=2, nics=(4, 800.0), env={"NCCL_MNNVL_ENABLE": "0", **env})
        for env in ({"NCCL_IB_DATA_DIRECT": "0", "NCCL_NVLS_ENABLE": "0", "NCCL_ALGO": "Ring"}, {"NCCL_ALGO": "Ring"})
    )
    assert (slow.rates.transport, fast.rates.transport) == ("rdma-pcie", "rdma-ring")
    assert fast.rates.peak == pytest.approx(2 * slow.rates.peak, rel=0.01)  # PCIe 6.0 to the GPUs, 5.0 by way of Grace


def test_an_instance_type_without_gpudirect_is_not_expected_to_have_it() -> None:
    for nodes, busbw in ((2, 10.0), (8, 7.0)):  # as its users reported (aws-ofi-nccl issue 19)
        expectation = expected(run(ranks=8 * nodes, nccl="2.4.7"), system="p3dn.24xlarge", nodes=nodes).expectation
        assert expectation.low_gbs < busbw < expectation.limit_gbs
        assert expectation.busbw_gbs < 10


def test_an_alltoall_with_one_rank_outside_is_a_flow_like_a_sendrecv() -> None:
    estimate = expected(run("alltoall", 2), system="DGX H100", nodes=2, fitted=RAW, version="2.28.9")
    assert estimate.rates.transport == "rdma-flow"
    assert estimate.rates.peak == pytest.approx(28)


def test_racks_may_fall_far_below_what_only_ranks_algorithms() -> None:
    expectation = expected(run(ranks=1440, nccl="2.28.9"), system="GB200 NVL72", nodes=360).expectation
    assert expectation.low_gbs == pytest.approx(expectation.busbw_gbs / 2)


def test_a_sendrecv_is_bound_by_the_channels_of_a_peer_or_one_nic_between_nodes_and_by_nvlink_inside() -> None:
    four = run("sendrecv", 4, gpu="NVIDIA H100 80GB HBM3", hosts=2, nccl="2.29.2")
    estimate = expected(four, system="DGX H100", nodes=2, fitted=RAW)
    assert estimate.rates.peak == pytest.approx(48, rel=0.01)  # four channels: the NIC is the bound


def test_the_factor_is_a_term_of_the_derivation_and_scales_every_size() -> None:
    halved = Calibration({("", "nvls", ""): Factor("nvls", 0.5, rows=1)})
    measured = run(busbw={GIB: 1.0, 8 * GIB: 1.0})
    full, half = (
        expected(measured, system="DGX H100", fitted=calibration).expectation for calibration in (RAW, halved)
    )
    assert half.busbw_gbs == pytest.approx(full.busbw_gbs / 2)
    assert half.busbw[GIB] == pytest.approx(full.busbw[GIB] / 2)
    assert half.time_us[GIB] == pytest.approx(full.time_us[GIB] * 2)
    assert ("reached by healthy machines", "x 0.500") in [term[:2] for term in half.terms]


def test_every_term_has_a_name_and_the_derivation_ends_in_a_bound() -> None:
    expectation = expected(run(), system="DGX H100").expectation
    names = [name for name, _, _ in expectation.terms]
    assert all(names)
    assert {"physical limit", "normal from", "NCCL runs"} <= set(names)


def test_where_only_gpus_are_known_the_least_machine_that_fits_is_normal() -> None:
    guessed = expected(run(gpu="NVIDIA H100 80GB HBM3", ranks=16, hosts=2)).expectation
    expectation = expected(run(ranks=16), system="DGX H100", nodes=2).expectation
    assert guessed.confidence is Confidence.LOW
    assert guessed.low_gbs < 0.5 * expectation.low_gbs
    assert guessed.busbw_gbs == pytest.approx(expectation.busbw_gbs)


def test_an_unknown_version_is_the_middle_of_those_it_could_be() -> None:
    known = [expected(run(nccl=version), system="DGX H100").expectation for version in ("2.22", "2.28", "2.30")]
    unknown = expected(run(nccl=""), system="DGX H100").expectation
    assert unknown.busbw_gbs == sorted(expectation.busbw_gbs for expectation in known if expectation is not None)[1]


def test_without_a_machine_the_reason_is_told() -> None:
    estimate = expected(run())
    assert estimate.expectation is None
    assert "--system" in estimate.why


def test_a_collective_without_a_model_has_no_expectation() -> None:
    assert "hypercube" in expected(run("hypercube"), system="DGX H100").why


texts = st.sampled_from(
    ["", "NVIDIA H100 80GB HBM3", "NVIDIA A40", "NVIDIA GB10", "Tesla T4", "odd", "NVIDIA GH200 480GB"]
)
numbers = st.one_of(st.none(), st.floats(allow_nan=True, allow_infinity=True), st.floats(0, 1000))
devices = st.builds(BenchDevice, st.integers(-1, 9), st.sampled_from(["a", "b", ""]), st.integers(-1, 9), texts)
rows = st.builds(
    BenchRow, st.integers(-1, 1 << 70), out_of_place=st.builds(Timing, numbers, numbers, numbers), cut=st.booleans()
)
runs = st.builds(
    BenchRun,
    st.sampled_from(["all_reduce", "alltoall", "gather", "", "odd", "sendrecv"]),
    st.lists(rows, max_size=3).map(tuple),
    st.lists(devices, max_size=9).map(tuple),
    st.one_of(st.none(), st.integers(-1, 16), st.just(1 << 40)),
    nccl=st.sampled_from(["", "2.28.9", "odd", "2.", "2.9.9", "9" * 30]),
    env=st.dictionaries(st.sampled_from(["NCCL_ALGO", "NCCL_P2P_LEVEL", "NCCL_NET"]), st.text(max_size=5), max_size=2),
)


@given(runs, st.sampled_from([None, "DGX A100", "odd"]), st.sampled_from([None, 0, 1, 2, 1 << 30]))
def test_no_run_raises(measured: BenchRun, system: str | None, nodes: int | None) -> None:
    estimate = expected(measured, system=system, nodes=nodes)
    assert (estimate.expectation is None) == bool(estimate.why)
    if estimate.expectation is not None:
        assert 0 <= estimate.expectation.low_gbs <= estimate.expectation.normal_gbs
        assert 0 < estimate.expectation.normal_gbs <= estimate.expectation.busbw_gbs <= estimate.expectation.limit_gbs
        assert all(gbs >= 0 for gbs in estimate.expectation.busbw.values())


@pytest.mark.parametrize("version", ["2.28.9", "2.30.7"])
def test_without_a_version_line_the_expectation_of_a_healthy_run_stays(version: str) -> None:
    expectation = expected(run("sendrecv", 16, 1.0, gpu="NVIDIA H100 80GB HBM3", hosts=2, nccl=version)).expectation
    healthy = run("sendrecv", 16, expectation.busbw_gbs, gpu="NVIDIA H100 80GB HBM3", hosts=2, nccl="")
    estimate = expected(healthy).expectation
    assert estimate.busbw_gbs == pytest.approx(expectation.busbw_gbs, rel=0.1)


LARGE = (16 << 30,)


def laid_out(name: str) -> Element:
    spec = next(spec for spec in catalog.systems() if spec.name == name)
    layout = layout_of(spec)
    assert layout is not None
    return tree_of_layout(layout)


@pytest.mark.parametrize("spec", catalog.systems(), ids=lambda spec: spec.name)
def test_every_system_of_the_catalogue_is_accepted_with_all_its_gpus(spec: SystemSpec) -> None:
    layout = layout_of(spec)
    assert layout is not None
    tree = tree_of_layout(layout)
    assert len(gpus_of(tree)) == spec.gpus
    prediction = predict_tree(tree, sizes=LARGE)
    assert prediction.accepted
    assert prediction.ranks == spec.gpus


@examples("name", "ring")
def test_its_rings_are_those_of_the_real_machine(name: str, ring: float) -> None:
    prediction = predict_tree(laid_out(name), sizes=LARGE)
    graph = prediction.graph(0)
    assert graph.channels * graph.bw_intra == pytest.approx(ring)


def test_each_nic_carries_a_channel_between_nodes() -> None:
    graph = predict_tree(laid_out("DGX H100"), nodes=4, sizes=LARGE).graph(0)
    assert (graph.channels, graph.bw_inter) == (8, 48.0)


def test_several_nics_per_gpu_are_one_of_their_sum() -> None:
    tree = laid_out("p5.48xlarge")
    speeds = {element.get("speed") for element in tree.walk() if element.tag == "net"}
    assert len(nets_of(tree)) == 8
    assert speeds == {"400000"}


def test_nics_that_are_given_stand_in_for_those_of_the_catalogue() -> None:
    spec = next(spec for spec in catalog.systems() if spec.name == "DGX-1 (V100)")
    layout = layout_of(spec, nics=(2, 100.0))
    assert layout is not None
    assert len(nets_of(tree_of_layout(layout))) == 2


def test_the_links_of_a_mesh_have_both_ends() -> None:
    gpus = gpus_of(laid_out("DGX-1 (V100)"))
    counts = {
        (pci.get("busid"), link.get("target")): link.get("count")
        for pci in gpus.values()
        for gpu in pci.having("gpu")
        for link in gpu.having("nvlink")
    }
    assert counts
    assert all(counts[(b, a)] == count for (a, b), count in counts.items())


def test_a_card_without_nvlink_has_none() -> None:
    spec = catalog.gpu_by_name("L40S")
    assert spec is not None
    tree = tree_of_layout(Layout(spec, 4, "none", 0))
    assert not [element for element in tree.walk() if element.tag == "nvlink"]


# --- what a run says about the machine that it ran on, and what had to be assumed


H100 = "NVIDIA H100 80GB HBM3"


@examples("ran", "options", "wanted", "assumed")
def test_the_machine_that_a_run_was_on(
    ran: dict[str, Any], options: dict[str, Any] | None, wanted: dict[str, Any], assumed: str | None
) -> None:
    setup = setup_of(run(**ran), **(options or {}))
    shown = parts(setup, wanted) | {name: dict(getattr(setup, name)) for name in {"env", "costly"} & set(wanted)}
    assert shown == wanted | ({"version": spell_version(NEWEST)} if wanted.get("version") == "newest" else {})
    assert any((assumed or "") in assumption for assumption in setup.assumed) or not assumed


@examples("ran", "options", "why")
def test_what_a_run_does_not_say_is_told(ran: dict[str, Any], options: dict[str, Any] | None, why: str) -> None:
    with pytest.raises(NoSetupError, match=why):
        setup_of(run(**ran), **(options or {}))


def test_a_run_that_does_not_say_how_many_ranks_it_had_has_no_machine() -> None:
    with pytest.raises(NoSetupError, match="number of ranks"):
        setup_of(replace(run(), nranks=None), system="DGX H100")


def test_machines_that_fit_as_well_are_kept() -> None:
    setup = setup_of(run(gpu=H100, ranks=16, hosts=2))
    assert {"a3-highgpu-8g", "a3-megagpu-8g"} & {variant.name for variant in setup.others}


def test_one_gpu_a_node_may_use_one_nic_or_all_of_a_machine_that_is_guessed() -> None:
    guessed = setup_of(run(gpu="NVIDIA GH200 120GB", ranks=2, hosts=2))
    assert [len(nets_of(variant.tree)) for variant in guessed.others] == [1]
    assert guessed.others[0].name.endswith("with one NIC in use")
    named = setup_of(run(gpu="NVIDIA GH200 120GB", ranks=2, hosts=2), system="GH200 quad")
    assert named.others == ()


def test_gpus_without_a_rank_are_left_out_and_nics_are_not() -> None:
    setup = setup_of(run(ranks=20), system="DGX H100", nodes=10)
    assert sorted(gpus_of(setup.tree)) == [0, 1]
    assert len(nets_of(setup.tree)) == 8


def test_the_gpus_that_ranks_run_on_are_those_of_the_device_list() -> None:
    devices = tuple(BenchDevice(rank, "n0", number, H100) for rank, number in enumerate((4, 6)))
    setup = setup_of(replace(run(ranks=2), devices=devices), system="DGX H100")
    assert sorted(gpus_of(setup.tree)) == [4, 6]


def test_a_device_list_that_is_cut_short_still_tells_the_hosts() -> None:
    short = replace(run(gpu=H100, ranks=16, hosts=2), devices=run(gpu=H100, ranks=4, hosts=2).devices)
    setup = setup_of(short)
    assert (setup.nodes, setup.per_node) == (2, 8)


def test_hosts_with_different_numbers_of_ranks_have_no_expectation() -> None:
    devices = tuple(BenchDevice(rank, "n0" if rank < 5 else "n1", rank % 5, H100) for rank in range(8))
    with pytest.raises(NoSetupError, match="same number"):
        setup_of(replace(run(), devices=devices))
