"""What a difference between peers can cost: by family and key of the fact, with the reason and the remedy."""

from __future__ import annotations

from collections.abc import Mapping

from topodiag.lazy import dataclass
from topodiag.model.finding import Severity
from topodiag.model.fleet import How, Outlier

MANY_ENOUGH = 5
"""Peers below which a difference is a hint: two against one is no majority that anybody should act on."""


@dataclass(frozen=True, slots=True)
class Weight:
    """How much a difference matters, why, and what to do."""

    severity: Severity
    why: str
    fix: str


_ALIKE = "bring it to what its peers have, in a maintenance window, and compare again"
_SCAN = "look at the part with `topodiag scan` of this node's capture"
_PASTE = "put the same setting on all nodes, with the tool that images them"
_SLOWEST = "collectives run at the pace of the slowest node"

_NOTE = Weight(Severity.INFO, "costs no bandwidth by itself; a fault is then harder to compare between nodes", _ALIKE)
_MIXED = Weight(
    Severity.WARNING,
    "no bandwidth by itself; faults that one version has and another has not show on some nodes",
    _ALIKE,
)

_BY_FAMILY: Mapping[str, Weight] = {
    "nvlink": Weight(Severity.WARNING, f"{_SLOWEST}: NVLinks that are fewer or slower hold all ranks back", _SCAN),
    "acs": Weight(Severity.WARNING, "peers under one PCIe switch then go up to the root: GPUDirect loses about half",
                  "switch ACS off on the bridges above GPUs and network cards, as on the peers (`setpci`, BIOS)"),
    "mtu": Weight(Severity.WARNING, "the smaller MTU of both ends is used, or large packets are lost", _PASTE),
    "pairing": Weight(Severity.WARNING, "a GPU whose near network card is another than on other nodes sends on another"
                      " rail, or through the CPU", "compare cabling, slots and BIOS settings with a peer"),
    "peer access": Weight(Severity.WARNING, "data between these GPUs then goes through the host's memory", _SCAN),
    "nccl.conf": Weight(Severity.WARNING, "NCCL then decides otherwise on this node than on the others", _PASTE),
    "host settings": Weight(Severity.WARNING, f"{_SLOWEST}: settings of the host slow the CPU side of NCCL", _PASTE),
    "driver": Weight(Severity.WARNING, "ranks with another driver can lack a feature that the others use, and an NVLink"
                     " domain must have one driver", _ALIKE),
    "firmware": _MIXED,
    "bios": Weight(Severity.WARNING, "the BIOS decides on ACS, IOMMU, PCIe payload and power states: other latency,"
                   " other bandwidth", _ALIKE),
    "storage network": _NOTE,
    "management network": _NOTE,
}  # fmt: skip

_PCI_LINK = Weight(Severity.WARNING, f"{_SLOWEST}: a narrower or slower PCIe link halves what the GPU or card can send",
                   "reseat the part, and look at the link with `lspci -vv` on node and peer")  # fmt: skip
_GPU = Weight(Severity.WARNING, f"{_SLOWEST}, and a job that wants all GPUs does not start", _SCAN)
_PORT = Weight(Severity.WARNING, f"{_SLOWEST}: one rail of the job is missing or slower on this node", _SCAN)
_PARAMETER = Weight(Severity.WARNING, "the driver then works otherwise than on the peers", _PASTE)
_LIMIT = Weight(Severity.WARNING, "a job that needs it fails or falls back on this node alone", _PASTE)

