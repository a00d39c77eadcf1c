"""NUMA: GPUs and their NICs on different sockets, processes bound away from their GPU."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Never

from topodiag.checks.interface import NodeCheck, OneStep
from topodiag.checks.node.virtual_pci import is_flat
from topodiag.checks.shared.devices import compute_nics, distance, is_up, numa_of, nvlink_reach, on_c2c, percent, word
from topodiag.hardware.catalog import smp_gbs
from topodiag.model.cpulist import parse_cpulist
from topodiag.model.devices import Gpu, Nic
from topodiag.model.finding import Confidence, Cost, Coverage, Finding, Outcome, Severity, Status
from topodiag.model.links import PathType
from topodiag.model.node import Node
from topodiag.model.provenance import Fact
from topodiag.model.system import Process
from topodiag.model.topics import Topic
from topodiag.words.fold import fold_numbers, fold_runs, plural

UNBOUNDED_GBS = 1000.0
"""NCCL's figure for processors it does not know (5000 GB/s) is no bound; nothing between sockets is this fast."""

AWAY_SHARE = 0.5
"""A process counts as bound away from its GPU when less than this share of its cpus is on the GPU's socket: with half
of them there the scheduler can keep the proxy threads near."""


class GpuNicOnDifferentSockets(OneStep[Node], NodeCheck[Never]):
    """NUM001: a GPU and its NIC are on different sockets, or their NUMA node is unknown

    What it finds
        A GPU all of whose RDMA NICs hang on another socket. On bare metal with several NUMA nodes: GPUs or NICs for
        which the firmware names no NUMA node (-1).

    Why it matters
        The traffic crosses the link between the sockets, which NCCL reckons at 10 GB/s (Skylake), 22 (Sapphire
        Rapids), 40 (Emerald Rapids) or 16 GB/s (AMD), shared by all that cross it, against 25 or 50 GB/s of one NIC;
        GPUDirect RDMA is off at that distance. A pod with its NIC on the other socket had 25 instead of 56 GB/s
        (Azure AKS pull request 5697). With NUMA node -1 NCCL puts all such devices under one processor.

    Evidence it reads
        NUMA nodes of GPUs, NICs and processors (sysfs, NVML, `topo -m`), which NUMA nodes share a socket, paths.
        In a log: the CPUs of `=== System ===` above a GPU and the NIC of its connections.

    When it stays silent
        One socket. Storage and management NICs. Different NUMA nodes of one socket (AMD NPS4, Intel SNC), which
        `topo -m` may call SYS. Grace machines. NVSwitch machines where a socket has no NIC for any GPU: NCCL passes
        that traffic over NVLink (PXN). Which sockets the NUMA nodes belong to is not known and there are more than
        two of them: unknown. A flattened guest is TOP003's.

    How to confirm
        cat /sys/bus/pci/devices/BUS_ID/numa_node      for the GPU and the NIC
        nvidia-smi topo -m                             SYS in all NIC columns of the GPU
        lscpu | grep -i numa

    How to fix
        In a cluster: have the scheduler give GPU and NIC of one socket (Kubernetes: topology manager `single-numa-node`
        or DRA; Slurm: gres.conf with Cores=). On the machine: move the NIC to a slot of the GPU's socket, or give
        each socket its NIC. For NUMA node -1: update the BIOS, it lacks the proximity tables (SRAT, _PXM).

    References
        NCCL src/graph/topo.h v2.30 (bandwidth between processors); Linux Documentation/ABI/testing/sysfs-bus-pci;
        NVIDIA nccl issues 820 and 1674.
    """

    id = "NUM001"
    title = "a GPU and its NIC are on different sockets, or their NUMA node is unknown"

    def judge(self, node: Node, peers: Sequence[Node] = ()) -> Outcome:
        nics = tuple(nic for nic in compute_nics(node) if is_up(nic) is not False)
        if not node.gpus or not nics:
            return self.not_applicable(node, "no GPU with an RDMA NIC for the job's traffic")
        if any(on_c2c(gpu) for gpu in node.gpus):
            return self.not_applicable(node, "Grace: GPUs and NICs meet over C2C")
        if is_flat(node):
            return self.unknown(node, "the PCI tree is virtual (TOP003)")
        homes = _sockets(node)
        if len(set(homes.values())) == 1 or node.cpu.sockets.value == 1:
            return self.not_applicable(node, "one socket")
        homeless = self._homeless(node, nics)
        placed = [(gpu, _near(node, gpu, nics, homes)) for gpu in node.gpus]
        known = [(gpu, near) for gpu, near in placed if near is not None]
        coverage = Coverage(len(known), len(node.gpus), "GPUs with a known socket")
        away = [gpu for gpu, near in known if not near]
        if len(away) == len(node.gpus) > 1 and node.is_vm is None and not any(numa_of(node, nic).known for nic in nics):
            return self.unknown(
                node, "every GPU is alike far from every NIC, as in a guest; nothing says which this is"
            )
        if away and len(away) < len(node.gpus):
            at_home = [gpu for gpu, near in known if near]
            away = [gpu for gpu in away if not _covered(node, gpu, at_home, homes)]
        found = [self._away(node, away, nics, homes, coverage)] if away else []
        found += homeless
        if found:
            return self.found(node, found, coverage)
        if len(known) < len(node.gpus):
            why = f"the sockets of GPUs and NICs are not known ({coverage})"
            return Outcome(self.id, Status.UNKNOWN, node.host, why=why, coverage=coverage)
        return self.clean(node, coverage=coverage)

    def _away(
        self, node: Node, away: list[Gpu], nics: tuple[Nic, ...], homes: dict[int, int], coverage: Coverage
    ) -> Finding:
        labels = [gpu.label for gpu in away]
        gpu_homes = {homes[n] for g in node.gpus if (n := numa_of(node, g).value) is not None and n in homes}
        nic_homes = {homes[n] for c in nics if (n := numa_of(node, c).value) is not None and n in homes}
        scarce = len(nics) < len(gpu_homes) and len(away) < len(node.gpus)
        by_numa = bool(gpu_homes and nic_homes)
        rate = max((port.rate_gbps.get(0.0) for nic in nics for port in nic.ports), default=0.0) / 8
        words = [word(node, gpu.label, nic.name) for gpu in away for nic in nics]
        facts = [fact.origin for gpu in away for fact in (numa_of(node, gpu),)] + [
            numa_of(node, nic).origin for nic in nics
        ]
        here = _spell_sockets(node, away, homes)
        there = _spell_sockets(node, nics, homes)
        verb = "has no RDMA NIC on its own socket" if len(away) == 1 else "have no RDMA NIC on their own socket"
        return self.finding(
            node,
            Severity.INFO if scarce else Severity.WARNING,
            f"{fold_runs(labels)} {verb}",
            observed=f"{fold_runs(labels)} on {here}; {', '.join(nic.name for nic in nics[:4])} on {there}",
            expected="a NIC on the GPU's socket" + (", but there are fewer NICs than sockets" if scarce else ""),
            fix=(
                "give the job GPUs and NICs of one socket (Kubernetes: topology manager, DRA; Slurm: gres.conf Cores=)",
                "or move a NIC to a slot of this socket: `nvidia-smi topo -m` then shows PIX, PXB or NODE, not SYS",
            ),
            gpus=labels,
            nics=[nic.name for nic in nics],
            cost=_smp_cost(node, rate, len(away)),
            evidence=[*facts, *(fact.origin for fact in words)],
            coverage=coverage,
            confidence=Confidence.HIGH if by_numa and node.numa else Confidence.MEDIUM,
        )

    def _homeless(self, node: Node, nics: tuple[Nic, ...]) -> list[Finding]:
        """Devices without a NUMA node on a machine that has several; a guest's are TOP003's."""
        if node.is_vm or sum(numa.has_cpus for numa in node.numa) < 2:
            return []
        gpus = [gpu for gpu in node.gpus if numa_of(node, gpu).get(0) < 0]
        cards = [nic for nic in nics if numa_of(node, nic).get(0) < 0]
        if not gpus and not cards:
            return []
        names = [*(gpu.label for gpu in gpus), *(nic.name for nic in cards)]
        sure = node.is_vm is False
        return [
            self.finding(
                node,
                Severity.WARNING if sure else Severity.INFO,
                f"{fold_runs(names)}: NUMA node unknown (-1)",
                observed=f"numa_node -1 on {plural(len(names), 'device')}; the machine has {len(node.numa)} NUMA nodes",
                expected="the NUMA node of its socket, from the firmware's tables (SRAT, _PXM)",
                fix=("update the BIOS, or switch NUMA on in it", "until then bind processes by hand: `numactl -N`"),
                gpus=[gpu.label for gpu in gpus],
                nics=[nic.name for nic in cards],
                cost=Cost(text="NCCL puts all devices of node -1 under one processor and prices their paths wrongly"),
                evidence=[numa_of(node, g).origin for g in gpus] + [numa_of(node, c).origin for c in cards],
                confidence=Confidence.HIGH if sure else Confidence.MEDIUM,
            )
        ]


