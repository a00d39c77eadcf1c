"""ACS and IOMMU settings that send peer-to-peer traffic through the root complex."""

from __future__ import annotations

from collections.abc import Sequence

from topodiag.checks.interface import NodeCheck
from topodiag.checks.shared.devices import compute_nics, peers_over_pcie, talk_over_pcie
from topodiag.model.devices import Gpu, Nic, PciDevice, PciKind
from topodiag.model.events import Event
from topodiag.model.finding import Confidence, Coverage, Finding, Outcome, Severity
from topodiag.model.node import Node
from topodiag.model.provenance import Fact, Topic
from topodiag.words.units import fold_runs, grouped, plural

REDIRECTS = 0b0001_1100
"""ACS control bits that turn peer-to-peer requests towards the root complex: P2P Request Redirect (bit 2), P2P
Completion Redirect (3), Upstream Forwarding (4). Source Validation (0) alone redirects nothing.
PCI Express Base Specification, ACS Control Register."""


_DRIVERS = frozenset({"nvidia", "amdgpu", "mlx5_core", "mlx4_core", "bnxt_en", "efa", "habanalabs"})
"""Drivers of GPUs and fabric adapters, which begin the kernel's message about a device. A disk's is none of them."""

TRANSLATED = frozenset({"DMA", "DMA-FQ"})
"""The kernel's IOMMU domain types that translate (Documentation/ABI/testing/sysfs-kernel-iommu_groups)."""


