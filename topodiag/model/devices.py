"""The parts of a node: GPUs and their NVLinks, NICs and their ports, PCI functions, NUMA nodes.

Every attribute that was read is a `Fact`; identities (keys) are plain values. Speeds are in the unit that the
source uses and that is in the name: PCIe in generations and lanes, NVLink line rate in GB/s per link and direction,
ports in Gb/s.
"""

from __future__ import annotations

from dataclasses import field
from enum import Enum

from topodiag.lazy import dataclass
from topodiag.model.provenance import Counter, Fact

Counters = dict[str, Counter]

AMD = 0x1002
"""PCI vendor id of AMD (ATI), PCI-SIG member list."""
INSTINCT = frozenset({0x66A0, 0x66A1, 0x7388, 0x738C, 0x738E, 0x7390, 0x7408, 0x740C, 0x740F, 0x7410})
"""Device numbers of MI50 to MI250X, which call themselves displays (Linux amdgpu_drv.c: Vega20 to Aldebaran)."""
PROCESSING = 0x1200
"""PCI class of processing accelerators."""
NVIDIA = 0x10DE
"""PCI vendor id of NVIDIA (PCI-SIG member list); display functions of others are management controllers."""


class PciKind(Enum):
    """What a PCI function is, by its class code (PCI Code and ID Assignment Specification)."""

    GPU = "gpu"
    NIC = "nic"
    NVSWITCH = "nvswitch"
    BRIDGE = "bridge"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class PciDevice:
    """One PCI function and the link that it sits on (towards its parent).

    `parent` is the bus id of the bridge above, None at a root complex; `root` names the host bridge (`pci0000:00`).
    `gen`/`width` are what the link trained to; `max_gen`/`max_width` what the function can do;
    `slot_max_gen`/`slot_max_width` what function and slot can do together, where a source says that.
    `acs` is the ACS control register: bit 0 SrcValid, 2 ReqRedir, 3 CmpltRedir, 4 UpstreamFwd, 6 DirectTrans.
    """

    bus_id: str
    class_code: Fact[int] = Fact()
    vendor: Fact[int] = Fact()
    device: Fact[int] = Fact()
    subsystem_vendor: Fact[int] = Fact()
    subsystem_device: Fact[int] = Fact()
    description: Fact[str] = Fact()
    driver: Fact[str] = Fact()
    numa: Fact[int] = Fact()
    local_cpus: Fact[str] = Fact()
    parent: str | None = None
    root: str = ""
    gen: Fact[int] = Fact()
    width: Fact[int] = Fact()
    max_gen: Fact[int] = Fact()
    max_width: Fact[int] = Fact()
    narrowed: Fact[bool] = Fact()
    """`lspci` says that the link has fewer lanes than the function can do."""
    slot_max_gen: Fact[int] = Fact()
    slot_max_width: Fact[int] = Fact()
    acs: Fact[int] = Fact()
    port_type: Fact[str] = Fact()
    """PCIe port type of a bridge: `root-port`, `upstream`, `downstream`, `pci-bridge`; of others `endpoint`."""
    iommu_type: Fact[str] = Fact()
    """The kernel's domain type: `DMA`, `DMA-FQ` (translated) or `identity` (passthrough)."""
    is_vf: Fact[bool] = Fact()
    lost: Fact[str] = Fact()
    """What shows that the function no longer answers: every read of its config space returns ones."""
    counters: Counters = field(default_factory=dict)

    @property
    def is_accelerator(self) -> bool:
        """Whether it is a GPU for computing by its vendor and class: of AMD's, whose graphics of boards and CPUs have
        the classes of displays, those of the class of processing accelerators, and older Instinct cards by number."""
        if self.vendor.value == AMD:
            return self.class_code.get(0) >> 8 == PROCESSING or self.device.value in INSTINCT
        return self.vendor.value == NVIDIA and self.kind is PciKind.GPU

    @property
    def kind(self) -> PciKind:
        code = self.class_code.get(0) >> 8
        if code >> 8 == 0x03 or code == 0x1200:
            return PciKind.GPU
        if code >> 8 == 0x02:
            return PciKind.NIC
        if code == 0x0680:
            return PciKind.NVSWITCH if self.vendor.value == NVIDIA else PciKind.BRIDGE
        if code >> 8 == 0x06:
            return PciKind.BRIDGE
        return PciKind.OTHER


