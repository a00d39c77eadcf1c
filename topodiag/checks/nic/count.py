"""Compute NICs that should be in a node and are not."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Sequence

from topodiag.checks.interface import Advice, NodeCheck
from topodiag.checks.nic.state import is_near, lists_no_nics, ports_of, product
from topodiag.checks.peers import of_everyone
from topodiag.checks.shared.comparisons import majority, tallied
from topodiag.checks.shared.devices import compute_nics, distance, word
from topodiag.checks.shared.node.flat_tree import is_flat
from topodiag.checks.shared.prices import slow_ports
from topodiag.checks.shared.topo_file import alone
from topodiag.hardware.catalog import system_by_product, systems
from topodiag.hardware.specs import SystemSpec
from topodiag.lazy import dataclass
from topodiag.model.devices import Nic, NicRole, PciDevice
from topodiag.model.finding import Confidence, Cost, Finding, Outcome, Severity
from topodiag.model.node import Node
from topodiag.model.provenance import Fact, Topic
from topodiag.words.units import fold_runs, in_gbps, in_gbs, plural, spell_gbs

RAIL_SHARE = 0.75
"""Part of the GPUs that must have a NIC of their own before one without is called a fault and not a design."""

GPUS_PER_RAIL_NIC = 2
"""Machines with more GPUs to a near NIC than this are not built in rails."""

OPTIONAL_NICS = 4
"""Instance types with fewer NICs for the job than this are often run without any RDMA, on purpose."""


UNCOUNTED = "nothing says how many NICs there should be: no known machine, no peer, no ways to GPUs"


@dataclass(frozen=True, slots=True)
class Gap:
    """How many compute NICs are missing and what says so."""

    missing: int
    expected: str
    confidence: Confidence
    gbps: float = 0.0
    shown: Fact[str] = Fact()
    virtual: bool = False


class MissingComputeNic(NodeCheck, id="NIC005"):
    """NIC005: a node has fewer compute NICs than its peers, or a rail is missing

    What it finds
        A known machine with fewer compute NICs than it is built with; a node with fewer than most other nodes of the
        same GPUs in evidence; a GPU without a NIC below its PCIe switch while the other GPUs have one each. A job that
        lists fewer NICs than the capture of its machine shows up.

    Why it matters
        NCCL does not know how many NICs there should be. The GPU without a NIC sends through another GPU's (PXN) or
        over the CPU, and the whole node has less: with 7 of 8 NICs of 400 Gb/s, 350 GB/s instead of 400. Every ring
        of the job must pass every node, so the other nodes slow down with it.

    Evidence it reads
        RDMA devices in sysfs, `ibstat`, `ibv_devinfo`, `rdma link`; PCI functions and their drivers; the machine's
        name (DMI) and its datasheet; distances between GPUs and NICs; the other nodes. In a log: `NET/IB : Using`.

    When it stays silent
        The machine is not a known one, all GPUs are alike in their NICs, and no other node is in evidence. Machines
        with fewer NICs than GPUs by design (two GPUs per NIC). A NIC that is down counts as present: NIC001 reports
        it. In containers NICs may be left out on purpose, and in virtual machines with a flattened PCI tree distances
        do not exist: unknown. A job whose NCCL_IB_HCA names the NICs, or that has a part of the GPUs; NICs of another
        rate than those that the job lists. The list of RDMA devices was not read: unknown. No machine, peer or way to a
        GPU that says how many there should be: unknown.

    How to confirm
        ls /sys/class/infiniband
        lspci -D | grep -iE 'infiniband|mellanox|ethernet'      compare with a healthy node
        dmesg | grep -iE 'mlx5|bnxt|efa'                        why the driver did not take it

    How to fix
        On the PCI bus without a driver: load or bind it (`modprobe mlx5_ib`), read the kernel log for why it failed;
        `vfio-pci` means that it was given to a virtual machine. Not on the bus: power-cycle, reseat the card or its
        riser, check that the slot is enabled in the BIOS. Cloud instances: attach all network interfaces at launch.

    References
        Datasheets of the machines (topodiag/hardware/systems.toml); NCCL src/graph/paths.cc v2.30 (PXN).
    """

    def observe(self, node: Node, peers: Sequence[Node]) -> Outcome:
        if not node.gpus:
            return self.not_applicable(node, "no GPU to serve")
        present = _present(node)
        gap = _by_datasheet(node, present) or _by_peers(node, present, peers)
        sides = _without_near_nic(node, present)
        if gap is None and sides:
            if is_flat(node):
                return self.unknown(node, "the PCI tree is virtual, so distances to NICs are an invention")
            gap = Gap(len(sides), "a NIC below the PCIe switch of every GPU, as the others", Confidence.MEDIUM)
        if gap is None:
            if present:
                return self.clean(node) if self._is_counted(node, present, peers) else self.unknown(node, UNCOUNTED)
            return self.not_applicable(node, "no RDMA NIC, and nothing says that there should be one")
        if lists_no_nics(node, present):
            return self.unknown(node, "which RDMA devices there are is not in the evidence")
        container = node.os.container.value
        if container != "none" and (container or Topic.OS in node.topics):
            where = f"in a container ({container})" if container else "perhaps in a container"
            return self.unknown(node, f"{where}, which may not see all NICs")
        return self.any_of(node, [self._report(node, gap, present, sides)])

    def _is_counted(self, node: Node, present: Sequence[Nic], peers: Sequence[Node]) -> bool:
        """Whether anything says how many there should be: the machine's datasheet, its peers, or the ways between
        its GPUs and its NICs."""
        if _system(node) is not None or node.time.known:
            return True
        shape = _shape(node)
        if shape is not None and of_everyone(node, peers, _nics_by_shape)[shape].total() > 1:
            return True
        return all(distance(node, gpu.label, nic.name)[0] is not None for gpu in node.gpus for nic in present)

    def _report(self, node: Node, gap: Gap, present: Sequence[Nic], sides: Sequence[str]) -> Finding:
        idle = _idle(node)
        rail = f" ({fold_runs(sides)} without one)" if sides else ""
        seen = f"; without a driver or RDMA device: {', '.join(nic.name for nic in idle[:4])}" if idle else ""
        gbps = gap.gbps or max((port.rate or 0.0 for port in ports_of(node)), default=0.0)
        total = len(present) + gap.missing
        lost, full = slow_ports(0, gbps, gap.missing), slow_ports(0, gbps, total)
        share = f"{spell_gbs(lost)} of {in_gbs(full)}" if lost else "its share"
        words = [word(node, gpu, nic.name) for gpu in sides for nic in compute_nics(node)[:4]]
        return self.finding(
            self.where(node, gpus=sides, nics=[nic.name for nic in idle[: gap.missing]]),
            Advice((Severity.WARNING if present else Severity.INFO) if gap.virtual else Severity.ERROR, gap.confidence),
            f"{len(present)} of {plural(total, 'compute NIC')} present{rail}{seen}",
            observed=f"{plural(len(present), 'compute NIC')}{rail}{seen}",
            expected=gap.expected,
            fix=self._steps(node, gap, idle, sides),
            cost=Cost(
                round(lost, 3) or None,
                round(gap.missing / total, 4),
                f"{share} of the node's network is missing, and every other node of the job waits for this one",
            ),
            evidence=[gap.shown, *words, *(nic.driver for nic in idle)],
        )

    def _steps(self, node: Node, gap: Gap, idle: Sequence[Nic], sides: Sequence[str]) -> tuple[str, ...]:
        # In a topology file a NIC of no GPU's switch may be the missing one at a wrong place.
        aside = [nic.name for nic in node.nics if nic.role is NicRole.STORAGE and nic.rdma_name] if alone(node) else []
        misplaced = self.steps("at a wrong place", aside=fold_runs(aside), gpu=sides[0]) if sides and aside else ()
        drivers = sorted({nic.driver.value for nic in idle if nic.driver.value})
        taken = f"it is held by {', '.join(drivers)}" if drivers else "no driver holds it"
        how = "of an instance" if gap.virtual else "without a driver" if idle else "not on the bus"
        return (*misplaced, *self.steps(how, taken=taken))


def _present(node: Node) -> tuple[Nic, ...]:
    """Compute NICs, with those of their kind that also carry the default route."""
    chosen = compute_nics(node)
    kinds = {product(nic) for nic in chosen}
    shared = (nic for nic in node.nics if nic.role is NicRole.MANAGEMENT and nic.rdma_name)
    return (*chosen, *(nic for nic in shared if not kinds or product(nic) in kinds))


def _system(node: Node) -> SystemSpec | None:
    name = node.system.value
    named = next((spec for spec in systems() if spec.name == name), None)
    return named or (system_by_product(name) if name is not None else None)


def _by_datasheet(node: Node, present: Sequence[Nic]) -> Gap | None:
    spec = _system(node)
    if spec is None:
        return None
    if len(node.gpus) < spec.gpus:
        # A job that holds a part of the GPUs: NICs beside the others may have been taken for storage.
        kinds = {product(nic) for nic in present}
        alike = [nic for nic in node.nics if nic.role is NicRole.STORAGE and product(nic) in kinds]
        present = [*present, *alike]
    # A guest with the host's name holds what it was given.
    as_given = spec.compute_nics < OPTIONAL_NICS if spec.virtual else node.is_vm
    if spec.compute_nics <= len(present) or as_given:
        return None
    return Gap(
        spec.compute_nics - len(present),
        f"{spec.compute_nics} compute NICs of {in_gbps(spec.compute_nic_gbps)} in a {spec.name}",
        Confidence.MEDIUM if spec.virtual else Confidence.HIGH,
        gbps=spec.compute_nic_gbps,
        shown=node.system,
        virtual=spec.virtual,
    )


def _by_peers(node: Node, present: Sequence[Nic], peers: Sequence[Node]) -> Gap | None:
    mine = _shape(node)
    if mine is None:
        return None
    counts = of_everyone(node, peers, _nics_by_shape)[mine] - Tally((len(_present(node)),))
    usual = majority(counts)
    if usual is None or usual <= len(present):
        return None
    return Gap(
        usual - len(present),
        f"{usual} compute NICs, as {plural(counts[usual], 'other node')} with the same GPUs",
        Confidence.MEDIUM,
    )


def _nics_by_shape(nodes: Sequence[Node]) -> dict[tuple[object, ...], Tally[int]]:
    """How many nodes of each shape have how many compute NICs."""
    shapes = ((_shape(node), node) for node in nodes)
    return tallied((shape, len(_present(node))) for shape, node in shapes if shape is not None)


def _shape(node: Node) -> tuple[object, ...] | None:
    """What makes nodes peers: the machine and its GPUs. None when no GPU has a name."""
    names = {gpu.name.value for gpu in node.gpus if gpu.name.value}
    return (node.system.value, len(node.gpus), frozenset(names)) if names else None


def _without_near_nic(node: Node, nics: Sequence[Nic]) -> tuple[str, ...]:
    """GPUs without a NIC below their PCIe switch on a machine that is built with one for each."""
    near: dict[str, set[str]] = {}
    for gpu in node.gpus:
        kinds = {nic.name: distance(node, gpu.label, nic.name)[0] for nic in nics}
        if not kinds or any(kind is None for kind in kinds.values()):
            return ()  # a distance that was not seen may be the near one
        near[gpu.label] = {name for name, kind in kinds.items() if is_near(kind)}
    served = [texts for texts in near.values() if texts]
    if len(served) < RAIL_SHARE * len(near) or len(set().union(*served)) * GPUS_PER_RAIL_NIC < len(served):
        return ()
    return tuple(label for label, texts in near.items() if not texts)


def _idle(node: Node) -> tuple[Nic, ...]:
    """NIC functions without an RDMA device that are of the compute NICs' product, or InfiniBand by class."""
    kinds = {product(nic) for nic in compute_nics(node)} - {""}
    bare = [nic for nic in node.nics if not (nic.rdma_name or nic.smi_label or nic.netdevs or nic.is_vf.value)]
    return tuple(nic for nic in bare if product(nic) in kinds or _is_infiniband(node.pci_of(nic)))


def _is_infiniband(function: PciDevice | None) -> bool:
    return function is not None and function.class_code.get(0) >> 8 == 0x0207
