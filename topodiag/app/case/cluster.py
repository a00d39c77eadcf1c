"""The wiring of `topodiag place`, its cluster: from a system's name, files of the site, or bundles of its nodes.

>>> from topodiag.app.case.cluster import open_cluster
>>> from topodiag.app.case.place_options import PlaceOptions
>>> made = open_cluster(PlaceOptions(system="dgx-h100", nodes=32, leaf=8, oversubscription=2.0))
>>> made.nodes, made.free, [(level.kind, level.groups, level.gbs) for level in made.levels]
(32, 256, [('leaf', 4, 48.0), ('spine', 1, 24.0)])
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from topodiag.app.case.opening import blob_at
from topodiag.app.case.place_options import PlaceError, PlaceOptions
from topodiag.app.case.system import machine_of
from topodiag.cost.questions import ModelError
from topodiag.cost.tiers import Machine, UnknownSystemError, find_system
from topodiag.evidence.cluster.files import read_cluster
from topodiag.evidence.cluster.slurm import read_free
from topodiag.evidence.intake.collected import resolve
from topodiag.model.cluster import Bools, Cluster
from topodiag.model.cluster_facts import ClusterFacts, Partition, merged, partition_of, some_of
from topodiag.model.errors import InputError
from topodiag.placement.levels import cluster_of, equal_groups, rails_of
from topodiag.placement.rank_nodes import DEFAULT_SYSTEM, UNSEEN, RankNodes
from topodiag.placement.usable import keep_free, take_out
from topodiag.words.node_sets import MAX_NODES, NodeSetError, expand

BUILT_IN = "built-in system"


def open_cluster(options: PlaceOptions, seen: RankNodes = UNSEEN) -> Cluster:
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


def cluster_of_facts(facts: ClusterFacts, options: PlaceOptions, seen: RankNodes = UNSEEN) -> Cluster:
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
    rails = facts.rails or rails_of(options.system or facts.system or DEFAULT_SYSTEM, options.nics)
    cluster = cluster_of(facts, machine, rails=rails, oversubscription=options.oversubscription, preface=texts)
    return replace(cluster, usable=_free(cluster, options))


def _described(options: PlaceOptions) -> ClusterFacts:
    """What files say: machines from their bundles, the network from its file."""
    machines = None
    if options.bundles:
        from topodiag.fleet.cluster import read_bundles  # noqa: PLC0415 - all readers of nodes

        machines = read_bundles([resolve(path) for path in options.bundles])
    if not options.topology:
        assert machines is not None  # noqa: S101 - one of them is given
        return machines
    network = read_cluster(blob_at(resolve(options.topology)))
    return network if machines is None else merged(network, machines)


def _nodes_for(options: PlaceOptions) -> int:
    """Nodes that hold the ranks of the job; 1 where nothing counts them."""
    gpus = machine_of(options.system, 1, gpu=options.gpu).gpus_per_node if options.system else 8
    return -(-(options.ranks or options.least_ranks) // gpus) or 1


def _built_in(options: PlaceOptions, seen: RankNodes) -> ClusterFacts:
    hosts = seen.hosts
    count = options.nodes or len(hosts) or _nodes_for(options)
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
        try:
            spec = find_system(facts.system)
            gpu = facts.gpu if facts.gpu in (spec.gpu, *spec.other_gpus) else ""
            return machine_of(facts.system, count, gpu=options.gpu or gpu, nics=nics), ()
        except (UnknownSystemError, ModelError):
            pass
    if facts.sample:
        machine = machine_of(facts.sample, count, gpu=options.gpu, nics=nics)
        note = f"links are NCCL's model of {facts.sample}, taken for all nodes (--system NAME)"
        return replace(machine, name=facts.system or "the nodes found", assumed=()), (note,)
    note = f"{facts.name} names no system that topodiag knows: links are those of {DEFAULT_SYSTEM} (--system NAME)"
    return machine_of(DEFAULT_SYSTEM, count, gpu=options.gpu, nics=nics), (note,)


def _free(cluster: Cluster, options: PlaceOptions) -> Bools:
    index = {name: number for number, name in enumerate(cluster.names)}
    slots = cluster.usable
    if options.free:
        slots = keep_free(options.free, slots, index, read_free(blob_at(options.free)))
    try:
        return take_out(slots, index, options.exclude)
    except NodeSetError as error:
        raise PlaceError(f"--exclude: {error}", hint=f"its nodes are {some_of(cluster.names)}") from None
