"""The tree that NCCL would detect on a node, rebuilt from captured machines."""

from dataclasses import replace

import pytest

from tests.scanned import node_at
from topodiag.model.nccl_tree import Element, NcclFile
from topodiag.model.node import Node
from topodiag.model.provenance import Fact
from topodiag.nccl.topo.detect import HIDDEN_SWITCH, LackingError, tree_of


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


def test_each_gpu_and_each_active_rdma_port_is_there(dgx: Node) -> None:
    tree = tree_of(dgx, {}).tree
    assert [gpu.get("dev") for gpu in every(tree, "gpu")].count("0") == 1
    assert sorted(int(gpu.get("dev") or -1) for gpu in every(tree, "gpu")) == list(range(8))
    names = [net.get("name") for net in every(tree, "net")]
    assert "mlx5_2" not in names, "its port is down"
    assert len(names) == 10


def test_a_switch_is_one_element_at_its_upstream_port(dgx: Node) -> None:
    tree = tree_of(dgx, {}).tree
    assert parents(tree, "0000:1b:00.0")[:3] == ["0000:19:00.0", "0000:16:00.0", "0"]


def test_links_are_as_fast_as_both_ends_can_do_not_as_they_rest() -> None:
    idle = tree_of(node_of("idle-gen1"), {}).tree
    gpus = [pci for pci in every(idle, "pci") if pci.having("gpu")]
    assert {pci.get("link_speed") for pci in gpus} == {"16.0 GT/s PCIe"}, "idle at Gen1, built for Gen4"


def test_nvlinks_that_are_down_are_not_counted() -> None:
    tree = tree_of(node_of("dgx-h100-gpu3-12of18-nvlink"), {}).tree
    counts = {gpu.get("dev"): [link.get("count") for link in gpu.having("nvlink")] for gpu in every(tree, "gpu")}
    assert counts["3"] == ["12"]
    assert counts["4"] == ["18"]


def test_switches_that_the_host_cannot_see_have_the_target_that_nccl_writes(dgx: Node) -> None:
    links = every(tree_of(dgx, {}).tree, "nvlink")
    assert {(link.get("target"), link.get("tclass")) for link in links} == {(HIDDEN_SWITCH, "0x068000")}


def test_a_mesh_names_the_gpu_at_the_far_end() -> None:
    tree = tree_of(node_of("dgx1v-hybrid-mesh"), {}).tree
    buses = {pci.get("busid") for pci in every(tree, "pci") if pci.having("gpu")}
    targets = {link.get("target") for link in every(tree, "nvlink")}
    assert targets <= buses
    per_gpu = [sum(int(link.get("count") or 0) for link in gpu.having("nvlink")) for gpu in every(tree, "gpu")]
    assert per_gpu == [6] * 8


def test_without_peer_memory_and_dma_buf_gdr_is_off() -> None:
    tree = tree_of(node_of("peermem-missing"), {}).tree
    assert {element.get("gdr") for element in [*every(tree, "gpu"), *every(tree, "net")]} == {"0"}


def test_nccl_ib_hca_chooses_the_nics(dgx: Node) -> None:
    names = {net.get("name") for net in every(tree_of(dgx, {"NCCL_IB_HCA": "=mlx5_0,mlx5_1"}).tree, "net")}
    assert names == {"mlx5_0", "mlx5_1"}


def test_without_rdma_the_sockets_are_taken() -> None:
    tree = tree_of(node_of("rtx4090-pair"), {}).tree
    (net,) = every(tree, "net")
    assert net.get("gdr") == "0"


def test_a_tool_that_hung_says_nothing_of_the_links_and_that_is_said() -> None:
    found = tree_of(node_of("nvidia-smi-hangs"), {})
    assert {link.get("count") for link in every(found.tree, "nvlink")} == {"18"}
    assert any("taken as built" in sentence for sentence in found.assumed)


def test_links_that_were_seen_down_are_not_taken_as_built() -> None:
    assert not every(tree_of(node_of("fm-down-a100"), {}).tree, "nvlink")


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
