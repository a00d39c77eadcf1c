"""`--comms`: every communicator; and in the summary those alike on one line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np

from topodiag.lazy import dataclass
from topodiag.model.job import Communicator, Job
from topodiag.model.job_rings import short_transport
from topodiag.report.grid import UNKNOWN, Cell, Columns, Field, draw_listed, figure
from topodiag.report.job.words import (
    algorithms_of,
    name_of,
    seconds,
    slowest_s,
    spell_hosts,
    spell_ranks,
    transports_by,
)
from topodiag.report.text import Page

COMMS_SHOWN = 40


def spell_connections(transports: Mapping[str, int]) -> str:
    """`P2P 688, IB+GDR 1024`."""
    return ", ".join(f"{name} {count}" for name, count in transports_by(transports, short_transport).items())


def channels_cell(communicator: Communicator) -> Cell:
    """`16 +16 nvls`: those of rings and trees, then NVLink SHARP's; what is zero or was not printed is left out."""
    counts = communicator.channels
    words = [str(counts.coll)] if counts.coll >= 0 else []
    return Cell(" ".join([*words, *([f"+{counts.nvls} nvls"] if counts.nvls > 0 else [])]), counts.coll)


def nodes_cell(comm: Communicator) -> Cell:
    return figure((comm.nodes if comm.nodes > 0 else len(comm.hosts)) or None, str, "?")


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


def init_cell(*comms: Communicator, complete: str = "") -> Cell:
    """The init of the slowest rank of communicators that are alike, or how far it came."""
    first = comms[0]
    if first.init_complete and not first.inferred:
        slowest = slowest_s(*comms)
        return Cell(seconds(slowest) or complete, slowest if np.isfinite(slowest) else UNKNOWN)
    if first.inferred:
        return Cell(("not logged", "unknown"), UNKNOWN)
    done = int(first.completed.sum()) if first.completed.size else 0
    return Cell((f"{done} of {first.nranks} done", "doubtful"), UNKNOWN)


FAMILIES: Columns[Family] = {
    Field("role"): lambda family: (
        family.name + ("" if family.first.role_why == "" or family.first.role_sure >= 3 else "?")
    ),
    Field("count", right=True): lambda family: len(family.members),
    Field("ranks", right=True): lambda family: family.first.nranks,
    Field("nodes", right=True): lambda family: nodes_cell(family.first),
    Field("channels", drop=1): lambda family: channels_cell(family.first),
    Field("connections", least=24): lambda family: spell_connections(family.transports),
    Field("algorithms", drop=4): lambda family: family.algorithms,
    Field("init"): lambda family: init_cell(*family.members),
    Field("members", least=8, drop=5): lambda family: family.ranks,
}


def draw_comms(page: Page, job: Job) -> None:
    if job.communicators:
        draw_listed(page, _COMMUNICATORS, job.communicators, COMMS_SHOWN, "communicator")
    else:
        page.add("  ", ("no communicator is in the logs", "unknown"))


def _members(comm: Communicator) -> str:
    unseen = int((comm.ranks < 0).sum())
    return spell_ranks(comm.ranks, 6) + (f" +{unseen} unseen" if unseen else "")


_COMMUNICATORS: Columns[Communicator] = {
    Field("#", right=True): lambda comm: str(comm.index),
    Field("name", least=10): lambda comm: (
        (name_of(comm) or "?") + (f" {comm.color}" if comm.color >= 0 and comm.parent >= 0 else "")
    ),
    Field("ranks", right=True): lambda comm: str(comm.nranks),
    Field("members", least=12): _members,
    Field("nodes", right=True): nodes_cell,
    Field("on", least=11, drop=4): lambda comm: spell_hosts(comm.hosts, 40),
    Field("of", right=True, drop=2): lambda comm: str(comm.parent) if comm.parent >= 0 else "",
    Field("channels", drop=1): channels_cell,
    Field("connections", least=16): lambda comm: spell_connections(comm.transports),
    Field("init"): lambda comm: init_cell(comm, complete="complete"),
    Field("role by", least=10, drop=3): lambda comm: (
        f"{comm.role_why} ({comm.role_sure} confidence)" if comm.role_why else ""
    ),
}
