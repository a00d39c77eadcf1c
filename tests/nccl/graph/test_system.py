"""The system graph of small machines: vertices, links and their bandwidths in NCCL's order, and what it rejects."""

from __future__ import annotations

import pytest

from tests.nccl.small_trees import GEN5, built, cpu, element, gpu, host, nic, nvlink, pci, to_gpu, way
from tests.tables import examples
from topodiag.model.nccl_tree import Element
from topodiag.nccl.graph.bandwidths import cpu_bandwidth, nvlink_bandwidth
from topodiag.nccl.graph.graph import RejectedError, Vertex


def links(vertex: Vertex) -> list[tuple[str, float]]:
    return [(link.remote.label, round(link.bw, 1)) for link in vertex.links]


@examples("sm", "minor", "gbs")
def test_an_nvlink_carries_what_the_version_says_of_the_gpu(sm: int, minor: int, gbs: float) -> None:
    assert nvlink_bandwidth(sm, minor) == pytest.approx(gbs, abs=1e-5)


@pytest.mark.parametrize(("family", "gbs"), [(23, 16.0), (25, 24.0), (26, 32.0)])
@pytest.mark.parametrize("written", ["true", "base and extended above each other"])
def test_from_2_31_on_amd_sockets_are_joined_by_16_24_or_32_by_generation(
    family: int, gbs: float, written: str
) -> None:
    """Zen 1 and 2, 3 and 4, 5: by CPUID's family, and as files up to 2.30 have it (15 + (8 << 4) = 143 for 23)."""
    number = family if written == "true" else 15 + (family - 15 << 4)
    amd = {"vendor": "AuthenticAMD", "family": number, "model": 1}
    tree = host(cpu(0, gpu("10"), **amd), cpu(1, gpu("20"), **amd))
    assert {minor: cpu_bandwidth(built(tree, minor=minor).cpus[0], minor) for minor in (19, 30, 31, 32)} == {
        19: 16.0, 30: 16.0, 31: gbs, 32: gbs,
    }  # fmt: skip


@pytest.mark.parametrize("minor", [28, 30, 31, 32])
def test_gpus_whose_links_end_at_the_switch_of_2_31_share_one(minor: int) -> None:
    """`fffffff:ffff:ff` for every switch, as NCCL wrote before where a guest does not see them."""
    tree = host(cpu(0, *(gpu(f"1{at}", nvlink("fffffff:ffff:ff", 18), sm=90, dev=at) for at in range(2))))
    system = built(tree, minor=minor)
    assert len(system.nvs) == 1
    assert way(system, "GPU/0-10000", "GPU/0-11000")[2] == "NVL"


@pytest.mark.parametrize("minor", [30, 31])
def test_a_peer_named_by_the_short_class_of_2_31_is_a_gpu(minor: int) -> None:
    tree = host(cpu(0, gpu("10", nvlink("0000:11:00.0", 4, "0x03")), gpu("11", nvlink("0000:10:00.0", 4, "0x03"))))
    assert way(built(tree, minor=minor), "GPU/0-10000", "GPU/0-11000")[1:] == (80.0, "NVL")


@examples("fallback", "gbs")
def test_the_speed_written_where_nvml_tells_none_is_gen4_since_2_31(fallback: str, gbs: float) -> None:
    """xml.cc: up to 2.30 the text lacks ` PCIe`, and kvDictPciGen knows it not."""
    system = built(host(cpu(0, gpu("10", speed=fallback))), minor=31)
    assert gbs in {link.bw for link in system.gpus[0].parent.links} | {link.bw for link in system.gpus[0].links}


@examples("attributes", "minor", "gbs")
def test_two_sockets_are_joined_by_what_the_version_says_of_the_cpu(attributes: dict, minor: int, gbs: float) -> None:
    system = built(host(cpu(0, gpu("10"), **attributes), cpu(1, gpu("20"), **attributes)), minor=minor)
    assert cpu_bandwidth(system.cpus[0], minor) == gbs
    assert (system.cpus[1].label, gbs) in links(system.cpus[0])


