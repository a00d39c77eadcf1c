"""The system graph of small machines: vertices, links and their bandwidths in NCCL's order, and what it rejects."""

from functools import partial
from typing import Any

import pytest

from tests.nccl.small_trees import GEN5, built, cpu, element, gpu, grown, host, nic, nvlink, way
from tests.tables import examples, parts
from topodiag.model.nccl_tree import Element
from topodiag.nccl.graph.bandwidths import cpu_bandwidth, nvlink_bandwidth
from topodiag.nccl.graph.graph import RejectedError, System, Vertex


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