class AcsBetweenPeers(NodeCheck, id="PCI004"):
    """PCI004: ACS redirect between peers, or the IOMMU translating, which blocks or slows P2P and GPUDirect RDMA

    What it finds
        PCIe switch ports between two GPUs, or between a GPU and its NIC, with ACS redirection on; and GPUs or NICs in
        translated IOMMU domains, on bare metal. Faults in the kernel log: accesses of a GPU or NIC that the IOMMU
        refused (IO_PAGE_FAULT of AMD-Vi, `Request device` of Intel's DMAR), wherever they are seen.

    Why it matters
        Devices under one switch exchange data at the full speed of the switch (48 GB/s on Gen5 x16). With redirection
        each packet goes up to the CPU's root complex and back: bandwidth falls to a fraction, all pairs share the
        uplink, and on some machines peer-to-peer hangs or corrupts data. GPUDirect RDMA suffers the same between GPU
        and NIC.

    Evidence it reads
        `ACSCtl` of `lspci -vv`, or the ACS capability in each bridge's config space (both need root); the domain
        types under /sys/kernel/iommu_groups (no root needed); the kernel log.

    When it stays silent
        Where the evidence does not show whether this is a guest (`lspci` or `grep ACSCtl` alone), redirection is a
        warning of medium confidence, and a note where no two devices talk over PCIe. A virtual machine: not applicable,
        because the host controls ACS and passthrough needs it. Ports that no two GPUs or NICs share a switch through
        (root ports) do not count, nor those between GPUs that NVLink joins, between NICs alone, or of GeForce cards,
        which have no peer-to-peer. IOMMU in passthrough (`identity`) is right. Arm servers translate by design (SMMU),
        and superchips talk past PCIe. IOMMU faults of other devices are not judged, nor those of one whose kind nothing
        shows, unless it reached for addresses where firmware puts windows of devices (a warning). On other Arm machines
        redirection is a warning. ACS that could not be read without root: unknown.

    How to confirm
        sudo lspci -vvv | grep -E '^[0-9a-f]|ACSCtl' | grep -B1 'ReqRedir+'
        cat /proc/cmdline; cat /sys/kernel/iommu_groups/*/type | sort | uniq -c
        all_reduce_perf -b 1G -e 1G -g 8
        NCCL_P2P_DISABLE=1 all_reduce_perf -b 1G -e 1G -g 8      if this run is no slower, P2P is broken

    How to fix
        Disable ACS in the BIOS (often under PCIe or AMD CBS, "ACS Enable"), or after each boot clear it on every
        switch downstream port: `setpci -s BUS_ID ECAP_ACS+0x6.w=0000` (not where virtual machines get devices). Boot
        with `iommu=pt` (and `intel_iommu=on` or nothing on AMD), or switch the IOMMU off.

    References
        NCCL user guide, troubleshooting, PCI Access Control Services; NVIDIA GPUDirect Storage guide, ACS.
    """

    def observe(self, judged: Node, peers: Sequence[Node]) -> Outcome:
        devices = [device for device in map(judged.pci_of, _owners(judged)) if device is not None]
        if faults := _faults(judged):
            findings = [self._refused(judged, faults), self._iommu(judged, _translated(judged, devices))]
            return self.any_of(judged, findings, Coverage(1, 1, "kernel logs"))
        if faults := _at_peers(judged):
            return self.any_of(judged, [self._refused(judged, faults, by_address=True)], Coverage(1, 1, "kernel logs"))
        answer = self._by_registers_alone(judged) if judged.is_vm is None else None
        answer = answer or self._without_question(judged, devices)
        if answer is not None:
            return answer
        ports = _ports_between(judged, devices)
        talking = {port.bus_id for port in _ports_between(judged, devices, talking=True)}
        read = [port for port in ports if port.acs.known or port.acs.why == "no ACS capability"]
        coverage = Coverage(len(read), len(ports), "switch ports")
        redirecting = [port for port in read if port.acs.get(0) & REDIRECTS and port.bus_id in talking]
        findings = [self._acs(judged, redirecting), self._iommu(judged, _translated(judged, devices))]
        unseen = _unseen(judged, devices, [port for port in ports if port not in read])
        clean = "" if ports else "no two devices share a PCIe switch"
        return self.any_of(judged, findings, coverage, clean, unseen)

    def _by_registers_alone(self, node: Node) -> Outcome | None:
        """What the registers say where nothing shows whether this is a guest: redirection anywhere is a hint."""
        registers = _registers(node)
        hints = [fact for fact in registers if fact.get(0) & REDIRECTS]
        if hints:
            coverage = Coverage(len(registers), len(registers), "ports with ACS")
            return self.any_of(node, [self._hint(node, hints, coverage)], coverage)
        if registers and not node.gpus:
            return self.clean(node, "no port that is shown redirects")
        return None

    def _without_question(self, node: Node, devices: Sequence[PciDevice]) -> Outcome | None:
        """Why there is nothing to judge, or no way to."""
        if len(node.gpus) + len(compute_nics(node)) < 2 or not node.gpus:
            return self.not_applicable(node, "fewer than two devices that could talk to each other")
        if node.is_vm:
            return self.not_applicable(node, "a virtual machine: ACS and IOMMU are the host's")
        if node.is_vm is None:
            return self.unknown(node, "whether this is a virtual machine is not in the evidence")
        if len(devices) < 2 or not any(device.parent or device.root for device in devices):
            return self.unknown(node, "the PCI tree is not in the evidence")
        return None

    def _hint(self, node: Node, hints: Sequence[Fact[int]], coverage: Coverage) -> Finding:
        places = [bus_id for bus_id, port in node.pci.items() if any(port.acs is fact for fact in hints)]
        where = f" at {', '.join(places[:4])}{' ...' if len(places) > 4 else ''}" if places else ""
        return self.finding(
            self.where(node, links=places),
            "acs of some port",
            f"ACS redirect is on at {plural(len(hints), 'port')}{where}: on bare metal peer traffic goes by the CPU",
            severity=Severity.INFO if node.gpus and not peers_over_pcie(node) else Severity.WARNING,
            observed=f"ReqRedir, CmpltRedir or UpstreamFwd set at {len(hints)} of {coverage.total} ports",
            evidence=hints,
        )

    def _acs(self, node: Node, ports: Sequence[PciDevice]) -> Finding | None:
        """Switch ports that redirect traffic between peers."""
        if not ports:
            return None
        gpus, nics = _below(node, {port.bus_id for port in ports})
        names = ", ".join(port.bus_id for port in ports[:4]) + (" ..." if len(ports) > 4 else "")
        return self.finding(
            self.where(node, gpus=gpus, nics=nics, links=[port.bus_id for port in ports]),
            "acs",
            f"ACS redirect is on at {plural(len(ports), 'switch port')}: "
            f"peer traffic of {fold_runs([*gpus, *nics])} goes through the CPU",
            sure=_is_x86(node),
            observed=f"ReqRedir, CmpltRedir or UpstreamFwd set at {names}",
            fix=(
                *self.steps("acs off"),
                *(f"`sudo setpci -s {port.bus_id} ECAP_ACS+0x6.w=0000`" for port in ports[:3]),
                *self.steps("other ports"),
            ),
            evidence=[port.acs for port in ports],
        )

    def _refused(self, node: Node, faults: Sequence[Event], *, by_address: bool = False) -> Finding:
        """Accesses that the IOMMU refused; `by_address` where only addresses tell that they are of a GPU or a NIC."""
        buses = tuple(dict.fromkeys(event.bus_id or "" for event in faults))
        gpus = [gpu.label for gpu in node.gpus if gpu.bus_id in buses]
        nics = [nic.name for nic in node.nics if nic.bus_id in buses]
        owners: list[Gpu | Nic] = [*node.gpus, *node.nics]
        named = {owner.bus_id for owner in owners}
        names = [*gpus, *nics, *(bus_id for bus_id in buses if bus_id not in named)]
        return self.finding(
            self.where(node, gpus=gpus, nics=nics, links=[bus_id for bus_id in buses if bus_id not in named]),
            "iommu fault",
            f"the IOMMU refused {plural(len(faults), 'access', 'accesses')} of {', '.join(names[:4])}"
            f"{' ...' if len(names) > 4 else ''}: "
            + (_BY_ADDRESS if by_address else "peer-to-peer transfers are lost, and jobs hang"),
            severity=Severity.ERROR if len(faults) > 1 and not by_address else Severity.WARNING,
            evidence=faults,
            confidence=Confidence.LOW if by_address else Confidence.MEDIUM,
        )

    def _iommu(self, node: Node, devices: Sequence[PciDevice]) -> Finding | None:
        """Devices whose DMA the IOMMU translates."""
        if not devices:
            return None
        buses = {device.bus_id for device in devices}
        gpus = [gpu.label for gpu in node.gpus if gpu.bus_id in buses]
        nics = [nic.name for nic in compute_nics(node) if nic.bus_id in buses]
        kinds = ", ".join(sorted({device.iommu_type.get("") for device in devices}))
        return self.finding(
            self.where(node, gpus=gpus, nics=nics),
            "iommu",
            f"the IOMMU translates DMA of {fold_runs([*gpus, *nics])}: P2P and GPUDirect RDMA may be slow, hang or"
            " corrupt",
            observed=f"IOMMU domain type {kinds}",
            evidence=[*(device.iommu_type for device in devices), node.os.cmdline],
        )


