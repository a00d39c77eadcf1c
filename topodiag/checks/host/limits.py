"""What the host or the container does not give: locked memory, /dev/shm, open files, and devices that the host has."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from topodiag.checks.interface import NodeCheck
from topodiag.checks.shared.devices import cluster
from topodiag.checks.shared.node.kernel import no_gpu
from topodiag.model.devices import NVIDIA, PciKind
from topodiag.model.finding import Confidence, Finding, Outcome, Severity
from topodiag.model.node import Node
from topodiag.model.provenance import Fact, Topic
from topodiag.words.units import plural, spell_bytes

MIB = 1 << 20
GIB = 1 << 30

MIN_MEMLOCK = GIB
"""Locked memory below which registration of buffers fails sooner or later: NCCL registers a few MiB for each
connection, user buffers and NVSHMEM far more. Distributions start with 64 KiB or 8 MiB."""

MIN_SHM = 512 * MIB
"""Shared memory below which eight ranks of one node do not fit: NCCL takes 9 MiB for each connection over it (the size
in its own message, 9637888 bytes). Docker gives 64 MiB, and PyTorch's data loaders take from the same."""
USUAL_SHM = GIB
MIN_FREE_SHM = 64 * MIB

MIN_OPEN_FILES = 4096
"""Hard limit on open files below which large jobs fail: NCCL raises the soft limit to the hard one, and takes one
socket for each peer and channel."""


class HostLimits(NodeCheck, id="HST001", unless=no_gpu):
    """HST001: a limit of the host or the container breaks NCCL

    What it finds
        A limit on locked memory where RDMA needs it, a small or full /dev/shm, a low hard limit on open files.

    Why it matters
        RDMA buffers are locked in memory: with a small limit `ibv_reg_mr` fails, and the job ends or falls back to
        sockets. Ranks of one node that cannot use P2P exchange data through /dev/shm: with Docker's 64 MiB NCCL ends
        with "Error while creating shared memory segment", or the program with a bus error.

    Evidence it reads
        /proc/self/limits, statvfs of /dev/shm; pasted `ulimit -a`, `ulimit -l`, `df /dev/shm`; in job logs NCCL's own
        messages about shared memory, memory registration and open files, and torch's of its data loaders.

    When it stays silent
        Enough for this node: locked memory unlimited or 1 GiB, /dev/shm from 1 GiB, 4096 open files. Locked memory on
        nodes without RDMA. Limits of a login shell need not be those of a job: outside containers a warning. None of
        the limits in the evidence: unknown. One of locked memory and /dev/shm alone: unknown.

    How to confirm
        srun --pty bash -c 'ulimit -l; df -h /dev/shm'         in the job or the container, not in a login shell
        grep -E 'locked|open files' /proc/PID/limits            of a rank

    How to fix
        Raise the limit where the process starts: the container, the scheduler's daemon, or the host.

    References
        NCCL user guide, troubleshooting, shared memory and memlock; ibv_reg_mr(3); proc_pid_limits(5).
    """

    def observe(self, judged: Node, peers: Sequence[Node]) -> Outcome:
        system = judged.os
        seen = [fact for fact in (system.memlock_bytes, system.shm_bytes, system.open_files) if fact.known]
        if not seen:
            return self.unknown(judged, "no limit is in the evidence")
        answer = self.any_of(judged, (_memlock(self, judged), _shm(self, judged), _files(self, judged)))
        if not answer.findings and not (system.memlock_bytes.known and system.shm_bytes.known):
            missing = "the size of /dev/shm" if system.memlock_bytes.known else "the limit of locked memory"
            return self.unknown(judged, f"{missing} is not in the evidence")
        return answer


def _memlock(check: NodeCheck, node: Node) -> Finding | None:
    value = node.os.memlock_bytes.value
    if value is None or value < 0 or value >= MIN_MEMLOCK or not _may_use_rdma(node):
        return None
    inside = node.os.container.get("none") != "none"
    return check.finding(
        check.where(node),
        "memlock",
        f"locked memory is limited to {spell_bytes(value)}: RDMA cannot register its buffers",
        severity=Severity.ERROR if inside else Severity.WARNING,
        observed=spell_bytes(value),
        evidence=(node.os.memlock_bytes,),
        confidence=Confidence.HIGH if inside else Confidence.MEDIUM,
    )


