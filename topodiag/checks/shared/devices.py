"""What several checks ask of a node: products, distances, peers, adapters, interfaces, and how to spell them. Decides
nothing itself."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import combinations
from typing import TypeVar

from topodiag.hardware.amd import AmdGpu, amd_gpu_by_name
from topodiag.hardware.catalog import gpu_by_name, pcie_nccl_gbs
from topodiag.hardware.specs import GpuSpec
from topodiag.model.devices import Gpu, Nic, NicRole
from topodiag.model.maker import XGMI
from topodiag.model.nccl_enums import PathType
from topodiag.model.node import Node
from topodiag.model.provenance import Fact, Topic
from topodiag.words.own_data import own_data, patterns

V = TypeVar("V", bound=Hashable)

BOOT_S = 600.0
"""Seconds after boot in which links may still be training and services still be starting (NVSentinel issue 1701 saw
NVLink training last minutes): what is not ready then is transient, not broken."""

_DATA = own_data("checks/shared/devices")
SMI_TO_PATH = {word: PathType[name] for word, name in _DATA["path"].items()}
"""`nvidia-smi topo -m`'s words as NCCL's path types."""


def gpu_spec(gpu: Gpu) -> GpuSpec | None:
    """The datasheet of a GPU, or None when its name is unknown or in no datasheet."""
    return gpu_by_name(gpu.name.get(""))


def amd_mesh(gpus: Sequence[Gpu]) -> AmdGpu | None:
    """The one product of all these GPUs, where it is AMD's and a link joins each pair of its board."""
    names = {gpu.name.value for gpu in gpus}
    spec = amd_gpu_by_name(names.pop() or "") if len(names) == 1 else None
    return spec if spec is not None and spec.mesh else None


def word(node: Node, a: str, b: str) -> Fact[str]:
    """What `nvidia-smi topo -m` says of two devices, whichever triangle of the table has it."""
    fact = node.smi_matrix.get((a, b))
    return fact if fact is not None and fact.known else node.smi_matrix.get((b, a), fact or Fact())


def by_xgmi(text: str | None) -> bool | None:
    """Whether a word of ROCm's tools says that xGMI joins a pair directly; None for any other tool's word."""
    kind = (text or "").strip().upper()
    return kind == XGMI if kind.startswith(XGMI) or kind == "PCIE" else None


def nvlink_count(text: str | None) -> int | None:
    """The number of links in a matrix word (`NV18` is 18), or None for any other word."""
    digits = (text or "").strip()[2:]
    if not (text or "").strip().startswith("NV") or not (digits.isascii() and digits.isdigit() and len(digits) < 4):
        return None
    return int(digits)


def distance(node: Node, a: str, b: str) -> tuple[PathType | None, Fact[str]]:
    """How far two devices are apart in NCCL's terms, and the matrix word that shows it (if there is one)."""
    fact = word(node, a, b)
    if not fact.known:
        fact = node.pcie_matrix.get((a, b), fact)
    path = node.paths.get((a, b)) or node.paths.get((b, a))
    if path is not None and path.type < PathType.NET:
        return path.type, fact
    if nvlink_count(fact.value) is not None:
        return PathType.NVL, fact
    return SMI_TO_PATH.get((fact.value or "").strip().upper()), fact


def nvlinked(node: Node, a: Gpu, b: Gpu) -> bool:
    """Whether two GPUs are joined by NVLink, by the graph or by the matrix."""
    path = node.paths.get((a.label, b.label)) or node.paths.get((b.label, a.label))
    if path is not None and path.type is PathType.NVL:
        return True
    link = word(node, a.label, b.label).value
    return bool(nvlink_count(link)) or by_xgmi(link) is True


def talk_over_pcie(node: Node, one: Gpu | Nic, other: Gpu | Nic) -> bool:
    """Whether two devices exchange the job's data over PCIe: a GPU and a NIC, or GPUs without NVLink between them. The
    driver of GeForce cards offers no P2P over PCIe; superchips talk past it. A GPU of unknown name is taken to talk."""
    gpus = [device for device in (one, other) if isinstance(device, Gpu)]
    specs = [spec for spec in map(gpu_spec, gpus) if spec is not None]
    if not gpus or one is other or any(not spec.p2p_pcie or spec.form == "superchip" for spec in specs):
        return False
    return len(gpus) < 2 or distance(node, gpus[0].label, gpus[1].label)[0] not in (PathType.NVL, PathType.NVB)


