"""The tree of a machine that nobody dumped: a catalogued system laid out as such machines are built.

It is what NCCL would detect on a healthy one: GPUs and NICs under PCIe switches (by the published layout of an instance
type where there is one, else shared out evenly in order), NVLinks by the kind of wiring. A stand-in: names, bus ids and
NUMA nodes are made up, and whoever uses it says so.
"""

from __future__ import annotations

from topodiag.hardware import catalog
from topodiag.hardware.specs import GpuSpec, SystemSpec
from topodiag.lazy import dataclass
from topodiag.model.nccl_tree import Element
from topodiag.nccl.topo.detect import GPU_CLASS, HIDDEN_SWITCH, SWITCH_CLASS, gpu_of, net_attributes, pci_of

_BRIDGE_CLASS, _NIC_CLASS = "0x060400", "0x020700"

_HYBRID_MESH = ("01122000", "10210200", "12020010", "21200001", "20000112", "02001021", "00101202", "00012120")
"""NVLinks between each two GPUs of a DGX-1 with V100, row by row (NVIDIA DGX-1 system architecture whitepaper, figure
of the hybrid cube mesh; the diagonal is 0)."""

_FEWER = {4: 100}
"""P100's mesh has four links per GPU: each pair that V100 doubles has one."""


@dataclass(frozen=True, slots=True)
class Layout:
    """A machine to lay out: `gpus` of a product, joined by `nvlink` (as in SystemSpec) with `nvlinks` links each, and
    `nics` NICs of `gbps` (0: none known)."""

    gpu: GpuSpec
    gpus: int
    nvlink: str
    nvlinks: int
    nics: int = 0
    gbps: float = 0.0
    instance: str = ""
    nic_gen: int = 0
    """PCIe generation between NICs and the rest; 0 for that of the GPUs."""
    gdr: bool = True
    """Whether NICs reach GPU memory."""


def layout_of(spec: SystemSpec, gpu: GpuSpec | None = None, nics: tuple[int, float] | None = None) -> Layout | None:
    """How a catalogued machine is laid out, with the GPU it was found with; None for a GPU without a datasheet.

    `nics` (count, Gb/s) are the node's own, where they are known: the network is often the integrator's choice.
    """
    gpu_spec = gpu or catalog.gpu_by_name(spec.gpu)
    if gpu_spec is None:
        return None
    count, gbps = nics or (spec.compute_nics, spec.compute_nic_gbps)
    links = gpu_spec.nvlinks if spec.nvlinks_per_gpu is None else spec.nvlinks_per_gpu
    return Layout(gpu_spec, spec.gpus, spec.nvlink, links, count, gbps, spec.name, gdr=spec.gdr)


