"""PCIe links as the checks judge them: every hop from a GPU or compute NIC up to the root port.

A link has two ends. sysfs shows it at the device (or a switch's upstream port) and again at the port above, so only
the lower end of each hop is looked at, with the ability of both.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import fsum

from topodiag.checks.interface import NodeCheck
from topodiag.checks.shared.devices import compute_nics, gpu_spec
from topodiag.hardware.catalog import pcie_nccl_gbs
from topodiag.lazy import dataclass
from topodiag.model.busid import unplaced
from topodiag.model.devices import Gpu, Nic, PciDevice, PciKind
from topodiag.model.finding import Outcome, Where
from topodiag.model.node import Node
from topodiag.model.provenance import Fact, Topic

ADAPTER_LANES = 8
"""Lanes from which a network function counts as an adapter; management ports have one to four."""
FEWEST_LANES = 4
"""The same of a maker whose adapters are all meant for RDMA: small ones have four."""
MELLANOX = 0x15B3
LANES = "trained lanes"
"""What a comparison of two machines calls the width of a link as it is."""
BUSY_PERCENT = 10
"""GPU utilization from which its PCIe speed is judged: below it the driver may rest the link at Gen1 between bursts."""


@dataclass(frozen=True, slots=True)
class Hop:
    """One link: its lower end, the port above where the tree is known, and the devices whose traffic it carries."""

    lower: PciDevice
    upper: PciDevice | None
    gpus: tuple[Gpu, ...]
    nics: tuple[Nic, ...]
    family: str
    """What to compare with: the product of the device, or the kind of bridge. Links of one family are peers."""

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(gpu.label for gpu in self.gpus) + tuple(nic.name for nic in self.nics)

    @property
    def is_shared(self) -> bool:
        """Whether this is a switch's own uplink rather than a device's link."""
        ends = {gpu.bus_id or unplaced(gpu.index) for gpu in self.gpus} | {nic.bus_id for nic in self.nics}
        return bool(ends) and self.lower.bus_id not in ends

    @property
    def place(self) -> str:
        """The bus id of the lower end, "" where the evidence does not say where the device is."""
        return self.lower.bus_id if ":" in self.lower.bus_id else ""

    @property
    def able_width(self) -> int | None:
        """Lanes that both ends can do, where at least one end says."""
        return _least(self.lower.slot_max_width, self.lower.max_width, self.upper.max_width if self.upper else Fact())

    @property
    def able_gen(self) -> int | None:
        """The generation that both ends can do."""
        return _least(self.lower.slot_max_gen, self.lower.max_gen, self.upper.max_gen if self.upper else Fact())

    @property
    def both_told(self) -> bool:
        """Whether the evidence shows what the upper end can do as well, or what both can."""
        both = self.lower.max_gen.known and self.upper is not None and self.upper.max_gen.known
        return self.lower.slot_max_gen.known or both

    @property
    def name(self) -> str:
        """How to call the place: the devices, or the switch that they share."""
        if self.is_shared:
            return f"the PCIe switch {self.lower.bus_id} above {', '.join(self.labels[:4])}"
        return ", ".join(self.labels) or f"the device at {self.lower.bus_id}"

    def gbs(self, gen: int | None, width: int | None) -> float | None:
        """What NCCL assumes of such a link, GB/s in one direction."""
        return pcie_nccl_gbs(gen, width) if gen and width else None

    @property
    def is_busy(self) -> bool | None:
        """Whether the device works; None when that was not observed. NICs do not rest their PCIe link."""
        if self.is_shared and self.gpus:
            active = any(port.state.value == "ACTIVE" for nic in self.nics for port in nic.ports)
            return active or any(_gpu_is_busy(gpu) for gpu in self.gpus)
        if self.lower.kind is PciKind.GPU or self.gpus:
            return _gpu_is_busy(self.gpus[0]) if self.gpus else None
        states = [port.state.value for nic in self.nics for port in nic.ports if port.state.value]
        return "ACTIVE" in states if states else None

    @property
    def needed_gbs(self) -> float | None:
        """The most that the devices behind this link can use when they are NICs only; None with a GPU behind it."""
        if self.gpus:
            return None
        rates = [port.rate_gbps.value for nic in self.nics for port in nic.ports if port.rate_gbps.value]
        return fsum(rates) / 8 if rates else None


def _gpu_is_busy(gpu: Gpu) -> bool | None:
    use = gpu.utilization.value
    if use is not None and use >= BUSY_PERCENT:
        return True
    if gpu.throttle.value is not None and "gpu_idle" in gpu.throttle.value:
        return False
    if gpu.pstate.value is not None and gpu.throttle.value is not None:
        return gpu.pstate.value == 0  # full clocks, and the driver does not call it idle
    return False if use is not None or (gpu.pstate.value or 0) > 0 else None


def _least(*facts: Fact[int]) -> int | None:
    return min((fact.value for fact in facts if fact.value), default=None)


def hops(node: Node) -> tuple[Hop, ...]:
    """All links between GPUs or compute NICs and their root ports, each once, nearest to the devices first."""
    by_bus: dict[str, Hop] = {}
    for device, gpu, nic in _devices(node):
        for place, (lower, upper) in enumerate(_climb(node, device)):
            known = by_bus.get(lower.bus_id)
            gpus = (known.gpus if known else ()) + ((gpu,) if gpu else ())
            nics = (known.nics if known else ()) + ((nic,) if nic else ())
            family = _family(gpu, nic) if place == 0 else f"switch uplink {place}"
            by_bus[lower.bus_id] = Hop(lower, upper, gpus, nics, known.family if known else family)
    if not by_bus and not any(function.class_code.known for function in node.pci.values()):
        # Places with their links alone: what they are of, nobody says. Those that can do the same are peers.
        for function in node.pci.values():
            family = f"x{function.max_width.value} link of Gen{function.max_gen.value}"
            by_bus[function.bus_id] = Hop(function, None, (), (), family)
    return tuple(by_bus.values())


def trained(node: Node) -> dict[str, dict[str, str]]:
    """By device, or switch and what hangs below it, the lanes to which its link trained, and its generation where the
    device works: the link of an idle one may rest."""
    by_bus: dict[str, dict[str, str]] = {}
    for hop in hops(node):
        names = [*(gpu.label for gpu in hop.gpus), *(nic.rdma_name or nic.name for nic in hop.nics)]
        facts = {LANES: f"x{hop.lower.width.value}" if hop.lower.width.value else ""}
        facts["trained speed"] = f"Gen{hop.lower.gen.value}" if hop.lower.gen.value and hop.is_busy else ""
        name = ", ".join(names)
        known = {what: value for what, value in facts.items() if value}
        by_bus[f"switch above {name}" if hop.is_shared else name] = known
    return by_bus


def where_of(check: NodeCheck, node: Node, hop: Hop) -> Where:
    """The place of a finding on a link: the devices whose traffic it carries, and its lower end."""
    gpus, nics = [gpu.label for gpu in hop.gpus], [nic.name for nic in hop.nics]
    return check.where(node, gpus=gpus, nics=nics, links=[hop.place] if hop.place else [])


def nothing_to_judge(check: NodeCheck, node: Node) -> Outcome:
    """The answer when no link is known: unknown where there are devices, else no question."""
    devices: list[Gpu | Nic] = [*node.gpus, *compute_nics(node)]
    if any(node.pci_of(device) is not None for device in devices):
        return check.not_applicable(node, "superchip GPUs and virtual functions have no PCIe link of their own")
    if devices:
        return check.unknown(node, "the PCIe links of its GPUs and NICs are not in the evidence")
    return check.not_applicable(node, "no GPU and no compute NIC in the evidence")


def _devices(node: Node) -> Iterator[tuple[PciDevice, Gpu | None, Nic | None]]:
    for gpu in node.gpus:
        function, spec = node.pci_of(gpu), gpu_spec(gpu)
        on_pcie = spec is None or spec.pcie_width > 0  # a superchip's GPU hangs on its processor's own links
        if function is not None and on_pcie:
            yield function, gpu, None
    for nic in compute_nics(node) or functions_alone(node):
        function = node.pci_of(nic)
        if function is not None and not function.is_vf.get(False):
            yield function, None, nic


def functions_alone(node: Node) -> tuple[Nic, ...]:
    """Network functions of the bus where nothing else is known of the machine's network: the output of lspci alone.
    Only those with the lanes of an adapter for a cluster's network."""
    if node.topics & {Topic.RDMA_DEVICES, Topic.INTERFACES} or any(nic.rdma_name or nic.smi_label for nic in node.nics):
        return ()
    pairs = ((nic, node.pci_of(nic)) for nic in node.nics if nic.bus_id is not None and not nic.netdevs)
    return tuple(nic for nic, own in pairs if own is not None and own.max_width.get(0) >= _fewest_lanes(own))