@examples("speed", "width", "gbs")
def test_a_pcie_link_is_lanes_times_speed_and_gen3_x16_where_unknown(speed: str, width: int | str, gbs: float) -> None:
    system = built(host(cpu(0, gpu("10", speed=speed, width=width))))
    assert links(system.gpus[0]) == [("CPU/0-0", gbs)]


def test_links_stand_nvlink_first_then_down_and_the_way_up_last() -> None:
    system = built(host(cpu(0, pci("01", gpu("10", nvlink("0000:05:00.0", 12)), nic("12"))), cpu(1, nic("20"))))
    assert links(system.gpus[0]) == [("NVS/0-0", 240.0), ("PCI/0-1000", 24.0)]
    assert [label for label, _ in links(system.nodes["PCI"][0])] == ["GPU/0-10000", "NIC/0-12000", "CPU/0-0"]
    assert [label for label, _ in links(system.cpus[0])] == ["PCI/0-1000", "CPU/0-1"]


def test_nvlinks_to_all_switches_add_up_on_one_nvs() -> None:
    system = built(host(cpu(0, gpu("10", *(nvlink(f"0000:0{n}:00.0", 4 + n % 2) for n in range(4)), sm=90))))
    assert len(system.nvs) == 1
    assert system.nvs[0].links[0].bw == pytest.approx(18 * 20.6, abs=1e-4)


def test_nvlinks_between_gpus_go_one_way_each_and_only_to_gpus_of_the_communicator() -> None:
    system = built(host(cpu(0, gpu("10", to_gpu("11", 2), to_gpu("77", 2)), gpu("11", to_gpu("10", 4)))))
    assert links(system.gpus[0])[0] == ("GPU/0-11000", 40.0)
    assert links(system.gpus[1])[0] == ("GPU/0-10000", 80.0)
    assert len(system.gpus[0].links) == 2


def test_nvlinks_to_a_power_cpu_join_gpu_and_cpu() -> None:
    """The first link to the CPU, whatever its type, is taken for the way up and put last."""
    system = built(host(cpu(0, gpu("10", nvlink("0004:00:00.0", 3, "0x068001"), sm=70), arch="ppc64")))
    assert links(system.gpus[0]) == [("CPU/0-0", 24.0), ("CPU/0-0", 60.0)]


def test_chip_to_chip_links_join_gpu_and_cpu_with_count_times_rate() -> None:
    system = built(host(cpu(0, gpu("10", element("c2c", bw=44712, count=10)), arch="arm64")))
    assert ("CPU/0-0", 447.1) in links(system.gpus[0])
    assert system.gpus[0].paths["CPU"][0].type == 3
    older = built(host(cpu(0, gpu("10", element("c2c", bw=44712, count=10)), arch="arm64")), minor=25)
    assert older.gpus[0].paths["CPU"][0].type == 1


def test_a_link_between_two_switches_goes_one_way_at_full_speed() -> None:
    left = pci("01", gpu("10"), element("pcilink", target="0000:02:00.0"), element("pcilink", target="0000:99:00.0"))
    system = built(host(cpu(0, left, pci("02", gpu("20"), element("pcilink", target="0000:01:00.0")))))
    first, second = system.nodes["PCI"]
    assert links(first)[0] == ("PCI/0-2000", 5000.0)
    assert links(second)[0] == ("PCI/0-1000", 5000.0)
    assert way(system, "GPU/0-10000", "GPU/0-20000") == (3, 24.0, "PXB")


def test_a_link_between_two_switches_that_only_one_of_them_tells_of_has_no_way_back() -> None:
    left = pci("01", gpu("10"), element("pcilink", target="0000:02:00.0"))
    with pytest.raises(RejectedError, match="Failed to find reverse path from remNode 1/2000 nlinks 2 to node 1/1000"):
        built(host(cpu(0, left, pci("02", gpu("20")))))


def test_a_net_has_the_speed_of_its_port_and_10_gbit_where_unknown() -> None:
    system = built(host(cpu(0, gpu("10"), nic("20", 400000, guid="0xab", port=2, coll=1), nic("21", -1))))
    known, unknown = system.nets
    assert (known.bw, known.asic, known.port, known.coll, known.gdr) == (50.0, 0xAB, 2, 1, 1)
    assert (unknown.bw, unknown.asic) == (1.25, unknown.id)


