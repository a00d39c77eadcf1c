"""lstopo's XML: the machine's processors, PCI tree and device names, in all three versions of the format."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import topodiag
from tests.evidence.filled import read, recognises, text_of, value
from tests.evidence.hwloc.hwloc_writer import bitmap, lstopo
from tests.scanned import node_at
from tests.tables import examples, texts
from topodiag.evidence.hwloc.hwloc_xml import link_gbs
from topodiag.evidence.intake.hosts import host_of_text
from topodiag.evidence.interface import Blob, Item
from topodiag.evidence.registry import source
from topodiag.model.cpulist import parse_cpumask
from topodiag.model.errors import InputError
from topodiag.model.finding import Severity

MACHINES = ("dgx-h100-healthy", "hgx-a100", "gb200-tray", "idle-gen1")

TEXTS = texts(__file__)
V2 = text_of("hwloc-xml", "V2")


@pytest.mark.parametrize("text", ["", "<topology>", '<system version="1"/>', "Machine (64GB total)"])
def test_other_texts_are_not(text: str) -> None:
    assert not recognises("hwloc-xml", text)


def test_processors_and_numa_nodes_are_offered() -> None:
    draft, parsed = read("hwloc-xml", V2)
    cpu = draft.single("cpu")
    wanted = {
        "arch": "x86_64", "vendor": "GenuineIntel", "family": 6, "model": 143, "sockets": 2,
        "name": "Intel(R) Xeon(R) Platinum 8480C",
        "count": 2,
    }  # fmt: skip
    assert {name: value(cpu, name) for name in wanted} == wanted
    assert [(value(draft.numa(node), "cpus"), value(draft.numa(node), "socket")) for node in (0, 1)] == [
        ("0-3", 0), ("4-7", 1),
    ]  # fmt: skip
    assert value(draft.single("os"), "kernel") == "5.15.0-1042-nvidia"
    assert parsed.unread == []


@pytest.mark.parametrize(("version", "rdma", "network"), [("2.0", 3, 2), ("3.0", 48, 16)])
def test_nics_and_interfaces_are_told_apart_in_both_numberings(version: str, rdma: int, network: int) -> None:
    text = V2.replace('"2.0"', f'"{version}"').replace('osdev_type="3"', f'osdev_type="{rdma}"')
    draft, _ = read("hwloc-xml", text.replace('osdev_type="2"', f'osdev_type="{network}"'))
    nic = draft.nic(rdma="mlx5_0")
    assert nic.keys["bus_id"] == "0000:1c:00.0"
    assert value(nic, "node_guid") == "a088:c203:0055:1234"
    assert (value(nic.child("port", 1), "state"), value(nic.child("port", 1), "lid")) == ("ACTIVE", 31)
    assert value(draft.netdev("ibp28s0"), "bus_id") == "0000:1c:00.0"
    assert [entity.keys.get("rdma") for entity in draft.entities("nic")] == ["mlx5_0"]


def test_version_1_is_read() -> None:
    # There NUMA nodes hold their sockets, and sockets are called so.
    text = V2.replace(' version="2.0"', "").replace('"Package"', '"Socket"')
    draft, _ = read("hwloc-xml", text)
    assert value(draft.single("cpu"), "sockets") == 2
    assert (value(draft.numa(1), "socket"), value(draft.pci("0000:1b:00.0"), "numa")) == (1, 0)


def test_the_memory_of_a_gpu_is_no_place() -> None:
    memory = '<object type="NUMANode" subtype="GPUMemory" os_index="8" cpuset="0x0" nodeset="0x00000100"/>'
    text = V2.replace("</topology>", memory + "</topology>")
    text = text.replace('nodeset="0x00000001" gp_index="3"', 'nodeset="0x00000101"')
    draft, _ = read("hwloc-xml", text)
    assert value(draft.pci("0000:1b:00.0"), "numa") == 0
    assert value(draft.numa(8), "cpus") == ""


def test_a_file_cut_short_keeps_what_stands_before() -> None:
    draft, parsed = read("hwloc-xml", V2[: V2.index('<object type="PCIDev" pci_busid="0000:1c')])
    assert value(draft.pci("0000:1b:00.0"), "device") == 0x2330
    assert [line.why for line in parsed.unread] == [
        "the file ends before its topology does; what stands before is kept"
    ]


@examples("text", "members")
def test_bitmaps_are_read(text: str, members: set[int]) -> None:
    assert (parse_cpumask(text) or frozenset()) == members


@given(st.frozensets(st.integers(0, 400), max_size=40))
def test_any_bitmap_is_read_as_hwloc_writes_it(members: frozenset[int]) -> None:
    assert parse_cpumask(bitmap(members)) == members


@examples("gen", "width", "rate")
def test_rates_of_links_are_hwlocs(gen: int, width: int, rate: float) -> None:
    assert link_gbs(gen, width) == pytest.approx(rate, abs=1e-6)


@pytest.mark.parametrize("name", MACHINES)
def test_a_machine_told_by_lstopo_is_the_one_told_by_sysfs_and_raises_no_alarm(name: str, tmp_path: Path) -> None:
    wanted = node_at(f"fixture:{name}")
    file = tmp_path / "lstopo.xml"
    file.write_text(lstopo(wanted), encoding="utf-8")
    result = topodiag.diagnose([str(file)])
    node = result.nodes[0]
    assert [(gpu.index, gpu.bus_id) for gpu in node.gpus] == [(gpu.index, gpu.bus_id) for gpu in wanted.gpus]
    for bus_id, device in wanted.pci.items():
        pci_device = node.pci[bus_id]
        assert (pci_device.parent, pci_device.root, pci_device.numa.value) == (
            device.parent,
            device.root,
            device.numa.value,
        )
        assert pci_device.width.value in (device.width.value, None)
    nics = {nic.name: nic.bus_id for nic in node.nics if nic.rdma_name}
    assert nics == {nic.name: nic.bus_id for nic in wanted.nics if nic.rdma_name}
    assert [numa.cpus.value for numa in node.numa] == [numa.cpus.value for numa in wanted.numa]
    assert [finding.id for finding in result.findings if finding.severity is not Severity.INFO] == []


def test_a_hostile_file_is_refused_and_in_a_capture_costs_one_line() -> None:
    deep = '<topology version="2.0">' + '<object type="Machine">' * 10_000
    with pytest.raises(InputError, match="nests deeper"):
        read("hwloc-xml", deep)
    with pytest.raises(InputError, match="larger than"):
        read("hwloc-xml", b" " * (33 << 20))
    reader = source("hwloc-xml")
    assert reader is not None
    assert reader.parse(Blob("lstopo.xml", deep.encode(), Item("lstopo", "hwloc-xml", "lstopo.xml"))).unread_count == 1


@given(st.integers(0, len(V2)), st.integers(0, 60), st.text("<>/='\" \n0x9-[]:", max_size=6))
def test_a_file_changed_anywhere_breaks_nothing(at: int, removed: int, added: str) -> None:
    _, parsed = read("hwloc-xml", V2[:at] + added + V2[at + removed :])
    assert all(line.line is None or line.line >= 1 for line in parsed.unread)


def _rsmi(number: int, peers: str) -> str:
    return (
        f'<object type="PCIDev" pci_busid="0000:{number + 5:02x}:00.0" pci_type="1200 [1002:74a1] [1002:74a1] 00">'
        f'<object type="OSDev" gp_index="{90 + number}" name="rsmi{number}" subtype="RSMI" osdev_type="1">'
        '<info name="GPUVendor" value="AMD"/><info name="GPUModel" value="AMD Instinct MI300X"/>'
        f'<info name="XGMIHiveID" value="9f"/>{peers}</object></object>'
    )


def _amd(*peers: str, hops: str = "") -> str:
    rows = (
        _rsmi(number, f'<info name="XGMIPeers" value="{each}"/>' if each else "") for number, each in enumerate(peers)
    )
    return (
        '<topology version="2.0">\n<object type="Machine" os_index="0">\n'
        '<object type="Bridge" bridge_pci="0000:[00-1c]">\n'
        + "\n".join(rows)
        + f"\n</object></object>\n{hops}</topology>\n"
    )


HOPS = """<distances2 type="OSDev" nbobjs="3" kind="9" name="XGMIHops" indexing="gp">
<indexes length="9">90 91 92</indexes>
<u64values length="18">0 1 2 1 0 </u64values><u64values length="8">1 2 1 0</u64values>
</distances2>"""


def test_gpus_of_amd_have_their_product_and_what_joins_them() -> None:
    draft, _ = read("hwloc-xml", _amd("rsmi1 ", "rsmi0 rsmi2 ", "rsmi1 "))
    words = {(pair.a.keys["index"], pair.b.keys["index"]): pair.offer.value for pair in draft.pairs}
    assert words[0, 1] == words[1, 2] == "XGMI"
    assert words[0, 2] == words[2, 0] == "PCIE"
    assert [value(gpu, "name") for gpu in draft.entities("gpu")] == ["AMD Instinct MI300X"] * 3


def test_hops_tell_a_link_from_a_way_over_other_gpus() -> None:
    draft, _ = read("hwloc-xml", _amd("rsmi1 rsmi2 ", "rsmi0 rsmi2 ", "rsmi0 rsmi1 ", hops=HOPS))
    words = {(pair.a.keys["index"], pair.b.keys["index"]): pair.offer.value for pair in draft.pairs}
    assert (words[0, 1], words[0, 2]) == ("XGMI", "XGMI over 2 hops")


def test_where_no_gpu_names_a_peer_nothing_is_said_of_pairs() -> None:
    draft, _ = read("hwloc-xml", _amd("", "", ""))
    assert list(draft.pairs) == []


V3 = TEXTS["v3"]
GPU_V3 = """<object type="PCIDev" gp_index="20{at}" pci_busid="0004:0{at}:00.0" pci_type="0302 [10de:1db5]">
<object type="OSDev" gp_index="60{at}" name="nvml{at}" subtype="NVML" osdev_type="12"/></object>
"""


def test_version_3_says_of_the_machine_behind_its_objects_and_counts_nvlinks() -> None:
    text = V3.format(gpus="".join(GPU_V3.format(at=at) for at in range(2)))
    draft, _ = read("hwloc-xml", text)
    assert [pair.offer.value for pair in draft.pairs] == ["NV3", "NV3"]
    assert draft.single("cpu").offers["arch"][0].value == "ppc64le"
    assert host_of_text(Blob("node.xml", text.encode())) == "ac922-17"
