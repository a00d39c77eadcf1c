"""Communicators that are alike in all that a table shows of them, folded to one row."""

from __future__ import annotations

from collections import Counter

from topodiag.lazy import dataclass
from topodiag.model.job import Communicator, Job
from topodiag.report.job.words import algorithms_of, name_of, seconds, slowest_s, spell_ranks, transports_by
from topodiag.report.text import Part


@dataclass(frozen=True, slots=True)
class Family:
    """Communicators of one role, size and state, which use the same transports."""

    members: list[Communicator]

    @property
    def first(self) -> Communicator:
        return self.members[0]

    @property
    def name(self) -> str:
        return (name_of(self.first) if len(self.members) == 1 else self.first.role.value) or "other"

    @property
    def transports(self) -> Counter[str]:
        """Connections of all of them by transport."""
        transports: Counter[str] = Counter()
        for member in self.members:
            transports.update({name: int(count) for name, count in member.transports.items()})
        return transports

    @property
    def algorithms(self) -> str:
        return " ".join(sorted({name for member in self.members for name in algorithms_of(member)}))

    @property
    def ranks(self) -> str:
        """The ranks of one communicator; "" of several."""
        return spell_ranks(self.first.ranks) if len(self.members) == 1 else ""


def families(job: Job) -> list[Family]:
    """In the order of their first communicators."""
    alike: dict[tuple[object, ...], Family] = {}
    for comm in job.communicators:
        key = (comm.role, comm.nranks, comm.nodes, len(comm.hosts), comm.channels, comm.init_complete,
               tuple(transports_by(comm.transports)))  # fmt: skip
        alike.setdefault(key, Family([])).members.append(comm)
    return list(alike.values())


def init_words(*comms: Communicator, complete: str = "") -> Part:
    """The init of the slowest rank of communicators that are alike, or how far it came."""
    first = comms[0]
    if first.init_complete and not first.inferred:
        return seconds(slowest_s(*comms)) or complete
    if first.inferred:
        return "not logged", "unknown"
    done = int(first.completed.sum()) if first.completed.size else 0
    return f"{done} of {first.nranks} done", "doubtful"