def test_ports_with_one_guid_are_one_adapter_and_up_to_2_27_a_guid_needs_its_0x() -> None:
    tree = host(cpu(0, gpu("10"), nic("20", guid="ab"), nic("21")))
    assert [net.asic for net in built(tree, minor=28).nets] == [0xAB, 1]
    assert [net.asic for net in built(tree, nodes=2, minor=27).nets] == [0, 1]


def test_nics_right_below_the_cpus_of_a_host_share_one_vertex_at_the_first() -> None:
    virtual = element("nic", element("net", name="eth0", speed=10000))
    system = built(host(cpu(0, gpu("10"), virtual), cpu(1, virtual)))
    assert len(system.nodes["NIC"]) == 1
    assert links(system.nets[1]) == [("NIC/0-0", 1.2)]


def test_functions_of_one_adapter_share_a_vertex_before_2_24() -> None:
    def port(function: int) -> Element:
        attributes = {"busid": f"0000:20:00.{function}", "class": "0x020000", "link_speed": GEN5, "link_width": "16"}
        return Element("pci", tuple(attributes.items()), (element("nic", element("net", name=f"p{function}")),))

    tree = host(cpu(0, gpu("10"), port(0), port(1)))
    assert [len(built(tree, nodes=2, minor=minor).nodes["NIC"]) for minor in (23, 24)] == [1, 2]


def test_a_class_that_is_no_switch_gpu_or_nic_makes_no_vertex() -> None:
    system = built(host(cpu(0, gpu("10"), pci("30", nic("31"), class_="0x068000"))))
    assert not system.nodes["PCI"]
    assert not system.nets


def test_two_hosts_are_told_apart_in_ids_and_meet_at_the_nvswitch_only() -> None:
    tray = host(cpu(0, gpu("10", nvlink("0000:05:00.0", 18), sm=100), arch="arm64"))
    system = built(tray, tray)
    assert [vertex.label for vertex in system.gpus] == ["GPU/0-10000", "GPU/1-10000"]
    assert len(system.nvs) == 1
    assert [link.remote.kind for link in system.cpus[0].links] == ["GPU"]
    assert system.gpus[0].paths["GPU"][1].type == 1
    assert not system.inter


def test_from_2_30_on_a_gpu_is_a_device_with_a_gpu_for_each_rank() -> None:
    system = built(host(cpu(0, gpu("10", nvlink("0000:05:00.0", 12)), nic("20", gin=1, rma=1))), minor=30)
    device, one = system.nodes["DEV"][0], system.gpus[0]
    assert one.parent is device
    assert links(one) == [("DEV/0-10000", 5000.0)]
    assert [label for label, _ in links(device)] == ["GPU/0-10000", "NVS/0-0", "CPU/0-0"]
    assert [len(system.nodes[kind]) for kind in ("NET", "GIN", "RMA")] == [1, 1, 1]


def test_two_partitions_of_a_gpu_share_its_nvlinks_and_its_way_to_the_cpu() -> None:
    def part(number: int) -> Element:
        c2c = element("c2c", bw=44712, count=10)
        return element("gpu", nvlink("0000:05:00.0", 18), c2c, sm=100, dev=0, mlopart=number, rank=number)

    both = pci("10", part(0), part(1), class_="0x030200")
    system = built(host(cpu(0, both, arch="arm64")), minor=30)
    first, second = system.nodes["DEV"]
    assert [first.label, second.label] == ["DEV/0-10001", "DEV/0-10003"]
    assert [vertex.parent for vertex in system.gpus] == [first, second]
    assert ("DEV/0-10003", 2618.0) in links(first)
    assert ("NVS/0-0", 360.9) in links(first)
    assert links(system.nodes["CXB"][0])[0] == ("CPU/0-0", 447.1)
    assert ("CXB/0-10000", 447.1) in links(second)


def test_a_second_gpu_element_of_a_function_without_a_partition_is_lost() -> None:
    shared = pci("10", element("gpu", nvlink("0000:05:00.0", 12), sm=80), element("gpu", sm=80), class_="0x030200")
    system = built(host(cpu(0, shared)), minor=30)
    assert len(system.gpus) == 1


