"""Each job: where its ranks ran with hosts alike folded, its communicators, what talks over what, its settings."""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np

from topodiag.draw.matrix import draw_matrix
from topodiag.model.job import Job
from topodiag.model.maker import dialect_of
from topodiag.report.html.interface import Cell, Columns, Drawing, Grid, Section, Sheet, grid_of
from topodiag.report.job.families import Family, families, init_words
from topodiag.report.job.ranks import nics_by_rank
from topodiag.report.job.transports import Mix, mixes
from topodiag.report.job.words import (
    slowest_s,
    spell_channels,
    spell_connections,
    spell_hosts,
    spell_nodes,
    spell_ranks,
)
from topodiag.words.fold import fold_labels, plural

Row = list[Cell | str]

JOBS_SHOWN = 8
MATRICES_SHOWN = 3
ROWS_SHOWN = 400
CSV = "rows: topodiag logs --csv"
HOSTS_IN_MATRIX = 24
"""More hosts than these are folded by what they talk over."""


def section(sheet: Sheet) -> Section | None:
    """None without a job."""
    jobs = sheet.result.jobs
    drawings = (*sheet.of("job"), *_matrices(jobs))
    if not (jobs or drawings):
        return None
    shown = [
        {"name": job.name or "job", "facts": _facts(job), "notes": list(job.notes), "grids": _grids(job, number)}
        for number, job in enumerate(jobs[:JOBS_SHOWN])
    ]
    values = {"jobs": shown, "left": max(len(jobs) - JOBS_SHOWN, 0), "drawings": drawings}
    return Section("job", "Ranks and communicators", values)


def _matrices(jobs: tuple[Job, ...]) -> list[Drawing]:
    """Ranks by transport, of each job whose logs show connections."""
    drawn = (draw_matrix(job, prefix=f"matrix{number}") for number, job in enumerate(jobs[:MATRICES_SHOWN]))
    return [Drawing("job", "Ranks by transport", svg, inline=True) for svg in drawn if svg]


def _facts(job: Job) -> list[tuple[str, str]]:
    kinds = Counter(process.network for process in job.processes if process.network)
    pairs = [
        ("Ranks", str(job.world_size if job.world_size > 0 else len(job.ranks) or "")),
        ("Nodes", f"{len(job.hosts)}: {spell_hosts(job.hosts, 300)}" if job.hosts else ""),
        (job.library, ", ".join(job.nccl_versions)),
        ("Network", ", ".join(kinds)),
        ("Files", str(len(job.files)) if job.files else ""),
    ]
    if 0 < len(job.ranks) < job.world_size:
        pairs[0] = ("Ranks", f"{job.world_size}, {len(job.ranks)} of them seen")
    return [pair for pair in pairs if pair[1]]


def _grids(job: Job, number: int) -> list[Grid]:
    grids = [_ranks(job, number), _communicators(job, number), _transports(job, number), _settings(job, number)]
    return [grid for grid in grids if grid is not None]


def _ranks(job: Job, number: int) -> Grid | None:
    """A row for each place in a node that is alike on all hosts of a kind."""
    if not job.ranks:
        return None
    nics = nics_by_rank(job)
    by_host: dict[str, list[tuple[tuple[int, str, str], int]]] = defaultdict(list)
    for rank in job.ranks:
        kind = (rank.cuda_dev, rank.bus_id, fold_labels(nics.get(rank.rank, ())))
        by_host[rank.host].append((kind, rank.rank))
    kinds: dict[tuple[tuple[int, str, str], ...], list[str]] = defaultdict(list)
    for host, placed in by_host.items():
        kinds[tuple(kind for kind, _ in placed)].append(host)
    rows: list[Row] = []
    for alike, hosts in kinds.items():
        for place, (gpu, bus_id, devices) in enumerate(alike):
            ranks = [by_host[host][place][1] for host in hosts]
            rows.append([
                Cell(spell_hosts(hosts, 200)), Cell(f"x {len(hosts)}", len(hosts)),
                Cell(spell_ranks(ranks), min(ranks)), Cell(str(gpu) if gpu >= 0 else "", gpu), bus_id, devices,
            ])  # fmt: skip
    heads = ("Nodes", "Alike", "Ranks", dialect_of(job).say("CUDA device"), "Bus id", "Network devices")
    return _grid(f"ranks-{number}", "Where the ranks ran", heads, rows, {1, 3})