@dataclass(frozen=True, slots=True)
class NvLink:
    """One NVLink of a GPU. `line_gbs` is nvidia-smi's line rate, GB/s in one direction."""

    index: int
    state: Fact[str] = Fact()
    """`active`, `inactive`, `sleep`, or `disabled` (active with traffic disabled)."""
    version: Fact[str] = Fact()
    line_gbs: Fact[float] = Fact()
    remote_type: Fact[str] = Fact()
    """`gpu`, `switch`, `cpu` or `unknown`."""
    remote_bus_id: Fact[str] = Fact()
    counters: Counters = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class GpuFabric:
    """A GPU's registration with the NVSwitch fabric (NVML's GpuFabricInfo)."""

    state: Fact[str] = Fact()
    """`not_supported`, `not_started`, `in_progress` or `completed`."""
    status: Fact[str] = Fact()
    """`success`, or the NVML error by name."""
    clique_id: Fact[int] = Fact()
    cluster_uuid: Fact[str] = Fact()
    """All zeros: not part of a multi-node NVLink domain."""
    health: Fact[str] = Fact()
    """`healthy`, `unhealthy` or `limited`."""
    bandwidth: Fact[str] = Fact()
    """`full` or `degraded`."""
    problems: Fact[str] = Fact()
    """Other health fields that are set, joined with commas; empty when all are clear."""


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU as the driver numbers it. PCIe facts are in the node's `PciDevice` of the same bus id."""

    index: int
    bus_id: str | None = None
    name: Fact[str] = Fact()
    uuid: Fact[str] = Fact()
    sm: Fact[int] = Fact()
    """Compute capability times ten: 90 for 9.0."""
    numa: Fact[int] = Fact()
    cpu_affinity: Fact[str] = Fact()
    memory_numa: Fact[int] = Fact()
    """The NUMA node that the GPU's own memory is (Grace), nvidia-smi's `GPU NUMA ID`."""
    minor: Fact[int] = Fact()
    mig: Fact[bool] = Fact()
    compute_mode: Fact[str] = Fact()
    persistence: Fact[bool] = Fact()
    c2c: Fact[bool] = Fact()
    c2c_gbs: Fact[float] = Fact()
    """Sum over the C2C links, GB/s in one direction."""
    utilization: Fact[int] = Fact()
    """Percent of the last sample period in which a kernel ran."""
    memory_utilization: Fact[int] = Fact()
    """Percent of the last sample period in which memory was read or written."""
    memory_used_mib: Fact[int] = Fact()
    memory_used_share: Fact[float] = Fact()
    """Part of its memory that is in use, 0 to 1; not told of a GPU that a screen hangs on."""
    power_w: Fact[float] = Fact()
    power_limit_w: Fact[float] = Fact()
    """The limit in force, not the highest that the card allows."""
    pstate: Fact[int] = Fact()
    throttle: Fact[tuple[str, ...]] = Fact()
    """Active clock event reasons by name, e.g. `gpu_idle`, `hw_thermal_slowdown`."""
    sm_clock_mhz: Fact[int] = Fact()
    max_sm_clock_mhz: Fact[int] = Fact()
    recovery_action: Fact[str] = Fact()
    lost: Fact[str] = Fact()
    """The driver's words when the GPU does not answer (`GPU is lost`, `GPU requires reset`)."""
    board: Fact[str] = Fact()
    vbios: Fact[str] = Fact()
    """Version of the card's own firmware: `96.00.89.00.01`."""
    host_copy_gbs: Fact[float] = Fact()
    """What a test of copies from the host's memory measured, GB/s."""
    failed_tests: Fact[tuple[str, ...]] = Fact()
    """What a test of the GPU itself failed by, in its own words (DCGM)."""
    fabric: GpuFabric = GpuFabric()
    nvlink_note: Fact[str] = Fact()
    """A sentence instead of links: `all links are inactive`, `not supported`."""
    nvlinks: tuple[NvLink, ...] = ()
    xgmi_gbs: Fact[float] = Fact()
    """Line rate of each of its xGMI links by `amd-smi xgmi`, GB/s in one direction. Releases of 2024 print there what
    its PCIe link can do."""
    counters: Counters = field(default_factory=dict)

    @property
    def label(self) -> str:
        return f"GPU{self.index}"

    @property
    def active_links(self) -> int | None:
        """NVLinks known to be active; None when no link's state is known."""
        states = [link.state.value for link in self.nvlinks if link.state.known]
        return sum(1 for state in states if state == "active") if states else None

    @property
    def nvlink_rate(self) -> float | None:
        """The rate of every active NVLink when they are equal, GB/s in one direction; None otherwise."""
        lines = (link.line_gbs.value for link in self.nvlinks if link.state.value != "inactive")
        rates = {gbs for gbs in lines if gbs is not None}
        return rates.pop() if len(rates) == 1 else None


