"""A node: everything known of one machine, gathered from whatever evidence there was; its software (kernel, driver,
services, processes, settings); and whether its GPUs were seen: nothing is said to be well of a machine whose GPUs
nobody read.
"""

from __future__ import annotations

from dataclasses import field
from enum import Enum
from typing import TYPE_CHECKING

from topodiag.lazy import dataclass
from topodiag.model.busid import unplaced
from topodiag.model.devices import FabricPort, Gpu, NetDev, Nic, NumaNode, PciDevice, PciKind
from topodiag.model.events import Event
from topodiag.model.links import Link, Path
from topodiag.model.maker import dialect_of, makers_of
from topodiag.model.provenance import Disagreement, Fact, NotObserved, Origin, Topic
from topodiag.model.tables import Table
from topodiag.words.dialect import Maker
from topodiag.words.units import plural

if TYPE_CHECKING:
    from topodiag.model.nccl_tree import NcclFile


@dataclass(frozen=True, slots=True)
class Cpu:
    """The processors, as /proc/cpuinfo names them (all alike on any machine we know)."""

    arch: Fact[str] = Fact()
    vendor: Fact[str] = Fact()
    family: Fact[int] = Fact()
    model: Fact[int] = Fact()
    name: Fact[str] = Fact()
    count: Fact[int] = Fact()
    sockets: Fact[int] = Fact()


@dataclass(frozen=True, slots=True)
class Os:
    """Kernel and driver state that decides what NCCL can use."""

    kernel: Fact[str] = Fact()
    cmdline: Fact[str] = Fact()
    distribution: Fact[str] = Fact()
    uptime_s: Fact[float] = Fact()
    bios: Fact[str] = Fact()
    """Version of the system firmware, with its date where that is given: `2.16 12/05/2023`."""
    virtualization: Fact[str] = Fact()
    """`none`, or the hypervisor: `kvm`, `vmware`, `microsoft`, `xen`, `amazon`, ..."""
    container: Fact[str] = Fact()
    """`none`, or the runtime: `docker`, `podman`, `kubernetes`, `lxc`, ..."""
    driver_version: Fact[str] = Fact()
    driver_open: Fact[bool] = Fact()
    """Whether NVIDIA's open kernel modules are loaded (needed for DMA-BUF)."""
    cuda_version: Fact[str] = Fact()
    nvml_error: Fact[str] = Fact()
    """The NVML error by name when the library or the driver did not come up."""
    modules: Fact[frozenset[str]] = Fact()
    peermem: Fact[bool] = Fact()
    """Whether a GPU peer-memory module is there for RDMA (the files that NCCL itself tests)."""
    iommu_enabled: Fact[bool] = Fact()
    memlock_bytes: Fact[int] = Fact()
    """Soft limit on locked memory; -1 is unlimited."""
    shm_bytes: Fact[int] = Fact()
    shm_free_bytes: Fact[int] = Fact()
    open_files: Fact[int] = Fact()
    """Hard limit on open files, to which NCCL raises the soft one; -1 is unlimited."""
    numa_balancing: Fact[bool] = Fact()
    governor: Fact[str] = Fact()
    """The frequency governor of the first processor: `performance`, `powersave`, `schedutil`, ..."""
    frequency_driver: Fact[str] = Fact()
    huge_pages: Fact[str] = Fact()
    """Transparent huge pages: `always`, `madvise` or `never`."""
    services: dict[str, Fact[str]] = field(default_factory=dict)
    """systemd's word per unit: `nvidia-fabricmanager` -> `active`, `inactive`, `failed`, `not-found`."""
    devices: Fact[frozenset[str]] = Fact()
    """Names below /dev that matter: `nvidia0`, `infiniband/uverbs0`, `gdrdrv`, ..."""
    absent_devices: Fact[frozenset[str]] = Fact()
    """Names below /dev that somebody looked for and that are not there."""
    registry: dict[str, Fact[str]] = field(default_factory=dict)
    """/proc/driver/nvidia/params by name."""


IOMMU_UNITS = "units in /sys/class/iommu"
"""How an event begins that says which IOMMUs the kernel runs."""


@dataclass(frozen=True, slots=True)
class Process:
    """A process with a GPU open."""

    pid: int
    gpus: tuple[int, ...] = ()
    """GPU indices."""
    name: Fact[str] = Fact()
    cpus_allowed: Fact[str] = Fact()
    nccl_env: Fact[dict[str, str]] = Fact()


