"""Writes what `lstopo --of xml` would print of a node, for the tests of its reader."""

from collections.abc import Iterator
from xml.sax.saxutils import quoteattr

from topodiag.evidence.hwloc.hwloc_xml import link_gbs
from topodiag.model.cpulist import parse_cpulist
from topodiag.model.devices import PciDevice
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
    speed = link_gbs(device.gen.value, device.width.value) if device.gen.value and device.width.value else 0
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