def _may_use_rdma(node: Node) -> bool:
    return any(nic.rdma_name for nic in node.nics) or Topic.RDMA_DEVICES not in node.topics


def _shm(check: NodeCheck, node: Node) -> Finding | None:
    total, free = node.os.shm_bytes.value, node.os.shm_free_bytes.value
    if len(node.gpus) == 1 and total is not None and total >= 64 * MIB:
        return None  # one rank has nobody to share memory with
    if total is not None and total < USUAL_SHM:
        return check.finding(
            check.where(node),
            "shm",
            f"shared memory (/dev/shm) holds {spell_bytes(total)}: too little for the ranks of one node",
            severity=Severity.ERROR if total < MIN_SHM else Severity.WARNING,
            observed=spell_bytes(total),
            evidence=(node.os.shm_bytes,),
        )
    if free is not None and free < MIN_FREE_SHM:
        return check.finding(
            check.where(node),
            check.advice("shm full", MIN_SHM=spell_bytes(MIN_SHM)),
            f"shared memory (/dev/shm) is full: {spell_bytes(free)} are free",
            observed=f"{spell_bytes(free)} free",
            evidence=(node.os.shm_free_bytes,),
        )
    return None


def _files(check: NodeCheck, node: Node) -> Finding | None:
    value = node.os.open_files.value
    if value is None or value < 0 or value >= MIN_OPEN_FILES:
        return None
    return check.finding(
        check.where(node),
        check.advice("files", MIN_OPEN_FILES=MIN_OPEN_FILES),
        f"no process may open more than {value} files: large jobs need more sockets",
        observed=f"hard limit {value}",
        evidence=(node.os.open_files,),
    )


IMEX = "nvidia-caps-imex-channels"


class DevicesNotGiven(NodeCheck, id="HST002", unless=no_gpu):
    """HST002: the container or job sees fewer devices than the host has

    What it finds
        RDMA adapters without their device nodes (/dev/infiniband/uverbsN), no IMEX channel on a node of a multi-node
        NVLink domain, no /dev/nvidia-uvm, and fewer GPUs than the PCI bus holds. In output of a job: perftest or
        ibstatus that find no RDMA device, UCX that may not open one, libfabric without a provider, MPI that cannot open
        a peer's GPU memory, a process that asks for a GPU which it does not see, and one in which CUDA does not start
        with an unknown error. In a terminal's text, more devices in /sys/class/infiniband than /dev/infiniband has
        nodes for, or than ibv_devices lists.

    Why it matters
        Without uverbs NCCL finds no RDMA device and takes TCP sockets: a tenth of the bandwidth or less. Without an
        IMEX channel cuMemCreate of shareable memory fails, or multi-node NVLink stays unused. Without nvidia-uvm no
        CUDA program starts.

    Evidence it reads
        The names below /dev beside the RDMA devices of sysfs and the GPUs of the PCI bus; a pasted `ls` that finds
        nothing.

    When it stays silent
        Every device has its node. A container that was given some GPUs or NICs of the host is info: that may be the
        plan. An idle tray may have no IMEX channel while no compute domain is active: a warning at most. /dev is not
        in the evidence: unknown.

    How to confirm
        ls -l /dev/infiniband /dev/nvidia* /dev/nvidia-caps-imex-channels        in the container
        ls /sys/class/infiniband

    How to fix
        Give the devices to the container: `--device=/dev/infiniband` and IPC_LOCK, or the RDMA resource of the device
        plugin; the IMEX channel by a ComputeDomain or NVreg_CreateImexChannel0=1.

    References
        NVIDIA IMEX service guide; Kubernetes RDMA shared device plugin; NCCL, src/misc/ibvwrap.cc (a device that
        cannot be opened is left out).
    """

    def observe(self, judged: Node, peers: Sequence[Node]) -> Outcome:
        system = judged.os
        if not system.devices.known and not system.absent_devices.known:
            return self.unknown(judged, "the device nodes are not in the evidence")
        return self.any_of(judged, (look(self, judged) for look in (_verbs, _channel, _memory, _gpus)))