@dataclass(frozen=True, slots=True)
class Setting:
    """One NCCL (or CUDA, UCX, FI) variable as given. `scope`: environment, conf file, or `process PID`."""

    name: str
    value: str
    scope: str
    origin: Origin


@dataclass(frozen=True, slots=True)
class ConfLine:
    """One raw line of an nccl.conf, for the checks that judge how NCCL will read it."""

    path: str
    number: int
    text: str
    origin: Origin


Pair = tuple[str, str]
"""Two device labels (`GPU0`, `GPU3`, a NIC's name), in the order of the table they were read from."""


@dataclass(frozen=True, slots=True)
class Node:
    """One machine. Collections that nothing was read for are empty; `topics` are those that were looked at.

    `smi_matrix` holds `nvidia-smi topo -m`'s own words (`NV18`, `PIX`, `NODE`), both triangles;
    `p2p` the words of `topo -p2p` or NVML by capability (`read`, `write`, `nvlink`, `atomics`, `prop`), e.g. `OK`;
    `paths` the path between every two GPUs and every GPU and NIC, by NCCL's definitions.
    """

    host: str
    nameless: bool = False
    """Whether no text names the host: it is called as its file or folder."""
    system: Fact[str] = Fact()
    """The product or instance type, when the machine says it or its parts match a known one."""
    time: Fact[str] = Fact()
    boot: Fact[str] = Fact()
    """The kernel's id of the boot (/proc/sys/kernel/random/boot_id), or its token in a redacted capture."""
    cpu: Cpu = Cpu()
    os: Os = Os()
    numa: tuple[NumaNode, ...] = ()
    pci: dict[str, PciDevice] = field(default_factory=dict)
    acs_lines: tuple[Fact[int], ...] = ()
    """ACS control registers of ports that the evidence does not name, as `grep ACSCtl` leaves them."""
    gpus: tuple[Gpu, ...] = ()
    nics: tuple[Nic, ...] = ()
    netdevs: tuple[NetDev, ...] = ()
    fabric_ports: tuple[FabricPort, ...] = ()
    """Ports that a tool of the fabric reported: they need not be this node's."""
    links: tuple[Link, ...] = ()
    paths: dict[Pair, Path] = field(default_factory=dict)
    smi_matrix: dict[Pair, Fact[str]] = field(default_factory=dict)
    pcie_matrix: dict[Pair, Fact[str]] = field(default_factory=dict)
    """The same words for the way over PCIe alone (`topo -mp`, NVML's common ancestor): silent about NVLink."""
    p2p: dict[str, dict[Pair, Fact[str]]] = field(default_factory=dict)
    copies: dict[Pair, Fact[float]] = field(default_factory=dict)
    """What a test of copies between two GPUs measured, GB/s."""
    passed_tests: Fact[tuple[str, ...]] = Fact()
    failed_tests: Fact[tuple[str, ...]] = Fact()
    """Those that some GPU failed, where no GPU is named."""
    """Tests of DCGM that all GPUs passed."""
    events: tuple[Event, ...] = ()
    """What the kernel reports."""
    reports: tuple[Event, ...] = ()
    """What programs, agents and persons report of the node in sentences of the catalogue."""
    tables: tuple[Table, ...] = ()
    """Rows that any script prints, in columns that checks ask for."""
    processes: tuple[Process, ...] = ()
    settings: tuple[Setting, ...] = ()
    conf_lines: tuple[ConfLine, ...] = ()
    scheduler: dict[str, Fact[str]] = field(default_factory=dict)
    """Identity from Slurm and Kubernetes by variable name."""
    nccl_file: NcclFile | None = None
    """The topology file or dump that was given of this machine, as NCCL's parser meets it."""
    disagreements: tuple[Disagreement, ...] = ()
    not_observed: tuple[NotObserved, ...] = ()
    topics: frozenset[Topic] = frozenset()
    """What the evidence that was there and parsed speaks of."""
    makers: frozenset[Maker] = frozenset()
    """Whose tools the evidence is of, where that tells whose GPUs these are; `maker.makers_of` knows of more signs."""
    driver_only_loaded: bool = False
    """Whether the kernel log shows NVIDIA's driver as it is loaded, and ends before it can have met a fault."""

    def gpu(self, index: int) -> Gpu | None:
        return next((gpu for gpu in self.gpus if gpu.index == index), None)

    def pci_of(self, device: Gpu | Nic | NetDev) -> PciDevice | None:
        if device.bus_id is None and isinstance(device, Gpu):
            return self.pci.get(unplaced(device.index))
        return self.pci.get(device.bus_id) if device.bus_id else None

    def ancestors(self, bus_id: str) -> tuple[PciDevice, ...]:
        """The bridges above a function, nearest first, up to the root port."""
        chain: list[PciDevice] = []
        seen = {bus_id}
        device = self.pci.get(bus_id)
        while device is not None and device.parent is not None and device.parent not in seen:
            seen.add(device.parent)
            device = self.pci.get(device.parent)
            if device is not None:
                chain.append(device)
        return tuple(chain)

    def hung_from(self, bus_id: str) -> int:
        """The NUMA node that a function hangs from: its own word, else that of a bridge above it; -1 as NCCL has it."""
        device = self.pci.get(bus_id)
        numbers = [one.numa.get(-1) for one in (*([device] if device else ()), *self.ancestors(bus_id))]
        return next((number for number in numbers if number >= 0), -1)

    @property
    def nvswitches(self) -> tuple[PciDevice, ...]:
        return tuple(device for device in self.pci.values() if device.kind is PciKind.NVSWITCH)

    @property
    def is_vm(self) -> bool | None:
        """Whether this is a guest; None when nothing says so."""
        word = self.os.virtualization.value
        return None if word is None else word != "none"


