"""Limits of the host or the container that break NCCL: locked memory, /dev/shm, open files."""

from __future__ import annotations

from collections.abc import Sequence

from topodiag.checks.interface import NodeCheck
from topodiag.checks.shared.node.kernel import no_gpu
from topodiag.model.finding import Confidence, Finding, Outcome, Severity
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