def _looked_for(node: Node, name: str) -> bool:
    return any(device == name or name.startswith(f"{device}/") for device in node.os.absent_devices.get(frozenset()))


def _verbs(check: NodeCheck, node: Node) -> Finding | None:
    """RDMA devices of sysfs against their nodes; sysfs shows those of the host in most containers."""
    adapters = [nic for nic in node.nics if nic.rdma_name]
    names = node.os.devices.get(frozenset())
    given = sum(name.startswith("infiniband/uverbs") for name in names)
    missing = _looked_for(node, "infiniband")
    if not (names or missing) or (not adapters and not missing) or given >= max(len(adapters), 1):
        return None
    inside = node.os.container.get("none") != "none"
    fact = node.os.absent_devices if missing else node.os.devices
    evidence: tuple[Fact[Any], ...] = (fact, *(port.state for nic in adapters[:1] for port in nic.ports))
    if given:
        few = f"{given} of {plural(len(adapters), 'RDMA device')} can be opened here"
        severity, nodes = Severity.INFO if inside else Severity.WARNING, plural(given, "uverbs node")
        return check.finding(
            check.where(node), "few verbs devices", few, severity=severity, observed=nodes, evidence=evidence
        )
    what = plural(len(adapters), "RDMA device") if adapters else "RDMA"
    return check.finding(
        check.where(node, nics=tuple(nic.name for nic in adapters)),
        "no verbs device",
        f"/dev/infiniband has no uverbs node: {what} cannot be opened here",
        observed="no /dev/infiniband/uverbsN",
        evidence=evidence,
        confidence=Confidence.HIGH if names else Confidence.MEDIUM,
    )


def _channel(check: NodeCheck, node: Node) -> Finding | None:
    domain = any(cluster(gpu) for gpu in node.gpus)
    lacking = node.os.absent_devices.get(frozenset())
    missing = _looked_for(node, IMEX) or any(device.startswith(f"{IMEX}/") for device in lacking)
    names = node.os.devices.get(frozenset())
    if not missing and (not domain or not names or any(name.startswith(f"{IMEX}/channel") for name in names)):
        return None
    return check.finding(
        check.where(node),
        "imex channel",
        "there is no IMEX channel: memory cannot be shared over multi-node NVLink",
        severity=Severity.ERROR if missing else Severity.WARNING,
        observed="no /dev/nvidia-caps-imex-channels/channelN",
        evidence=(node.os.absent_devices if missing else node.os.devices,),
    )


def _memory(check: NodeCheck, node: Node) -> Finding | None:
    names = node.os.devices.get(frozenset())
    driver = any(re.fullmatch(r"nvidia[0-9]{1,3}", name) for name in names)
    if not _looked_for(node, "nvidia-uvm") and (not driver or "nvidia-uvm" in names):
        return None
    return check.finding(
        check.where(node),
        "no uvm node",
        "/dev/nvidia-uvm is missing: no CUDA program starts here",
        observed="no /dev/nvidia-uvm",
        evidence=(node.os.devices,),
    )


def _gpus(check: NodeCheck, node: Node) -> Finding | None:
    """Fewer GPUs than the bus holds, in a container: given on purpose as a rule."""
    if node.os.container.get("none") == "none" or not node.gpus:
        return None
    on_bus = [fn for fn in node.pci.values() if fn.kind is PciKind.GPU and fn.vendor.value == NVIDIA]
    if len(on_bus) <= len(node.gpus):
        return None
    return check.finding(
        check.where(node),
        check.advice("gpus not given", on_bus=len(on_bus)),
        f"the container sees {len(node.gpus)} of {plural(len(on_bus), 'GPU')} of the host",
        observed=plural(len(node.gpus), "GPU"),
        evidence=(node.os.container, node.gpus[0].name),
    )
