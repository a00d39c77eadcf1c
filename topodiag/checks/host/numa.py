"""NUMA: GPUs and their NICs on different sockets, and processes that are bound to cores away from their GPU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from topodiag.checks.interface import NodeCheck
from topodiag.checks.shared.devices import compute_nics, distance, is_up, numa_of, nvlink_reach, on_c2c, word
from topodiag.checks.shared.node.flat_tree import is_flat
from topodiag.hardware.catalog import smp_gbs
from topodiag.lazy import dataclass
from topodiag.model.cpulist import parse_cpulist
from topodiag.model.devices import Gpu, Nic
from topodiag.model.finding import Confidence, Cost, Coverage, Finding, Outcome, Severity
from topodiag.model.nccl_enums import PathType
from topodiag.model.node import Node, Process
from topodiag.model.provenance import Fact, Topic
from topodiag.words.units import fold_numbers, fold_runs, grouped, in_gbs, percent, plural

ALIKE_FAR = "every GPU is alike far from every NIC, as in a guest; nothing says which this is"
UNBOUNDED_GBS = 1000.0
"""NCCL's figure for processors it does not know (5000 GB/s) is no bound; nothing between sockets is this fast."""


class GpuNicOnDifferentSockets(NodeCheck, id="NUM001"):
    """NUM001: a GPU and its NIC are on different sockets, or their NUMA node is unknown

    What it finds
        A GPU all of whose RDMA NICs hang on another socket. On bare metal with several NUMA nodes: GPUs or NICs for
        which the firmware names no NUMA node (-1).

    Why it matters
        The traffic crosses the link between the sockets, which NCCL rates at 10 GB/s (Skylake), 22 (Sapphire Rapids),
        40 (Emerald Rapids) or 16 GB/s (AMD). All traffic between the sockets shares this rate, against 25 or 50 GB/s
        of one NIC; GPUDirect RDMA is off at that distance. A pod with its NIC on the other socket had 25 instead of
        56 GB/s (Azure AKS pull request 5697). NCCL puts all devices with NUMA node -1 under one processor.

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

    def observe(self, judged: Node, peers: Sequence[Node]) -> Outcome:
        nics = tuple(nic for nic in compute_nics(judged) if is_up(nic) is not False)
        homes = sockets_of(judged)
        answer = self._without_question(judged, nics, homes)
        if answer is not None:
            return answer
        placed = [(gpu, _near(judged, gpu, nics, homes)) for gpu in judged.gpus]
        at_home = [gpu for gpu, near in placed if near]
        away = [gpu for gpu, near in placed if near is False]
        known = len(at_home) + len(away)
        coverage = Coverage(known, len(judged.gpus), "GPUs with a known socket")
        alike = len(away) == len(judged.gpus) > 1
        if alike and judged.is_vm is None and not any(numa_of(judged, nic).known for nic in nics):
            return self.unknown(judged, ALIKE_FAR)
        if len(away) < len(judged.gpus):
            away = [gpu for gpu in away if not _covered(judged, gpu, at_home, homes)]
        findings = (self._away(judged, away, nics, homes) if away else None, self._homeless(judged, nics))
        unplaced = f"the sockets of GPUs and NICs are not known ({coverage})" if known < len(judged.gpus) else ""
        return self.any_of(judged, findings, coverage, unknown=unplaced)

    def _without_question(self, node: Node, nics: tuple[Nic, ...], homes: Mapping[int, int]) -> Outcome | None:
        """Why there is nothing to judge, or no way to."""
        if not node.gpus or not nics:
            return self.not_applicable(node, "no GPU with an RDMA NIC for the job's traffic")
        if any(on_c2c(gpu) for gpu in node.gpus):
            return self.not_applicable(node, "Grace: GPUs and NICs meet over C2C")
        if is_flat(node):
            return self.unknown(node, "the PCI tree is virtual (TOP003)")
        if len(set(homes.values())) == 1 or node.cpu.sockets.value == 1:
            return self.not_applicable(node, "one socket")
        return None

    def _away(self, node: Node, away: Sequence[Gpu], nics: Sequence[Nic], homes: Mapping[int, int]) -> Finding:
        """GPUs without a NIC on their socket."""
        gpu_homes, nic_homes = _homes(node, node.gpus, homes), _homes(node, nics, homes)
        scarce = len(nics) < len(gpu_homes) and len(away) < len(node.gpus)
        by_numa = bool(gpu_homes and nic_homes)
        rate = max((port.rate_gbps.get(0.0) for nic in nics for port in nic.ports), default=0.0) / 8
        words = [word(node, gpu.label, nic.name) for gpu in away for nic in nics]
        devices: list[Gpu | Nic] = [*away, *nics]
        labels = [gpu.label for gpu in away]
        here = _spell_sockets(node, away, homes)
        there = _spell_sockets(node, nics, homes)
        verb = "has no RDMA NIC on its own socket" if len(away) == 1 else "have no RDMA NIC on their own socket"
        return self.finding(
            self.where(node, gpus=labels, nics=[nic.name for nic in nics]),
            "nic on another socket",
            f"{fold_runs(labels)} {verb}",
            severity=Severity.INFO if scarce else Severity.WARNING,
            observed=f"{fold_runs(labels)} on {here}; {', '.join(nic.name for nic in nics[:4])} on {there}",
            expected="a NIC on the GPU's socket" + (", but there are fewer NICs than sockets" if scarce else ""),
            cost=_smp_cost(node, rate, len(away)),
            evidence=[*(numa_of(node, device) for device in devices), *words],
            confidence=Confidence.HIGH if by_numa and node.numa else Confidence.MEDIUM,
        )

    def _homeless(self, node: Node, nics: Sequence[Nic]) -> Finding | None:
        """Devices that the firmware gives no NUMA node, on a machine that has several; a guest's are TOP003's."""
        gpus = {gpu.label: fact for gpu in node.gpus if (fact := numa_of(node, gpu)).get(0) < 0}
        cards = {nic.name: fact for nic in nics if (fact := numa_of(node, nic)).get(0) < 0}
        names = [*gpus, *cards]
        if node.is_vm or sum(numa.has_cpus for numa in node.numa) < 2 or not names:
            return None
        return self.finding(
            self.where(node, gpus=list(gpus), nics=list(cards)),
            "homeless",
            f"{fold_runs(names)}: NUMA node unknown (-1)",
            sure=node.is_vm is False,
            observed=f"numa_node -1 on {plural(len(names), 'device')}; the machine has {len(node.numa)} NUMA nodes",
            evidence=[*gpus.values(), *cards.values()],
        )


def _homes(node: Node, devices: Sequence[Gpu | Nic], homes: Mapping[int, int]) -> set[int]:
    """The sockets of devices, as far as their NUMA nodes are known."""
    numbers = [numa_of(node, device).value for device in devices]
    return {homes[number] for number in numbers if number is not None and number in homes}


def sockets_of(node: Node) -> dict[int, int]:
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
    of_one_node = bool(homes) and len(set(homes.values())) == len(homes)
    for nic in nics:
        kind, fact = distance(node, gpu.label, nic.name)
        if kind is not None and kind <= PathType.PHB and kind is not PathType.PXN:
            return True
        theirs = _nic_home(node, nic, homes)
        # With several NUMA nodes to a socket SYS may stay within it.
        elsewhere = of_one_node and (kind is PathType.SYS or (fact.value or "").strip().upper() in ("SYS", "SOC"))
        unplaced = mine is None or theirs is None
        answers.append(mine == theirs if not unplaced else False if elsewhere else None)
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


def _spell_sockets(node: Node, devices: Sequence[Gpu | Nic], homes: Mapping[int, int]) -> str:
    named = sorted(_homes(node, devices, homes))
    return "socket " + ", ".join(map(str, named)) if named else "another socket (SYS)"


def _smp_cost(node: Node, rate_gbs: float, crossing: int) -> Cost:
    """What a NIC on the other socket costs by what NCCL assumes between the sockets of a node, GB/s."""
    arch, cpu = node.cpu.arch.value, node.cpu
    bound = smp_gbs(arch, cpu.vendor.value, cpu.family.value, cpu.model.value) if arch else UNBOUNDED_GBS
    if bound >= UNBOUNDED_GBS:
        return Cost(text="all traffic of these GPUs crosses the link between the sockets, without GPUDirect RDMA")
    text = f"NCCL assumes {in_gbs(bound)} between these sockets, shared by {plural(crossing, 'GPU')}"
    lost = max(rate_gbs - bound, 0.0)
    against = f", against {in_gbs(rate_gbs)} of the NIC" if rate_gbs else ""
    return Cost(lost or None, lost / rate_gbs if rate_gbs else None, f"{text}{against}; GPUDirect RDMA is off")


AWAY_SHARE = 0.5
"""A process counts as bound away from its GPU when less than this share of its cpus is on the GPU's socket: with half
of them there the scheduler can keep the proxy threads near."""


@dataclass(frozen=True, slots=True)
class BoundProcess:
    """Where a process may run, the cpus near its GPU, and those of the GPU's socket."""

    process: Process
    gpu: Gpu
    allowed: frozenset[int]
    near: frozenset[int]
    local: frozenset[int]

    @property
    def share(self) -> float:
        return len(self.allowed & self.local) / len(self.allowed)


