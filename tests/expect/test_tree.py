"""A catalogued machine laid out as a tree is one that NCCL accepts and that brings what such machines bring."""

import pytest

from tests.tables import examples
from topodiag.expect.tree import Layout, layout_of, tree_of_layout
from topodiag.hardware import catalog
from topodiag.hardware.specs import SystemSpec
from topodiag.model.nccl_tree import Element
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
