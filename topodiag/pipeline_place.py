"""The wiring of `topodiag place`: from files or a system's name to a cluster, and from a launcher's file to a layout.

>>> from topodiag.pipeline_place import ClusterOptions, LayoutOptions, open_cluster, open_layout
>>> made = open_cluster(ClusterOptions(system="dgx-h100", nodes=32, leaf=8, oversubscription=2.0))
>>> made.nodes, made.free, [(level.kind, level.groups, level.gbs) for level in made.levels]
(32, 256, [('leaf', 4, 48.0), ('spine', 1, 24.0)])
>>> assignment, world = open_layout(made, LayoutOptions(rule="cyclic"), world=64)
>>> world, assignment.slot[:3].tolist()
(64, [0, 8, 16])
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, BinaryIO

import numpy as np

from topodiag.cost.questions import ModelError
from topodiag.cost.tiers import SWITCH_US, Machine, UnknownSystemError, find_system
from topodiag.evidence.cluster_facts import ClusterFacts, Partition, partition_of, usable
from topodiag.evidence.cluster_files import read_cluster
from topodiag.evidence.free_gpus import keep_free, read_free, take_out
from topodiag.evidence.node_sets import MAX_NODES, NodeSetError, expand
from topodiag.evidence.one_file import open_blob
from topodiag.evidence.rank_files import (
    read_hostfile,
    read_map,
    read_rankfile,
    read_slurm_hostfile,
    read_torchrun,
)
from topodiag.model.cluster import Assignment, Bools, Cluster, Ints, Level
from topodiag.model.errors import InputError, TopodiagError
from topodiag.model.job_domains import domains
from topodiag.model.rank_hosts import RankHosts
from topodiag.pipeline import resolve, stdin
from topodiag.pipeline_model import machine_of
from topodiag.placement.job_groups import joined_by_nvlink
from topodiag.placement.seats import assign, by_rule, check_room

if TYPE_CHECKING:
    from topodiag.model.job import Job

DEFAULT_SYSTEM = "dgx-h100"
RACK_SYSTEM, RACK_GPUS = "gb200-nvl72", 4
"""What nodes are taken for whose log shows NVLink between them, and the most GPUs that such a node has."""


class PlaceError(TopodiagError):
    """Options that make no cluster or no layout."""


@dataclass(frozen=True, slots=True)
class ClusterOptions:
    """`topology` is a file; without it, `nodes` systems in leaves of `leaf` nodes or in `racks` equal racks. `nodelist`
    keeps only these nodes, `exclude` takes out `gpu[01-04]` or `gpu07:0,3`, `free` is a file of what is free.
    `oversubscription` None is 1, or what the file tells."""

    system: str = ""
    nodes: int = 0
    gpu: str = ""
    nics: tuple[int, float] | None = None
    leaf: int = 0
    racks: int = 0
    oversubscription: float | None = None
    topology: str = ""
    nodelist: str = ""
    exclude: tuple[str, ...] = ()
    free: str = ""


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
        if not (cluster.system or cluster.topology or cluster.nodes or cluster.free or ranks.whole):
            made = _only_used(made, ranks)
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


# --- the cluster ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Seen:
    """What ranks show of their nodes: `hosts` in the order of their first ranks, the `system` that they are taken for
    where nobody says it, and `domain[host]`, the NVLink domains of a job's log (() where it shows none)."""

    hosts: tuple[str, ...] = ()
    system: str = DEFAULT_SYSTEM
    domain: tuple[str, ...] = ()


def open_cluster(options: ClusterOptions, seen: Seen = Seen()) -> Cluster:
    """The cluster that the options describe; its nodes are those that were seen where nothing else names them. Raises
    InputError, PlaceError and ModelError."""
    if options.topology:
        if options.nodes or options.leaf or options.racks:
            word = "nodes" if options.nodes else "leaf" if options.leaf else "racks"
            raise PlaceError(f"--{word} describes a built-in system: --topology names the nodes (--nodelist chooses)")
        facts = read_cluster(open_blob(resolve(options.topology), _stdin(options.topology)))
    else:
        facts = _built_in(options, seen)
    if options.nodelist:
        try:
            facts = facts.subset(expand(options.nodelist))
        except NodeSetError as error:
            raise PlaceError(f"--nodelist: {error}") from None
    machine, said = _machine(options, facts, seen.system)
    if not options.topology and machine.domain == machine.gpus_per_node:
        facts = replace(facts, domain=None)  # what a log shows joins the nodes of any system: joined_by_nvlink
    made = _cluster(facts, machine, options, said)
    return replace(made, usable=_free(made, options))


