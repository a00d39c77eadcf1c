"""The software side of a node: kernel, driver, services, processes, settings."""

from __future__ import annotations

from dataclasses import field

from topodiag.lazy import dataclass
from topodiag.model.provenance import Fact, Origin


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
