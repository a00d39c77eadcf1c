"""How the ranks and communicators that NCCL's Inspector records are called: by world rank and host, as far as known."""

from __future__ import annotations

from collections import Counter
from functools import cached_property

from topodiag.checks.shared.job.text import logged, world_of
from topodiag.lazy import dataclass
from topodiag.model.inspector import InspectorCommunicator, InspectorMember, MadeOf
from topodiag.model.job import Job
from topodiag.model.job_wires import nics_of
from topodiag.model.provenance import Origin

Process = tuple[str, int]
"""Host and pid."""


@dataclass(frozen=True, slots=True)
class Place:
    """One rank: that of the world, -1 where nothing ties it, its host and its process; `gpu` where only that is known,
    as its process counts."""

    rank: int
    host: str
    pid: int
    origin: Origin | None = None
    gpu: int = -1

    @property
    def word(self) -> str:
        if self.rank >= 0:
            return f"rank {self.rank} on {self.host}"
        if self.gpu >= 0:
            return f"GPU {self.gpu} of {self.host}"
        return f"process {self.pid} on {self.host}"


class Names:
    """World ranks by the log's communicators, by (host, pid), or by the one communicator that holds all processes."""

    def __init__(self, job: Job) -> None:
        self._job = job

    @cached_property
    def _by_process(self) -> dict[Process, int]:
        counted = Counter((rank.host, rank.pid) for rank in self._job.ranks)
        known = {(r.host, r.pid): r.rank for r in self._job.ranks if counted[r.host, r.pid] == 1}
        comms = self._job.inspection.communicators if self._job.inspection is not None else ()
        if known or not comms or any(comm.made_of is not MadeOf.CALLS for comm in comms):
            return known  # metrics name no ranks
        sizes = sorted((comm.nranks for comm in comms), reverse=True)
        world = max(comms, key=lambda comm: comm.nranks)
        processes = {(member.host, member.pid) for comm in comms for member in comm.members.values()}
        of_world = Counter((member.host, member.pid) for member in world.members.values())
        if sizes[1:2] == sizes[:1] or not processes <= of_world.keys():
            return {}
        return {(m.host, m.pid): m.rank for m in world.members.values() if of_world[m.host, m.pid] == 1}

    def place(self, comm: InspectorCommunicator, member: InspectorMember) -> Place:
        """The rank of the world that a member is."""
        known = logged(self._job, comm.hash)
        if known is not None and (rank := world_of(known, member.rank)) >= 0:
            own = self._job.by_rank.get(rank)
            return Place(rank, own.host if own is not None else member.host, member.pid, member.origin)
        rank = self._by_process.get((member.host, member.pid), -1)
        return Place(rank, member.host, member.pid, member.origin, member.gpu)

    def label(self, comm: InspectorCommunicator) -> str:
        """What a reader calls a communicator: the application's name, the log's, or its hash."""
        if comm.name:
            return comm.name
        known = logged(self._job, comm.hash)
        return known.label if known is not None else f"communicator {comm.hash:#x} of {comm.nranks} ranks"

    def nics(self, rank: int) -> tuple[str, ...]:
        """The NICs by which the log says that a world rank sends between nodes."""
        conns, own = self._job.connections, self._job.by_rank.get(rank)
        process = self._job.process_of(own) if own is not None else None
        if process is None:
            return ()
        used: set[int] = set()
        for batch in conns.batches():
            mine = (batch.world == rank) & (batch.net_dev >= 0) & (batch.direction == 1) & (batch.proxy < 0)
            used |= {int(device) for device in batch.net_dev[mine]}
        names = nics_of(process)
        return tuple(names[device].name for device in sorted(used & names.keys()))