def _stdin(path: str) -> BinaryIO | None:
    return stdin() if path == "-" else None


def _seen(ranks: RankHosts | None, job: Job | None) -> Seen:
    if ranks is None:
        return Seen()
    small = int(np.bincount(ranks.host).max(initial=0)) <= RACK_GPUS
    if job is None or not small or not any(each.mnnvl for each in job.communicators):
        return Seen(ranks.hosts)
    of = domains(job)
    return Seen(ranks.hosts, RACK_SYSTEM, tuple(of.get(host, host) for host in ranks.hosts))


def _built_in(options: ClusterOptions, seen: Seen) -> ClusterFacts:
    hosts = seen.hosts
    count = options.nodes or len(hosts) or 1
    if count > MAX_NODES:
        raise PlaceError(f"--nodes {count}: more than {MAX_NODES}")
    width = max(3, len(str(count)))
    names = tuple(hosts) if hosts and not options.nodes else tuple(f"node{n:0{width}d}" for n in range(1, count + 1))
    numbers = np.arange(count)
    partitions: list[Partition] = []
    per_rack = -(-count // options.racks) if options.racks else 0
    if options.racks > count:
        raise PlaceError(f"--racks {options.racks} of {count} nodes: more racks than nodes")
    if options.leaf and per_rack and per_rack % options.leaf:
        raise PlaceError(f"--leaf {options.leaf} does not divide the {per_rack} nodes of a rack")
    if options.leaf:
        partitions.append(_equal("leaf", numbers // options.leaf))
    if per_rack and per_rack != options.leaf:
        partitions.append(_equal("rack", numbers // per_rack))
    named = options.system or seen.system
    domain = partition_of("nvlink", seen.domain) if names == hosts and seen.domain else None
    return ClusterFacts(named, "built-in system", names, tuple(partitions), domain, system=named)


def _equal(kind: str, group: Ints) -> Partition:
    return Partition(kind, group, tuple(f"{kind}{number + 1}" for number in range(int(group.max()) + 1)))


def _machine(options: ClusterOptions, facts: ClusterFacts, usual: str) -> tuple[Machine, tuple[str, ...]]:
    """The system that the nodes are: as asked, as the file names it, or a DGX H100, said so."""
    count = len(facts.nodes)
    if options.system or not options.topology:
        made = machine_of(options.system or usual, count, gpu=options.gpu, nics=options.nics)
        return made, () if options.system else (f"the nodes are taken for {made.name} (--system NAME)",)
    if facts.system:
        try:
            find_system(facts.system)
            return machine_of(facts.system, count, gpu=options.gpu, nics=options.nics), ()
        except (UnknownSystemError, ModelError):
            pass
    said = f"{facts.name} names no system that topodiag knows: links are those of {DEFAULT_SYSTEM} (--system NAME)"
    return machine_of(DEFAULT_SYSTEM, count, gpu=options.gpu, nics=options.nics), (said,)


def _cluster(facts: ClusterFacts, machine: Machine, options: ClusterOptions, said: tuple[str, ...]) -> Cluster:
    slots = usable(facts, machine.gpus_per_node)
    # How the fabric is joined is said by the levels, not by the system.
    notes = [*said, *facts.notes, *(each for each in machine.assumed if not each.startswith("the fabric carries"))]
    domain, partitions = _domains(facts, machine, notes)
    levels: list[Level] = []
    inside = machine.inside.link
    if machine.domain > machine.gpus_per_node and domain is not None and domain.groups < len(facts.nodes):
        source = machine.inside.source
        levels.append(Level("nvlink", domain.group, inside.alpha_us, inside.gbs, domain.names, 1.0, source))
    levels += _network(partitions, machine, options, len(facts.nodes))
    if len(levels) > 1 and options.oversubscription is None and not any(each.oversubscription for each in partitions):
        notes.append("no oversubscription is known: what enters a switch is taken to leave it (--oversubscription)")
    numbers = np.arange(len(facts.nodes), dtype=np.int64)
    return Cluster(
        names=facts.nodes,
        usable=slots,
        nvlink_domain=domain.group if levels and levels[0].kind == "nvlink" and domain is not None else numbers,
        levels=tuple(levels),
        inside_alpha_us=inside.alpha_us,
        inside_gbs=inside.gbs,
        rails=facts.rails or _rails(options, facts),
        gpu=machine.gpu.name if machine.gpu is not None else facts.gpu,
        system=machine.name,
        sources=(f"{facts.name} ({facts.format})", machine.inside.source),
        notes=tuple(dict.fromkeys(notes)),
        switch=machine.switch,
    )


def _domains(facts: ClusterFacts, machine: Machine, notes: list[str]) -> tuple[Partition | None, tuple[Partition, ...]]:
    """The NVLink domains of more than a node, and the partitions of the network. What a file calls a domain counts as
    one only on systems that have such; else it is the innermost block of the network."""
    rack = machine.domain > machine.gpus_per_node
    per_domain = machine.domain // machine.gpus_per_node
    if not rack:
        if facts.domain is None or facts.domain.groups in (len(facts.nodes), 1 if facts.partitions else 0):
            return None, facts.partitions
        notes.append(f"{machine.name} has no NVLink beyond the node: its domains count as blocks of the network")
        return None, (replace(facts.domain, kind="block"), *facts.partitions)
    if facts.domain is not None:
        return facts.domain, facts.partitions
    inner = facts.partitions[0] if facts.partitions else None
    if inner is not None and inner.kind in ("block", "rack") and np.bincount(inner.group).max() <= per_domain:
        notes.append(f"each {inner.kind} counts as one NVLink domain of {machine.name}")
        return inner, facts.partitions[1:]
    if len(facts.nodes) > 1:
        notes.append(f"every {per_domain} nodes in their order count as one NVLink domain of {machine.name}")
    return _equal("nvlink", np.arange(len(facts.nodes)) // per_domain), facts.partitions


def _network(partitions: Sequence[Partition], machine: Machine, options: ClusterOptions, nodes: int) -> list[Level]:
    """The levels of the network. A GPU's share is what its node puts on the network, and above each partition that
    over its oversubscription; each level further up costs two more switches."""
    if nodes < 2:
        return []
    try:
        link = machine.outside()
    except ValueError as lacking:
        raise ModelError(str(lacking)) from None
    shown = [each for each in partitions if each.groups < nodes]
    if not shown or shown[-1].groups > 1:
        top = "spine" if shown else "fabric"
        top = "fabric" if any(each.kind == top for each in shown) else top
        shown.append(Partition(top, np.zeros(nodes, np.int64), ("",)))
    made: list[Level] = []
    gbs = link.gbs
    first = machine.network.source if machine.network is not None else ""
    for number, each in enumerate(shown):
        said = each.oversubscription or 1.0
        out = options.oversubscription if number == 0 and options.oversubscription is not None else said
        source = first if number == 0 else f"{first}; {link.gbs / gbs:g} times oversubscribed, two more switches"
        alpha = link.alpha_us + SWITCH_US * number
        made.append(Level(each.kind, each.group, alpha, gbs, each.names, out, source))
        gbs /= max(out, 1.0)
    return made


def _rails(options: ClusterOptions, facts: ClusterFacts) -> int:
    """As many rails as a node has NICs for the job: the usual cabling of systems with several, by their vendors'
    reference architectures."""
    if options.nics is not None:
        return options.nics[0] if options.nics[0] > 1 else 0
    try:
        spec = find_system(options.system or facts.system or DEFAULT_SYSTEM)
    except UnknownSystemError:
        return 0
    return spec.compute_nics if spec.compute_nics > 1 else 0


def _free(cluster: Cluster, options: ClusterOptions) -> Bools:
    index = {name: number for number, name in enumerate(cluster.names)}
    slots = cluster.usable
    if options.free:
        slots = keep_free(options.free, slots, index, read_free(open_blob(options.free, _stdin(options.free))))
    try:
        return take_out(slots, index, options.exclude)
    except NodeSetError as error:
        raise PlaceError(f"--exclude: {error}") from None


# --- the layout -----------------------------------------------------------------------------------------------


def _ranks(layout: LayoutOptions) -> tuple[RankHosts | None, Job | None]:
    for name, read in _READERS.items():
        path = getattr(layout, name)
        if path:
            return read(open_blob(path, _stdin(path))), None
    if not layout.logs:
        return None, None
    from topodiag.evidence.job_ranks import ranks_of  # noqa: PLC0415 - only with logs
    from topodiag.pipeline import diagnose_logs  # noqa: PLC0415

    jobs = diagnose_logs(layout.logs).jobs
    if len(jobs) != 1:
        hint = "give the logs of one job" if jobs else "are they NCCL's, with NCCL_DEBUG=INFO?"
        raise InputError(layout.logs[0], f"holds {len(jobs)} jobs", hint=hint)
    return ranks_of(jobs[0], layout.logs[0]), jobs[0]
