"""Which part of a topology file NCCL keeps, what it fills in, and in which order the trees of the ranks are joined."""

from __future__ import annotations

import pytest

from tests.nccl.small_trees import cpu, element, gpu, host, nic, nvlink, pci
from topodiag.model.nccl_tree import Element
from topodiag.nccl.graph.attach import MAX_DEPTH, Branch, HostTree, count_gpus, joined_tree
from topodiag.nccl.graph.graph import RejectedError


def found(branch: Branch, tag: str) -> list[Branch]:
    below = [branch for child in branch.children for branch in found(child, tag)]
    return ([branch] if branch.tag == tag else []) + below


def joined(tree: Element, ranks: dict[str, int] | None = None, minor: int = 28) -> Branch:
    return joined_tree([HostTree(tree, ranks)], minor)


def buses(tree: Branch) -> list[str]:
    """Bus numbers of the GPUs with a rank, in the order of the joined tree."""
    with_gpu = [branch for branch in found(tree, "pci") for child in branch.children if "rank" in child.attributes]
    return [branch.attributes["busid"][5:7] for branch in with_gpu]


PLAIN = {"0000:10:00.0": 0, "0000:11:00.0": 1, "0000:20:00.0": 2, "0000:21:00.0": 3}


def two_sockets() -> Element:
    """GPU 10 alone, 11 beside a NIC; 20 beside a NIC, 21 alone."""
    left = cpu(0, pci("01", gpu("10")), pci("02", gpu("11"), nic("12")))
    right = cpu(1, pci("03", gpu("20"), nic("22")), pci("04", gpu("21")))
    return host(left, right)


def test_without_ranks_every_gpu_takes_part_in_the_order_of_the_file() -> None:
    tree = joined(two_sockets())
    assert buses(tree) == ["10", "11", "20", "21"]
    assert [branch.attributes["rank"] for branch in found(tree, "gpu")] == ["0", "1", "2", "3"]


def test_the_ranks_of_a_host_are_joined_in_rank_order_so_that_branches_without_a_nic_come_last() -> None:
    """Rank 0 brings GPU 10 and all NICs, GPU 21 comes with rank 3; so with rank 3 first it is the other way about."""
    other = {"0000:10:00.0": 3, "0000:11:00.0": 2, "0000:20:00.0": 1, "0000:21:00.0": 0}
    assert [child.attributes["busid"][5:7] for child in joined(two_sockets(), PLAIN).children[0].children] == [
        "01",
        "02",
    ]
    assert [child.attributes["busid"][5:7] for child in joined(two_sockets(), other).children[0].children] == [
        "02",
        "01",
    ]


def test_up_to_2_21_the_file_keeps_its_order_whatever_the_ranks() -> None:
    other = {"0000:10:00.0": 3, "0000:11:00.0": 2, "0000:20:00.0": 1, "0000:21:00.0": 0}
    tree = joined(two_sockets(), other, minor=21)
    assert [child.attributes["busid"][5:7] for child in tree.children[0].children] == ["01", "02"]


def test_gpus_outside_the_communicator_go_but_all_nics_stay() -> None:
    tree = joined(two_sockets(), {"0000:11:00.0": 0})
    assert buses(tree) == ["11"]
    assert len(found(tree, "net")) == 2
    assert "01" not in [branch.attributes["busid"][5:7] for branch in found(tree, "pci")]


def test_a_gpu_without_a_number_of_the_driver_gets_its_place_in_the_file_whatever_its_rank() -> None:
    tree = joined(two_sockets(), {"0000:20:00.0": 5, "0000:11:00.0": 9})
    assert [(branch.attributes["dev"], branch.attributes.get("rank")) for branch in found(tree, "gpu")] == [
        ("1", "9"),
        ("2", "5"),
    ]


def test_bus_ids_are_found_whatever_their_case() -> None:
    assert buses(joined(host(cpu(0, gpu("c3"))), {"0000:C3:00.0": 0})) == ["c3"]


def test_the_second_gpu_of_one_bus_id_is_lost_but_counted() -> None:
    tree = host(cpu(0, gpu("10"), gpu("10"), gpu("11")))
    assert [branch.attributes["rank"] for branch in found(joined(tree), "gpu") if "rank" in branch.attributes] == [
        "0",
        "2",
    ]
    assert count_gpus(tree) == 3