_BY_ADDRESS = "by the addresses it reached for the memory of another device, as a GPU or an adapter does"
_OF_ENDS = frozenset({"xid", "gpu-lost", "gpu-init", "nvrm", "amdgpu", "mlx5"})
"""Kinds of kernel messages that only the driver of a GPU or of an adapter writes, of its own device."""


def _faults(node: Node) -> tuple[Event, ...]:
    """IOMMU faults of GPUs and NICs, by what the evidence holds of the device or by the driver that the line names.
    Faults of a device whose kind is not shown are no evidence: disks and management controllers have them, too."""
    ends = {owner.bus_id for owner in _owners(node)} | {event.bus_id for event in node.events if event.kind in _OF_ENDS}
    faults = (event for event in node.events if event.kind == "iommu-fault" and event.bus_id is not None)
    return tuple(event for event in faults if event.bus_id in ends or event.fields.get("module") in _DRIVERS)


_PEERS_FROM, _PEERS_TO = 1 << 40, 1 << 47
"""Where firmware puts large 64-bit windows of devices: above all memory, below the end of physical addresses. Addresses
that an IOMMU hands out itself lie below 4 GiB, or next to the end of what the device can address (all ones)."""
_AT_THE_END = 8
"""Bits of ones from which on an address lies next to the end: IOVAs are given from there downwards."""
LEAST_AT_PEERS = 2


