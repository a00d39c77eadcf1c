"""The wiring of `topodiag place`, its cluster: from a system's name, files of the site, or bundles of its nodes.

>>> from topodiag.app.cluster import ClusterOptions, open_cluster
>>> made = open_cluster(ClusterOptions(system="dgx-h100", nodes=32, leaf=8, oversubscription=2.0))
>>> made.nodes, made.free, [(level.kind, level.groups, level.gbs) for level in made.levels]
(32, 256, [('leaf', 4, 48.0), ('spine', 1, 24.0)])
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import BinaryIO

import numpy as np

from topodiag.app.diagnose import resolve, stdin
from topodiag.app.model import machine_of
from topodiag.cost.questions import ModelError
from topodiag.cost.tiers import SWITCH_US, Machine, UnknownSystemError, find_system
from topodiag.evidence.cluster.facts import ClusterFacts, Partition, joined, partition_of, some_of, usable
from topodiag.evidence.cluster.files import read_cluster
from topodiag.evidence.cluster.free_gpus import keep_free, read_free, take_out
from topodiag.evidence.cluster.node_sets import MAX_NODES, NodeSetError, expand
from topodiag.evidence.intake.one_file import open_blob
from topodiag.model.cluster import Bools, Cluster, Ints, Level
from topodiag.model.errors import InputError, TopodiagError

DEFAULT_SYSTEM = "dgx-h100"
BUILT_IN = "built-in system"


class PlaceError(TopodiagError):
    """Options that make no cluster or no layout."""


@dataclass(frozen=True, slots=True)
class ClusterOptions:
    """`topology` is a file, `bundles` are captures of the nodes; without both, `nodes` systems in leaves of `leaf`
    nodes or in `racks` equal racks. `nodelist` keeps only these nodes, `exclude` takes out `gpu[01-04]` or `gpu07:0,3`,
    `free` is a file of what is free. `oversubscription` None is 1, or what the file tells."""

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
    if options.topology or options.bundles:
        word = "nodes" if options.nodes else "leaf" if options.leaf else "racks" if options.racks else ""
        if word:
            by = "topology" if options.topology else "bundles"
            raise PlaceError(f"--{word} describes a built-in system: --{by} names the nodes (--nodelist chooses)")
        facts = _found(options)
    else:
        facts = _built_in(options, seen)
    if options.nodelist:
        try:
            facts = facts.subset(expand(options.nodelist))
        except NodeSetError as error:
            raise PlaceError(f"--nodelist: {error}") from None
        except InputError as error:
            raise PlaceError(f"--nodelist: {error.message}", hint=error.hint) from None
    machine, said = _machine(options, facts, seen.system)
    if facts.format == BUILT_IN and machine.domain == machine.gpus_per_node:
        facts = replace(facts, domain=None)  # what a log shows joins the nodes of any system: joined_by_nvlink
    made = _cluster(facts, machine, options, said)
    return replace(made, usable=_free(made, options))


def stdin_of(path: str) -> BinaryIO | None:
    """Standard input where the path is `-`."""
    return stdin() if path == "-" else None


def _found(options: ClusterOptions) -> ClusterFacts:
    """What files say: machines from their bundles, the network from its file."""
    machines = None
    if options.bundles:
        from topodiag.evidence.cluster.bundles import read_bundles  # noqa: PLC0415 - all readers of nodes
        from topodiag.fleet.bundles import read_many  # noqa: PLC0415

        machines = read_bundles([resolve(path) for path in options.bundles], read_many)
    if not options.topology:
        assert machines is not None  # noqa: S101 - one of them is given
        return machines
    network = read_cluster(open_blob(resolve(options.topology), stdin_of(options.topology)))
    return network if machines is None else joined(network, machines)


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
    return ClusterFacts(named, BUILT_IN, names, tuple(partitions), domain, system=named)


def _equal(kind: str, group: Ints) -> Partition:
    return Partition(kind, group, tuple(f"{kind}{number + 1}" for number in range(int(group.max()) + 1)))


def _machine(options: ClusterOptions, facts: ClusterFacts, usual: str) -> tuple[Machine, tuple[str, ...]]:
    """The system that the nodes are: as asked, as the file names it, or a DGX H100, said so."""
    count, nics = len(facts.nodes), options.nics or facts.nics
    if options.system or facts.format == BUILT_IN:
        made = machine_of(options.system or usual, count, gpu=options.gpu, nics=nics)
        return made, () if options.system else (f"the nodes are taken for {made.name} (--system NAME)",)
    if facts.system:
        try:
            spec = find_system(facts.system)
            gpu = facts.gpu if facts.gpu in (spec.gpu, *spec.other_gpus) else ""
            return machine_of(facts.system, count, gpu=options.gpu or gpu, nics=nics), ()
        except (UnknownSystemError, ModelError):
            pass
    if facts.sample:
        made = machine_of(facts.sample, count, gpu=options.gpu, nics=nics)
        said = f"links are NCCL's reckoning of {facts.sample}, taken for all nodes (--system NAME)"
        return replace(made, name=facts.system or "the nodes found", assumed=()), (said,)
    said = f"{facts.name} names no system that topodiag knows: links are those of {DEFAULT_SYSTEM} (--system NAME)"
    return machine_of(DEFAULT_SYSTEM, count, gpu=options.gpu, nics=nics), (said,)


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
    switched = sum(each.kind != "nvlink" for each in levels) > 1
    if switched and options.oversubscription is None and not any(each.oversubscription for each in partitions):
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
        slots = keep_free(options.free, slots, index, read_free(open_blob(options.free, stdin_of(options.free))))
    try:
        return take_out(slots, index, options.exclude)
    except NodeSetError as error:
        raise PlaceError(f"--exclude: {error}", hint=f"its nodes are {some_of(cluster.names)}") from None
