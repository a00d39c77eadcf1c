"""Files that leave GPUs and NICs to NCCL get those of a known system, where they have places for them."""

import pytest

from tests.nccl.small_trees import cpu, element, gpu, host, pci
from topodiag.cost.tiers import find_system
from topodiag.model.nccl_tree import Element
from topodiag.nccl.predict import predict_tree
from topodiag.nccl.topo.devices_added import UnfitSystemError, bare_gpus, with_devices


def place(bus: str, kind: str, **more: object) -> Element:
    return pci(bus, class_=kind, **more)


def cloud(gpus: int = 8, nics: int = 8, **more: object) -> Element:
    """Switches with a place for a GPU and one for a NIC below each."""
    switches = [
        pci(f"a{at}", place(f"1{at}", "0x030200", **more), *([place(f"2{at}", "0x020700")] if at < nics else []))
        for at in range(gpus)
    ]
    return host(cpu(0, *switches[: gpus // 2]), cpu(1, *switches[gpus // 2 :]))


def test_a_file_that_describes_a_gpu_leaves_none_to_nccl() -> None:
    assert len(bare_gpus(cloud())) == 8
    assert bare_gpus(host(cpu(0, gpu("10"), place("11", "0x030200")))) == []
    assert bare_gpus(cloud(vendor="0x1a03")) == []


def test_gpus_and_nics_of_the_system_stand_in_the_places_by_bus_id() -> None:
    made = with_devices(cloud(), find_system("ND96isr_H100_v5"))
    assert [node.get("dev") for node in made.tree.walk() if node.tag == "gpu"] == [str(at) for at in range(8)]
    assert {node.get("speed") for node in made.tree.walk() if node.tag == "net"} == {"400000"}
    predicted = predict_tree(made.tree, nodes=2, sizes=())
    assert (predicted.ranks, predicted.total_bw, predicted.max_bw) == (16, pytest.approx(370.8, abs=0.1), 24)


def test_nics_stay_out_where_the_file_has_other_places_than_the_system_nics() -> None:
    made = with_devices(cloud(nics=3), find_system("ND96isr_H100_v5"))
    assert not [node for node in made.tree.walk() if node.tag == "net"]
    assert predict_tree(made.tree, nodes=2, sizes=()).no_nic


def test_a_system_with_other_gpus_than_the_file_has_places_for_is_refused() -> None:
    with pytest.raises(UnfitSystemError, match="has 8 GPUs, and the file has places for 4"):
        with_devices(cloud(gpus=4), find_system("ND96isr_H100_v5"))


def test_nothing_is_added_where_a_function_has_a_nic_already() -> None:
    there = place("11", "0x020700")
    full = element("pci", element("nic", element("net", name="x", dev=0)), busid="0000:12:00.0", class_="0x020700")
    tree = host(cpu(0, *(place(f"1{at}", "0x030200") for at in range(8)), there, full))
    assert len([node for node in with_devices(tree, find_system("dgx-h100")).tree.walk() if node.tag == "net"]) == 1