class ProcessAwayFromGpu(NodeCheck, id="NUM002"):
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
        unknown or empty (containers): unknown. Processes were not read: unknown; no process with one GPU: not
        applicable.

    How to confirm
        taskset -cp PID
        nvidia-smi topo -m                              the column CPU Affinity
        numastat -p PID                                 where its memory is

    How to fix
        Slurm: `--gpu-bind=closest` or `--cpu-bind` with the right masks, gres.conf with Cores=. Kubernetes: CPU manager
        `static` with topology manager `single-numa-node`. By hand: `numactl --cpunodebind=N --membind=N`. NCCL stays
        inside this mask unless NCCL_IGNORE_CPU_AFFINITY=1, which lets it use the GPU's cores.

    References
        NCCL src/graph/topo.cc (ncclTopoGetCpuAffinity) v2.30; taskset(1), numactl(8); AWS awsome-distributed-training.
    """

    def observe(self, judged: Node, peers: Sequence[Node]) -> Outcome:
        if sum(numa.has_cpus for numa in judged.numa) == 1 or judged.cpu.sockets.value == 1:
            return self.not_applicable(judged, "one NUMA node or socket")
        single = [(process, judged.gpu(process.gpus[0])) for process in judged.processes if len(set(process.gpus)) == 1]
        if not single and Topic.PROCESSES not in judged.topics:
            return self.unknown(judged, "the processes on the GPUs were not seen")
        if not single:
            return self.not_applicable(judged, "no process with one GPU in the evidence")
        bound = [
            bound_process
            for process, gpu in single
            if gpu is not None and (bound_process := _bound(judged, process, gpu)) is not None
        ]
        coverage = Coverage(len(bound), len(single), "processes with one GPU")
        if not bound:
            return self.unknown(judged, "the cores of these processes or of their GPUs are not known")
        # Processes wholly outside the socket of their GPU, then those mostly outside.
        away = grouped((at.share > 0, at) for at in bound if not at.allowed >= at.near and at.share < AWAY_SHARE)
        findings = [self._report(judged, group) for _, group in sorted(away.items())]
        return self.any_of(judged, findings, coverage, unknown=str(coverage) if len(bound) < len(single) else "")

    def _report(self, node: Node, group: Sequence[BoundProcess]) -> Finding:
        labels = sorted({at.gpu.label for at in group}, key=lambda label: (len(label), label))
        outside = all(at.share == 0 for at in group)
        worst = min(group, key=lambda at: at.share)
        pids = ", ".join(str(at.process.pid) for at in group[:4]) + (" ..." if len(group) > 4 else "")
        count = "a process" if len(group) == 1 else f"{len(group)} processes"
        how = "only on cores of another socket" if outside else "mostly on cores of another socket"
        home = numa_of(node, worst.gpu).value
        return self.finding(
            self.where(node, gpus=labels),
            self.advice(
                "cores of another socket",
                label=worst.gpu.label,
                local=fold_numbers(worst.local),
                node_text=str(home) if home is not None and home >= 0 else "N",
                pids=pids,
            ),
            f"{count} of {fold_runs(labels)} may run {how}",
            observed=f"process {worst.process.pid} may use cpus {fold_numbers(worst.allowed)}:"
            f" {percent(worst.share)} of them near {worst.gpu.label}",
            evidence=[
                origin for at in group for origin in (at.process.cpus_allowed.origin, _home(node, at.gpu).origin)
            ],
            confidence=Confidence.HIGH if outside else Confidence.MEDIUM,
        )


def _home(node: Node, gpu: Gpu) -> Fact[str]:
    """The GPU's own cores as a cpu list, from the first source that names any."""
    pci = node.pci_of(gpu)
    number = numa_of(node, gpu).value
    numa = next((numa.cpus for numa in node.numa if numa.id == number), Fact())
    for fact in (gpu.cpu_affinity, numa, pci.local_cpus if pci is not None else Fact()):
        if fact.value and parse_cpulist(fact.value):
            return fact
    return Fact()


def _bound(node: Node, process: Process, gpu: Gpu) -> BoundProcess | None:
    """The process's cores and those of the GPU's whole socket, or None when either is not known."""
    allowed = parse_cpulist(process.cpus_allowed.value or "")
    local = parse_cpulist(_home(node, gpu).value or "")
    if not allowed or not local:
        return None
    near, homes = local, sockets_of(node)
    cpus = {numa.id: parse_cpulist(numa.cpus.value or "") or frozenset() for numa in node.numa}
    mine = {homes[number] for number, members in cpus.items() if number in homes and members & local}
    for number, members in cpus.items():
        if homes.get(number) in mine:
            local |= members
    return BoundProcess(process, gpu, allowed, near, local)