def _sockets(node: Node) -> dict[int, int]:
    """The socket of each NUMA node, where that can be told: the kernel says it, or there are as many of one as of the
    other, or all that is known is nodes 0 and 1 (no machine splits a single socket in just two and calls that default).
    """
    with_cpus = [numa for numa in node.numa if numa.has_cpus]
    if with_cpus and all(numa.socket.known for numa in with_cpus):
        return {numa.id: numa.socket.get(0) for numa in with_cpus}
    if with_cpus:
        return {numa.id: numa.id for numa in with_cpus} if node.cpu.sockets.value == len(with_cpus) else {}
    devices: list[Gpu | Nic] = [*node.gpus, *node.nics]
    named = {n for device in devices if (n := numa_of(node, device).value) is not None}
    return {n: n for n in named} if named == {0, 1} else {}


def _near(node: Node, gpu: Gpu, nics: tuple[Nic, ...], homes: dict[int, int]) -> bool | None:
    """Whether some NIC is on the GPU's socket; None when it cannot be told."""
    mine = homes.get(numa_of(node, gpu).get(-1))
    answers: list[bool | None] = []
    for nic in nics:
        kind, said = distance(node, gpu.label, nic.name)
        if kind is not None and kind <= PathType.PHB and kind is not PathType.PXN:
            return True
        theirs = _nic_home(node, nic, homes)
        if mine is not None and theirs is not None:
            answers.append(mine == theirs)
        elif (
            homes
            and len(set(homes.values())) == len(homes)
            and (kind is PathType.SYS or (said.value or "").strip().upper() in ("SYS", "SOC"))
        ):
            answers.append(False)  # with several NUMA nodes to a socket SYS may stay within it
        else:
            answers.append(None)
    return True if True in answers else None if None in answers else False


