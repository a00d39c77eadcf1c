"""The tree that NCCL would detect or printed, trees that differ in GUIDs alone."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.nccl.small_trees import cpu, element, gpu, host, nic, pci
from tests.scanned import node_at
from tests.tables import examples
from topodiag.cost.tiers import find_system
from topodiag.model.nccl_tree import Element, NcclFile
from topodiag.model.nccl_versions import NEWEST, OLDEST, spell_version
from topodiag.model.nccl_view import NcclSystem, SystemDevice, SystemLink
from topodiag.model.node import Node
from topodiag.model.provenance import Fact
from topodiag.nccl.predict import predict_tree
from topodiag.nccl.search import searched
from topodiag.nccl.topo.detect import HIDDEN_SWITCH, LackingError, tree_of
from topodiag.nccl.topo.devices_added import UnfitSystemError, bare_gpus, with_devices
from topodiag.nccl.topo.numbered import numbered
from topodiag.nccl.topo.printed import bus_of, tree_of_print


def node_of(name: str) -> Node:
    return node_at(f"fixture:{name}")


@pytest.fixture(scope="module")
def dgx() -> Node:
    return node_of("dgx-h100-healthy")


def every(tree: Element, tag: str) -> list[Element]:
    return [element for element in tree.walk() if element.tag == tag]


def parents(tree: Element, bus_id: str) -> list[str]:
    """Bus ids or NUMA ids from a function up to its processor."""

    def below(element: Element, way: list[str]) -> list[str] | None:
        if element.get("busid") == bus_id:
            return way
        here = element.get("busid") or element.get("numaid") or ""
        for child in element.children:
            texts = below(child, [here, *way])
            if texts is not None:
                return texts
        return None

    return below(tree, []) or []


@examples("machine", "env", "wanted")
def test_the_tree_of_a_captured_machine(machine: str, env: dict[str, str] | None, wanted: dict[str, Any]) -> None:
    """Its `gpus` and `nets`, the `links` of a GPU to each target, the first steps of a function's way up (`ways`), the
    `speeds` of GPUs, who has GPUDirect, the `targets` of NVLinks, and words of what was `assumed`."""
    found = tree_of(node_of(machine), env or {})
    gpus, nets, links = (every(found.tree, tag) for tag in ("gpu", "net", "nvlink"))
    counts = {gpu.get("dev") or "": [link.get("count") for link in gpu.having("nvlink")] for gpu in gpus}
    shown = {
        "gpus": sorted(gpu.get("dev") or "" for gpu in gpus), "nets": [net.get("name") for net in nets],
        "links": {dev: counts[dev] for dev in wanted.get("links", ())},
        "ways": {bus: parents(found.tree, bus)[: len(way)] for bus, way in wanted.get("ways", {}).items()},
        "speeds": sorted({pci.get("link_speed") for pci in every(found.tree, "pci") if pci.having("gpu")}),
        "gdr": sorted({element.get("gdr") for element in (*gpus, *nets)}),
        "gdr_of_nets": [net.get("gdr") for net in nets],
        "targets": sorted({(link.get("target") or "").replace(HIDDEN_SWITCH, "hidden") for link in links}),
        "classes": sorted({link.get("tclass") for link in links}),
        "assumed": [words for words in wanted.get("assumed", ()) if any(words in each for each in found.assumed)],
    }  # fmt: skip
    assert {name: shown[name] for name in wanted} == wanted


def test_a_mesh_names_the_gpu_at_the_far_end() -> None:
    tree = tree_of(node_of("dgx1v-hybrid-mesh"), {}).tree
    buses = {pci.get("busid") for pci in every(tree, "pci") if pci.having("gpu")}
    targets = {link.get("target") for link in every(tree, "nvlink")}
    assert targets <= buses
    per_gpu = [sum(int(link.get("count") or 0) for link in gpu.having("nvlink")) for gpu in every(tree, "gpu")]
    assert per_gpu == [6] * 8


def test_a_node_with_a_file_has_the_tree_of_the_file(dgx: Node) -> None:
    tree = Element("system", (("version", "1"),))
    assert tree_of(replace(dgx, nccl_file=NcclFile("x.xml", tree))).tree is tree


def test_without_gpus_there_is_no_tree(dgx: Node) -> None:
    with pytest.raises(LackingError, match="no GPU"):
        tree_of(replace(dgx, gpus=()))


def test_without_a_bus_id_the_message_names_the_gpu(dgx: Node) -> None:
    with pytest.raises(LackingError, match="bus id of GPU0"):
        tree_of(replace(dgx, gpus=(replace(dgx.gpus[0], bus_id=None),)))


def test_an_unknown_rate_is_assumed_and_said(dgx: Node) -> None:
    nic = dgx.nics[0]
    blind = replace(nic, ports=tuple(replace(port, rate_gbps=Fact(why="not read")) for port in nic.ports))
    found = tree_of(replace(dgx, nics=(blind, *dgx.nics[1:])), {})
    assert any("mlx5_0 is taken as 10 Gb/s" in sentence for sentence in found.assumed)


# --- files that leave GPUs and NICs to NCCL get those of a known system, where they have places for them


def place(bus: str, kind: str, **more: object) -> Element:
    return pci(bus, class_=kind, **more)


def cloud(gpus: int = 8, nics: int = 8, **more: object) -> Element:
    """Switches with a place for a GPU and one for a NIC below each."""
    switches = [
        pci(f"a{at}", place(f"1{at}", "0x030200", **more), *([place(f"2{at}", "0x020700")] if at < nics else []))
        for at in range(gpus)
    ]
    return host(cpu(0, *switches[: gpus // 2]), cpu(1, *switches[gpus // 2 :]))


def test_a_file_that_describes_a_gpu_leaves_none_to_nccl() -> None:
    assert len(bare_gpus(cloud())) == 8
    assert bare_gpus(host(cpu(0, gpu("10"), place("11", "0x030200")))) == []
    assert bare_gpus(cloud(vendor="0x1a03")) == []


def test_gpus_and_nics_of_the_system_stand_in_the_places_by_bus_id() -> None:
    made = with_devices(cloud(), find_system("ND96isr_H100_v5"))
    assert [node.get("dev") for node in made.tree.walk() if node.tag == "gpu"] == [str(at) for at in range(8)]
    assert {node.get("speed") for node in made.tree.walk() if node.tag == "net"} == {"400000"}
    predicted = predict_tree(made.tree, nodes=2, sizes=())
    assert (predicted.ranks, predicted.total_bw, predicted.max_bw) == (16, pytest.approx(370.8, abs=0.1), 24)


def test_nics_stay_out_where_the_file_has_other_places_than_the_system_nics() -> None:
    made = with_devices(cloud(nics=3), find_system("ND96isr_H100_v5"))
    assert not [node for node in made.tree.walk() if node.tag == "net"]
    assert predict_tree(made.tree, nodes=2, sizes=()).no_nic


def test_a_system_with_other_gpus_than_the_file_has_places_for_is_refused() -> None:
    with pytest.raises(UnfitSystemError, match="has 8 GPUs, and the file has places for 4"):
        with_devices(cloud(gpus=4), find_system("ND96isr_H100_v5"))


def test_nothing_is_added_where_a_function_has_a_nic_already() -> None:
    there = place("11", "0x020700")
    full = element("pci", element("nic", element("net", name="x", dev=0)), busid="0000:12:00.0", class_="0x020700")
    tree = host(cpu(0, *(place(f"1{at}", "0x030200") for at in range(8)), there, full))
    assert len([node for node in with_devices(tree, find_system("dgx-h100")).tree.walk() if node.tag == "net"]) == 1


def _with_guids(tree: Element, *guids: str | None) -> Element:
    """The tree with these GUIDs in its nets, in the order of the file; None: the net has none."""
    left = list(guids)

    def made(element: Element) -> Element:
        attributes = tuple((name, text) for name, text in element.attributes if name != "guid")
        if element.tag == "net" and (guid := left.pop(0)) is not None:
            attributes += (("guid", guid),)
        return replace(element, attributes=attributes, children=tuple(made(child) for child in element.children))

    return made(tree)


def _node(*guids: str | None) -> Element:
    tree = host(cpu(0, pci("80", gpu("10", dev=0), nic("40")), pci("81", gpu("11", dev=1), nic("41"))))
    return _with_guids(tree, *guids)


def test_nodes_of_one_build_become_one_tree() -> None:
    assert numbered([_node("0xa088c20326050eaf", "0xb0")]) == numbered([_node("0xa088c2038ff61ca2", "0x7")])


def test_ports_of_one_adapter_stay_so() -> None:
    shared, own = numbered([_node("0xa1", "0xA1")]), numbered([_node("0xa1", "0xa2")])
    assert shared == numbered([_node("0xb", "0x000b")])
    assert shared != own


def test_hosts_that_share_an_adapter_still_do() -> None:
    assert numbered([_node("0x1", "0x2"), _node("0x2", "0x3")]) == numbered([_node("0x7", "0x8"), _node("0x8", "0x9")])
    assert numbered([_node("0x1", "0x2"), _node("0x2", "0x3")]) != numbered([_node("0x1", "0x2"), _node("0x3", "0x4")])


@pytest.mark.parametrize("guid", [None, "a088c20326050eaf", "", " 0x5"])
def test_a_guid_that_nccl_may_compare_with_something_else_is_left_alone(guid: str | None) -> None:
    tree = _node("0xa1", guid)
    assert numbered([tree]) == (tree,)


@pytest.mark.parametrize("minor", [OLDEST, 20, NEWEST])
@pytest.mark.parametrize("guids", [("0xf1", "0xf1"), ("0xf1", "0xe1")])
def test_nccl_decides_the_same(minor: int, guids: tuple[str, str]) -> None:
    version, tree = spell_version(minor), _node(*guids)
    searched._searched.cache_clear()
    with (
        patch("topodiag.nccl.predict.numbered", lambda trees: trees),
        patch.object(searched, "numbered", lambda trees: trees),
    ):
        plain = predict_tree(tree, nodes=2, version=version, sizes=(1 << 20,))
    assert predict_tree(tree, nodes=2, version=version, sizes=(1 << 20,)) == plain


def test_alike_nodes_are_searched_once() -> None:
    searched._searched.cache_clear()
    with patch.object(searched, "search_graphs", wraps=vars(searched)["search_graphs"]) as search:
        for number in range(5):
            predict_tree(_node(f"0xab{number}", f"0xac{number}"), nodes=3, sizes=(1 << 21,))
    assert search.call_count <= 1


CORPUS = Path(__file__).resolve().parents[3].parent / "shared" / "corpus" / "jobs"
LIKE_THEIR_FILE = (
    "a_h100_1node", "b_h100_2node", "c_a100_1node", "d_pcie4_intel", "d_pcie8_l40s", "e_h100_gpu3_12nvl_1node",
    "f_h100_2node_1nic", "g_tp8_scatter", "h_dgx1v", "h_gb200_2tray", "v2.18.6-1_a_h100_1node",
    "v2.21.5-1_b_h100_2node", "v2.30.7-1_a_h100_1node",
)  # fmt: skip
"""Jobs on one kind of machine whose settings do not change what the search finds."""


def small() -> NcclSystem:
    """Two GPUs with NVLink on one switch, one NIC: what NCCL prints of it."""
    devices = [
        SystemDevice("CPU", "0-0", numbers=(1, 1, 3)),
        SystemDevice("PCI", "0-17000", "CPU/0-0"),
        SystemDevice("NIC", "0-18000", "PCI/0-17000"),
        SystemDevice("NET", "0-0", "NIC/0-18000", speed_gbs=50.0, port=1, guid="946dae"),
        SystemDevice("GPU", "0-1b000", "PCI/0-17000", 0),
        SystemDevice("GPU", "0-1c000", "PCI/0-17000", 1),
    ]
    links = [
        SystemLink("CPU/0-0", "PCI/0-17000", "PCI", 48.0),
        SystemLink("PCI/0-17000", "NIC/0-18000", "PCI", 24.0),
        SystemLink("PCI/0-17000", "GPU/0-1b000", "PCI", 48.0),
        SystemLink("PCI/0-17000", "GPU/0-1c000", "PCI", 6.0),
        SystemLink("GPU/0-1b000", "GPU/0-1c000", "NVL", 82.4),
        SystemLink("GPU/0-1c000", "GPU/0-1b000", "NVL", 82.4),
        SystemLink("NIC/0-18000", "NET/0-0", "NET", 50.0),
    ]
    return NcclSystem(devices={device.name: device for device in devices}, links=tuple(links))


def test_bus_ids_are_unpacked() -> None:
    assert bus_of("0-1b000") == "0000:1b:00.0"
    assert bus_of("1-801000") == "0008:01:00.0"


def test_links_come_back_as_speeds_lanes_and_numbers_of_nvlinks() -> None:
    tree = tree_of_print(small(), 90)
    by_bus = {pci.get("busid"): pci for pci in tree.walk() if pci.tag == "pci"}
    shown = (by_bus["0000:1b:00.0"].get("link_speed"), by_bus["0000:1b:00.0"].get("link_width"))
    assert shown == ("32.0 GT/s PCIe", "16")
    told = (by_bus["0000:18:00.0"].get("link_speed"), by_bus["0000:18:00.0"].get("link_width"))
    assert told == ("16.0 GT/s PCIe", "16")
    assert (by_bus["0000:1c:00.0"].get("link_speed"), by_bus["0000:1c:00.0"].get("link_width")) in {
        ("8.0 GT/s PCIe", "8"), ("5.0 GT/s PCIe", "16"),
    }  # fmt: skip
    assert [link.get("count") for link in tree.walk() if link.tag == "nvlink"] == ["4", "4"]
    assert [net.get("speed") for net in tree.walk() if net.tag == "net"] == ["400000"]


def test_nccl_would_take_it() -> None:
    tree = tree_of_print(small(), 90)
    assert tree is not None
    assert predict_tree(tree, nodes=2).accepted


def test_a_print_without_gpus_or_cpus_is_no_machine() -> None:
    assert tree_of_print(NcclSystem(), 90) is None
    lone = {"GPU/0-1b000": SystemDevice("GPU", "0-1b000", "PCI/0-17000")}
    assert tree_of_print(NcclSystem(devices=lone), 90) is None


KINDS = st.sampled_from(["CPU", "PCI", "DEV", "GPU", "NIC", "NET", "NVS"])
IDS = st.sampled_from(["0-0", "0-17000", "0-1b000", "1-0", "x", "", "0-zz", "-"])


@given(
    st.lists(st.tuples(KINDS, IDS, KINDS, IDS), max_size=12),
    st.lists(st.tuples(KINDS, IDS, KINDS, IDS, st.floats(0, 1e6)), max_size=12),
)
def test_any_print_is_taken_without_a_complaint(
    devices: list[tuple[str, str, str, str]], links: list[tuple[str, str, str, str, float]]
) -> None:
    system_devices = {
        f"{kind}/{name}": SystemDevice(kind, name, "" if kind == "CPU" else f"{above}/{place}")
        for kind, name, above, place in devices
    }
    wires = tuple(SystemLink(f"{a}/{b}", f"{c}/{d}", "NVL", gbs) for a, b, c, d, gbs in links)
    tree_of_print(NcclSystem(devices=system_devices, links=wires), 90)


@pytest.mark.skipif(not CORPUS.is_dir(), reason=f"the corpus is not here: {CORPUS}")
@pytest.mark.parametrize("name", LIKE_THEIR_FILE)
def test_the_search_finds_on_it_what_it_finds_on_the_file(name: str) -> None:
    from topodiag.app.case.topology import open_topology  # noqa: PLC0415
    from topodiag.app.logs import logs as diagnose_logs  # noqa: PLC0415 - numpy, for the corpus alone

    folder = CORPUS / name
    truth = json.loads((folder / "truth.json").read_text())
    version = truth["nccl_version"][0].partition("+")[0]
    (file,) = (path for path in folder.glob("*.xml") if path.name != "graph.xml")
    known = open_topology(str(file)).tree
    sm = next(int(gpu.get("sm") or 0) for gpu in known.walk() if gpu.tag == "gpu")
    jobs = diagnose_logs([str(folder / "logs")]).jobs
    comm = max((c for job in jobs for c in job.communicators if c.systems), key=lambda c: c.nranks)
    tree = tree_of_print(next(iter(comm.systems.values())), sm, int(version.split(".")[1]))
    assert tree is not None
    nodes = len(truth["hosts"])
    prediction, expected = (predict_tree(element, nodes=nodes, version=version) for element in (tree, known))
    graphs = [
        [(g.pattern, g.channels, g.bw_intra, g.bw_inter, g.type_intra, g.type_inter) for g in prediction.graphs]
        for prediction in (prediction, expected)
    ]
    assert graphs[0] == graphs[1]