def _fewest_lanes(function: PciDevice) -> int:
    return FEWEST_LANES if function.vendor.value == MELLANOX else ADAPTER_LANES


def _climb(node: Node, device: PciDevice) -> Iterator[tuple[PciDevice, PciDevice | None]]:
    """Lower and upper end of each link on the way up: device and downstream port, upstream port and the port above."""
    chain = (device, *(node.ancestors(device.bus_id) or _presumed_above(node, device)))
    for place in range(0, len(chain), 2):
        yield chain[place], chain[place + 1] if place + 1 < len(chain) else None


def _presumed_above(node: Node, device: PciDevice) -> tuple[PciDevice, ...]:
    """The ports above the only device of a paste that shows no tree: who picks one device and some ports with `lspci`
    shows its path. Buses are numbered downwards, and both ends of a link run alike; where one of these does not hold,
    or where two ports share a bus, nothing is presumed."""
    functions = [function for function in node.pci.values() if function is not device]
    if any(function.parent or function.root for function in (device, *functions)):
        return ()
    ports = sorted(functions, key=lambda function: _bus(function.bus_id), reverse=True)
    buses = [_bus(function.bus_id) for function in (device, *ports)]
    bridges = all(port.kind is PciKind.BRIDGE or not port.class_code.known for port in ports)
    domains = {bus.partition(":")[0] for bus in buses}
    if not bridges or len(set(buses)) < len(buses) or max(buses) != buses[0] or len(domains) > 1:
        return ()
    chain = (device, *ports)
    links = zip(chain[::2], chain[1::2], strict=False)
    return tuple(ports) if all(_are_ends(lower, upper) for lower, upper in links) else ()


def _are_ends(lower: PciDevice, upper: PciDevice) -> bool:
    """Whether two functions may be the ends of one link."""
    if not (lower.gen.known and lower.width.known) or upper.port_type.value == "upstream":
        return False
    return (lower.gen.value, lower.width.value) == (upper.gen.value, upper.width.value)


def _bus(bus_id: str) -> str:
    """`0000:5e` of `0000:5e:00.0`: digits of one width sort as numbers do. "" where a device is known by its number
    alone."""
    return bus_id.rpartition(":")[0]


def _family(gpu: Gpu | None, nic: Nic | None) -> str:
    if gpu is not None:
        spec = gpu_spec(gpu)
        return spec.name if spec else gpu.name.get("GPU")
    return (nic.part.value or nic.hca_type.value or "NIC") if nic is not None else ""
