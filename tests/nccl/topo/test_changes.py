"""What if: changes of a tree, read from words and applied."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.nccl.small_trees import GEN5, cpu, gpu, host, nic, nvlink, pci, to_gpu
from tests.tables import examples
from topodiag.model.nccl_tree import Element
from topodiag.nccl.topo import changes
from topodiag.nccl.topo.changes import ChangeError, apply, nets_of


def machine() -> Element:
    """Two switched GPUs (links to two targets), two more joined directly, two NICs, one of them below a switch."""
    switches = nvlink("sw:1", 9), nvlink("sw:2", 9)
    gpus = [gpu(f"1{dev}", *switches, dev=dev, speed=GEN5) for dev in range(2)]
    pair = gpu("12", to_gpu("13", 4), dev=2, speed=GEN5), gpu("13", to_gpu("12", 4), dev=3, speed=GEN5)
    nics = [nic(f"2{at + 1}", 400000, speed=GEN5, name=f"mlx5_{at}") for at in range(2)]
    return host(cpu(0, *gpus, *pair, pci("20", nics[0]), nics[1]))


def links(tree: Element, dev: int) -> list[tuple[str | None, str | None]]:
    pci = changes.gpus_of(tree)[dev]
    return [(link.get("target"), link.get("count")) for link in pci.having("gpu")[0].having("nvlink")]


def done(*chosen: changes.Change) -> Element:
    return apply(machine(), chosen).tree


def test_links_that_go_down_are_taken_from_the_fullest_target_in_turn() -> None:
    assert links(done(changes.down("nvlink:GPU0:6")), 0) == [("sw:1", "6"), ("sw:2", "6")]
    assert links(done(changes.down("nvlink:GPU0:6")), 1) == [("sw:1", "9"), ("sw:2", "9")]


def test_a_gpu_without_any_link_has_no_element_of_one_as_where_the_driver_reports_none() -> None:
    assert links(done(changes.down("nvlink:GPU0")), 0) == []


def test_a_direct_link_goes_down_at_both_ends() -> None:
    tree = done(changes.down("nvlink:GPU2-GPU3:1"))
    assert links(tree, 2) == [("0000:13:00.0", "3")]
    assert links(tree, 3) == [("0000:12:00.0", "3")]


def test_a_removed_nic_takes_the_switches_that_held_nothing_else() -> None:
    tree = done(changes.remove("nic:mlx5_0"))
    assert nets_of(tree) == ["mlx5_1"]
    assert all(element.get("busid") != "0000:20:00.0" for element in tree.walk())


def test_a_pattern_removes_all_nics_it_names() -> None:
    assert nets_of(done(changes.remove("mlx5_*"))) == []


def test_a_removed_gpu_takes_the_links_of_its_peers_to_it() -> None:
    tree = done(changes.remove("GPU3"))
    assert sorted(changes.gpus_of(tree)) == [0, 1, 2]
    assert links(tree, 2) == []


def test_width_speed_and_rate_are_set_where_they_stand() -> None:
    tree = done(changes.width("GPU1=4"), changes.speed("mlx5_0=gen3"), changes.rate("mlx5_1=200"))
    assert changes.gpus_of(tree)[1].get("link_width") == "4"
    by_bus = {element.get("busid"): element for element in tree.walk() if element.tag == "pci"}
    assert by_bus["0000:21:00.0"].get("link_speed") == "8.0 GT/s PCIe"
    assert [net.get("speed") for net in tree.walk() if net.tag == "net"] == ["400000", "200000"]


def test_a_feature_is_off_by_its_setting_and_the_tree_stays() -> None:
    tree = apply(machine(), [changes.off("gdr"), changes.setting("NCCL_ALGO=Ring")])
    assert tree.tree == machine()
    assert tree.env == {"NCCL_NET_GDR_LEVEL": "LOC", "NCCL_ALGO": "Ring"}


@examples("make", "text", "words")
def test_what_cannot_be_done_is_said_in_one_line(make: str, text: str, words: str) -> None:
    with pytest.raises(ChangeError, match=words.replace("(", r"\(")):
        apply(machine(), [getattr(changes, make)(text)])


MAKERS = [changes.down, changes.remove, changes.width, changes.speed, changes.rate, changes.off]


@given(st.sampled_from(MAKERS), st.text())
def test_any_words_are_a_change_or_a_clear_error(make: object, text: str) -> None:
    try:
        tree = apply(machine(), [make(text)])  # type: ignore[operator]
    except ChangeError:
        return
    assert tree.tree.tag == "system"
