"""Paths before and after the corrections: P2P, shared memory, GPUDirect RDMA, PXN and C2C, rule by rule."""

from typing import Any

import pytest

from tests.nccl.small_trees import GEN4, GEN5, built, cpu, element, gpu, host, nic, nvlink, pci, to_gpu, way, ways
from tests.tables import examples
from topodiag.model.nccl_tree import Element
from topodiag.model.nccl_versions import path_types
from topodiag.nccl.graph.graph import RejectedError
from topodiag.nccl.graph.paths import path_table
from topodiag.nccl.graph.reach import compute_paths, gdr_possible, merged_type, net_better, p2p_level, pxn_proxy
from topodiag.nccl.settings import read_settings


def box() -> Element:
    """Two sockets; 10 and 11 below one switch with a NIC, 12 below another switch of the same root port."""
    left = cpu(0, pci("01", pci("02", gpu("10"), gpu("11"), nic("18")), pci("03", gpu("12"))))
    return host(left, cpu(1, pci("04", gpu("20"))))


_ROW = [("10", "11"), ("11", "10", "12"), ("12", "11", "13"), ("13", "12")]
TREES = {
    "box": box(),
    "a GPU of x8 and a NIC of 100 Gb/s": host(cpu(0, pci("01", gpu("10", width=8), nic("20", 100000)))),
    "NVSwitch": host(cpu(0, *(gpu(bus, nvlink("0000:05:00.0", 18), sm=90) for bus in ("10", "11")))),
    "three GPUs in a row": host(
        cpu(0, gpu("10", to_gpu("11", 2)), gpu("11", to_gpu("10", 2), to_gpu("12", 1))),
        cpu(1, gpu("12", to_gpu("11", 1))),
    ),
    "four GPUs in a row": host(cpu(0, *(gpu(bus, *(to_gpu(peer, 2) for peer in peers)) for bus, *peers in _ROW))),
    "a switch and NVLinks around it": host(
        cpu(
            0,
            pci("01", gpu("10", to_gpu("11", 1), speed=GEN5), gpu("12", to_gpu("11", 1), speed=GEN5), speed=GEN5),
            gpu("11", to_gpu("10", 1), to_gpu("12", 1)),
        )
    ),
    "chip-to-chip links": host(
        cpu(0, gpu("10", element("c2c", bw=44712, count=10), to_gpu("11", 18), sm=100), arch="arm64"),
        cpu(1, gpu("11", to_gpu("10", 18), sm=100)),
    ),
}


@examples("tree", "asked")
def test_ways_between_two_devices(tree: str, asked: list[Any]) -> None:
    assert ways([TREES[tree]], asked) == asked


@pytest.mark.parametrize(("minor", "words"), [(28, "remNode 0/10000 nlinks 1"), (30, "remNode 8/10000 nlinks 2")])
def test_an_nvlink_that_only_one_gpu_tells_of_has_no_way_back(minor: int, words: str) -> None:
    with pytest.raises(RejectedError, match=f"Failed to find reverse path from {words} to node"):
        built(host(cpu(0, gpu("10"), gpu("11", to_gpu("10", 2)))), minor=minor)


def test_the_gpu_that_does_not_tell_of_the_way_back_is_named_with_its_line() -> None:
    silent = gpu("10")
    silent = Element("pci", silent.attributes, silent.children, line=12)
    with pytest.raises(RejectedError) as rejected:
        built(host(cpu(0, silent, gpu("11", to_gpu("10", 2)))))
    assert rejected.value.line == 12


def test_a_gpu_out_of_nvlink_has_no_entry_for_the_nvswitch() -> None:
    tree = host(cpu(0, gpu("10", nvlink("0000:05:00.0", 18)), gpu("11", nvlink("0000:05:00.0", 18))), cpu(1, gpu("20")))
    table = path_table(built(tree))
    assert "NVS/0-0" in table["GPU/0-10000"]
    assert "NVS/0-0" not in table["GPU/0-20000"]


def test_two_vertices_of_one_id_share_the_slot_of_the_first() -> None:
    system = built(host(cpu(0, gpu("10")), cpu(0, gpu("20"))), NCCL_P2P_LEVEL="SYS")
    assert len(system.cpus) == 2
    assert system.gpus[1].paths["CPU"][1].count == 0
    assert list(path_table(system)["GPU/0-20000"]).count("CPU/0-0") == 1


def test_versions_number_types_in_their_own_way() -> None:
    system = built(box(), minor=21, nodes=2)
    assert system.gpus[0].paths["NET"][0].type == path_types(21).pix == 3
    assert way(system, "GPU/0-10000", "NET/0-0") == (3, 24.0, "PIX")


def test_the_table_is_of_gpus_and_nets_and_in_one_decimal() -> None:
    table = path_table(
        built(host(cpu(0, pci("01", gpu("10", nvlink("0000:05:00.0", 18), sm=90), nic("20"), speed=GEN4))))
    )
    assert list(table) == ["GPU/0-10000", "NET/0-0"]
    assert table["GPU/0-10000"]["NVS/0-0"] == (1, 370.8, "NVL")


