"""Expectations of a tree, by options that set a run up."""

from dataclasses import replace
from typing import Any

import pytest

from tests.expect.measured_runs import run
from tests.tables import examples, parts
from topodiag.expect.setup import NoSetupError, setup_of
from topodiag.expect.tree import Layout, layout_of, tree_of_layout
from topodiag.hardware import catalog
from topodiag.hardware.specs import SystemSpec
from topodiag.model.bench import BenchDevice
from topodiag.model.nccl_tree import Element
from topodiag.model.nccl_versions import NEWEST, spell_version
from topodiag.nccl.predict import predict_tree
from topodiag.nccl.topo.changes import gpus_of, nets_of

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