def peers_over_pcie(node: Node) -> bool:
    """Whether any two devices of the node exchange the job's data over PCIe."""
    ends: tuple[Gpu | Nic, ...] = (*node.gpus, *compute_nics(node))
    return any(talk_over_pcie(node, one, other) for one, other in combinations(ends, 2))


def nvlink_reach(node: Node, start: Iterable[Gpu]) -> frozenset[int]:
    """The indices of the GPUs that NVLink reaches from some GPUs, over other GPUs where need be: NCCL's rings enter and
    leave such a group through its members that have a near NIC."""
    reached = {gpu.index: gpu for gpu in start}
    edge = list(reached.values())
    while edge:
        here = edge.pop()
        for gpu in node.gpus:
            if gpu.index not in reached and nvlinked(node, here, gpu):
                reached[gpu.index] = gpu
                edge.append(gpu)
    return frozenset(reached)


def compute_nics(node: Node) -> tuple[Nic, ...]:
    """The RDMA NICs that carry the job's traffic; storage, management and unknown roles are left out."""
    return tuple(nic for nic in node.nics if nic.role is NicRole.COMPUTE and (nic.rdma_name or nic.smi_label))


def numa_of(node: Node, device: Gpu | Nic) -> Fact[int]:
    """The NUMA node of a device by its own sources, else by its PCI function; -1 where the firmware names none."""
    if device.numa.known:
        return device.numa
    pci = node.pci_of(device)
    return pci.numa if pci is not None else device.numa


def cluster(gpu: Gpu) -> str | None:
    """The UUID of the multi-node NVLink domain, or None when the GPU is in none or does not say."""
    uuid = gpu.fabric.cluster_uuid.value
    return uuid if uuid and uuid.strip("0-") else None


def on_c2c(gpu: Gpu) -> bool:
    """Whether the GPU hangs on its processor by C2C (Grace), so that PCIe distances to NICs do not bind it."""
    spec = gpu_spec(gpu)
    return bool(gpu.c2c.value) or gpu.memory_numa.known or (spec is not None and spec.form == "superchip")


def is_efa(nic: Nic) -> bool:
    """Whether a NIC is an Elastic Fabric Adapter: by driver, else by the name that udev gives to devices of its kind
    (`rdmap16s0`; InfiniBand is `ibp`, RoCE `rocep`: rdma-core, kernel-boot/rdma_rename.c)."""
    return (nic.driver.value or ("efa" if nic.name.startswith("rdmap") else "")).lower() == "efa"


def is_up(nic: Nic) -> bool | None:
    """Whether any port of a NIC is active; None when no port says."""
    states = [port.state.value.strip().upper() for port in nic.ports if port.state.value]
    return any("ACTIVE" in state and "INACTIVE" not in state for state in states) if states else None


def just_booted(node: Node) -> bool:
    """Whether the node is so young that links and services may still be coming up."""
    uptime = node.os.uptime_s.value
    return uptime is not None and uptime < BOOT_S


def pcie_gbs(spec: GpuSpec | None) -> float | None:
    """What NCCL assumes of the PCIe link of a GPU product, GB/s in one direction."""
    return pcie_nccl_gbs(spec.pcie_gen, spec.pcie_width) if spec is not None and spec.pcie_gen else None


NOT_FOR_JOBS = patterns("checks/shared/devices", "interface")["not_for_jobs"]
"""Interfaces that exist on every node with the same address, or lead to this node only."""


def addresses_of_node(node: Node) -> Iterator[str]:
    """The addresses of a node's interfaces, without those of interfaces that every node numbers alike."""
    for device in node.netdevs:
        if not NOT_FOR_JOBS.match(device.name):
            yield from device.addresses.value or ()


def has_no_adapter(node: Node) -> bool:
    """Whether all PCI functions of a node were seen, and none of its network cards can do RDMA: then no verbs program
    finds one there, and nothing is wrong with that."""
    return Topic.PCI in node.topics and not any(nic.rdma_name or not _is_plain(nic) for nic in node.nics)


def _is_plain(nic: Nic) -> bool:
    return (nic.driver.get("") in _DATA["plain"]) or nic.part.get("").startswith("virtio")