# --- what P2P, shared memory, GPUDirect RDMA, PXN and C2C make of the paths, rule by rule


NOTHING_SET = read_settings({}, 28)


def pcie_box(gpus: int = 2, **of_cpu: str) -> Element:
    return host(cpu(0, *(pci(f"0{at}", gpu(f"1{at}"), speed=GEN4) for at in range(1, gpus + 1)), **of_cpu))


# --- P2P ----------------------------------------------------------------------------------------------------


@examples("maker", "gpus", "minor", "level")
def test_gpus_talk_directly_up_to_a_level_by_version_cpu_and_number(
    maker: str, gpus: int, minor: int, level: str
) -> None:
    system = built(pcie_box(gpus, **({"arch": maker} if maker == "arm64" else {"vendor": maker})), minor=minor)
    assert p2p_level(system, read_settings({}, minor)) == path_types(minor).numbers[level]


def test_without_p2p_and_shared_memory_gpus_reach_each_other_over_the_network_only() -> None:
    tree = host(cpu(0, pci("01", gpu("10"), nic("20")), pci("02", gpu("11"), nic("21"))))
    system = built(tree, NCCL_P2P_DISABLE="1", NCCL_SHM_DISABLE="1")
    assert [vertex.label for vertex in system.gpus] == ["GPU/0-10000"]
    assert system.inter
    assert way(built(tree, NCCL_P2P_DISABLE="1"), "GPU/0-10000", "GPU/0-11000")[2] == "PHB"


def sockets_with_nics(mbps: int = 400000) -> Element:
    """A GPU and a NIC below one switch on each of two sockets that are 10 GB/s apart."""
    sides = [
        cpu(numa, pci(f"0{numa + 1}", gpu(f"1{numa}", speed=GEN5), nic(f"2{numa}", mbps, GEN5), speed=GEN5), model=85)
        for numa in (0, 1)
    ]
    return host(*sides)


def test_the_network_is_better_where_both_gpus_reach_a_nic_faster_than_each_other() -> None:
    """So one host is two domains: 50 GB/s NICs at the switch against 10 GB/s between the sockets."""
    assert built(sockets_with_nics()).inter
    assert not built(sockets_with_nics(), NCCL_NET_DISABLE_INTRA="1").inter
    assert not built(sockets_with_nics(mbps=40000)).inter


def test_the_network_is_no_better_for_gpus_whose_nic_is_beyond_the_host_bridge() -> None:
    tree = host(*(cpu(numa, gpu(f"1{numa}"), nic(f"2{numa}", 400000), model=85) for numa in (0, 1)))
    system = built(tree)
    assert not net_better(system, *system.gpus, NOTHING_SET)


def test_a_device_of_another_domain_may_be_on_the_way_and_2_30_stops_there() -> None:
    """The graph still has the device, but no GPU of the domain is on it."""
    tree = host(
        cpu(0, gpu("10", to_gpu("11", 1), dev=0)),
        cpu(1, gpu("11", to_gpu("10", 1), to_gpu("12", 1), dev=1)),
        cpu(2, gpu("12", to_gpu("11", 1), dev=2)),
    )
    system = built(tree, minor=30)
    system.nodes["GPU"] = [vertex for vertex in system.gpus if vertex.dev != 1]
    for index, vertex in enumerate(system.gpus):
        vertex.index = index
    with pytest.raises(RejectedError, match="could not find rank for nvml dev 1 in systemId 0"):
        compute_paths(system, read_settings({}, 30))


# --- NICs ---------------------------------------------------------------------------------------------------


def hgx(nics: int = 2, **of_nic: object) -> Element:
    """Two GPUs on an NVSwitch, each below its own switch; the first `nics` of them with a NIC."""
    sides = []
    for at in range(2):
        below = [gpu(f"1{at}", nvlink("0000:05:00.0", 12))]
        if at < nics:
            below.append(nic(f"2{at}", **of_nic))
        sides.append(cpu(at, pci(f"0{at + 1}", *below)))
    return host(*sides)


def test_a_gpu_sends_to_a_far_nic_over_the_gpu_beside_it() -> None:
    system = built(hgx())
    assert [link.remote.label for link in system.gpus[0].paths["NET"][1].links][:2] == ["NVS/0-0", "GPU/0-11000"]
    assert pxn_proxy(system, system.gpus[0], system.nets[1]).label == "GPU/0-11000"
    assert pxn_proxy(system, system.gpus[0], system.nets[0]).label == "GPU/0-10000"