_REPORT = {"", "nvidia", "amdgpu"}
"""Drivers of GPUs whose tools report on them; "" for one that is not known."""


class Sight(Enum):
    """What is known of a node's GPUs."""

    SEEN = "seen"
    NONE = "none"
    """There is no NVIDIA GPU, and the evidence says so."""
    HIDDEN = "hidden"
    """There are GPUs on the bus, or a program lists them, and the driver did not speak of them."""
    UNREAD = "unread"
    """The evidence does not say: a command hung, or nothing about GPUs was given."""


@dataclass(frozen=True, slots=True)
class GpuSight:
    """The answer and the sentence that says how it is known."""

    sight: Sight
    why: str = ""


def gpu_sight(node: Node) -> GpuSight:
    """Whether the GPUs of a node were seen. Anything but `SEEN` must never read as healthy."""
    spoke = Topic.GPUS in node.topics or _told_by_file(node)
    if node.gpus and (spoke or any(_is_told_of(gpu) for gpu in node.gpus)):
        return GpuSight(Sight.SEEN)
    on_bus = sum(dev.is_accelerator for dev in node.pci.values())
    reason = _driver_silence(node)
    if on_bus or node.gpus:
        count = plural(on_bus or len(node.gpus), f"{dialect_of(node).maker.value} GPU")
        seen = "on the PCI bus" if on_bus else "that a test of copies measured" if node.copies else "named"
        why = f"{count} {seen}, but the driver did not report on them"
        return GpuSight(Sight.HIDDEN, f"{why}: {reason}" if reason else why)
    if node.pci:
        return GpuSight(Sight.NONE, f"{plural(len(node.pci), 'PCI function')} seen, none is one")
    if spoke:
        return GpuSight(Sight.NONE, "the driver is up and counts none")
    makers = " and ".join(sorted(maker.value for maker in makers_of(node)))
    named = f"lines speak of GPUs of {makers}, and no tool says how they are" if makers else ""
    return GpuSight(Sight.UNREAD, reason or named or "nothing about GPUs was in the evidence")


def _is_told_of(gpu: Gpu) -> bool:
    """Whether a tool of the driver tells how a GPU is, even one that does not name all GPUs."""
    return gpu.throttle.known or gpu.sm_clock_mhz.known or gpu.utilization.known or bool(gpu.counters)


def _told_by_file(node: Node) -> bool:
    """Whether a topology file was given by itself: NCCL's dump or its writer speaks of the GPUs."""
    file = node.nccl_file.name if node.nccl_file is not None else None
    return any(gpu.numa.origin is not None and gpu.numa.origin.source == file for gpu in node.gpus)


def _driver_silence(node: Node) -> str:
    if node.os.nvml_error.value:
        return f"NVML said {node.os.nvml_error.value}"
    gaps = [gap for gap in node.not_observed if Topic.GPUS in gap.of]
    silent = min(gaps, key=lambda gap: Topic.DRIVER not in gap.of, default=None)
    if silent is not None:
        return f"{silent.what}: {silent.why}"
    drivers = {device.driver.get("") for device in node.pci.values() if device.is_accelerator} - _REPORT
    return f"the kernel's driver in use is {' and '.join(sorted(drivers))}" if drivers else ""