def _nic_home(node: Node, nic: Nic, homes: dict[int, int]) -> int | None:
    """The socket of a NIC: its own NUMA node's, else that of a GPU below the same host bridge."""
    own = homes.get(numa_of(node, nic).get(-1))
    if own is not None:
        return own
    for gpu in node.gpus:
        kind, _ = distance(node, gpu.label, nic.name)
        if kind is not None and kind <= PathType.PHB and kind is not PathType.PXN:
            return homes.get(numa_of(node, gpu).get(-1))
    return None


def _covered(node: Node, gpu: Gpu, at_home: list[Gpu], homes: dict[int, int]) -> bool:
    """Whether the machine is built so: this GPU's whole socket has no NIC, and NVLink reaches GPUs that have one."""
    mine = homes.get(numa_of(node, gpu).get(-1))
    if mine is not None and any(homes.get(numa_of(node, peer).get(-1)) == mine for peer in at_home):
        return False
    return gpu.index in nvlink_reach(node, at_home)


def _spell_sockets(node: Node, devices: Sequence[Gpu | Nic], homes: dict[int, int]) -> str:
    named = sorted({homes[n] for device in devices if (n := numa_of(node, device).value) is not None and n in homes})
    return "socket " + ", ".join(map(str, named)) if named else "another socket (SYS)"


