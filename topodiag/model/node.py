"""A node: everything known of one machine, gathered from whatever evidence there was."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from topodiag.lazy import dataclass
from topodiag.model.busid import unplaced
from topodiag.model.devices import FabricPort, Gpu, NetDev, Nic, NumaNode, PciDevice, PciKind
from topodiag.model.events import Event
from topodiag.model.links import Link, Path
from topodiag.model.provenance import Disagreement, Fact, NotObserved, Topic
from topodiag.model.system import ConfLine, Cpu, Os, Process, Setting
from topodiag.model.tables import Table
from topodiag.words.dialect import Maker

if TYPE_CHECKING:
    from topodiag.model.nccl_tree import NcclFile

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