def _init(family: Family) -> Cell:
    words, slow, first = init_words(*family.members), slowest_s(*family.members), family.first
    late = not first.init_complete and not first.inferred
    text = words[0] if isinstance(words, tuple) else str(words)
    return Cell(text, slow if np.isfinite(slow) else -1.0, "warning" if late else "")


_FAMILIES: Columns[Family] = {
    "Communicator": lambda family: family.name,
    ">Count": lambda family: len(family.members),
    ">Ranks": lambda family: family.first.nranks,
    ">Nodes": lambda family: spell_nodes(family.first),
    "Channels": lambda family: spell_channels(family.first),
    "Connections": lambda family: spell_connections(family.transports),
    "Algorithms": lambda family: family.algorithms,
    "Init": _init,
    "Members": lambda family: family.ranks,
}


def _communicators(job: Job, number: int) -> Grid | None:
    name, caption = f"comms-{number}", "Communicators, those alike together"
    return grid_of(name, caption, _FAMILIES, families(job), ROWS_SHOWN, CSV) if job.communicators else None


def _transports(job: Job, number: int) -> Grid | None:
    by_pair = mixes(job)
    if not by_pair:
        return None
    hosts = list(dict.fromkeys(host for pair in by_pair for host in pair))
    if len(hosts) <= HOSTS_IN_MATRIX:
        rows: list[Row] = [[Cell(row), *(_mix(by_pair.get((row, host), {})) for host in hosts)] for row in hosts]
        return Grid(f"transports-{number}", "Transports: rows send, columns receive; lines of the log", ("", *hosts),
                    rows)  # fmt: skip
    groups: dict[tuple[bool, tuple[str, ...]], list[tuple[str, str]]] = defaultdict(list)
    for (a, b), mix in by_pair.items():
        groups[a != b, tuple(sorted(mix))].append((a, b))
    folded: list[Row] = []
    for (between, names), pairs in sorted(groups.items(), key=lambda item: (item[0][0], -len(item[1]), item[0][1])):
        totals: Counter[str] = Counter()
        for pair in pairs:
            totals.update(by_pair[pair])
        where = f"{plural(len(pairs), 'pair')} of nodes" if between else f"inside {plural(len(pairs), 'node')}"
        folded.append([Cell(where, len(pairs)), _mix(dict.fromkeys(names, 0)),
                       Cell(str(totals.total()), totals.total()),
                     Cell(spell_hosts([host for pair in pairs for host in pair], 300))])  # fmt: skip
    heads = ("Pairs", "Over", "Lines", "Nodes")
    return _grid(f"transports-{number}", "Transports, pairs alike together", heads, folded,
                 {2})  # fmt: skip


def _mix(mix: Mix) -> Cell:
    """What a pair talks over; sockets are marked, since they are seldom meant."""
    words = ", ".join(f"{name} {count}" if count else name for name, count in mix.items()) or "-"
    return Cell(words, mark="warning" if any(name.startswith("Socket") for name in mix) else "")


Setting = tuple[str, str, list[str], bool]
"""A variable, a value, the hosts of the processes that have it, and whether others have another."""
_SETTINGS: Columns[Setting] = {
    "Name": lambda row: row[0],
    "Value": lambda row: Cell(row[1], mark="warning" if row[3] else ""),
    ">Processes": lambda row: len(row[2]),
    "Nodes": lambda row: spell_hosts(row[2], 200),
}


def _settings(job: Job, number: int) -> Grid | None:
    rows: list[Setting] = [
        (name, value, [job.processes[at].host for at in processes], len(values) > 1)
        for name, values in sorted(job.settings().items())
        for value, processes in sorted(values.items(), key=lambda item: -len(item[1]))
    ]
    return grid_of(f"settings-{number}", "Settings in force", _SETTINGS, rows, ROWS_SHOWN, CSV) if rows else None


def _grid(name: str, caption: str, heads: tuple[str, ...], rows: list[Row], right: set[int]) -> Grid:
    left = len(rows) - ROWS_SHOWN
    words = f"{left} more {CSV}" if left > 0 else ""
    return Grid(name, caption, heads, rows[:ROWS_SHOWN], frozenset(right), words)