def _smp_cost(node: Node, rate_gbs: float, crossing: int) -> Cost:
    arch = node.cpu.arch.value
    cpu = node.cpu
    bound = smp_gbs(arch, cpu.vendor.value, cpu.family.value, cpu.model.value) if arch else UNBOUNDED_GBS
    if bound >= UNBOUNDED_GBS:
        return Cost(text="all traffic of these GPUs crosses the link between the sockets, without GPUDirect RDMA")
    text = f"NCCL reckons {bound:g} GB/s between these sockets, shared by {plural(crossing, 'GPU')}"
    if not rate_gbs:
        return Cost(text=f"{text}; GPUDirect RDMA is off at this distance")
    lost = max(rate_gbs - bound, 0.0)
    return Cost(lost or None, lost / rate_gbs, f"{text}, against {rate_gbs:g} GB/s of the NIC; GPUDirect RDMA is off")


@dataclass(frozen=True, slots=True)
class Bound:
    """Where a process may run and where its GPU is, as sets of cpus."""

    process: Process
    gpu: Gpu
    allowed: frozenset[int]
    local: frozenset[int]

    @property
    def share(self) -> float:
        return len(self.allowed & self.local) / len(self.allowed)


class ProcessAwayFromGpu(OneStep[Node], NodeCheck[Never]):
    """NUM002: a process is bound to cores away from its GPU

    What it finds
        A process with one GPU open that may run only, or mostly, on cores of another socket than the GPU's.

    Why it matters
        NCCL's proxy threads and its host buffers then sit on the wrong socket: every byte that is staged in host
        memory crosses the link between the sockets (10 to 40 GB/s by NCCL's figures, shared), kernel launches take
        longer, and small messages gain about a microsecond per hop.

    Evidence it reads
        `Cpus_allowed_list` of the processes that have a GPU open; the GPU's CPU affinity (`topo -m`, NVML, sysfs);
        which cores share a socket. In a log: `Affinity for GPU 0 is .. (GPU affinity = .. ; CPU affinity = ..)`;
        to NCCL 2.27 `Setting affinity for GPU 0 to ..` of some processes of a node, and none of the others.

    When it stays silent
        A process that may run on all cores of the GPU's NUMA node, bound or not: the scheduler can place it well.
        Cores of another NUMA node on the same socket. Processes with several GPUs. One NUMA node. The GPU's affinity is
        unknown or empty (containers): unknown. Nobody looked for processes: unknown; no process with one GPU: not
        applicable.

    How to confirm
        taskset -cp PID
        nvidia-smi topo -m                              the column CPU Affinity
        numastat -p PID                                 where its memory is

    How to fix
        Slurm: `--gpu-bind=closest` or `--cpu-bind` with the right masks, gres.conf with Cores=. Kubernetes: CPU manager
        `static` with topology manager `single-numa-node`. By hand: `numactl --cpunodebind=N --membind=N`. NCCL keeps
        to the mask it is given unless NCCL_IGNORE_CPU_AFFINITY=1, which lets it take the GPU's cores.

    References
        NCCL src/graph/topo.cc (ncclTopoGetCpuAffinity) v2.30; taskset(1), numactl(8); AWS awsome-distributed-training.
    """

    id = "NUM002"
    title = "a process is bound to cores away from its GPU"

    def judge(self, node: Node, peers: Sequence[Node] = ()) -> Outcome:
        if sum(numa.has_cpus for numa in node.numa) == 1 or node.cpu.sockets.value == 1:
            return self.not_applicable(node, "one NUMA node or socket")
        single = [(process, node.gpu(process.gpus[0])) for process in node.processes if len(set(process.gpus)) == 1]
        if not single and Topic.PROCESSES not in node.told:
            return self.unknown(node, "the processes on the GPUs were not seen")
        if not single:
            return self.not_applicable(node, "no process with one GPU in the evidence")
        bound = [
            made for process, gpu in single if gpu is not None and (made := _bound(node, process, gpu)) is not None
        ]
        coverage = Coverage(len(bound), len(single), "processes with one GPU")
        if not bound:
            return self.unknown(node, "the cores of these processes or of their GPUs are not known")
        away = [at for at in bound if not at.allowed >= _own(node, at.gpu, at.local) and at.share < AWAY_SHARE]
        if away:
            return self.found(node, [self._report(node, group, coverage) for group in _grouped(away)], coverage)
        if len(bound) < len(single):
            return Outcome(self.id, Status.UNKNOWN, node.host, why=str(coverage), coverage=coverage)
        return self.clean(node, coverage=coverage)

    def _report(self, node: Node, group: list[Bound], coverage: Coverage) -> Finding:
        labels = sorted({at.gpu.label for at in group}, key=lambda label: (len(label), label))
        outside = all(at.share == 0 for at in group)
        worst = min(group, key=lambda at: at.share)
        pids = ", ".join(str(at.process.pid) for at in group[:4]) + (" ..." if len(group) > 4 else "")
        count = "a process" if len(group) == 1 else f"{len(group)} processes"
        how = "only on cores of another socket" if outside else "mostly on cores of another socket"
        home = numa_of(node, worst.gpu).value
        node_text = str(home) if home is not None and home >= 0 else "N"
        return self.finding(
            node,
            Severity.WARNING,
            f"{count} of {fold_runs(labels)} may run {how}",
            observed=f"process {worst.process.pid} may use cpus {fold_numbers(worst.allowed)}:"
            f" {percent(worst.share)} of them near {worst.gpu.label}",
            expected=f"cpus of {worst.gpu.label}'s socket: {fold_numbers(worst.local)}",
            fix=(
                f"bind it near its GPU: `numactl --cpunodebind={node_text} --membind={node_text}` (processes {pids})",
                "Slurm: `--gpu-bind=closest`, Cores= in gres.conf; Kubernetes: topology manager `single-numa-node`",
            ),
            gpus=labels,
            cost=_bind_cost(node),
            evidence=[
                origin for at in group for origin in (at.process.cpus_allowed.origin, _home(node, at.gpu).origin)
            ],
            coverage=coverage,
            confidence=Confidence.HIGH if outside else Confidence.MEDIUM,
        )


