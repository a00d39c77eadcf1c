"""lstopo's XML: the machine's processors, PCI tree and device names, in all three versions of the format."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import topodiag
from tests.evidence.filled import read, text_of, value
from tests.evidence.hwloc.hwloc_writer import bitmap, lstopo
from tests.scanned import node_at
from tests.tables import examples, texts
from topodiag.evidence.hwloc.hwloc_xml import link_gbs
from topodiag.evidence.intake.same_node import host_of_text
from topodiag.evidence.interface import Blob, Item
from topodiag.evidence.registry import source
from topodiag.model.cpulist import parse_cpumask
from topodiag.model.errors import InputError
from topodiag.model.finding import Severity

MACHINES = ("dgx-h100-healthy", "hgx-a100", "gb200-tray", "idle-gen1")

TEXTS = texts(__file__)
V2 = text_of("hwloc-xml", "V2")


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
    assert reader.parse(Blob("lstopo.xml", deep.encode(), Item("lstopo", "hwloc-xml", "lstopo.xml"))).unread_count == 1


@given(st.integers(0, len(V2)), st.integers(0, 60), st.text("<>/='\" \n0x9-[]:", max_size=6))
def test_a_file_changed_anywhere_breaks_nothing(at: int, removed: int, added: str) -> None:
    _, parsed = read("hwloc-xml", V2[:at] + added + V2[at + removed :])
    assert all(line.line is None or line.line >= 1 for line in parsed.unread)


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
