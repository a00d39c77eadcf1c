"""A layout on its cluster: what files, a rule or a job's logs say of both, brought together.

>>> from topodiag.app.case.place_options import PlaceOptions
>>> made = open_placement(PlaceOptions(system="dgx-h100", nodes=32, leaf=8, rule="cyclic", ranks=64))
>>> made.world, made.assignment.slot[:3].tolist()
(64, [0, 8, 16])
"""

from __future__ import annotations

from dataclasses import replace

from topodiag.app.case.cluster import open_cluster
from topodiag.app.case.opening import blob_at, gathered
from topodiag.app.case.place_options import PlaceError, PlaceOptions
from topodiag.evidence.intake.gather import gather
from topodiag.evidence.intake.pieces import STDIN
from topodiag.evidence.layout.rank_files import READERS
from topodiag.lazy import dataclass
from topodiag.model.cluster import Assignment, Cluster, Demand
from topodiag.model.errors import InputError
from topodiag.model.job import Job
from topodiag.model.layout import Layout
from topodiag.model.place_map import RankHosts
from topodiag.placement.job_groups import joined_by_nvlink
from topodiag.placement.rank_nodes import only_used, rank_nodes_of, ranks_of
from topodiag.placement.seats import assign, by_rule, check_room


@dataclass(frozen=True, slots=True)
class LayoutRead:
    """Where ranks sit: by the logs of `job` where there are logs, else by a launcher's file; None where nothing says
    it. `declared` is the launcher's file where both are given, to be compared with the logs."""

    ranks: RankHosts | None = None
    job: Job | None = None
    declared: RankHosts | None = None


@dataclass(frozen=True, slots=True)
class Placement:
    """`world` ranks on a cluster; `assignment` is None where nothing says where they sit, `read` is what files and logs
    say of it. They talk in the groups of `layout` or in `groups`; without both in the communicators of the job that was
    read."""

    cluster: Cluster
    assignment: Assignment | None
    world: int
    read: LayoutRead
    layout: Layout | None = None
    groups: tuple[Demand, ...] = ()


def open_placement(options: PlaceOptions) -> Placement:
    """Cluster, layout and groups, checked against each other: without a topology file and a number of nodes, the nodes
    are those of the layout. Raises TopodiagError with one line for the reader."""
    groups = _groups(options.groups) if options.groups else ()
    layout = options.layout
    read = _read_layout(options)
    cluster = open_cluster(options, seen=rank_nodes_of(read.ranks, read.job))
    source = options.system or options.topology or options.bundles or options.nodes or options.free
    if read.ranks is not None and not (source or read.ranks.whole):
        cluster = only_used(cluster, read.ranks)
    opened = opened_on(cluster, read, _rank_count(options, groups), options.rule)
    cluster, world, assignment = opened.cluster, opened.world, opened.assignment
    if not cluster.free:
        raise PlaceError("no GPU of the cluster is usable", hint="see --free, --exclude and the nodes of --topology")
    notes = (*cluster.notes, *options.left)
    if layout is not None:
        if not _rank_count(options, ()) and (assignment is None or options.rule):
            # Nobody says how many: as many whole replicas as the free GPUs hold.
            world -= world % layout.least_world
            if not world:
                why = f"{layout.least_world} ranks of one replica do not fit on {cluster.free} usable GPUs"
                raise PlaceError(why, hint="take in more nodes, or give smaller sizes")
            if over := opened.world - world:
                rest = f"{over} of {opened.world} GPUs are left over (--world-size)"
                notes = (*notes, f"{world} ranks: as many whole replicas as fit; {rest}")
            assignment = None if assignment is None else Assignment(assignment.slot[:world])
        layout = layout.for_world(world)
    cluster = replace(cluster, notes=notes)
    return Placement(cluster, assignment, world, read, layout, groups)


def _groups(path: str) -> tuple[Demand, ...]:
    from topodiag.evidence.layout.rank_files import read_groups  # noqa: PLC0415 - YAML, for this file only

    return read_groups(blob_at(path))


def _rank_count(options: PlaceOptions, groups: tuple[Demand, ...]) -> int:
    """The ranks that the options ask for, 0 where they leave it open."""
    if options.ranks:
        return options.ranks
    if options.layout is not None and options.layout.dp:
        return options.layout.world
    return max(int(group.groups.max()) for group in groups) + 1 if groups else 0


def opened_on(cluster: Cluster, read: LayoutRead, world: int = 0, rule: str = "") -> Placement:
    """A layout that was read, or that a launcher's rule makes, on its cluster; `world` 0 is as many ranks as it has.
    Raises TopodiagError."""
    if read.job is not None:
        cluster = joined_by_nvlink(cluster, read.job)
    if read.ranks is not None:
        cluster = replace(cluster, notes=(*cluster.notes, *read.ranks.notes))
        assignment = assign(cluster, read.ranks, world)
    elif rule:
        assignment = by_rule(cluster, rule, world)
    else:
        check_room(cluster, world)
        return Placement(cluster, None, world or cluster.free, read)
    return Placement(cluster, assignment, assignment.ranks, read)


def _read_layout(options: PlaceOptions) -> LayoutRead:
    """The ranks as the options say. Raises InputError, and PlaceError where two options say where ranks sit."""
    files = [name for name in READERS if getattr(options, name)]
    given = [getattr(options, name) for name in files] or list(options.logs[:1])
    given += ["--rule"] if options.rule else []
    if len(given) > 1:
        raise PlaceError(f"{given[0]} and {given[1]} both say where ranks sit: give one")
    declared = None
    if files:
        path = getattr(options, files[0])
        try:
            declared = READERS[files[0]](blob_at(path))
        except InputError as error:
            raise _foreign(path, error) from None
    if not options.logs:
        return LayoutRead(declared)
    from topodiag.app.case.jobs import job_case  # noqa: PLC0415 - numpy, which only logs need

    jobs = job_case(gathered(options.logs, quick=True)).jobs
    if len(jobs) != 1:
        hint = "give the logs of one job" if jobs else "are they NCCL's, with NCCL_DEBUG=INFO?"
        raise InputError(options.logs[0], f"holds {len(jobs)} jobs", hint=hint)
    return LayoutRead(ranks_of(jobs[0], options.logs[0]), jobs[0], declared)


def _foreign(path: str, error: InputError) -> InputError:
    """The error of a reader of layouts, or, where the file is what another command reads, that command."""
    if path == STDIN:
        return error
    try:
        pieces = gather([path]).pieces
    except InputError:
        return error
    for piece in pieces:
        if piece.path == path and piece.command and " place " not in piece.command:
            return InputError(path, f"is {piece.words}; {piece.command} reads it")
    return error
