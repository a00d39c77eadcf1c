"""What if: changes of a tree, NCCL_IB_HCA among them, and what NCCL makes of a file on a machine."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.nccl.small_trees import GEN5, cpu, gpu, host, nic, nvlink, pci, to_gpu
from tests.tables import examples
from tests.verdict.pricing.machines import tree
from topodiag.model.nccl_tree import Element
from topodiag.nccl.topo import changes
from topodiag.nccl.topo.changes import ChangeError, apply, by_hca_list, edited, nets_of, with_values
from topodiag.nccl.topo.hca_list import HcaFilter
from topodiag.nccl.topo.merge import loaded


def switched() -> Element:
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
    return apply(switched(), chosen).tree


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
    tree = apply(switched(), [changes.off("gdr"), changes.setting("NCCL_ALGO=Ring")])
    assert tree.tree == switched()
    assert tree.env == {"NCCL_NET_GDR_LEVEL": "LOC", "NCCL_ALGO": "Ring"}


@examples("make", "text", "words")
def test_what_cannot_be_done_is_said_in_one_line(make: str, text: str, words: str) -> None:
    with pytest.raises(ChangeError, match=words.replace("(", r"\(")):
        apply(switched(), [getattr(changes, make)(text)])


MAKERS = [changes.down, changes.remove, changes.width, changes.speed, changes.rate, changes.off]


@given(st.sampled_from(MAKERS), st.text())
def test_any_words_are_a_change_or_a_clear_error(make: object, text: str) -> None:
    try:
        tree = apply(switched(), [make(text)])  # type: ignore[operator]
    except ChangeError:
        return
    assert tree.tree.tag == "system"


# --- NCCL_IB_HCA: the ports that it leaves, and their rails and planes


@examples("text", "name", "port", "taken")
def test_lists_of_devices_are_read_as_nccl_reads_them(text: str, name: str, port: int, taken: bool) -> None:
    assert HcaFilter(text).takes(name, port) is taken


@examples("text", "rail", "plane")
def test_a_list_gives_ports_rails_and_planes(text: str, rail: str | None, plane: str | None) -> None:
    expected = {"rail": rail, "plane": plane}
    assert HcaFilter(text).place("mlx5_0", 1) == {key: value for key, value in expected.items() if value is not None}


def test_a_tree_keeps_the_ports_of_the_list_and_their_functions() -> None:
    element = by_hca_list(tree(), "=mlx5_2:1:0:1,mlx5_3:1:1:1", rails=True)
    assert nets_of(element) == ["mlx5_2", "mlx5_3"]
    shown = [(net.get("rail"), net.get("plane")) for net in element.walk() if net.tag == "net"]
    assert shown == [("0", "1"), ("1", "1")]
    functions = [pci for pci in element.walk() if pci.tag == "pci" and pci.get("class") == "0x020700"]
    assert len(functions) == 2
    again = by_hca_list(element, "=mlx5_2:1:5:5,mlx5_3:1:5:5", rails=True)  # what the file says stays
    assert again == element
    older = by_hca_list(tree(), "=mlx5_2:1:0:1", rails=False)
    assert [net.get("rail") for net in older.walk() if net.tag == "net"] == [None]


def test_a_list_of_another_machine_leaves_nothing_and_sockets_have_none() -> None:
    assert by_hca_list(tree(), "=ibp1s0", rails=True) is None
    sockets = edited(tree(), lambda element: with_values(element, {"port": "0"}) if element.tag == "net" else element)
    assert by_hca_list(sockets, "=ibp1s0", rails=True) == sockets


# --- what NCCL works on when it loads a file on a machine


def board(bus: str, dev: int, name: str) -> Element:
    """A switch with a GPU of 18 NVLinks and a NIC."""
    return pci(f"{bus}0", gpu(f"{bus}1", nvlink("s", 18), dev=dev, sm=90), nic(f"{bus}2", 400000, name=name))


MACHINE = host(cpu(0, board("1", 0, "mlx5_0")), cpu(1, board("2", 1, "mlx5_1")))


def buses(tree: Element) -> set[str | None]:
    return {element.get("busid") for element in tree.walk() if element.tag == "pci"}


def test_a_dump_of_the_machine_changes_nothing() -> None:
    assert loaded(MACHINE, MACHINE) == MACHINE


def test_an_empty_file_leaves_detection_as_it_is() -> None:
    assert loaded(host(), MACHINE) == MACHINE


def test_what_the_file_leaves_out_is_added_where_the_machine_has_it() -> None:
    part = apply(MACHINE, [changes.remove("mlx5_1")]).tree
    element = loaded(part, MACHINE)
    assert sorted(changes.nets_of(element)) == ["mlx5_0", "mlx5_1"]
    assert "0000:22:00.0" in buses(element)


def test_a_nic_that_the_file_names_stays_where_the_file_puts_it() -> None:
    moved = host(cpu(0, pci("10", gpu("11", nvlink("s", 18), dev=0, sm=90), nic("99", 400000, name="mlx5_1"))))
    element = loaded(moved, MACHINE)
    assert changes.nets_of(element).count("mlx5_1") == 1
    assert "0000:22:00.0" not in buses(element)


def test_devices_of_another_machine_are_trimmed() -> None:
    other = host(cpu(0, board("a", 0, "mlx5_9")))
    assert loaded(other, MACHINE) == MACHINE


def test_attributes_of_the_file_win_except_numbers_of_the_run() -> None:
    lying = apply(MACHINE, [changes.width("GPU0=4"), changes.down("nvlink:GPU1:6")]).tree
    element = loaded(lying, MACHINE)
    assert changes.gpus_of(element)[0].get("link_width") == "4"
    counts = [link.get("count") for link in element.walk() if link.tag == "nvlink"]
    assert counts == ["18", "12"]


def test_a_gpu_without_links_in_the_file_is_asked_for_them_anew() -> None:
    bare = host(cpu(0, gpu("11", dev=0)))
    element = loaded(bare, MACHINE)
    links = changes.gpus_of(element)[0].having("gpu")[0].having("nvlink")
    assert [link.get("count") for link in links] == ["18"]