_BY_KEY: Mapping[tuple[str, str], Weight] = {
    **{("pci", key): _PCI_LINK for key in ("width", "generation", "highest width", "highest generation",
                                           "slot's highest width", "slot's highest generation")},
    ("pci", "IOMMU domain"): Weight(Severity.WARNING, "translated DMA slows GPUDirect and can break it", _PASTE),
    **{("gpu", key): _GPU for key in ("GPUs", "name", "board", "NUMA node", "CPU affinity", "MIG", "C2C bandwidth",
                                      "highest SM clock", "recovery action", "lost")},
    **{("nic", key): _PORT for key in ("compute network cards", "state", "physical state", "link layer", "rate",
                                       "lanes", "product", "role", "traffic class", "signal", "NUMA node")},
    ("limits", "locked memory"): _LIMIT,
    ("limits", "open files"): _LIMIT,
    ("limits", "shared memory"): Weight(
        Severity.WARNING, "half of the memory by default: less of it can be a memory module that is gone", _SCAN),
    ("os", "kernel"): _MIXED,
    ("gpu", "VBIOS"): _MIXED,
    ("host settings", "transparent huge pages"): _NOTE,
    ("host settings", "frequency driver"): _NOTE,
    ("os", "virtualization"): _GPU,
    ("system", "CPU"): _GPU,
    ("system", "CPUs"): _GPU,
    ("system", "sockets"): _GPU,
    ("system", "NUMA nodes"): _GPU,
    ("kernel modules", "nvidia_peermem"): Weight(
        Severity.WARNING, "without it GPUDirect RDMA needs DMA-BUF; else data goes through the host's memory", _PASTE),
    ("services", "nvidia-fabricmanager"): Weight(
        Severity.WARNING, "GPUs behind NVSwitches do not start without it", "systemctl status nvidia-fabricmanager"),
    ("services", "nvidia-imex"): Weight(
        Severity.WARNING, "jobs cannot share memory over the rack's NVLink without it", "systemctl status nvidia-imex"),
    ("services", "openibd"): Weight(Severity.WARNING, "no InfiniBand after the next boot", "systemctl status openibd"),
    **{("driver parameters", key): _PARAMETER for key in (
        "NvLinkDisable", "EnableStreamMemOPs", "RegistryDwords", "GrdmaPciTopoCheckOverride", "EnableResizableBar",
        "EnablePCIERelaxedOrderingMode", "EnablePCIeGen3")},
}  # fmt: skip

_KERNEL_WORDS = (
    "iommu", "pci", "numa", "mitigations", "isolcpus", "nohz", "cstate", "idle", "hugepage", "aspm", "nvidia", "mlx",
    "mem", "irqaffinity", "rcu", "tsc", "clocksource", "maxcpus", "nosmt",
)  # fmt: skip
"""Words in the names of parameters that decide on DMA, memory, clocks or CPUs (Linux kernel-parameters.txt)."""
_KERNEL = Weight(
    Severity.WARNING, "it decides how DMA, memory or the CPUs work: other latency, other bandwidth", _PASTE
)
_MILD = ("corrected", "correctable", "dropped", "discard", "duplicate", "out_of", "cqe", "timeout", "retrans")
_RISES = Weight(
    Severity.WARNING, "errors are sent again, which costs bandwidth, and a part that fails begins so", _SCAN
)
_MILD_RISES = Weight(Severity.INFO, "corrected or repeated without loss; a part that fails can begin so", _SCAN)


def weight_of(family: str, key: str) -> Weight:
    """What a difference in a fact can cost."""
    if (family, key) in _BY_KEY:
        return _BY_KEY[family, key]
    if family == "kernel command line":
        return _KERNEL if any(word in key.lower() for word in _KERNEL_WORDS) else _NOTE
    return _BY_FAMILY.get(family, _NOTE)


def weigh(outlier: Outlier) -> Weight:
    """The same for an outlier: a counter counts as what it counts."""
    if outlier.how is How.RATE:
        return _MILD_RISES if any(word in outlier.key.lower() for word in _MILD) else _RISES
    return weight_of(outlier.family, outlier.key)


def matters(outlier: Outlier) -> bool:
    """Whether the difference can cost bandwidth or stability, and enough peers say that it is one."""
    return outlier.total >= MANY_ENOUGH and weigh(outlier).severity >= Severity.WARNING
