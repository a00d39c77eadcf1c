"""Which part of a file NCCL keeps, which switches become one, and the nearest NICs, GPU and CPU."""

from typing import Any

import pytest

from tests.nccl.small_trees import BROADCOM5, GEN5, built, cpu, element, gpu, grown, host, nic, nvlink, pci
from tests.tables import examples
from topodiag.model.nccl_tree import Element
from topodiag.nccl.graph.attach import MAX_DEPTH, Branch, HostTree, count_gpus, joined_tree
from topodiag.nccl.graph.flatten import generation
from topodiag.nccl.graph.graph import RejectedError
from topodiag.nccl.graph.nearest import local_cpu, local_gpu, local_nets, nearest, row


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


# --- broadcom switches that show two levels become one, by the rules of each version


GEN4_SWITCH = {"vendor": "0x1000", "device": "0xc010", "subsystem_vendor": "0x1000", "subsystem_device": "0xa096"}


def switches(tree: Element, minor: int = 28) -> list[str]:
    return [vertex.label for vertex in built(tree, minor=minor).nodes["PCI"]]


def two_level(upper: dict[str, str], lower: dict[str, str]) -> Element:
    return host(cpu(0, pci("01", pci("02", gpu("10"), **lower), pci("03", nic("20"), **lower), **upper)))


def gen5(level: int) -> dict[str, str]:
    return {**BROADCOM5, "subsystem_device": f"0x{level}00b"}


@examples("device", "level", "minor", "expected")
def test_a_switch_is_known_by_its_ids_and_gen5_by_its_level(device: int, level: int, minor: int, expected: int) -> None:
    assert generation(device, level, minor) == expected


def test_the_lower_level_goes_and_its_devices_hang_on_the_upper_switch() -> None:
    system = built(two_level(gen5(0), gen5(1)))
    (switch,) = system.nodes["PCI"]
    assert [link.remote.label for link in switch.links] == ["GPU/0-10000", "NIC/0-20000", "CPU/0-0"]
    assert system.gpus[0].links[0].remote is switch
    assert system.gpus[0].paths["NET"][0].count == 3


SWITCHES = {
    "gen5 upper": gen5(0), "gen5 lower": gen5(1), "gen4": GEN4_SWITCH, "Mellanox": {"vendor": "0x15b3"},
    "gen4 of another id": {**GEN4_SWITCH, "subsystem_device": "0xa097"},
}  # fmt: skip


@examples("upper", "lower", "minor", "count")
def test_two_levels_of_switches_are_so_many_switches(upper: str, lower: str, minor: int, count: int) -> None:
    assert len(switches(two_level(SWITCHES[upper], SWITCHES[lower]), minor)) == count


def test_a_link_from_elsewhere_to_a_switch_that_went_is_gone() -> None:
    lower = pci("02", gpu("10"), element("pcilink", target="0000:04:00.0"), **gen5(1))
    peer = pci("04", gpu("11"), element("pcilink", target="0000:02:00.0"))
    system = built(host(cpu(0, pci("01", lower, **gen5(0)), peer)))
    upper, other = system.nodes["PCI"]
    assert [link.remote.label for link in other.links] == ["PCI/0-1000", "GPU/0-11000", "CPU/0-0"]
    assert ("PCI/0-4000", 5000.0) in [(link.remote.label, link.bw) for link in upper.links]


def test_two_levels_with_one_bus_id_are_rejected_as_nccl_would_take_out_the_wrong_one() -> None:
    with pytest.raises(RejectedError, match="two PCI switches PCI/0-1000 below each other"):
        built(host(cpu(0, pci("01", pci("01", gpu("10"), **gen5(1)), **gen5(0)))))


# --- the nearest NICs, GPU and CPU: NCCL's tie-breaks and its spread of channels over NICs


SWITCH = nvlink("0000:05:00.0", 12)


def quad(gpus: int, nics: int, **of_gpu: object) -> Element:
    """GPUs and NICs, all below one switch and so all equally near."""
    below = [gpu(f"1{at}", SWITCH, dev=at, **of_gpu) for at in range(gpus)] + [nic(f"2{at}") for at in range(nics)]
    return host(cpu(0, pci("01", *below)))


