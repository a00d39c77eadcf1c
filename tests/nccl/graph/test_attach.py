"""Which part of a topology file NCCL keeps, what it fills in, and in which order the trees of the ranks are joined."""

from typing import Any

import pytest

from tests.nccl.small_trees import cpu, element, gpu, grown, host, nic, nvlink, pci
from tests.tables import examples
from topodiag.model.nccl_tree import Element
from topodiag.nccl.graph.attach import MAX_DEPTH, Branch, HostTree, count_gpus, joined_tree
from topodiag.nccl.graph.graph import RejectedError


def found(branch: Branch, tag: str) -> list[Branch]:
    below = [branch for child in branch.children for branch in found(child, tag)]
    return ([branch] if branch.tag == tag else []) + below


def joined(tree: Element, ranks: dict[str, int] | None = None, minor: int = 28) -> Branch:
    return joined_tree([HostTree(tree, ranks)], minor)


def two_sockets() -> Element:
    """GPU 10 alone, 11 beside a NIC; 20 beside a NIC, 21 alone."""
    left = cpu(0, pci("01", gpu("10")), pci("02", gpu("11"), nic("12")))
    right = cpu(1, pci("03", gpu("20"), nic("22")), pci("04", gpu("21")))
    return host(left, right)


def bus(branch: Branch) -> str:
    return branch.attributes["busid"][5:7]


def shown(tree: Branch, name: str, wanted: Any) -> Any:
    """Bus numbers of the GPUs with a rank in the order of the joined tree, and of what is right below its first
    processor; attributes of all elements of a name, "null" for those that an element lacks."""
    if name == "buses":
        below = [branch for branch in found(tree, "pci") for child in branch.children if "rank" in child.attributes]
        return [bus(branch) for branch in below]
    if name == "below":
        return [bus(branch) for branch in tree.children[0].children]
    there = found(tree, name)
    return [
        {key: branch.attributes.get(key, "null") for key in own} for branch, own in zip(there, wanted, strict=False)
    ] + [{} for _ in there[len(wanted) :]]


@examples("tree", "ranks", "wanted")
def test_what_is_kept_of_a_file(tree: list[Any], ranks: dict[str, int] | None, wanted: dict[str, Any]) -> None:
    """By version, for a communicator of all GPUs or of those with `ranks`; "rejected" where there is none."""
    file = grown(tree, two_sockets=two_sockets)
    for minor, want in wanted.items():
        if want == "rejected":
            with pytest.raises(RejectedError):
                joined(file, ranks, int(minor))
        else:
            made = joined(file, ranks, int(minor))
            assert {name: shown(made, name, own) for name, own in want.items()} == want


@examples("tree", "count")
def test_only_gpus_where_nccl_looks_for_them_count(tree: list[Any], count: int) -> None:
    assert count_gpus(grown(tree)) == count


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


def test_the_first_of_two_attributes_of_one_name_counts() -> None:
    twice = Element("cpu", (("numaid", "0"), ("arch", "arm64"), ("arch", "x86_64")), (gpu("10"),))
    assert joined(host(twice)).children[0].attributes["arch"] == "arm64"


def test_ranks_that_see_different_attributes_of_a_function_see_two_functions() -> None:
    """Only the rank below a switch fills in its missing width: for the other one it stays as in the file."""
    bare = Element(
        "pci", (("busid", "0000:01:00.0"), ("class", "0x060400"), ("link_speed", "")), (gpu("10"), nic("12"))
    )
    tree = host(cpu(0, bare, gpu("11")))
    assert len(joined(tree, {"0000:10:00.0": 0, "0000:11:00.0": 1}).children[0].children) == 3
    assert len(joined(tree).children[0].children) == 2


def test_a_tree_deeper_than_any_file_that_nccl_reads_is_rejected() -> None:
    deep = gpu("10")
    for _ in range(4 * MAX_DEPTH):
        deep = pci("01", deep)
    with pytest.raises(RejectedError, match="XML parser is limited to 256 nodes"):
        joined(host(cpu(0, deep)))