def test_gpudirect_wants_both_the_gpu_and_the_nic_and_a_level() -> None:
    system = built(hgx())
    one, net = system.gpus[0], system.nets[0]
    assert gdr_possible(system, one, net, False, NOTHING_SET)
    assert not gdr_possible(system, one, net, False, read_settings({"NCCL_NET_GDR_LEVEL": "LOC"}, 28))
    far = built(host(cpu(0, gpu("10"), nic("20"))))
    assert not gdr_possible(far, far.gpus[0], far.nets[0], False, NOTHING_SET)
    assert gdr_possible(far, far.gpus[0], far.nets[0], False, read_settings({"NCCL_NET_GDR_LEVEL": "PHB"}, 28))
    one.gdr = 0
    assert not gdr_possible(system, one, net, False, NOTHING_SET)


@examples("sm", "linked", "minor", "reads")
def test_nics_read_from_gpus_before_ampere_only_beside_nvlink(sm: int, linked: bool, minor: int, reads: bool) -> None:
    link = [nvlink("0000:05:00.0", 6)] if linked else []
    tree = host(cpu(0, pci("01", gpu("10", *link, sm=sm), nic("20")), pci("02", gpu("11", *link, sm=sm))))
    system = built(tree, minor=minor, nodes=2)
    settings = read_settings({}, minor)
    assert gdr_possible(system, system.gpus[0], system.nets[0], True, settings) is reads
    forced = read_settings({"NCCL_NET_GDR_READ": "1"}, minor)
    assert gdr_possible(system, system.gpus[0], system.nets[0], True, forced)
    never = read_settings({"NCCL_NET_GDR_READ": "0"}, minor)
    assert not gdr_possible(system, system.gpus[0], system.nets[0], True, never)


def test_a_single_gpu_is_always_read() -> None:
    system = built(host(cpu(0, pci("01", gpu("10", sm=70), nic("20")))))
    assert gdr_possible(system, system.gpus[0], system.nets[0], True, NOTHING_SET)


# --- C2C ----------------------------------------------------------------------------------------------------


def grace() -> Element:
    """Two superchips on an NVSwitch: a GPU on each CPU by chip-to-chip links, a NIC below each CPU."""
    c2c = element("c2c", bw=44712, count=10)
    sides = [
        cpu(numa, gpu(f"1{numa}", nvlink("0000:05:00.0", 18), c2c, sm=100), nic(f"2{numa}", 400000, GEN5), arch="arm64")
        for numa in (0, 1)
    ]
    return host(*sides)


CORRECTED = {
    "under one switch": [host(cpu(0, pci("01", gpu("10"), gpu("11"))))],
    "through a GPU": [
        host(
            cpu(0, pci("01", gpu("10", to_gpu("11", 2), speed=GEN5), nic("20", 400000, GEN5), speed=GEN5)),
            cpu(1, pci("02", gpu("11", to_gpu("10", 2), to_gpu("12", 1)))),
            cpu(2, pci("03", gpu("12", to_gpu("11", 1), speed=GEN5), nic("22", 400000, GEN5), speed=GEN5)),
        )
    ],
    "on an NVSwitch": [hgx()],
    "two trays": [hgx(), hgx()],
    "without NVLink": [host(*(cpu(at, pci(f"0{at + 1}", gpu(f"1{at}"), nic(f"2{at}", 40000))) for at in range(2)))],
    "without GPUDirect": [hgx(gdr=0)],
    "a NIC of the other socket without GPUDirect": [host(cpu(0, gpu("10")), cpu(1, nic("20", gdr=0)))],
    "Grace": [grace()],
}


@examples("tree", "asked")
def test_ways_after_the_corrections(tree: str, asked: list[Any]) -> None:
    assert ways(CORRECTED[tree], asked) == asked


@pytest.mark.parametrize("minor", [26, 27, 28, 29, 30])
def test_gpudirect_over_chip_to_chip_links_is_on_by_default_from_2_27(minor: int) -> None:
    system = built(grace(), minor=minor, nodes=2)
    one, net = system.gpus[0], system.nets[0]
    assert gdr_possible(system, one, net, False, read_settings({}, minor)) is (minor >= 27)
    assert gdr_possible(system, one, net, False, read_settings({"NCCL_NET_GDR_C2C": "1"}, minor))
    assert not gdr_possible(system, one, net, False, read_settings({"NCCL_NET_GDR_C2C": "0"}, minor))


def test_without_gpudirect_over_chip_to_chip_links_the_way_is_the_same_but_told_over_the_cpu() -> None:
    system = built(grace(), nodes=2, NCCL_NET_GDR_C2C="0")
    assert way(system, "GPU/0-10000", "NET/0-0") == (3, 48.0, "P2C")
    assert [link.remote.kind for link in system.gpus[0].paths["NET"][0].links] == ["CPU", "NIC", "NET"]


def test_a_path_over_both_kinds_of_links_is_p2c_from_2_27_on() -> None:
    for minor, kind in ((26, "PHB"), (27, "P2C")):
        system, types = built(pcie_box(), minor=minor), path_types(minor)
        assert types.names[merged_type(system, types.c2c, types.phb)] == kind
        assert merged_type(system, types.pix, types.pxb) == types.pxb
