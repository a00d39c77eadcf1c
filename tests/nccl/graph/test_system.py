"""The system graph: vertices, links and bandwidths, domains, what is cut off or rejected; any tree at all."""

from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.nccl.small_trees import GEN5, built, cpu, element, gpu, grown, host, nic, nvlink, pci, way
from tests.tables import examples, parts
from topodiag.model.nccl_tree import Element
from topodiag.nccl.graph.attach import HostTree
from topodiag.nccl.graph.bandwidths import cpu_bandwidth, nvlink_bandwidth
from topodiag.nccl.graph.domains import build_system, domains
from topodiag.nccl.graph.graph import RejectedError, System, Vertex
from topodiag.nccl.graph.paths import path_table
from topodiag.nccl.settings import read_settings


def links(vertex: Vertex) -> list[tuple[str, float]]:
    return [(link.remote.label, round(link.bw, 4)) for link in vertex.links]


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


def test_functions_of_one_adapter_share_a_vertex_before_2_24() -> None:
    def port(function: int) -> Element:
        attributes = {"busid": f"0000:20:00.{function}", "class": "0x020000", "link_speed": GEN5, "link_width": "16"}
        return Element("pci", tuple(attributes.items()), (element("nic", element("net", name=f"p{function}")),))

    tree = host(cpu(0, gpu("10"), port(0), port(1)))
    assert [len(built(tree, nodes=2, minor=minor).nodes["NIC"]) for minor in (23, 24)] == [1, 2]


@pytest.mark.parametrize(
    ("whole", "name"),
    [(nic("20"), name) for name in ("busid", "class", "link_width", "link_speed")]
    + [(cpu(1, nic("20")), name) for name in ("numaid", "arch", "vendor", "familyid", "modelid")],
    ids=lambda value: value.tag if isinstance(value, Element) else value,
)
def test_what_lacks_what_nccl_needs_is_named_with_its_line(whole: Element, name: str) -> None:
    kept = tuple((key, value) for key, value in whole.attributes if key != name)
    made = Element(whole.tag, kept, whole.children, line=17)
    tree = host(cpu(0, gpu("10")), made) if whole.tag == "cpu" else host(cpu(0, gpu("10"), made))
    with pytest.raises(RejectedError, match=f"Attribute {name} of node {whole.tag} not found") as rejected:
        built(tree)
    assert rejected.value.line == 17


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


@examples("minor", "words")
def test_nvlinks_of_a_gpu_outside_the_communicator_are_rejected_where_a_nic_keeps_it_in_the_tree(
    minor: int, words: str
) -> None:
    both = nic("11")
    both = Element("pci", both.attributes, (element("gpu", nvlink("0000:05:00.0", 4), sm=90), *both.children))
    with pytest.raises(RejectedError, match=f"Add NVLink error : {words}"):
        built(host(cpu(0, gpu("10", sm=90), both)), minor=minor, ranks=[{"0000:10:00.0": 0}])


def part_of(system: System, name: str, wanted: Any) -> Any:
    """What a system has: all `links` of vertices, `some` of them or their `names` alone, its `vertices` by kind, `ways`
    between two of them, or parts of its fields."""
    vertices = {vertex.label: vertex for vertex in system}
    match name:
        case "links":
            return {label: [list(link) for link in links(vertices[label])] for label in wanted}
        case "some":
            return {
                label: [link for link in own if tuple(link) in links(vertices[label])] for label, own in wanted.items()
            }
        case "names":
            return {label: [end for end, _ in links(vertices[label])] for label in wanted}
        case "vertices":
            return {kind: [vertex.label for vertex in system.nodes[kind]] for kind in wanted}
        case "ways":
            found = {pair: way(system, *pair.split()) for pair in wanted}
            return {pair: found[pair][2] if isinstance(own, str) else list(found[pair]) for pair, own in wanted.items()}
    return parts(getattr(system, name), wanted)


@examples("cpus", "hosts", "options", "wanted")
def test_what_is_built_of_a_tree(
    cpus: list[Any], hosts: int | None, options: dict[str, Any] | None, wanted: dict[str, Any]
) -> None:
    """By version what the system has, or the words with which NCCL rejects the tree."""
    trees = [grown(["host", *cpus])] * (hosts or 1)
    for minor, want in wanted.items():
        build = partial(built, *trees, minor=int(minor), **(options or {}))
        if isinstance(want, str):
            with pytest.raises(RejectedError, match=want):
                build()
        else:
            system = build()
            assert {name: part_of(system, name, own) for name, own in want.items()} == want


# --- The system of a communicator as one rank sees it: domains, what is cut off, maxBw and totalBw, any tree at all
#


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