def _at_peers(node: Node) -> tuple[Event, ...]:
    """IOMMU faults of a device whose kind is not shown that reaches for windows of other devices, which hardly anything
    but GPUs and adapters does."""
    faults = (event for event in node.events if event.kind == "iommu-fault" and event.bus_id is not None)
    by_bus = grouped((event.bus_id, event) for event in faults if event.bus_id not in node.pci)
    return tuple(
        event
        for own in by_bus.values()
        if sum(map(_is_window, own)) >= LEAST_AT_PEERS and not any("module" in event.fields for event in own)
        for event in own
    )


def _is_window(event: Event) -> bool:
    at = int(str(event.fields.get("address", "0")), 16)
    return _PEERS_FROM <= at < _PEERS_TO and not bin(at)[2:].startswith("1" * _AT_THE_END)


def _registers(node: Node) -> tuple[Fact[int], ...]:
    """The ACS control registers that matter where the evidence does not show whether this is a guest: those above GPUs
    and NICs where it shows any, else all."""
    above = {
        bridge.bus_id
        for device in node.pci.values()
        if device.kind in (PciKind.GPU, PciKind.NIC)
        for bridge in node.ancestors(device.bus_id)
    }
    known = [port for port in node.pci.values() if port.acs.known and (not above or port.bus_id in above)]
    return (*(port.acs for port in known), *node.acs_lines)


def _translated(node: Node, devices: Sequence[PciDevice]) -> list[PciDevice]:
    """Devices whose DMA the IOMMU translates, where any two of them talk and translation costs something."""
    if not _is_x86(node) or not peers_over_pcie(node):
        return []
    return [device for device in devices if device.iommu_type.value in TRANSLATED]


def _unseen(node: Node, devices: Sequence[PciDevice], hidden: Sequence[PciDevice]) -> str:
    """What keeps a node without detours from being called clean, or ""."""
    if hidden:
        return f"ACS of {hidden[0].bus_id}: {hidden[0].acs.why}"
    if not any(device.iommu_type.known for device in devices) and node.os.iommu_enabled.value is not False:
        return "the IOMMU's state is not in the evidence"
    has_nics = any(function.kind is PciKind.NIC for function in node.pci.values())
    if node.topics and Topic.RDMA_DEVICES not in node.topics and has_nics:
        return "which NICs carry the job's traffic is not in the evidence"
    outside = len(node.gpus) + len(compute_nics(node)) - len(devices)
    return f"{outside} GPUs or NICs are not in the PCI tree of the evidence" if outside else ""


def _owners(node: Node) -> tuple[Gpu | Nic, ...]:
    return (*node.gpus, *compute_nics(node))


def _is_x86(node: Node) -> bool:
    """Arm servers translate by design, and with ATS their redirecting ports need not cost anything."""
    return node.cpu.arch.get("x86_64") in ("x86_64", "amd64", "i686")


def _ports_between(node: Node, devices: Sequence[PciDevice], *, talking: bool = False) -> list[PciDevice]:
    """The downstream ports that traffic between two of the devices passes without reaching a root port.

    `talking` leaves out pairs that have nothing to say to each other over PCIe.
    """
    owners = {device.bus_id: owner for owner in _owners(node) if (device := node.pci_of(owner)) is not None}
    chains = {device.bus_id: [bridge.bus_id for bridge in node.ancestors(device.bus_id)] for device in devices}
    ports: dict[str, PciDevice] = {}
    for one, mine in chains.items():
        for other, theirs in chains.items():
            common = next((bridge for bridge in mine if bridge in theirs), None)
            # The topmost bridge is the root port: what meets there has left all switches.
            if one == other or common is None or common == mine[-1]:
                continue
            if talking and not talk_over_pcie(node, owners[one], owners[other]):
                continue
            for bus_id in mine[: mine.index(common)][::2]:
                ports[bus_id] = node.pci[bus_id]
    return [ports[bus_id] for bus_id in sorted(ports)]


def _below(node: Node, ports: set[str]) -> tuple[list[str], list[str]]:
    def under(bus_id: str | None) -> bool:
        return bus_id is not None and any(bridge.bus_id in ports for bridge in node.ancestors(bus_id))

    gpus = [gpu.label for gpu in node.gpus if under(gpu.bus_id)]
    return gpus, [nic.name for nic in compute_nics(node) if under(nic.bus_id)]
