"""The wiring of `topodiag place`: a layout, from a launcher's file, a rule or a job's logs, on its cluster.

>>> from topodiag.app.place import ClusterOptions, LayoutOptions, open_cluster, open_layout
>>> made = open_cluster(ClusterOptions(system="dgx-h100", nodes=32, leaf=8))
>>> assignment, world = open_layout(made, LayoutOptions(rule="cyclic"), world=64)
>>> world, assignment.slot[:3].tolist()
(64, [0, 8, 16])
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from topodiag.app.cluster import ClusterOptions, PlaceError, Seen, open_cluster, stdin_of
from topodiag.evidence.intake.one_file import open_blob
from topodiag.evidence.layout.rank_files import (
    read_hostfile,
    read_map,
    read_rankfile,
    read_slurm_hostfile,
    read_torchrun,
)
from topodiag.model.cluster import Assignment, Cluster
from topodiag.model.errors import InputError
from topodiag.model.job_domains import domains
from topodiag.model.rank_hosts import RankHosts
from topodiag.placement.job_groups import joined_by_nvlink
from topodiag.placement.seats import assign, by_rule, check_room

if TYPE_CHECKING:
    from topodiag.model.job import Job

__all__ = ["ClusterOptions", "LayoutOptions", "Opened", "PlaceError", "open_cluster", "open_layout", "open_placement"]

RACK_SYSTEM, RACK_GPUS = "gb200-nvl72", 4
"""What nodes are taken for whose log shows NVLink between them, and the most GPUs that such a node has."""


@dataclass(frozen=True, slots=True)
class LayoutOptions:
    """Where ranks sit: one of the files, a job's logs, or the launcher's `rule`. All empty: no layout is given."""

    hostfile: str = ""
    rankfile: str = ""
    slurm_hostfile: str = ""
    torchrun: str = ""
    map: str = ""
    logs: tuple[str, ...] = ()
    rule: str = ""


@dataclass(frozen=True, slots=True)
class Opened:
    """A cluster with the layout on it; `assignment` is None where none was asked for, `job` the one of the logs."""

    cluster: Cluster
    assignment: Assignment | None
    world: int
    job: Job | None = None


_READERS = {
    "hostfile": read_hostfile,
    "rankfile": read_rankfile,
    "slurm_hostfile": read_slurm_hostfile,
    "torchrun": read_torchrun,
    "map": read_map,
}


def open_placement(cluster: ClusterOptions, layout: LayoutOptions, world: int = 0) -> Opened:
    """Cluster and layout in one: without a topology file and a number of nodes, the nodes are those of the layout.
    `world` 0 is as many ranks as the layout has. Raises TopodiagError with one line for the reader."""
    given = [name for name in (*_READERS, "logs", "rule") if getattr(layout, name)]
    if len(given) > 1:
        raise PlaceError(f"--{_flag(given[0])} and --{_flag(given[1])} both say where ranks sit: give one")
    ranks, job = _ranks(layout)
    made = open_cluster(cluster, seen=_seen(ranks, job))
    if job is not None:
        made = joined_by_nvlink(made, job)
    if ranks is not None:
        if not (cluster.system or cluster.topology or cluster.bundles or cluster.nodes or cluster.free or ranks.whole):
            made = _only_used(made, ranks)
        made = replace(made, notes=(*made.notes, *ranks.notes))
        assignment = assign(made, ranks, world)
    elif layout.rule:
        assignment = by_rule(made, layout.rule, world)
    else:
        check_room(made, world)
        return Opened(made, None, world or made.free, job)
    return Opened(made, assignment, assignment.ranks, job)


def _only_used(cluster: Cluster, ranks: RankHosts) -> Cluster:
    """The cluster with no GPUs but those that the ranks sit on: where nobody says what the nodes are, the others of
    the system that they are taken for may not be there."""
    used = np.zeros_like(cluster.usable)
    used.ravel()[assign(cluster, ranks).slot] = True
    width = int(np.flatnonzero(used.any(axis=0)).max(initial=0)) + 1
    note = "the GPUs at hand are those of the ranks (--system NAME for all that the nodes have)"
    notes = cluster.notes if used.all() else (*cluster.notes, note)
    return replace(cluster, usable=used[:, :width], notes=notes)


def open_layout(cluster: Cluster, layout: LayoutOptions, world: int = 0) -> tuple[Assignment, int]:
    """The layout on a cluster and its number of ranks; block where nothing is said. Raises TopodiagError."""
    ranks, _ = _ranks(layout)
    assignment = by_rule(cluster, layout.rule or "block", world) if ranks is None else assign(cluster, ranks, world)
    return assignment, assignment.ranks


def _flag(name: str) -> str:
    return name.replace("_", "-")


def _seen(ranks: RankHosts | None, job: Job | None) -> Seen:
    if ranks is None:
        return Seen()
    small = int(np.bincount(ranks.host).max(initial=0)) <= RACK_GPUS
    if job is None or not small or not any(each.mnnvl for each in job.communicators):
        return Seen(ranks.hosts)
    of = domains(job)
    return Seen(ranks.hosts, RACK_SYSTEM, tuple(of.get(host, host) for host in ranks.hosts))


# --- the layout -----------------------------------------------------------------------------------------------


def _ranks(layout: LayoutOptions) -> tuple[RankHosts | None, Job | None]:
    for name, read in _READERS.items():
        path = getattr(layout, name)
        if path:
            return read(open_blob(path, stdin_of(path))), None
    if not layout.logs:
        return None, None
    from topodiag.app.diagnose import diagnose_logs  # noqa: PLC0415
    from topodiag.evidence.layout.job_ranks import ranks_of  # noqa: PLC0415 - only with logs

    jobs = diagnose_logs(layout.logs).jobs
    if len(jobs) != 1:
        hint = "give the logs of one job" if jobs else "are they NCCL's, with NCCL_DEBUG=INFO?"
        raise InputError(layout.logs[0], f"holds {len(jobs)} jobs", hint=hint)
    return ranks_of(jobs[0], layout.logs[0]), jobs[0]