def test_a_bus_id_with_a_function_leaves_no_room_for_partitions_in_2_30() -> None:
    tag = element("pci", element("gpu", sm=80), busid="0000:10:00.1", class_="0x03", link_speed="", link_width="")
    with pytest.raises(RejectedError, match="BusId 0x10001 has non-zero bits in MLOPart mask"):
        built(host(cpu(0, tag)), minor=30)


@pytest.mark.parametrize("name", ["busid", "class", "link_width", "link_speed"])
def test_a_function_that_lacks_what_nccl_needs_is_named_with_its_line(name: str) -> None:
    whole = nic("20")
    kept = tuple((key, value) for key, value in whole.attributes if key != name)
    with pytest.raises(RejectedError, match=f"Attribute {name} of node pci not found") as rejected:
        built(host(cpu(0, gpu("10"), Element("pci", kept, whole.children, line=17))))
    assert rejected.value.line == 17


@pytest.mark.parametrize("name", ["numaid", "arch", "vendor", "familyid", "modelid"])
def test_a_cpu_that_lacks_what_nccl_needs_is_named_with_its_line(name: str) -> None:
    whole = cpu(1, nic("20"))
    kept = tuple((key, value) for key, value in whole.attributes if key != name)
    with pytest.raises(RejectedError, match=f"Attribute {name} of node cpu not found") as rejected:
        built(host(cpu(0, gpu("10")), Element("cpu", kept, whole.children, line=9)))
    assert rejected.value.line == 9


def test_a_gpu_of_unknown_kind_without_a_compute_capability_is_rejected() -> None:
    with pytest.raises(RejectedError, match="Attribute sm of node gpu not found"):
        built(host(cpu(0, pci("10", element("gpu"), class_="0x03"))))


def test_a_system_with_more_links_at_a_vertex_than_the_version_holds_is_rejected() -> None:
    many = host(cpu(0, gpu("10"), *(nic(f"{bus:02x}") for bus in range(0x20, 0x42))))
    with pytest.raises(RejectedError, match=r"too many Topo links \(max 32\)"):
        built(many, minor=20)
    assert len(built(many, minor=28).nets) == 34


def test_a_system_with_more_vertices_than_the_version_holds_is_rejected() -> None:
    virtual = element("nic", element("net", name="eth0"))
    many = host(cpu(0, gpu("10"), arch="arm64"), *(cpu(numa, virtual, arch="arm64") for numa in range(1, 257)))
    with pytest.raises(RejectedError, match="tried to create too many nodes of type 3"):
        built(many, minor=26)


def test_a_partition_that_no_gpu_has_is_rejected() -> None:
    tag = pci("10", element("gpu", sm=100, mlopart=2), class_="0x03")
    with pytest.raises(RejectedError, match=r"MLOPart index 2 out of range \(max 1\)"):
        built(host(cpu(0, tag)), minor=30)
    assert built(host(cpu(0, tag)), minor=29).gpus


@examples("minor", "words")
def test_nvlinks_of_a_gpu_outside_the_communicator_are_rejected_where_a_nic_keeps_it_in_the_tree(
    minor: int, words: str
) -> None:
    both = nic("11")
    both = Element("pci", both.attributes, (element("gpu", nvlink("0000:05:00.0", 4), sm=90), *both.children))
    with pytest.raises(RejectedError, match=f"Add NVLink error : {words}"):
        built(host(cpu(0, gpu("10", sm=90), both)), minor=minor, ranks=[{"0000:10:00.0": 0}])


def test_a_link_between_switches_at_what_is_no_switch_is_rejected() -> None:
    with pytest.raises(RejectedError, match="Add PCI Link error : could not find PCI SW 10000"):
        built(host(cpu(0, pci("10", element("gpu", sm=80), element("pcilink", target="0000:02:00.0"), class_="0x03"))))


def test_in_2_30_a_gpu_below_a_function_of_the_class_of_a_switch_is_read_as_a_function() -> None:
    tag = pci("10", element("gpu", sm=80))
    assert built(host(cpu(0, tag)), minor=28).gpus
    with pytest.raises(RejectedError, match="Attribute class of node gpu not found"):
        built(host(cpu(0, tag)), minor=30)
