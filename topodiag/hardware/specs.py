"""The value types of the datasheets. Units are in the names; every entry carries its source."""

from __future__ import annotations

from topodiag.lazy import dataclass


@dataclass(frozen=True, slots=True)
class GpuSpec:
    """What one GPU product is built for.

    `nvlinks` are the links of the product as shipped in its form (0 for a card without NVLink; for a card with bridge
    connectors, the links with all bridges fitted, and `bridged` is True: fewer or none is then no fault).
    `nvlink_line_gbs` is nvidia-smi's rate per link and direction in GB/s, `nvlink_nccl_gbs` what NCCL reckons per link
    (src/graph/topo.h). `form` is `sxm`, `pcie`, or `superchip`. `p2p_pcie` says whether the driver
    offers peer-to-peer over PCIe at all (GeForce does not). `pcie_gen` and `pcie_width` are 0 where the GPU hangs on
    its CPU by chip-to-chip links: what its PCI function shows there is no link to judge.
    """

    name: str
    sm: int
    form: str
    pcie_gen: int
    pcie_width: int
    source: str
    nvlinks: int = 0
    nvlink_line_gbs: float = 0.0
    nvlink_nccl_gbs: float = 0.0
    bridged: bool = False
    nvswitch: bool = False
    """Whether the product's usual board joins its NVLinks through NVSwitches."""
    p2p_pcie: bool = True
    c2c_gbs: float = 0.0
    """CPU-GPU chip-to-chip bandwidth, GB/s in one direction; 0 without, or where no source gives it per GPU."""
    memory_gb: float = 0.0
    """As the product name counts it; 0 where the name comes in several sizes."""
    family: str = ""
    """The products that differ from this one in memory or cooling only share this name."""


@dataclass(frozen=True, slots=True)
class NicSpec:
    """What one NIC product is built for. `rate_gbps` is the most that one port of the product can do, 0 where the PCI
    id leaves it open (virtual adapters, ids that several products share); `pcie_gen` and `pcie_width` likewise."""

    name: str
    vendor: int
    device: int
    source: str
    pcie_gen: int
    pcie_width: int
    is_vf: bool
    hca_type: str = ""
    """The kernel's hca_type, e.g. `MT4129`; empty where the driver gives none."""
    rate_gbps: float = 0.0
    ports: int = 1
    """Ports that one PCI function drives (1 on ConnectX-5 and later in their usual form)."""
    dpu: bool = False


@dataclass(frozen=True, slots=True)
class SystemSpec:
    """A known machine: how many of what, and how they are joined. Cloud instance types count as systems.

    `compute_nics` and `compute_nic_gbps` are the NICs meant for the job's traffic, 0 where the integrator or the
    customer decides. `nvlink` is `nvswitch`, `hybrid-mesh` (DGX-1), `mesh` (every pair directly), `pairs` or `none`.
    `virtual` marks instance types whose PCI tree is a guest's. `sockets` is 0 where the sources do not say.
    """

    name: str
    vendor: str
    gpu: str
    """The `GpuSpec.name` of its GPUs."""
    gpus: int
    compute_nics: int
    compute_nic_gbps: float
    nvlink: str
    source: str
    nvswitches: int = 0
    """Visible on the PCI bus of the node; 0 where the switches are elsewhere (rack switches, passed-through)."""
    sockets: int = 0
    virtual: bool = False
    product_names: tuple[str, ...] = ()
    """DMI product names or instance types that identify it, matched without case as whole words."""
    other_gpus: tuple[str, ...] = ()
    """Further `GpuSpec.name`s that it is sold with."""
    nvlinks_per_gpu: int | None = None
    """Active links per GPU where they are fewer than the GPU's own by design; None: the GPU's own count."""
    gdr: bool = True
    """Whether its NICs reach GPU memory (GPUDirect RDMA)."""


@dataclass(frozen=True, slots=True)
class InstanceGroup:
    """GPUs and NICs of an instance type that share a PCIe switch (where `switch`), by their order on the bus from 0."""

    numa: int
    gpus: tuple[int, ...]
    nics: tuple[int, ...]
    switch: bool = True


@dataclass(frozen=True, slots=True)
class InstanceSpec:
    """The published PCI layout of an instance type. Links are (PCIe generation, lanes)."""

    name: str
    gpus: int
    nics: int
    gpu_link: tuple[int, int]
    nic_link: tuple[int, int]
    switch_link: tuple[int, int]
    """Of the switch towards its processor."""
    groups: tuple[InstanceGroup, ...]
    source: str
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PcieGeneration:
    """One PCIe generation: line rate per lane and NCCL's value (link bandwidth is width x value / 80 GB/s)."""

    gen: int
    gts: float
    line_gbs_per_lane: float
    """After line coding, GB/s per lane and direction."""
    nccl_value: int
    source: str