def _grouped(away: list[Bound]) -> list[list[Bound]]:
    """One group for those wholly outside, one for those mostly outside."""
    groups: dict[bool, list[Bound]] = defaultdict(list)
    for at in away:
        groups[at.share == 0].append(at)
    return [groups[key] for key in sorted(groups, reverse=True)]


def _home(node: Node, gpu: Gpu) -> Fact[str]:
    """The GPU's own cores as a cpu list, from the first source that names any."""
    pci = node.pci_of(gpu)
    number = numa_of(node, gpu).value
    numa = next((numa.cpus for numa in node.numa if numa.id == number), Fact())
    for fact in (gpu.cpu_affinity, numa, pci.local_cpus if pci is not None else Fact()):
        if fact.value and parse_cpulist(fact.value):
            return fact
    return Fact()


def _own(node: Node, gpu: Gpu, fallback: frozenset[int]) -> frozenset[int]:
    return parse_cpulist(_home(node, gpu).value or "") or fallback


def _bound(node: Node, process: Process, gpu: Gpu) -> Bound | None:
    """The process's cores and those of the GPU's whole socket, or None when either is not known."""
    allowed = parse_cpulist(process.cpus_allowed.value or "")
    local = parse_cpulist(_home(node, gpu).value or "")
    if not allowed or not local:
        return None
    homes = _sockets(node)
    cpus = {numa.id: parse_cpulist(numa.cpus.value or "") or frozenset() for numa in node.numa}
    mine = {homes[number] for number, members in cpus.items() if number in homes and members & local}
    for number, members in cpus.items():
        if homes.get(number) in mine:
            local |= members
    return Bound(process, gpu, allowed, local)


def _bind_cost(node: Node) -> Cost:
    arch, cpu = node.cpu.arch.value, node.cpu
    bound = smp_gbs(arch, cpu.vendor.value, cpu.family.value, cpu.model.value) if arch else UNBOUNDED_GBS
    text = "host buffers and proxy threads sit on the wrong socket"
    if bound < UNBOUNDED_GBS:
        text += f": what is staged in host memory crosses a link that NCCL reckons at {bound:g} GB/s"
    return Cost(text=text)
