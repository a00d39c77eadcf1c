"""NUMA: processes that are bound to cores away from their GPU. GPUs and NICs are in numa.py."""

from __future__ import annotations

from collections.abc import Sequence

from topodiag.checks.host.numa import sockets_of
from topodiag.checks.interface import NodeCheck
from topodiag.checks.shared.devices import numa_of
from topodiag.lazy import dataclass
from topodiag.model.cpulist import parse_cpulist
from topodiag.model.devices import Gpu
from topodiag.model.finding import Confidence, Coverage, Finding, Outcome
from topodiag.model.node import Node, Process
from topodiag.model.provenance import Fact, Topic
from topodiag.words.units import fold_numbers, fold_runs, grouped, percent

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
        unseen = str(coverage) if len(bound) < len(single) else ""
        return self.any_of(judged, findings, coverage, unknown=unseen)

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
