"""`--transports`: what every pair of nodes talks over, as a matrix, or folded where there are many nodes."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from functools import partial

from topodiag.lazy import dataclass
from topodiag.model.job import Job
from topodiag.model.job_rings import short_transport
from topodiag.report.grid import Cell, Columns, Field, cell_of, draw_listed, draw_table
from topodiag.report.job.words import spell_hosts
from topodiag.report.text import Page, Part
from topodiag.words.units import plural

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
