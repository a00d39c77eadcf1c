"""`--transports`: what every pair of nodes talks over, as a matrix, or folded where there are many nodes."""

from __future__ import annotations

from collections import Counter, defaultdict

from topodiag.lazy import dataclass
from topodiag.model.job import Job
from topodiag.model.transports import short_transport
from topodiag.report.grid import Field, draw_grid
from topodiag.report.job.words import spell_hosts
from topodiag.report.text import Page, Part
from topodiag.words.fold import plural

HOSTS_DRAWN = 12
MIXES_SHOWN = 12

Mix = dict[str, int]


def mixes(job: Job) -> dict[tuple[str, str], Mix]:
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
    hosts = list(dict.fromkeys(host for pair in by_pair for host in pair))
    if len(hosts) <= HOSTS_DRAWN and _draw_matrix(page, hosts, by_pair):
        page.add("  ", ("rows send, columns receive; lines of the log by transport", "dim"))
        return
    _draw_folded(page, by_pair)


def _draw_matrix(page: Page, hosts: list[str], by_pair: dict[tuple[str, str], Mix]) -> bool:
    """Whether it fits."""
    words = {pair: " ".join(f"{name} {count}" for name, count in mix.items()) for pair, mix in by_pair.items()}
    widths = [max(len(host), *(len(words.get((row, host), "-")) for row in hosts)) for host in hosts]
    if 2 + max(map(len, hosts)) + sum(width + 2 for width in widths) > page.width:
        return False
    fields = (Field("from \\ to"), *(Field(host) for host in hosts))
    rows: list[list[Part]] = [
        [(row, "name"), *((words.get((row, host), "-"), _hue(by_pair.get((row, host), {}))) for host in hosts)]
        for row in hosts
    ]
    draw_grid(page, fields, rows)
    return True


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


def folded(by_pair: dict[tuple[str, str], Mix]) -> list[Folded]:
    """Inside nodes first, then between them; of either the most pairs first."""
    groups: dict[tuple[bool, tuple[str, ...]], Folded] = {}
    for (a, b), mix in by_pair.items():
        key = a != b, tuple(sorted(mix))
        group = groups.setdefault(key, Folded(*key, [], Counter()))
        group.pairs.append((a, b))
        group.lines.update(mix)
    return sorted(groups.values(), key=lambda group: (group.between, -len(group.pairs), group.names))


def _draw_folded(page: Page, by_pair: dict[tuple[str, str], Mix]) -> None:
    """Pairs with one mix of transports stand on one line."""
    for group in page.listed(folded(by_pair), MIXES_SHOWN, "mix", "mixes"):
        words = ", ".join(f"{name} {count}" for name, count in group.lines.most_common())
        places = spell_hosts([host for pair in group.pairs for host in pair], 200)
        hue = _hue(dict.fromkeys(group.names, 1))
        page.add(page.text("  ", f"{group.where:<20}", "  "), (words, hue), (f"  {places}", "dim"))


def _hue(mix: Mix) -> str:
    if not mix:
        return "dim"
    if any(name.startswith("Socket") for name in mix):
        return "doubtful"
    return "nvlink" if set(mix) == {"P2P"} else "close" if all(name.endswith("+GDR") for name in mix) else ""
