"""`--transports`: what every pair of nodes talks over, as a matrix, or folded where there are many nodes."""

from __future__ import annotations

from collections import Counter, defaultdict

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


def _draw_folded(page: Page, by_pair: dict[tuple[str, str], Mix]) -> None:
    """Pairs with one mix of transports stand on one line: inside nodes first, then between them."""
    groups: dict[tuple[bool, tuple[str, ...]], list[tuple[str, str]]] = defaultdict(list)
    for (a, b), mix in by_pair.items():
        groups[a != b, tuple(sorted(mix))].append((a, b))
    lines = sorted(groups.items(), key=lambda item: (item[0][0], -len(item[1]), item[0][1]))
    shown = page.some(lines, MIXES_SHOWN)
    for (between, names), pairs in shown:
        totals = Counter[str]()
        for pair in pairs:
            totals.update(by_pair[pair])
        words = ", ".join(f"{name} {count}" for name, count in totals.most_common())
        places = spell_hosts([host for pair in pairs for host in pair], 200)
        what = f"{plural(len(pairs), 'pair')} of nodes" if between else f"inside {plural(len(pairs), 'node')}"
        page.add(page.text("  ", f"{what:<20}", "  "), (words, _hue(dict.fromkeys(names, 1))), (f"  {places}", "dim"))
    page.add_more(len(lines) - len(shown), "mix", "mixes")


def _hue(mix: Mix) -> str:
    if not mix:
        return "dim"
    if any(name.startswith("Socket") for name in mix):
        return "doubtful"
    return "nvlink" if set(mix) == {"P2P"} else "close" if all(name.endswith("+GDR") for name in mix) else ""