def tree_of_layout(layout: Layout) -> Element:
    """The `<system>` element. Several NICs per GPU are one of their sum, as a network plugin (aws-ofi-nccl) or NCCL's
    NIC fusion joins them; otherwise a ring would use one of each group only. Those of superchips have slots of their
    own, and one GPU alone uses one NIC unless more are seen in use."""
    count, gbps = layout.nics, layout.gbps
    if count > layout.gpus > 1 and count % layout.gpus == 0 and layout.gpu.form != "superchip":
        count, gbps = layout.gpus, gbps * (count // layout.gpus)
    sockets = 1 if layout.gpus <= 2 else 2
    per_socket = -(-layout.gpus // sockets)
    cpus = []
    switches = 0
    for socket in range(sockets):
        gpus = range(socket * per_socket, min((socket + 1) * per_socket, layout.gpus))
        nics = [nic for nic in range(count) if _home(nic, count, layout.gpus) in gpus]
        groups: list[Element] = []
        for numbers, mine in _groups(layout, gpus, nics, count):
            groups += _switch(layout, switches, numbers, mine, gbps)
            switches += 1
        cpus.append(Element("cpu", (("numaid", str(socket)), *_cpu(layout.gpu)), tuple(groups)))
    return Element("system", (("version", "1"),), tuple(cpus))


def _home(nic: int, count: int, gpus: int) -> int:
    """The GPU beside which a NIC sits: NICs are shared out evenly."""
    return nic * gpus // max(count, 1)


def _groups(layout: Layout, gpus: range, nics: list[int], count: int) -> list[tuple[list[int], list[int]]]:
    """GPUs and NICs that share a switch: one NIC each with the GPUs that have no other, or GPUs in twos where PCIe
    generation 4 boards of 8 hold them so (HGX A100, DGX-1)."""
    pairs = 2 if layout.gpu.sm < 90 and layout.gpu.form == "sxm" and layout.gpus >= 8 else 1
    size = max(pairs, layout.gpus // count if 0 < count <= layout.gpus else pairs)
    if layout.gpu.form == "pcie":
        size = max(size, 2)
    groups = []
    for first in range(gpus.start, gpus.stop, size):
        numbers = list(range(first, min(first + size, gpus.stop)))
        groups.append((numbers, [nic for nic in nics if _home(nic, count, layout.gpus) in numbers]))
    return groups


def _cpu(gpu: GpuSpec) -> tuple[tuple[str, str], ...]:
    """The processor such GPUs usually come with; it sets what NCCL reckons between sockets and per network hop."""
    if gpu.form == "superchip":
        return (("arch", "arm64"),)
    if 80 <= gpu.sm < 90:
        return (("arch", "x86_64"), ("vendor", "AuthenticAMD"), ("familyid", "175"), ("modelid", "1"))
    model = "143" if gpu.sm >= 90 else "85"
    return (("arch", "x86_64"), ("vendor", "GenuineIntel"), ("familyid", "6"), ("modelid", model))


def _switch(layout: Layout, number: int, gpus: list[int], nics: list[int], gbps: float) -> list[Element]:
    below = [_gpu(layout, gpu) for gpu in gpus] + [_nic(layout, number, nic, gbps) for nic in nics]
    if layout.gpu.form == "superchip":
        return below
    return [_pci(f"0000:{0x10 + 8 * number:02x}:00.0", _BRIDGE_CLASS, layout.gpu, below)]


def _pci(bus_id: str, kind: str, gpu: GpuSpec, below: list[Element], gen: int = 0) -> Element:
    return pci_of(bus_id, kind, gen or gpu.pcie_gen or 5, gpu.pcie_width or 16, below)


def _bus(gpu: int) -> str:
    return f"0001:{0x10 + gpu:02x}:00.0"


def _gpu(layout: Layout, number: int) -> Element:
    spec = layout.gpu
    rdma = spec.form != "pcie" or spec.p2p_pcie
    gpu = gpu_of(number, spec.sm, _nvlinks(layout, number), spec.c2c_gbs, gdr=rdma, rank=number)
    return _pci(_bus(number), GPU_CLASS, spec, [gpu])


def _nvlinks(layout: Layout, number: int) -> list[tuple[str, int, str]]:
    others = [other for other in range(layout.gpus) if other != number]
    if layout.nvlink == "nvswitch":
        return [(HIDDEN_SWITCH, layout.nvlinks, SWITCH_CLASS)]
    if layout.nvlink == "mesh":
        return [(_bus(other), layout.nvlinks // max(len(others), 1), GPU_CLASS) for other in others]
    if layout.nvlink == "pairs":
        return [(_bus(number ^ 1), layout.nvlinks, GPU_CLASS)] if number ^ 1 < layout.gpus else []
    if layout.nvlink == "hybrid-mesh" and number < len(_HYBRID_MESH):
        rows = _HYBRID_MESH[number]
        most = 1 if layout.gpu.nvlinks in _FEWER else 2
        return [(_bus(other), min(int(rows[other]), most), GPU_CLASS) for other in others if other < len(rows)]
    return []


def _nic(layout: Layout, group: int, number: int, gbps: float) -> Element:
    attributes = net_attributes(f"nic{number}", number, gbps * 1000, gdr=layout.gdr)
    nic = Element("nic", (), (Element("net", tuple(attributes.items())),))
    return _pci(f"0002:{number + 1:02x}:00.0", _NIC_CLASS, layout.gpu, [nic], layout.nic_gen)
