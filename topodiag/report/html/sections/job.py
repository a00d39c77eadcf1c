"""Each job: where its ranks ran with hosts alike folded, its communicators, what talks over what, its settings."""

from __future__ import annotations

from topodiag.draw.matrix import draw_matrix
from topodiag.model.job import Job
from topodiag.model.maker import dialect_of
from topodiag.report.grid import Cell, Columns, Field
from topodiag.report.html.interface import Grid, Section, Sheet, drawings_of, grid_of
from topodiag.report.job.comms import FAMILIES, FOLDED, MATRIX, families, folded, hosts_of, matrix_of, mixes
from topodiag.report.job.ranks import nics_by_rank
from topodiag.report.job.table import places_of, software_of, summary_of
from topodiag.report.job.words import spell_hosts, spell_ranks
from topodiag.report.text import plain
from topodiag.words.units import fold_labels, grouped

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
    """What the terminal says of the job in its first lines."""
    head = {"ranks": " · ".join(map(plain, places_of(job))), "software": " · ".join(software_of(job))}
    return [(label, words) for label, words in (head | summary_of(job, verbose=True)).items() if words]


def _grids(job: Job, number: int) -> list[Grid]:
    caption = "Communicators, those alike together"
    comms = grid_of(f"comms-{number}", caption, FAMILIES, families(job), ROWS_SHOWN, CSV)
    return [_ranks(job, number), comms, _transports(job, number), _settings(job, number)]


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
        Field("Nodes"): lambda row: spell_hosts(row[0], 200),
        Field("Alike", right=True): lambda row: Cell(f"x {len(row[0])}", len(row[0])),
        Field("Ranks"): lambda row: Cell(spell_ranks(row[1]), min(row[1])),
        Field(dialect_of(job).say("CUDA device"), right=True): lambda row: (
            row[2][0] if row[2][0] >= 0 else Cell("", -1)
        ),
        Field("Bus id"): lambda row: row[2][1],
        Field("Network devices"): lambda row: row[2][2],
    }
    return grid_of(f"ranks-{number}", "Where the ranks ran", columns, places, ROWS_SHOWN, CSV)


def _transports(job: Job, number: int) -> Grid:
    by_pair = mixes(job)
    hosts = hosts_of(by_pair)
    if len(hosts) <= HOSTS_IN_MATRIX:
        return grid_of(f"transports-{number}", f"Transports: {MATRIX}", matrix_of(by_pair), hosts)
    caption = "Transports, pairs alike together"
    return grid_of(f"transports-{number}", caption, FOLDED, folded(by_pair), ROWS_SHOWN, CSV)


Setting = tuple[str, str, list[str], bool]
"""A variable, a value, the hosts of the processes that have it, and whether others have another."""
_SETTINGS: Columns[Setting] = {
    Field("Name"): lambda row: row[0],
    Field("Value"): lambda row: (row[1], "warning" if row[3] else ""),
    Field("Processes", right=True): lambda row: len(row[2]),
    Field("Nodes"): lambda row: spell_hosts(row[2], 200),
}


def _settings(job: Job, number: int) -> Grid:
    rows: list[Setting] = [
        (name, value, [job.processes[at].host for at in processes], len(values) > 1)
        for name, values in sorted(job.settings().items())
        for value, processes in sorted(values.items(), key=lambda item: -len(item[1]))
    ]
    return grid_of(f"settings-{number}", "Settings in force", _SETTINGS, rows, ROWS_SHOWN, CSV)
