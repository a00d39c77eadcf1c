"""The system of a communicator as one rank sees it: domains, what is cut off, maxBw and totalBw, any tree at all."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.nccl.small_trees import GEN5, built, cpu, element, gpu, host, nic, nvlink, pci
from topodiag.model.nccl_tree import Element
from topodiag.nccl.graph.attach import HostTree
from topodiag.nccl.graph.domains import build_system, domains
from topodiag.nccl.graph.graph import RejectedError
from topodiag.nccl.graph.paths import path_table
from topodiag.nccl.settings import read_settings

SWITCH = nvlink("0000:05:00.0", 18)


def hopper(nics: bool = True, gpus: int = 2) -> Element:
    """GPUs on an NVSwitch, each below a switch with a NIC of 400 Gbit/s, half of them on each socket."""

    def side(at: int) -> Element:
        below = [gpu(f"1{at}", SWITCH, sm=90, speed=GEN5)] + ([nic(f"2{at}", 400000, GEN5)] if nics else [])
        return pci(f"0{at + 1}", *below, speed=GEN5)

    half = (gpus + 1) // 2
    return host(cpu(0, *map(side, range(half))), cpu(1, *map(side, range(half, gpus))))


def apart() -> Element:
    """Two sockets of 10 GB/s between them, on each a GPU beside a NIC of 50 GB/s: two domains."""
    sides = (
        cpu(at, pci(f"0{at + 1}", gpu(f"1{at}", speed=GEN5), nic(f"2{at}", 400000, GEN5), speed=GEN5), model=85)
        for at in (0, 1)
    )
    return host(*sides)


def test_a_rank_sees_the_gpus_of_its_own_domain_and_all_nics() -> None:
    for me in (0, 1):
        system = built(apart(), me=me)
        assert [vertex.rank for vertex in system.gpus] == [me]
        assert len(system.nets) == 2
        assert system.gpus[0].index == 0
        assert domains(system) == [0]


def test_in_2_30_the_devices_of_other_domains_stay() -> None:
    system = built(apart(), minor=30)
    assert (len(system.gpus), len(system.nodes["DEV"])) == (1, 2)


def test_a_communicator_with_ranks_elsewhere_needs_the_network() -> None:
    assert not built(hopper()).inter
    assert built(hopper(), nodes=2).inter
    assert built(apart()).inter


def test_up_to_2_27_nics_vanish_where_the_network_is_not_needed_and_make_it_needed_where_they_stay() -> None:
    assert built(hopper(), minor=27).nets == []
    assert not built(hopper(), minor=27).inter
    assert len(built(hopper(), minor=28).nets) == 2
    assert built(hopper(), minor=27, nodes=2).inter
    assert not built(hopper(nics=False), minor=27, nodes=2).inter
    assert built(hopper(nics=False), minor=28, nodes=2).inter


def test_the_best_way_out_and_the_most_that_leaves_a_gpu_make_the_bandwidths() -> None:
    system, beside = built(hopper()), built(hopper(), nodes=2)
    assert (round(system.max_bw, 1), round(system.total_bw, 1)) == (370.8, 370.8)
    assert (round(beside.max_bw, 1), round(beside.total_bw, 1)) == (48.0, 370.8)


@pytest.mark.parametrize(("minor", "total"), [(18, 0.0), (20, 0.0), (21, 5000.0), (30, 5000.0)])
def test_a_single_gpu_is_limited_by_itself_only(minor: int, total: float) -> None:
    system = built(hopper(gpus=1), minor=minor)
    assert (system.max_bw, system.total_bw) == (5000.0, total)


def test_without_nvlink_the_pcie_link_is_the_most_that_leaves_a_gpu() -> None:
    system = built(host(cpu(0, pci("01", gpu("10", width=8), gpu("11", width=8)))))
    assert (system.max_bw, system.total_bw) == (12.0, 12.0)


def test_hosts_of_one_nvlink_domain_are_one_system() -> None:
    tray = hopper()
    ranks = [{"0000:10:00.0": 0, "0000:11:00.0": 1}, {"0000:10:00.0": 2, "0000:11:00.0": 3}]
    system = built(tray, tray, ranks=ranks)
    assert [vertex.label for vertex in system.gpus] == ["GPU/0-10000", "GPU/0-11000", "GPU/1-10000", "GPU/1-11000"]
    assert [vertex.rank for vertex in system.gpus] == [0, 1, 2, 3]
    assert [net.label for net in system.nets] == ["NET/0-0", "NET/0-1", "NET/1-0", "NET/1-1"]
    assert not system.inter


def test_all_versions_build_a_plain_machine() -> None:
    for minor in range(18, 32):
        system = built(hopper(gpus=8), minor=minor, nodes=2)
        assert (len(system.gpus), len(system.nets), len(system.nvs)) == (8, 8, 1)
        assert round(system.total_bw, 1) == (360.0 if minor < 20 else 370.8)
        assert path_table(system)["GPU/0-10000"]["NET/0-0"][2] == "PIX"
        assert path_table(system)["GPU/0-10000"]["NET/0-1"][2] == "PXN"


def test_gpus_below_what_is_no_switch_are_no_part_of_the_system() -> None:
    with pytest.raises(RejectedError, match="no GPU of the communicator in the topology"):
        built(host(cpu(0, pci("30", gpu("10"), class_="0x068000"))))


# --- any tree -----------------------------------------------------------------------------------------------

NAMES = ("busid", "class", "link_speed", "link_width", "numaid", "arch", "vendor", "familyid", "modelid", "sm", "dev")
MORE = ("rank", "gdr", "target", "count", "tclass", "bw", "speed", "guid", "port", "coll", "latency", "mlopart", "gin")
IDS = ("device", "subsystem_vendor", "subsystem_device", "host_hash", "keep", "name", "net", "rma")
VALUES = st.sampled_from(
    [
        *("0", "1", "-1", "16", "90", "6", "143", "400000", "99999999999999999999999", "-2147483648", "0x", "nan", ""),
        *("0000:01:00.0", "0000:02:00.0", "0000:01:00.1", "fffffff:ffff:ff", "0x030200", "0x060400", "0x020000"),
        *("0x068000", "0x068001", "0x080100", "x86_64", "arm64", "ppc64", "GenuineIntel", "AuthenticAMD"),
        *("32.0 GT/s PCIe", "0x1000", "0xc030", "0xc010", "0xa096", "0x000b", "0x100b"),
    ]
)
ATTRIBUTES = st.dictionaries(st.sampled_from([*NAMES, *MORE, *IDS]), VALUES, max_size=8).map(
    lambda it: tuple(it.items())
)
LEAVES = st.builds(Element, st.sampled_from(["gpu", "net", "nvlink", "c2c", "nic", "pcilink", "what"]), ATTRIBUTES)


def nested(children: st.SearchStrategy[Element]) -> st.SearchStrategy[Element]:
    tags = st.sampled_from(["system", "cpu", "pci", "gpu", "nic"])
    return st.builds(Element, tags, ATTRIBUTES, st.lists(children, max_size=4).map(tuple))


ANY_TREE = st.recursive(LEAVES, nested, max_leaves=12).map(lambda it: element("system", it, version=1))


@given(tree=ANY_TREE, minor=st.integers(18, 30), nodes=st.integers(1, 2))
def test_any_tree_is_built_or_rejected(tree: Element, minor: int, nodes: int) -> None:
    try:
        system = build_system([HostTree(tree)], minor=minor, settings=read_settings({}, minor), nranks=nodes, me=0)
    except RejectedError:
        return
    assert path_table(system)


BUSES = st.sampled_from(["01", "02", "03", "10", "11", "12"])
WIDTHS = st.sampled_from(["16", "8", "0", "", "-4", "2147483647"])


@st.composite
def machines(draw: st.DrawFn) -> Element:
    """Machines with every required attribute, but with bus ids that repeat, odd widths and links to anywhere."""

    def function(depth: int) -> Element:
        kind = draw(st.sampled_from(["switch", "gpu", "nic"] if depth < 3 else ["gpu", "nic"]))
        bus, width = draw(BUSES), draw(WIDTHS)
        if kind == "gpu":
            targets = draw(
                st.lists(st.tuples(BUSES, st.sampled_from(["0x030200", "0x068000", "0x068001"])), max_size=3)
            )
            links = [nvlink(f"0000:{target}:00.0", draw(st.integers(-1, 18)), tclass) for target, tclass in targets]
            more = [element("c2c", bw=44712, count=draw(st.integers(0, 10)))] if draw(st.booleans()) else []
            return gpu(bus, *links, *more, sm=draw(st.sampled_from([70, 80, 90, 100])), width=width)
        if kind == "nic":
            return nic(bus, draw(st.sampled_from([-1, 0, 100000, 400000, 2**31])), gdr=draw(st.integers(0, 1)))
        ids = draw(st.sampled_from([{}, {"subsystem_device": "0x000b"}, {"subsystem_device": "0x100b"}]))
        ids = {"vendor": "0x1000", "device": "0xc030", "subsystem_vendor": "0x1000", **ids} if ids else {}
        peers = [element("pcilink", target=f"0000:{draw(BUSES)}:00.0")] if draw(st.booleans()) else []
        return pci(bus, *(function(depth + 1) for _ in range(draw(st.integers(1, 3)))), *peers, width=width, **ids)

    sockets = draw(st.integers(1, 3))
    makers = draw(
        st.sampled_from([("x86_64", "GenuineIntel"), ("x86_64", "AuthenticAMD"), ("arm64", ""), ("ppc64", "")])
    )
    return host(
        *(
            cpu(
                draw(st.integers(-1, 2)),
                *(function(0) for _ in range(draw(st.integers(1, 3)))),
                arch=makers[0],
                vendor=makers[1],
            )
            for _ in range(sockets)
        )
    )


@given(tree=machines(), minor=st.integers(18, 30), nodes=st.integers(1, 2), gdr=st.booleans())
def test_any_machine_is_built_or_rejected_and_its_paths_hold_together(
    tree: Element, minor: int, nodes: int, gdr: bool
) -> None:
    gpus = sum(1 for node in tree.walk() if node.tag == "gpu")
    given_settings = read_settings({"NCCL_NET_GDR_READ": "1"} if gdr else {}, minor)
    try:
        system = build_system([HostTree(tree)], minor=minor, settings=given_settings, nranks=gpus * nodes, me=0)
    except RejectedError:
        return
    for vertex in system:
        assert vertex is system.nodes[vertex.kind][vertex.index]
        for link in vertex.links:
            assert link.remote is system.nodes[link.remote.kind][link.remote.index]
        for kind, paths in vertex.paths.items():
            assert len(paths) == len(system.nodes[kind])
            for path in paths:
                assert path.count == len(path.links)
    for net in system.nets:
        assert -1 <= net.local_gpu < len(system.gpus)