def three_sharing_two(sm: int, device: str) -> Element:
    """GPUs 2, 3 and 4 of a host, and two NICs below their switch."""
    gpus = [gpu(f"1{at}", SWITCH, dev=at + 2, sm=sm) for at in range(3)]
    nics = [
        pci(f"2{at}", element("nic", element("net", name=f"mlx5_{at}", speed=200000, gdr=1)), vendor="0x15b3",
            device=device, class_="0x020700")
        for at in range(2)
    ]  # fmt: skip
    return host(cpu(0, pci("01", *gpus, *nics)))


def adapters(gpus: int, count: int) -> Element:
    """GPUs, and so many adapters of two ports each, all equally near; ports stay NICs of their own."""
    ports = [nic(f"{20 + 2 * at + port}", guid=hex(at + 1), port=port + 1) for at in range(count) for port in range(2)]
    return host(cpu(0, pci("01", *(gpu(f"1{at}", SWITCH, dev=at) for at in range(gpus)), *ports)))


@examples("tree", "options", "policy", "wanted")
def test_who_takes_which_nics(
    tree: list[Any], options: dict[str, Any] | None, policy: str | None, wanted: dict[str, Any]
) -> None:
    """By version the NICs that each GPU takes in turn for its channels, all or the first, and the GPU that takes a NIC
    for its first channels, -1 for none."""
    machine = grown(tree, quad=quad, adapters=adapters, three_sharing_two=three_sharing_two)
    for minor, want in wanted.items():
        system = built(machine, minor=int(minor), **(options or {}))
        nets = [local_nets(system, gpu.index, policy or "") for gpu in system.gpus]
        shown = {"nets": nets, "first": [own[0] for own in nets], "gpus": [net.local_gpu for net in system.nets]}
        assert {name: shown[name] for name in want} == want
        assert [local_gpu(system, net.index) for net in system.nets] == shown["gpus"]


def test_the_widest_paths_win_then_the_lowest_type_whatever_the_hops() -> None:
    tree = host(cpu(0, pci("01", gpu("10", speed=GEN5), nic("20", 100000), speed=GEN5), nic("21", 200000, GEN5)))
    system = built(tree)
    numbers, kind = nearest(system, system.gpus[0], "NET")
    assert (numbers, kind) == ([1], 8)
    both = built(host(cpu(0, pci("01", pci("02", gpu("10"), nic("20")), nic("21")))))
    assert nearest(both, both.gpus[0], "NET") == ([0], 4)


def test_where_nothing_is_connected_all_are_equally_near() -> None:
    system = built(quad(1, 2))
    for path in system.gpus[0].paths["NET"]:
        path.bw, path.type = 0.0, 11
    assert nearest(system, system.gpus[0], "NET") == ([0, 1], 11)


def test_where_no_path_was_looked_for_there_is_none() -> None:
    system = built(quad(1, 0))
    assert nearest(system, system.gpus[0], "NET") == ([], 11)
    with pytest.raises(RejectedError, match=r"Could not find any local path from gpu 0 to net\."):
        local_nets(system, 0)
    with pytest.raises(RejectedError, match="Could not find any local path from gpu 0 to nvs"):
        row(built(host(cpu(0, gpu("10")))).gpus[0], "NVS")


def test_the_nearest_cpu_has_the_fewest_hops() -> None:
    system = built(host(cpu(0, nic("20")), cpu(1, gpu("10"))))
    assert local_cpu(system, 0) == 1
    assert local_cpu(built(host(cpu(0, nic("20")), cpu(1, gpu("10"))), minor=30), 0) == 1


def test_up_to_2_22_a_cpu_out_of_reach_counts_as_nearest_until_a_nearer_comes() -> None:
    """A CPU 0 hops away can only be one that is not connected."""
    for minor, nearest_cpu in ((22, 1), (23, 0)):
        system = built(host(cpu(0, gpu("10")), cpu(1, nic("20"))), minor=minor, nodes=2)
        system.gpus[0].paths["CPU"][1].count = 0
        assert local_cpu(system, 0) == nearest_cpu


def test_a_gpu_without_a_cpu_is_rejected() -> None:
    system = built(host(cpu(0, gpu("10"))))
    system.gpus[0].paths["CPU"][0].count = 0
    with pytest.raises(RejectedError, match="Error : could not find CPU close to GPU 0"):
        local_cpu(system, 0)
    del system.gpus[0].paths["CPU"]
    with pytest.raises(RejectedError, match="Error : could not find CPU close to GPU 0"):
        local_cpu(system, 0)
