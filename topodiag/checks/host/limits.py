"""Limits of the host or the container that break NCCL: locked memory, /dev/shm, open files."""

from __future__ import annotations

from collections.abc import Sequence

from topodiag.checks.shared.node.kernel_events import FaultCheck, NodeFault, no_gpu
from topodiag.model.finding import Confidence, Outcome, Severity
from topodiag.model.node import Node
from topodiag.model.provenance import Topic
from topodiag.words.units import spell_bytes

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


class HostLimits(FaultCheck, id="HST001", unless=no_gpu):
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
        answer = self.any_fault(judged, (_memlock(judged), _shm(judged), _files(judged)))
        if not answer.findings and not (system.memlock_bytes.known and system.shm_bytes.known):
            missing = "the size of /dev/shm" if system.memlock_bytes.known else "the limit of locked memory"
            return self.unknown(judged, f"{missing} is not in the evidence")
        return answer


def _memlock(node: Node) -> NodeFault | None:
    value = node.os.memlock_bytes.value
    if value is None or value < 0 or value >= MIN_MEMLOCK or not _may_use_rdma(node):
        return None
    inside = node.os.container.get("none") != "none"
    return NodeFault(
        Severity.ERROR if inside else Severity.WARNING,
        f"locked memory is limited to {spell_bytes(value)}: RDMA cannot register its buffers",
        spell_bytes(value),
        "memlock",
        (node.os.memlock_bytes,),
        Confidence.HIGH if inside else Confidence.MEDIUM,
    )


def _may_use_rdma(node: Node) -> bool:
    return any(nic.rdma_name for nic in node.nics) or Topic.RDMA_DEVICES not in node.topics


def _shm(node: Node) -> NodeFault | None:
    total, free = node.os.shm_bytes.value, node.os.shm_free_bytes.value
    if len(node.gpus) == 1 and total is not None and total >= 64 * MIB:
        return None  # one rank has nobody to share memory with
    if total is not None and total < USUAL_SHM:
        return NodeFault(
            Severity.ERROR if total < MIN_SHM else Severity.WARNING,
            f"shared memory (/dev/shm) holds {spell_bytes(total)}: too little for the ranks of one node",
            spell_bytes(total),
            "shm",
            (node.os.shm_bytes,),
            Confidence.HIGH,
        )
    if free is not None and free < MIN_FREE_SHM:
        return NodeFault(
            Severity.ERROR,
            f"shared memory (/dev/shm) is full: {spell_bytes(free)} are free",
            f"{spell_bytes(free)} free",
            "shm full",
            (node.os.shm_free_bytes,),
            Confidence.HIGH,
            words={"MIN_SHM": spell_bytes(MIN_SHM)},
        )
    return None


def _files(node: Node) -> NodeFault | None:
    value = node.os.open_files.value
    if value is None or value < 0 or value >= MIN_OPEN_FILES:
        return None
    return NodeFault(
        Severity.WARNING,
        f"no process may open more than {value} files: large jobs need more sockets",
        f"hard limit {value}",
        "files",
        (node.os.open_files,),
        Confidence.MEDIUM,
        words={"MIN_OPEN_FILES": MIN_OPEN_FILES},
    )
