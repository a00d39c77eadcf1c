"""What if: changes of a tree, two machines compared, and a sick one made like its own healthy parts."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.nccl.small_trees import GEN5, cpu, element, gpu, host, nic, nvlink, pci, to_gpu
from tests.tables import examples
from tests.verdict.pricing.machines import tree
from topodiag.model.nccl_tree import Element
from topodiag.nccl.topo import changes
from topodiag.nccl.topo.changes import ChangeError, apply, by_hca_list, edited, nets_of, with_values
from topodiag.nccl.topo.compare import Difference, compare
from topodiag.nccl.topo.hca_list import HcaFilter
from topodiag.nccl.topo.merge import loaded
from topodiag.nccl.topo.repair import repair


def switched() -> Element:
    """Two switched GPUs (links to two targets), two more joined directly, two NICs, one of them below a switch."""
    switches = nvlink("sw:1", 9), nvlink("sw:2", 9)
    gpus = [gpu(f"1{dev}", *switches, dev=dev, speed=GEN5) for dev in range(2)]
    pair = gpu("12", to_gpu("13", 4), dev=2, speed=GEN5), gpu("13", to_gpu("12", 4), dev=3, speed=GEN5)
    nics = [nic(f"2{at + 1}", 400000, speed=GEN5, name=f"mlx5_{at}") for at in range(2)]
    return host(cpu(0, *gpus, *pair, pci("20", nics[0]), nics[1]))


def links_of(tree: Element, dev: int) -> list[tuple[str | None, str | None]]:
    pci = changes.gpus_of(tree)[dev]
    return [(link.get("target"), link.get("count")) for link in pci.having("gpu")[0].having("nvlink")]


def done(*chosen: changes.Change) -> Element:
    return apply(switched(), chosen).tree


def test_links_that_go_down_are_taken_from_the_fullest_target_in_turn() -> None:
    assert links_of(done(changes.down("nvlink:GPU0:6")), 0) == [("sw:1", "6"), ("sw:2", "6")]
    assert links_of(done(changes.down("nvlink:GPU0:6")), 1) == [("sw:1", "9"), ("sw:2", "9")]


def test_a_gpu_without_any_link_has_no_element_of_one_as_where_the_driver_reports_none() -> None:
    assert links_of(done(changes.down("nvlink:GPU0")), 0) == []


def test_a_direct_link_goes_down_at_both_ends() -> None:
    tree = done(changes.down("nvlink:GPU2-GPU3:1"))
    assert links_of(tree, 2) == [("0000:13:00.0", "3")]
    assert links_of(tree, 3) == [("0000:12:00.0", "3")]


def test_a_removed_nic_takes_the_switches_that_held_nothing_else() -> None:
    tree = done(changes.remove("nic:mlx5_0"))
    assert nets_of(tree) == ["mlx5_1"]
    assert all(element.get("busid") != "0000:20:00.0" for element in tree.walk())


def test_a_pattern_removes_all_nics_it_names() -> None:
    assert nets_of(done(changes.remove("mlx5_*"))) == []


def test_a_removed_gpu_takes_the_links_of_its_peers_to_it() -> None:
    tree = done(changes.remove("GPU3"))
    assert sorted(changes.gpus_of(tree)) == [0, 1, 2]
    assert links_of(tree, 2) == []


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
    links_of = changes.gpus_of(element)[0].having("gpu")[0].having("nvlink")
    assert [link.get("count") for link in links_of] == ["18"]


def machine(domain: str = "0000", hash_: str = "0x1", first: int = 1) -> Element:
    """Two switches, each with a GPU of 18 NVLinks and a NIC; what runs and machines number anew is by the arguments."""

    def pci(bus: int, *children: Element) -> Element:
        link = {"link_speed": GEN5, "link_width": 16}
        return element("pci", *children, busid=f"{domain}:{bus:02x}:00.0", **link)

    def branch(at: int) -> Element:
        links = element("nvlink", target=f"{domain}:07:00.0", count=18)
        net = element("net", name=f"mlx5_{at}", speed=400000, guid=f"0x{first}{at}", gdr=1)
        gpu = element("gpu", links, dev=at, sm=90, rank=at * first)
        return pci(0x10 + at, pci(0x20 + at, gpu), pci(0x30 + at, element("nic", net)))

    return host(element("cpu", branch(0), branch(1), numaid=0, host_hash=hash_, arch="x86_64"))


def test_what_differs_by_nature_is_no_difference() -> None:
    assert compare(machine(), machine("0001", "0x2", 3)) == ()


@examples("made", "differences")
def test_what_changed_is_told(made: list[tuple[str, str]], differences: list[tuple[str, str, str, str]]) -> None:
    sick = apply(machine(), [getattr(changes, name)(words) for name, words in made]).tree
    assert compare(sick, machine()) == tuple(Difference(*each) for each in differences)


def test_a_nic_beside_another_gpu_is_told() -> None:
    cpu = machine().children[0]
    first, second = cpu.children
    swapped = replace(cpu, children=(replace(first, children=(first.children[0], second.children[1])),
                                     replace(second, children=(second.children[0], first.children[1]))))  # fmt: skip
    differences = compare(replace(machine(), children=(swapped,)), machine())
    assert Difference("mlx5_0", "beside", "GPU1", "GPU0") in differences


def test_bus_ids_count_only_when_asked_for() -> None:
    other = machine()
    moved = apply(other, []).tree
    text = [e for e in moved.walk() if e.get("busid") == "0000:21:00.0"]
    assert text
    swapped = _renamed(moved, "0000:21:00.0", "0000:41:00.0")
    assert compare(swapped, other) == ()
    assert compare(swapped, other, buses=True) == (Difference("GPU1", "bus id", "41:00.0", "21:00.0"),)


def _renamed(tree: Element, old: str, new: str) -> Element:
    attributes = tuple((name, new if value == old else value) for name, value in tree.attributes)
    return replace(tree, attributes=attributes, children=tuple(_renamed(child, old, new) for child in tree.children))


CHANGES = st.lists(
    st.one_of(
        st.builds(lambda d, n: changes.down(f"nvlink:GPU{d}:{n}"), st.integers(0, 1), st.integers(1, 9)),
        st.builds(lambda d, n: changes.width(f"GPU{d}={n}"), st.integers(0, 1), st.sampled_from([1, 2, 4, 8])),
    ),
    max_size=3,
)


@given(CHANGES)
def test_the_other_way_round_is_the_mirror(made: list[changes.Change]) -> None:
    try:
        sick = apply(machine(), made).tree
    except changes.ChangeError:
        return
    there = {(d.device, d.what, d.left, d.right) for d in compare(sick, machine())}
    back = {(d.device, d.what, d.right, d.left) for d in compare(machine(), sick)}
    assert there == back
    assert not compare(sick, sick)


def with_cpu(**attributes: str) -> Element:
    (cpu,) = machine().children
    return replace(machine(), children=(replace(cpu, attributes=(*cpu.attributes, *attributes.items())),))


@examples("one", "other")
def test_a_mask_is_the_cpus_that_it_names_however_wide_it_is_written(one: str, other: str) -> None:
    assert compare(with_cpu(affinity=one), with_cpu(affinity=other)) == ()


def test_cpus_that_differ_are_told_as_a_list_and_what_is_no_mask_as_it_is() -> None:
    differences = compare(with_cpu(affinity="ffffffff"), with_cpu(affinity="0000ffff,00000000"))
    assert differences == (Difference("NUMA 0", "cpus", "0-31", "32-47"),)
    differences = compare(with_cpu(affinity="all"), with_cpu(affinity="f," * 5000 + "f"))
    assert [difference.what for difference in differences] == ["cpus"]


def test_c2c_counts_by_what_its_links_carry_together() -> None:
    def tray(bw: str, count: str) -> Element:
        gpu = element("gpu", element("c2c", bw=bw, count=count), dev=0)
        return host(element("cpu", element("pci", gpu, busid="0000:10:00.0"), numaid=0))

    assert compare(tray("44712", "10"), tray("447120", "1")) == ()
    assert compare(tray("44712", "5"), tray("44712", "10")) == (
        Difference("GPU0", "C2C", "223.56 GB/s", "447.12 GB/s"),
    )


# --- a sick topology made like its own healthy parts


def adapter(dev: int) -> Element:
    return nic(f"{dev + 0x40:02x}", 400000, speed=GEN5, name=f"mlx5_{dev}", dev=dev)


def branch(dev: int) -> Element:
    """A switch with a NIC, and below a second switch a GPU with 18 links to NVSwitches: a DGX H100's."""
    one = gpu(f"{dev + 0x30:02x}", nvlink("fffffff:ffff:ff", 18), dev=dev, sm=90, speed=GEN5)
    return pci(f"{dev + 0x10:02x}", adapter(dev), pci(f"{dev + 0x20:02x}", one, speed=GEN5), speed=GEN5)