def test_only_gpus_where_nccl_looks_for_them_count() -> None:
    stray = host(cpu(0, gpu("10"), element("gpu")), element("what", gpu("11")))
    assert count_gpus(stray) == 1
    assert count_gpus(element("other")) == 0


def test_a_gpu_that_is_switched_off_is_skipped() -> None:
    assert buses(joined(host(cpu(0, gpu("10", dev=-1), gpu("11"))))) == ["11"]


def test_switches_and_cpus_without_gpu_or_nic_below_are_cut_off() -> None:
    tree = joined(host(cpu(0, gpu("10"), pci("40", pci("41"))), cpu(1, pci("50"))))
    assert len(tree.children) == 1
    assert [branch.attributes["busid"][5:7] for branch in found(tree, "pci")] == ["10"]


def test_what_a_running_nccl_asks_the_machine_for_is_filled_in_above_a_gpu_only() -> None:
    bare = element(
        "pci", element("gpu", nvlink("0000:05:00.0", 4)), vendor="0x10de", device="0x2330", busid="0000:10:00.0"
    )
    link = Element("nvlink", (("target", "0000:05:00.0"), ("count", "4")))
    bare = Element("pci", bare.attributes, (Element("gpu", (), (link,)),))
    tree = joined(host(Element("cpu", (("numaid", "0"),), (bare,)), Element("cpu", (("numaid", "1"),), (nic("20"),))))
    left, right = tree.children
    assert left.attributes["arch"] == "x86_64"
    assert "arch" not in right.attributes
    function = left.children[0]
    assert (function.attributes["class"], function.attributes["link_speed"]) == ("0x03", "")
    assert function.children[0].attributes == {"rank": "0", "dev": "0", "gdr": "1", "sm": "90"}
    assert function.children[0].children[0].attributes["tclass"] == "0x068000"


def test_a_cpu_with_chip_to_chip_links_is_taken_for_arm() -> None:
    grace = Element("cpu", (("numaid", "0"),), (gpu("10", element("c2c", bw=44712, count=10)),))
    assert joined(host(grace)).children[0].attributes["arch"] == "arm64"


def test_nets_without_a_number_are_numbered_in_the_order_of_the_file() -> None:
    tree = joined(host(cpu(0, nic("20", nets=2), gpu("10"), nic("21"))))
    assert [branch.attributes["dev"] for branch in found(tree, "net")] == ["0", "1", "2"]


def test_the_first_of_two_attributes_of_one_name_counts() -> None:
    twice = Element("cpu", (("numaid", "0"), ("arch", "arm64"), ("arch", "x86_64")), (gpu("10"),))
    assert joined(host(twice)).children[0].attributes["arch"] == "arm64"


def test_links_between_gpu_and_cpu_are_unknown_before_2_19_and_links_between_switches_before_2_22() -> None:
    tree = host(cpu(0, pci("01", gpu("10", element("c2c", bw=1, count=1)), element("pcilink", target="0000:02:00.0"))))
    assert [len(found(joined(tree, minor=minor), "c2c")) for minor in (18, 19)] == [0, 1]
    assert [len(found(joined(tree, minor=minor), "pcilink")) for minor in (21, 22)] == [0, 1]


def test_ranks_that_see_different_attributes_of_a_function_see_two_functions() -> None:
    """Only the rank below a switch fills in its missing width: for the other one it stays as in the file."""
    bare = Element(
        "pci", (("busid", "0000:01:00.0"), ("class", "0x060400"), ("link_speed", "")), (gpu("10"), nic("12"))
    )
    tree = host(cpu(0, bare, gpu("11")))
    assert len(joined(tree, {"0000:10:00.0": 0, "0000:11:00.0": 1}).children[0].children) == 3
    assert len(joined(tree).children[0].children) == 2


def test_a_tree_without_a_gpu_of_the_communicator_is_rejected() -> None:
    for tree in (host(), host(cpu(0, nic("20"))), element("cpu")):
        with pytest.raises(RejectedError):
            joined(tree)
    with pytest.raises(RejectedError):
        joined(two_sockets(), {"0000:77:00.0": 0})


def test_a_tree_deeper_than_any_file_that_nccl_reads_is_rejected() -> None:
    deep = gpu("10")
    for _ in range(4 * MAX_DEPTH):
        deep = pci("01", deep)
    with pytest.raises(RejectedError, match="XML parser is limited to 256 nodes"):
        joined(host(cpu(0, deep)))
