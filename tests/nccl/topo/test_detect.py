"""The tree that NCCL would detect on a node, and files that get the devices of a known system."""

from dataclasses import replace
from typing import Any

import pytest

from tests.nccl.small_trees import cpu, element, gpu, host, pci
from tests.scanned import node_at
from tests.tables import examples
from topodiag.cost.tiers import find_system
from topodiag.model.nccl_tree import Element, NcclFile
from topodiag.model.node import Node
from topodiag.model.provenance import Fact
from topodiag.nccl.predict import predict_tree
from topodiag.nccl.topo.detect import HIDDEN_SWITCH, LackingError, tree_of
from topodiag.nccl.topo.devices_added import UnfitSystemError, bare_gpus, with_devices


def node_of(name: str) -> Node:
    return node_at(f"fixture:{name}")


@pytest.fixture(scope="module")
def dgx() -> Node:
    return node_of("dgx-h100-healthy")


def every(tree: Element, tag: str) -> list[Element]:
    return [element for element in tree.walk() if element.tag == tag]


def parents(tree: Element, bus_id: str) -> list[str]:
    """Bus ids or NUMA ids from a function up to its processor."""

    def below(element: Element, way: list[str]) -> list[str] | None:
        if element.get("busid") == bus_id:
            return way
        here = element.get("busid") or element.get("numaid") or ""
        for child in element.children:
            texts = below(child, [here, *way])
            if texts is not None:
                return texts
        return None

    return below(tree, []) or []


@examples("machine", "env", "wanted")
def test_the_tree_of_a_captured_machine(machine: str, env: dict[str, str] | None, wanted: dict[str, Any]) -> None:
    """Its `gpus` and `nets`, the `links` of a GPU to each target, the first steps of a function's way up (`ways`), the
    `speeds` of GPUs, who has GPUDirect, the `targets` of NVLinks, and words of what was `assumed`."""
    found = tree_of(node_of(machine), env or {})
    gpus, nets, links = (every(found.tree, tag) for tag in ("gpu", "net", "nvlink"))
    counts = {gpu.get("dev") or "": [link.get("count") for link in gpu.having("nvlink")] for gpu in gpus}
    shown = {
        "gpus": sorted(gpu.get("dev") or "" for gpu in gpus), "nets": [net.get("name") for net in nets],
        "links": {dev: counts[dev] for dev in wanted.get("links", ())},
        "ways": {bus: parents(found.tree, bus)[: len(way)] for bus, way in wanted.get("ways", {}).items()},
        "speeds": sorted({pci.get("link_speed") for pci in every(found.tree, "pci") if pci.having("gpu")}),
        "gdr": sorted({element.get("gdr") for element in (*gpus, *nets)}),
        "gdr_of_nets": [net.get("gdr") for net in nets],
        "targets": sorted({(link.get("target") or "").replace(HIDDEN_SWITCH, "hidden") for link in links}),
        "classes": sorted({link.get("tclass") for link in links}),
        "assumed": [words for words in wanted.get("assumed", ()) if any(words in each for each in found.assumed)],
    }  # fmt: skip
    assert {name: shown[name] for name in wanted} == wanted


def test_a_mesh_names_the_gpu_at_the_far_end() -> None:
    tree = tree_of(node_of("dgx1v-hybrid-mesh"), {}).tree
    buses = {pci.get("busid") for pci in every(tree, "pci") if pci.having("gpu")}
    targets = {link.get("target") for link in every(tree, "nvlink")}
    assert targets <= buses
    per_gpu = [sum(int(link.get("count") or 0) for link in gpu.having("nvlink")) for gpu in every(tree, "gpu")]
    assert per_gpu == [6] * 8


def test_a_node_with_a_file_has_the_tree_of_the_file(dgx: Node) -> None:
    tree = Element("system", (("version", "1"),))
    assert tree_of(replace(dgx, nccl_file=NcclFile("x.xml", tree))).tree is tree


def test_without_gpus_there_is_no_tree(dgx: Node) -> None:
    with pytest.raises(LackingError, match="no GPU"):
        tree_of(replace(dgx, gpus=()))


def test_without_a_bus_id_the_message_names_the_gpu(dgx: Node) -> None:
    with pytest.raises(LackingError, match="bus id of GPU0"):
        tree_of(replace(dgx, gpus=(replace(dgx.gpus[0], bus_id=None),)))


def test_an_unknown_rate_is_assumed_and_said(dgx: Node) -> None:
    nic = dgx.nics[0]
    blind = replace(nic, ports=tuple(replace(port, rate_gbps=Fact(why="not read")) for port in nic.ports))
    found = tree_of(replace(dgx, nics=(blind, *dgx.nics[1:])), {})
    assert any("mlx5_0 is taken as 10 Gb/s" in sentence for sentence in found.assumed)


# --- files that leave GPUs and NICs to NCCL get those of a known system, where they have places for them


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