def dgx(gpus: int = 8) -> Element:
    return host(*(cpu(at, *map(branch, range(at * gpus // 2, (at + 1) * gpus // 2))) for at in range(2)))


def mesh(counts: dict[tuple[int, int], int]) -> Element:
    """Four GPUs with direct links as counted from either end."""
    ends = [[to_gpu(f"3{b}", count) for (a, b), count in counts.items() if a == dev] for dev in range(4)]
    return host(cpu(0, *(gpu(f"3{dev}", *links, dev=dev, speed=GEN5) for dev, links in enumerate(ends))))


def links(tree: Element, dev: int) -> list[str | None]:
    return [link.get("count") for link in changes.gpus_of(tree)[dev].having("gpu")[0].having("nvlink")]


def broken(*made: changes.Change, tree: Element | None = None) -> Element:
    return apply(tree or dgx(), made).tree


@examples("gpus", "faults", "words", "whole")
def test_what_is_repaired(gpus: int | None, faults: list[list[str]], words: list[str], whole: bool) -> None:
    """The words of each repair of a machine with some faults, and whether it is as it was without them."""
    sound = dgx(gpus or 8)
    repaired = repair(broken(*(getattr(changes, name)(told) for name, told in faults), tree=sound))
    assert [one.words for one in repaired.repairs] == words
    assert all(one.words.partition(":")[0] in one.attention for one in repaired.repairs)
    assert (repaired.tree == sound) is whole


def test_a_nic_under_the_processor_goes_back_to_the_switch_that_lacks_one() -> None:
    tree = broken(changes.remove("mlx5_6"))
    cpu0, cpu1 = tree.children
    stray = Element(cpu1.tag, cpu1.attributes, (*cpu1.children, adapter(6)))
    repaired = repair(Element(tree.tag, tree.attributes, (cpu0, stray)))
    assert [one.words for one in repaired.repairs] == ["mlx5_6: put beside GPU6, where the other GPUs have theirs"]
    again = changes.gpus_of(repaired.tree)
    assert sorted(again) == list(range(8))
    home = next(
        b for b in repaired.tree.children[1].children if any(e.get("dev") == "6" and e.tag == "gpu" for e in b.walk())
    )
    assert "mlx5_6" in changes.nets_of(home)


def test_two_strays_for_two_places_are_left_alone() -> None:
    tree = broken(changes.remove("mlx5_6"), changes.remove("mlx5_5"))
    cpu0, cpu1 = tree.children
    stray = Element(cpu1.tag, cpu1.attributes, (*cpu1.children, adapter(6), adapter(5)))
    assert repair(Element(tree.tag, tree.attributes, (cpu0, stray))).repairs == ()


def test_a_link_that_only_one_end_names_gets_its_reverse() -> None:
    repaired = repair(mesh({(0, 1): 4, (1, 0): 4, (2, 3): 4}))
    assert links(repaired.tree, 3) == ["4"]
    assert repaired.repairs[0].words == "GPU3 to GPU2: 0 NVLinks made 4, as the other end counts"


FAULTS = st.one_of(
    st.builds(lambda d, n: changes.down(f"nvlink:GPU{d}:{n}"), st.integers(0, 7), st.integers(1, 18)),
    st.builds(lambda d, n: changes.width(f"GPU{d}={n}"), st.integers(0, 7), st.sampled_from([1, 2, 4, 8])),
    st.builds(lambda d, n: changes.speed(f"mlx5_{d}=gen{n}"), st.integers(0, 7), st.integers(1, 4)),
)


@given(FAULTS)
def test_any_one_fault_is_repaired(change: changes.Change) -> None:
    assert repair(broken(change)).tree == dgx()


@given(st.lists(FAULTS, max_size=4))
def test_a_repair_leaves_nothing_to_repair(made: list[changes.Change]) -> None:
    try:
        sick = broken(*made)
    except changes.ChangeError:
        return
    once = repair(sick).tree
    assert repair(once).repairs == ()
