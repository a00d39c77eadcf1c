"""`--comms`: every communicator, and in the summary those alike on one line. `--transports`: what every pair of nodes
talks over, as a matrix, or folded where there are many nodes.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from functools import partial

import numpy as np

from topodiag.lazy import dataclass
from topodiag.model.job import Communicator, Job
from topodiag.model.job_rings import short_transport
from topodiag.report.grid import UNKNOWN, Cell, Columns, Field, cell_of, draw_listed, draw_table, figure
from topodiag.report.job.words import (
    algorithms_of,
    name_of,
    seconds,
    slowest_s,
    spell_hosts,
    spell_ranks,
    transports_by,
)
from topodiag.report.text import Page, Part
from topodiag.words.units import plural

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


HOSTS_DRAWN = 12
MIXES_SHOWN = 12

MATRIX = "rows send, columns receive; lines of the log by transport"

Mix = dict[str, int]
Mixes = Mapping[tuple[str, str], Mix]
"""Of each pair of hosts, the sender first."""


def mixes(job: Job) -> Mixes:
    """Lines by transport for each ordered pair of hosts, the most frequent transport first."""
    # What a receiver prints, the sender printed too; it counts only where the sender left no line.
    conns, flows = job.connections, job.connections.flows
    sent: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    received: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    columns = (flows.host, flows.peer_host, flows.via, flows.direction, flows.lines)
    for a, b, via, direction, count in zip(*(column.tolist() for column in columns), strict=True):
        pair = (_host(conns.hosts, a), _host(conns.hosts, b))
        (received if direction == 2 else sent)[pair][short_transport(conns.vias[via])] += count
    pairs = sent | {pair: mix for pair, mix in received.items() if pair not in sent}
    places = {host: place for place, host in enumerate(job.hosts)}
    return {
        pair: dict(sorted(pairs[pair].items(), key=lambda item: (-item[1], item[0])))
        for pair in sorted(pairs, key=lambda pair: tuple(places.get(host, len(places)) for host in pair))
    }


def _host(hosts: tuple[str, ...], number: int) -> str:
    return hosts[number] if 0 <= number < len(hosts) else "?"


def draw_transports(page: Page, job: Job) -> None:
    by_pair = mixes(job)
    if not by_pair:
        page.add("  ", ("no connection is in the logs: NCCL_DEBUG_SUBSYS lacked INIT, P2P, SHM and NET", "unknown"))
        return
    matrix = matrix_of(by_pair)
    hosts = hosts_of(by_pair)
    if len(hosts) <= HOSTS_DRAWN and _width(matrix, hosts) <= page.width:
        draw_table(page, matrix, hosts)
        page.add("  ", (MATRIX, "dim"))
    else:
        draw_listed(page, FOLDED, folded(by_pair), MIXES_SHOWN, "mix", "mixes")


def hosts_of(by_pair: Mixes) -> list[str]:
    """The hosts of all pairs, each once."""
    return list(dict.fromkeys(host for pair in by_pair for host in pair))


def matrix_of(by_pair: Mixes) -> Columns[str]:
    """A row for each host that sends, a column for each that receives."""

    def words(receiver: str, sender: str) -> Part:
        mix = by_pair.get((sender, receiver), {})
        return " ".join(f"{name} {count}" for name, count in mix.items()) or "-", _hue(mix)

    columns = {Field(host): partial(words, host) for host in hosts_of(by_pair)}
    return {Field("from \\ to"): lambda sender: (sender, "name"), **columns}


def _width(columns: Columns[str], hosts: Sequence[str]) -> int:
    return sum(
        2 + max(len(cell_of(entry).text) for entry in (field.title, *map(cell, hosts)))
        for field, cell in columns.items()
    )


@dataclass(frozen=True, slots=True)
class Folded:
    """Pairs of hosts with one mix of transports, inside nodes or `between` them, and the lines of each transport."""

    between: bool
    names: tuple[str, ...]
    pairs: list[tuple[str, str]]
    lines: Counter[str]

    @property
    def where(self) -> str:
        count = len(self.pairs)
        return f"{plural(count, 'pair')} of nodes" if self.between else f"inside {plural(count, 'node')}"


def folded(by_pair: Mixes) -> list[Folded]:
    """Inside nodes first, then between them; of either the most pairs first."""
    groups: dict[tuple[bool, tuple[str, ...]], Folded] = {}
    for (a, b), mix in by_pair.items():
        key = a != b, tuple(sorted(mix))
        group = groups.setdefault(key, Folded(*key, [], Counter()))
        group.pairs.append((a, b))
        group.lines.update(mix)
    return sorted(groups.values(), key=lambda group: (group.between, -len(group.pairs), group.names))


FOLDED: Columns[Folded] = {
    Field("pairs"): lambda fold: Cell(fold.where, len(fold.pairs)),
    Field("over, lines", least=24): lambda fold: (
        ", ".join(f"{name} {count}" for name, count in fold.lines.most_common()), _hue(fold.lines)
    ),
    Field("hosts", least=12): lambda fold: (
        spell_hosts([host for pair in fold.pairs for host in pair], 200), "dim"
    ),
}  # fmt: skip
"""Pairs with one mix of transports stand on one line."""


def _hue(mix: Collection[str]) -> str:
    if not mix:
        return "dim"
    if any(name.startswith("Socket") for name in mix):
        return "doubtful"
    return "nvlink" if set(mix) == {"P2P"} else "close" if all(name.endswith("+GDR") for name in mix) else ""
