"""A dump made fit to be used as a topology file."""

from dataclasses import replace

import pytest

from tests.nccl.small_trees import element, pci
from tests.nccl.small_trees import host as system
from tests.topologies import clean
from topodiag.model.nccl_tree import Element
from topodiag.nccl.topo.clean import UnfitError, hosts_of


def gpu(dev: int, rank: int, links: int = 1) -> Element:
    nvlinks = (element("nvlink", target=f"0000:0{n % 8}:00.0", count=2, tclass="0x068000") for n in range(links))
    return element("gpu", *nvlinks, dev=dev, sm=90, rank=rank, gdr=1, keep=1, mlopart=-1)


def net(name: str, dev: int) -> Element:
    return element("nic", element("net", name=name, dev=dev, speed=400000, keep=1, gin=1, rma=1))


def host(hash_: str, first: int, links: int = 1, gpus: int = 2) -> Element:
    branches = [pci(f"{first + n:02x}", gpu(n, first + n, links), speed="") for n in range(gpus)]
    branches += pci("f0", net("mlx5_0", first * 4 + 1), speed=""), pci("f1", pci("f2", speed=""), speed="")
    return element("cpu", *branches, numaid=0, host_hash=hash_, arch="x86_64")


def names(tree: Element) -> set[str]:
    return {name for element in tree.walk() for name, _ in element.attributes}


def test_what_belongs_to_one_run_goes() -> None:
    tree = clean(system(host("0xa", 0)), 28)
    assert not {"rank", "keep", "host_hash", "mlopart", "gin"} & names(tree.tree)
    assert any("rank" in sentence for sentence in tree.done)


def test_attributes_of_the_newest_version_stay_for_it() -> None:
    assert {"gin", "rma", "mlopart"} <= names(clean(system(host("0xa", 0)), 30).tree)
    assert "rma" not in names(clean(system(host("0xa", 0)), 29).tree)


def test_attributes_that_no_nccl_reads_go_before_they_are_too_long_for_its_parser() -> None:
    cpu = replace(host("0xa", 0), attributes=(*host("0xa", 0).attributes, ("note", "x" * 300)))
    tree = clean(system(cpu), 28)
    assert "note" not in names(tree.tree)
    assert any("does not read from a file" in sentence and "note" in sentence for sentence in tree.done)


@pytest.mark.parametrize(
    ("child", "class_"), [(gpu(0, 0), "0x030200"), (net("mlx5_0", 0), "0x020000"), (pci("b", gpu(0, 0)), "0x060400")]
)
def test_a_class_that_is_not_said_is_that_of_what_is_on_the_function(child: Element, class_: str) -> None:
    function = element("pci", child, busid="0000:09:00.0")
    cleaned = clean(system(element("cpu", function, pci("0a", gpu(1, 1)), numaid=0)), 28).tree
    assert cleaned.children[0].children[0].get("class") == class_


def test_one_node_is_cut_out_of_a_dump_of_several_hosts() -> None:
    tree = system(host("0xa", 0), host("0xb", 2))
    assert hosts_of(tree) == ["0xa", "0xb"]
    first = clean(tree, 28)
    assert sum(element.tag == "gpu" for element in first.tree.walk()) == 2
    second = clean(tree, 28, host="0xb")
    assert "0000:02:00.0" in {element.get("busid") for element in second.tree.walk()}


def test_an_unknown_host_is_named_with_those_that_are_there() -> None:
    with pytest.raises(UnfitError, match="no host 0xc in this file; there are 0xa, 0xb"):
        clean(system(host("0xa", 0), host("0xb", 2)), 28, host="0xc")


def test_the_nics_of_a_host_are_numbered_from_0() -> None:
    element = clean(system(host("0xa", 0)), 28).tree
    assert [element.get("dev") for element in element.walk() if element.tag == "net"] == ["0"]


def test_branches_without_a_gpu_and_without_a_nic_go() -> None:
    element = clean(system(host("0xa", 0)), 28).tree
    assert "0000:f1:00.0" not in {element.get("busid") for element in element.walk()}


def test_links_to_nvswitches_are_joined_only_when_the_limit_asks_for_it() -> None:
    tree = system(host("0xa", 0, links=20, gpus=16))
    few = clean(tree, 20).tree
    assert sum(element.tag == "nvlink" for element in few.walk()) == 320, "2.20 takes 1024 elements"
    many = clean(tree, 28)
    assert sum(element.tag == "nvlink" for element in many.tree.walk()) == 16
    assert {element.get("count") for element in many.tree.walk() if element.tag == "nvlink"} == {"40"}


def test_what_no_version_could_load_is_refused() -> None:
    with pytest.raises(UnfitError, match="takes 256"):
        clean(system(host("0xa", 0, gpus=130)), 28)
    with pytest.raises(UnfitError, match="no GPU"):
        clean(system(), 28)
    with pytest.raises(UnfitError, match="has 42 children, and NCCL takes 32"):
        clean(system(host("0xa", 0, gpus=41)), 20)


def test_cleaning_twice_changes_nothing() -> None:
    once = clean(system(host("0xa", 0), host("0xb", 2)), 28).tree
    again = clean(once, 28)
    assert again.tree == once
    assert again.done == ()
