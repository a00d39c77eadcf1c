"""What `topodiag place` is asked, the cluster that it is about (a system by its name, files of the site, or bundles of
its nodes), and the layout on it: what files, a rule or a job's logs say of both, brought together.

>>> from topodiag.app.case.placement import PlaceOptions, open_cluster, open_placement
>>> made = open_cluster(PlaceOptions(system="dgx-h100", nodes=32, leaf=8, oversubscription=2.0))
>>> made.nodes, made.free, [(level.kind, level.groups, level.gbs) for level in made.levels]
(32, 256, [('leaf', 4, 48.0), ('spine', 1, 24.0)])
>>> made = open_placement(PlaceOptions(system="dgx-h100", nodes=32, leaf=8, rule="cyclic", ranks=64))
>>> made.world, made.assignment.slot[:3].tolist()
(64, [0, 8, 16])
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np

from topodiag.app.case.opening import blob_at, gathered
from topodiag.app.case.system import machine_of, system_of
from topodiag.cost.questions import ModelError
from topodiag.cost.tiers import Machine, UnknownSystemError, find_system
from topodiag.evidence.cluster.files import read_cluster
from topodiag.evidence.cluster.slurm import read_free
from topodiag.evidence.intake.collected import resolve
from topodiag.evidence.intake.gather import gather
from topodiag.evidence.intake.pieces import STDIN
from topodiag.evidence.layout.rank_files import READERS, read_groups
from topodiag.lazy import dataclass
from topodiag.model.cluster import Assignment, Bools, Cluster, Demand, RankHosts
from topodiag.model.cluster_facts import ClusterFacts, Partition, merged, partition_of, some_of
from topodiag.model.errors import InputError, TopodiagError
from topodiag.model.finding import Input
from topodiag.model.job import Job
from topodiag.model.job_wires import wires_of
from topodiag.model.layout import Layout
from topodiag.model.result import Case
from topodiag.placement import seats
from topodiag.placement.job_groups import joined_by_nvlink
from topodiag.placement.levels import cluster_of, equal_groups, rails_of
from topodiag.words.node_sets import MAX_NODES, NodeSetError, expand

MOST_BYTES = 64 << 20
"""Bytes of a file whose checksum is taken: a table of ranks has less."""
_FILES = ("topology", "bundles", "free", *READERS, "logs", "groups")


class PlaceError(TopodiagError):
    """Options that make no cluster or no layout."""


@dataclass(frozen=True, slots=True)
class PlaceOptions:
    """The cluster: `topology` is a file, `bundles` are captures of the nodes; without both, `nodes` systems in leaves
    of `leaf` nodes or in `racks` equal racks. `nodelist` keeps only these nodes, `exclude` takes out `gpu[01-04]` or
    `gpu07:0,3`, `free` is a file of what is free. `oversubscription` None is 1, or what the file tells.

    Where ranks sit: one of the files, a job's `logs`, or the launcher's `rule`. All empty: no layout is given. With a
    file and logs the ranks sit where they ran, and the file is what was declared.

    Who talks: parallel sizes (`layout`) or a file (`groups`). `ranks` 0: as many as fit. `least_ranks` is how many a
    cluster must hold of which nothing names or counts the nodes. `left` says which of the paths given are of no use."""

    system: str = ""
    nodes: int = 0
    gpu: str = ""
    nics: tuple[int, float] | None = None
    leaf: int = 0
    racks: int = 0
    oversubscription: float | None = None
    topology: str = ""
    bundles: tuple[str, ...] = ()
    nodelist: str = ""
    exclude: tuple[str, ...] = ()
    free: str = ""
    hostfile: str = ""
    rankfile: str = ""
    slurm_hostfile: str = ""
    torchrun: str = ""
    map: str = ""
    logs: tuple[str, ...] = ()
    rule: str = ""
    layout: Layout | None = None
    groups: str = ""
    ranks: int = 0
    least_ranks: int = 0
    left: tuple[str, ...] = ()

    @property
    def inputs(self) -> tuple[Input, ...]:
        """The files and folders that the options name, each with the option as its kind."""
        named = ((name, getattr(self, name)) for name in _FILES)
        paths = ((name, path) for name, given in named for path in ([given] if isinstance(given, str) else given))
        return tuple(_input(path, name) for name, path in paths if path)


def _input(path: str, kind: str) -> Input:
    """A file with its checksum; of a folder, a stream or a file that is no table of ranks the name alone."""
    with suppress(OSError):
        if os.path.isfile(path) and os.path.getsize(path) <= MOST_BYTES:
            data = Path(path).read_bytes()
            return Input(path, kind, hashlib.sha256(data).hexdigest(), data.count(b"\n"))
    return Input(path, kind)


BUILT_IN = "built-in system"


def open_cluster(options: PlaceOptions, seen: seats.RankNodes = seats.UNSEEN) -> Cluster:
    """The cluster that the options describe; its nodes are those that were seen where nothing else names them. Raises
    InputError, PlaceError and ModelError."""
    if options.topology or options.bundles:
        word = "nodes" if options.nodes else "leaf" if options.leaf else "racks" if options.racks else ""
        if word:
            by = "topology" if options.topology else "bundles"
            raise PlaceError(f"--{word} describes a built-in system: --{by} names the nodes (--nodelist chooses)")
        facts = _described(options)
    else:
        facts = _built_in(options, seen)
    return cluster_of_facts(facts, options, seen)


def cluster_of_facts(facts: ClusterFacts, options: PlaceOptions, seen: seats.RankNodes = seats.UNSEEN) -> Cluster:
    """The cluster of a description that was read. Raises InputError, PlaceError and ModelError."""
    if options.nodelist:
        try:
            wanted = expand(options.nodelist)
            if facts.format == BUILT_IN and facts.nodes != seen.hosts and len(wanted) == len(facts.nodes):
                facts = replace(facts, nodes=tuple(wanted))  # names for nodes that only --nodes counts
            facts = facts.subset(wanted)
        except NodeSetError as error:
            raise PlaceError(f"--nodelist: {error}") from None
        except InputError as error:
            fits = f"for names of your own list as many as --nodes counts ({len(facts.nodes)}); {error.hint}"
            hint = fits if facts.format == BUILT_IN and facts.nodes != seen.hosts else error.hint
            raise PlaceError(f"--nodelist: {error.message}", hint=hint) from None
    if options.nics is None and seen.nics is not None:
        options, facts = replace(options, nics=seen.nics), replace(facts, rails=0)
    machine, texts = _machine(options, facts, seen.system)
    if options.nics == seen.nics and seen.nics_said:
        texts = (*texts, seen.nics_said)
    if facts.format == BUILT_IN and machine.domain == machine.gpus_per_node:
        facts = replace(facts, domain=None)  # what a log shows joins the nodes of any system: joined_by_nvlink
    rails = facts.rails or rails_of(options.system or facts.system or seats.DEFAULT_SYSTEM, options.nics)
    cluster = cluster_of(facts, machine, rails=rails, oversubscription=options.oversubscription, preface=texts)
    return replace(cluster, usable=_free(cluster, options))


def _described(options: PlaceOptions) -> ClusterFacts:
    """What files say: machines from their bundles, the network from its file."""
    network = read_cluster(blob_at(resolve(options.topology))) if options.topology else None
    if network is not None and not options.bundles:
        return network
    from topodiag.fleet.cluster import read_bundles  # noqa: PLC0415 - all readers of nodes

    machines = read_bundles([resolve(path) for path in options.bundles])
    return machines if network is None else merged(network, machines)


def _built_in(options: PlaceOptions, seen: seats.RankNodes) -> ClusterFacts:
    hosts = seen.hosts
    count = options.nodes or len(hosts)
    if not count:  # nodes that hold the ranks of the job; 1 where nothing counts them
        gpus = machine_of(options.system, 1, gpu=options.gpu).gpus_per_node if options.system else 8
        count = -(-(options.ranks or options.least_ranks) // gpus) or 1
    if count > MAX_NODES:
        raise PlaceError(f"--nodes {count}: more than {MAX_NODES}")
    width = max(3, len(str(count)))
    names = tuple(hosts) if hosts and not options.nodes else tuple(f"node{n:0{width}d}" for n in range(1, count + 1))
    named = options.system or seen.system
    domain = partition_of("nvlink", seen.domain) if names == hosts and seen.domain else None
    return ClusterFacts(named, BUILT_IN, names, tuple(_racks_and_leaves(options, count)), domain, system=named)


def _racks_and_leaves(options: PlaceOptions, count: int) -> Iterator[Partition]:
    """The groups that the options name, of so many nodes. Raises PlaceError where they do not fit."""
    numbers = np.arange(count)
    per_rack = -(-count // options.racks) if options.racks else 0
    if options.racks > count:
        raise PlaceError(f"--racks {options.racks} of {count} nodes: more racks than nodes")
    if options.leaf and per_rack and per_rack % options.leaf:
        raise PlaceError(f"--leaf {options.leaf} does not divide the {per_rack} nodes of a rack")
    if options.leaf:
        yield equal_groups("leaf", numbers // options.leaf)
    if per_rack and per_rack != options.leaf:
        yield equal_groups("rack", numbers // per_rack)


def _machine(options: PlaceOptions, facts: ClusterFacts, usual: str) -> tuple[Machine, tuple[str, ...]]:
    """The system that the nodes are: as asked, as the file names it, or a DGX H100, said so."""
    count, nics = len(facts.nodes), options.nics or facts.nics
    if options.system or facts.format == BUILT_IN:
        machine = machine_of(options.system or usual, count, gpu=options.gpu, nics=nics)
        return machine, () if options.system else (f"the nodes are taken for {machine.name} (--system NAME)",)
    if facts.system:
        with suppress(UnknownSystemError, ModelError):
            spec = find_system(facts.system)
            gpu = facts.gpu if facts.gpu in (spec.gpu, *spec.other_gpus) else ""
            return machine_of(facts.system, count, gpu=options.gpu or gpu, nics=nics), ()
    if facts.sample:
        machine = machine_of(facts.sample, count, gpu=options.gpu, nics=nics)
        note = f"links are NCCL's model of {facts.sample}, taken for all nodes (--system NAME)"
        return replace(machine, name=facts.system or "the nodes found", assumed=()), (note,)
    default = seats.DEFAULT_SYSTEM
    note = f"{facts.name} names no system that topodiag knows: links are those of {default} (--system NAME)"
    return machine_of(default, count, gpu=options.gpu, nics=nics), (note,)


def _free(cluster: Cluster, options: PlaceOptions) -> Bools:
    index = {name: number for number, name in enumerate(cluster.names)}
    slots = cluster.usable
    if options.free:
        slots = seats.keep_free(options.free, slots, index, read_free(blob_at(options.free)))
    try:
        return seats.take_out(slots, index, options.exclude)
    except NodeSetError as error:
        raise PlaceError(f"--exclude: {error}", hint=f"its nodes are {some_of(cluster.names)}") from None


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
    groups = read_groups(blob_at(options.groups)) if options.groups else ()
    layout = options.layout
    read = _read_layout(options)
    cluster = open_cluster(options, seen=seats.rank_nodes_of(read.ranks, read.job))
    source = options.system or options.topology or options.bundles or options.nodes or options.free
    if read.ranks is not None and not (source or read.ranks.whole):
        cluster = seats.only_used(cluster, read.ranks)
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
        assignment = seats.assign(cluster, read.ranks, world)
    elif rule:
        assignment = seats.by_rule(cluster, rule, world)
    else:
        seats.check_room(cluster, world)
        return Placement(cluster, None, world or cluster.free, read)
    return Placement(cluster, assignment, assignment.ranks, read)


def placement_of(read: LayoutRead, case: Case, *, healthy: bool = False) -> Placement:
    """Ranks on the cluster that the evidence of a case describes, else on nodes of the system that captures show. A
    `healthy` one is not made of sockets because the job fell back to them. Raises TopodiagError."""
    assert read.ranks is not None  # noqa: S101 - the callers have them
    system = system_of(case.nodes)
    for facts in case.clusters:
        if set(read.ranks.hosts) <= set(facts.nodes):
            seen = seats.RankNodes(system=system) if system else seats.UNSEEN
            return opened_on(cluster_of_facts(facts, PlaceOptions(), seen), read)
    seen = seats.rank_nodes_of(read.ranks, read.job)
    if healthy and read.job is not None and wires_of([read.job]).kind == "sockets":
        seen = replace(seen, nics=None, nics_said="")
    try:
        cluster = open_cluster(PlaceOptions(), replace(seen, system=system) if system else seen)
    except ModelError:
        if healthy:
            raise  # a step needs the rate of the NICs
        cluster = open_cluster(PlaceOptions(), seen)  # which groups are split does not depend on it
    return opened_on(cluster, read)


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
    return LayoutRead(seats.ranks_of(jobs[0], options.logs[0]), jobs[0], declared)


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
