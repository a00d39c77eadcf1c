"""hwloc's XML: machines that are written as lstopo writes them, and read."""

from collections.abc import Iterator
from pathlib import Path
from xml.sax.saxutils import quoteattr

import pytest
from hypothesis import given
from hypothesis import strategies as st

import topodiag
from tests.evidence.filled import read, text_of, value
from tests.scanned import node_at
from tests.tables import examples, texts
from topodiag.evidence.intake.same_node import host_of_text
from topodiag.evidence.interface import Blob, Item
from topodiag.evidence.registry import source
from topodiag.hardware.catalog import pcie_line_gbs
from topodiag.model.cpulist import parse_cpulist, parse_cpumask
from topodiag.model.devices import PciDevice
from topodiag.model.errors import InputError
from topodiag.model.finding import Severity
from topodiag.model.node import Node


def bitmap(members: frozenset[int]) -> str:
    """`0x00000001,,0x000000ff`, as hwloc prints a set."""
    groups = []
    for number in range(max(members, default=0) // 32, -1, -1):
        value = sum(1 << bit for bit in range(32) if number * 32 + bit in members)
        groups.append(f"0x{value:08x}" if value or not number else "")
    return ",".join(groups)


def lstopo(node: Node) -> str:
    """The XML, format 2.0."""
    return "\n".join(_lines(node)) + "\n"


def _lines(node: Node) -> Iterator[str]:
    yield '<?xml version="1.0" encoding="UTF-8"?>'
    yield '<!DOCTYPE topology SYSTEM "hwloc2.dtd">'
    yield '<topology version="2.0">'
    nodes = frozenset(numa.id for numa in node.numa)
    yield f'<object type="Machine" os_index="0" nodeset="{bitmap(nodes)}">'
    yield '<info name="OSName" value="Linux"/>'
    yield f'<info name="Architecture" value={quoteattr(node.cpu.arch.get("x86_64"))}/>'
    yield f'<info name="OSRelease" value={quoteattr(node.os.kernel.get(""))}/>'
    for socket, numa in enumerate(node.numa):
        cpus = parse_cpulist(numa.cpus.get("")) or frozenset()
        sets = f'cpuset="{bitmap(cpus)}" nodeset="{bitmap(frozenset({numa.id}))}"'
        yield f'<object type="Package" os_index="{socket}" {sets}>'
        yield f'<info name="CPUVendor" value={quoteattr(node.cpu.vendor.get(""))}/>'
        yield f'<info name="CPUFamilyNumber" value="{node.cpu.family.get(0)}"/>'
        yield f'<info name="CPUModelNumber" value="{node.cpu.model.get(0)}"/>'
        yield f'<object type="NUMANode" os_index="{numa.id}" {sets}><page_type size="4096" count="1"/></object>'
        for cpu in sorted(cpus):
            yield f'<object type="PU" os_index="{cpu}"/>'
        yield from _roots(node, numa.id)
        yield "</object>"
    yield "</object>"
    yield '<support name="discovery.pu"/>'
    yield "</topology>"


def _roots(node: Node, numa: int) -> Iterator[str]:
    tops: dict[str, list[PciDevice]] = {}
    for device in node.pci.values():
        if device.parent is None and device.numa.get(0) == numa:
            tops.setdefault(device.root, []).append(device)
    for root, devices in tops.items():
        domain, _, bus = root.removeprefix("pci").partition(":")
        yield f'<object type="Bridge" bridge_type="0-1" depth="0" bridge_pci="{domain}:[{bus}-ff]">'
        for device in devices:
            yield from _function(node, device)
        yield "</object>"


def _function(node: Node, device: PciDevice) -> Iterator[str]:
    below = [pci_device for pci_device in node.pci.values() if pci_device.parent == device.bus_id]
    code = device.class_code.get(0) >> 8
    ids = f"[{device.vendor.get(0):04x}:{device.device.get(0):04x}]"
    own = f"[{device.subsystem_vendor.get(0):04x}:{device.subsystem_device.get(0):04x}]"
    speed = pcie_line_gbs(device.gen.value, device.width.value) if device.gen.value and device.width.value else 0
    kind = 'Bridge" bridge_type="1-1' if code == 0x0604 else "PCIDev"
    place = f'pci_busid="{device.bus_id}" pci_type="{code:04x} {ids} {own} a1" pci_link_speed="{speed:.6f}"'
    yield f'<object type="{kind}" {place}>'
    for gpu in node.gpus:
        if gpu.bus_id == device.bus_id:
            yield f'<object type="OSDev" name="nvml{gpu.index}" subtype="NVML" osdev_type="1">'
            yield f'<info name="GPUModel" value={quoteattr("NVIDIA " + gpu.name.get(""))}/>'
            yield f'<info name="NVIDIAUUID" value={quoteattr(gpu.uuid.get(""))}/></object>'
    for nic in node.nics:
        if nic.bus_id == device.bus_id and nic.rdma_name is not None:
            yield f'<object type="OSDev" name="{nic.rdma_name}" osdev_type="3">'
            yield f'<info name="NodeGUID" value="{nic.node_guid.get("")}"/>'
            for port in nic.ports:
                number = {"DOWN": 1, "INIT": 2, "ARMED": 3, "ACTIVE": 4}.get(port.state.get(""), 0)
                yield f'<info name="Port{port.number}State" value="{number}"/>'
                yield f'<info name="Port{port.number}LID" value="0x{port.lid.get(0):x}"/>'
            yield "</object>"
    for interface in node.netdevs:
        if interface.bus_id == device.bus_id:
            yield f'<object type="OSDev" name="{interface.name}" osdev_type="2"/>'
    for pci_device in below:
        yield from _function(node, pci_device)
    yield "</object>"


# --- lstopo's XML: the machine's processors, PCI tree and device names, in all three versions of the format


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
    assert pcie_line_gbs(gen, width) == pytest.approx(rate, rel=1e-5)


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