@dataclass(frozen=True, slots=True)
class NicPort:
    """One port of an RDMA device, or the one port of a plain Ethernet function (number 1).

    `rate_gbps` is the negotiated rate; on a port that is down it is a meaningless default of the driver.
    """

    number: int
    state: Fact[str] = Fact()
    """`ACTIVE`, `INIT`, `ARMED`, `DOWN` ..., the kernel's words; Ethernet without RDMA: from operstate."""
    phys_state: Fact[str] = Fact()
    """`LinkUp`, `Polling`, `Disabled`, `Sleep`, `LinkErrorRecovery`, ..."""
    rate_gbps: Fact[float] = Fact()
    lanes: Fact[int] = Fact()
    link_layer: Fact[str] = Fact()
    """`InfiniBand`, `Ethernet` or `Unspecified` (EFA)."""
    lid: Fact[int] = Fact()
    sm_lid: Fact[int] = Fact()
    active_mtu: Fact[int] = Fact()
    max_mtu: Fact[int] = Fact()
    guid: Fact[str] = Fact()
    netdev: Fact[str] = Fact()
    traffic_class: Fact[int] = Fact()
    """The traffic class (IP ToS byte) that the driver gives to all queue pairs of the kernel's verbs."""
    gids: Fact[tuple[str, ...]] = Fact()
    signal: Fact[str] = Fact()
    """What the adapter's firmware finds wrong with the signal of a link that is up, in its own words."""
    effective_ber: Fact[str] = Fact()
    symbol_ber: Fact[str] = Fact()
    """Bit errors that remain after correction, as mlxlink writes them (`15E-255`)."""
    tested_gbps: Fact[float] = Fact()
    """What a test of RDMA between two machines carried in one direction (`ib_write_bw` and its kin), Gb/s."""
    counters: Counters = field(default_factory=dict)


class NicRole(Enum):
    """What a NIC is for. Only compute NICs carry the job's traffic, so only they can make it slow."""

    COMPUTE = "compute"
    STORAGE = "storage"
    MANAGEMENT = "management"
    UNKNOWN = "unknown"


def ports_of(name: str) -> tuple[str, ...]:
    """The devices behind the name of a NIC: NCCL joins those of a virtual NIC by `+`, as in `mlx5_0+mlx5_1`."""
    return tuple(dict.fromkeys(name.split("+")))


@dataclass(frozen=True, slots=True)
class Nic:
    """One network function: an RDMA device with its ports, or a plain Ethernet one. `name` is what users call it."""

    name: str
    bus_id: str | None = None
    rdma_name: str | None = None
    smi_label: str | None = None
    """The column of `nvidia-smi topo -m`, e.g. `NIC0`."""
    hca_type: Fact[str] = Fact()
    part: Fact[str] = Fact()
    """The product by name, from the datasheets."""
    firmware: Fact[str] = Fact()
    board_id: Fact[str] = Fact()
    node_guid: Fact[str] = Fact()
    sys_image_guid: Fact[str] = Fact()
    """The adapter's GUID: all functions and ports of one card have it in common."""
    driver: Fact[str] = Fact()
    numa: Fact[int] = Fact()
    transport: Fact[str] = Fact()
    is_vf: Fact[bool] = Fact()
    ports: tuple[NicPort, ...] = ()
    netdevs: tuple[str, ...] = ()
    role: NicRole = NicRole.UNKNOWN
    role_why: str = ""
    counters: Counters = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NetDev:
    """One network interface of the kernel."""

    name: str
    bus_id: str | None = None
    operstate: Fact[str] = Fact()
    carrier: Fact[bool] = Fact()
    speed_mbps: Fact[int] = Fact()
    max_speed_mbps: Fact[int] = Fact()
    """The fastest link mode that driver and port support."""
    mtu: Fact[int] = Fact()
    master: Fact[str] = Fact()
    driver: Fact[str] = Fact()
    firmware: Fact[str] = Fact()
    kind: Fact[str] = Fact()
    """ARPHRD type by name: `ether`, `infiniband`, `loopback`, other numbers as text."""
    default_route: Fact[bool] = Fact()
    addresses: Fact[tuple[str, ...]] = Fact()
    """IPv4 and IPv6 addresses in their shortest form, without the length of the network."""
    trust: Fact[str] = Fact()
    """What decides the priority of a frame: `pcp` (the VLAN tag) or `dscp` (the IP header)."""
    lossless: Fact[tuple[int, ...]] = Fact()
    """The priorities with flow control (PFC); empty where none has it."""
    priority_of: Fact[tuple[str, ...]] = Fact()
    """The priority of each DSCP that was told, as `26:3`."""
    counters: Counters = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FabricPort:
    """A port somewhere in an InfiniBand fabric, of a switch or of any host, as the fabric's management names it.

    `number` 0 stands for all ports of a switch together."""

    node: str
    number: int
    guid: str = ""
    counters: Counters = field(default_factory=dict)
    runs: Fact[str] = Fact()
    """Lanes and speed of one lane: `2X 106.25 Gbps`."""
    able: Fact[str] = Fact()
    """What both ends could do in its place (`4X`), "" where it is that."""
    peer: Fact[str] = Fact()
    """The other end of the link, with its port."""

    @property
    def label(self) -> str:
        return f"{self.node} port {self.number}" if self.number else f"{self.node} (all ports)"


@dataclass(frozen=True, slots=True)
class NumaNode:
    """One NUMA node of the kernel."""

    id: int
    cpus: Fact[str] = Fact()
    socket: Fact[int] = Fact()

    @property
    def has_cpus(self) -> bool:
        """False for memory-only nodes, such as a Grace GPU's memory."""
        return self.cpus.value is None or self.cpus.value != ""
