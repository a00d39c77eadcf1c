"""Each job: where its ranks ran with hosts alike folded, its communicators, what talks over what, its settings."""

from __future__ import annotations

from collections import Counter

import numpy as np

from topodiag.draw.matrix import draw_matrix
from topodiag.model.job import Job
from topodiag.model.maker import dialect_of
from topodiag.report.html.interface import Cell, Columns, Grid, Section, Sheet, drawings_of, grid_of
from topodiag.report.job.ranks import nics_by_rank
from topodiag.report.job.transports import Folded, Mix, folded, mixes
from topodiag.report.job.words import (
    Family,
    families,
    init_words,
    slowest_s,
    spell_channels,
    spell_connections,
    spell_hosts,
    spell_nodes,
    spell_ranks,
)
from topodiag.words.fold import fold_labels, grouped

JOBS_SHOWN = 8
MATRICES_SHOWN = 3
ROWS_SHOWN = 400
CSV = "rows: topodiag logs --csv"
HOSTS_IN_MATRIX = 24
"""More hosts than these are folded by what they talk over."""


def section(sheet: Sheet) -> Section | None:
    """None without a job."""
    jobs = sheet.result.jobs
    if not jobs:
        return None
    shown = [
        {"name": job.name or "job", "facts": _facts(job), "notes": list(job.notes), "grids": _grids(job, number)}
        for number, job in enumerate(jobs[:JOBS_SHOWN])
    ]
    matrices = [draw_matrix(job, prefix=f"matrix{number}") for number, job in enumerate(jobs[:MATRICES_SHOWN])]
    drawings = drawings_of(*(("Ranks by transport", svg) for svg in matrices))
    values = {"jobs": shown, "left": max(len(jobs) - JOBS_SHOWN, 0), "drawings": drawings}
    return Section("job", "Ranks and communicators", values)


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
    caption = "Communicators, those alike together"
    comms = grid_of(f"comms-{number}", caption, _FAMILIES, families(job), ROWS_SHOWN, CSV)
    return [
        grid for grid in (_ranks(job, number), comms, _transports(job, number), _settings(job, number)) if grid.rows
    ]


def _ranks(job: Job, number: int) -> Grid:
    """A row for each place in a node that is alike on all hosts of a kind."""
    nics = nics_by_rank(job)
    by_host = grouped(
        (rank.host, ((rank.cuda_dev, rank.bus_id, fold_labels(nics.get(rank.rank, ()))), rank.rank))
        for rank in job.ranks
    )
    kinds = grouped((tuple(kind for kind, _ in placed), host) for host, placed in by_host.items())
    places = [
        (hosts, [by_host[host][place][1] for host in hosts], device)
        for alike, hosts in kinds.items()
        for place, device in enumerate(alike)
    ]
    columns: Columns[tuple[list[str], list[int], tuple[int, str, str]]] = {
        "Nodes": lambda row: spell_hosts(row[0], 200),
        ">Alike": lambda row: Cell(f"x {len(row[0])}", len(row[0])),
        "Ranks": lambda row: Cell(spell_ranks(row[1]), min(row[1])),
        f">{dialect_of(job).say('CUDA device')}": lambda row: Cell(str(row[2][0]) if row[2][0] >= 0 else "", row[2][0]),
        "Bus id": lambda row: row[2][1],
        "Network devices": lambda row: row[2][2],
    }
    return grid_of(f"ranks-{number}", "Where the ranks ran", columns, places, ROWS_SHOWN, CSV)


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


def _transports(job: Job, number: int) -> Grid:
    by_pair = mixes(job)
    hosts = list(dict.fromkeys(host for pair in by_pair for host in pair))
    if len(hosts) <= HOSTS_IN_MATRIX:
        rows = [[Cell(row), *(_mix(by_pair.get((row, host), {})) for host in hosts)] for row in hosts]
        return Grid(f"transports-{number}", "Transports: rows send, columns receive; lines of the log", ("", *hosts),
                    rows)  # fmt: skip
    caption = "Transports, pairs alike together"
    return grid_of(f"transports-{number}", caption, _TRANSPORTS, folded(by_pair), ROWS_SHOWN, CSV)


_TRANSPORTS: Columns[Folded] = {
    "Pairs": lambda fold: Cell(fold.where, len(fold.pairs)),
    "Over": lambda fold: _mix(dict.fromkeys(fold.names, 0)),
    ">Lines": lambda fold: fold.lines.total(),
    "Nodes": lambda fold: spell_hosts([host for pair in fold.pairs for host in pair], 300),
}


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


def _settings(job: Job, number: int) -> Grid:
    rows: list[Setting] = [
        (name, value, [job.processes[at].host for at in processes], len(values) > 1)
        for name, values in sorted(job.settings().items())
        for value, processes in sorted(values.items(), key=lambda item: -len(item[1]))
    ]
    return grid_of(f"settings-{number}", "Settings in force", _SETTINGS, rows, ROWS_SHOWN, CSV)
