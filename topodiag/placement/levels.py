"""The levels and rails of a cluster: which nodes meet below which switch, and what a GPU's share of each level is.

What files say of the nodes (`ClusterFacts`) meets here what the links of their system can do (`Machine`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from topodiag.cost.questions import ModelError
from topodiag.cost.tiers import SWITCH_US, Machine, UnknownSystemError, find_system
from topodiag.model.cluster import Cluster, Ints, Level
from topodiag.model.cluster_facts import ClusterFacts, Partition, usable


def cluster_of(
    facts: ClusterFacts, machine: Machine, *, rails: int, oversubscription: float | None, preface: tuple[str, ...]
) -> Cluster:
    """The cluster of the nodes that `facts` name, each of them like `machine`. `oversubscription` is that of the
    innermost level, None for what the facts say. `preface` are the notes that come first. Raises ModelError where
    several nodes have no network."""
    slots = usable(facts, machine.gpus_per_node)
    # How the fabric is joined is said by the levels, not by the system.
    notes = [*preface, *facts.notes, *(note for note in machine.assumed if not note.startswith("the fabric carries"))]
    domain, partitions = _domains(facts, machine, notes)
    levels: list[Level] = []
    inside = machine.inside.link
    if machine.domain > machine.gpus_per_node and domain is not None and domain.groups < len(facts.nodes):
        source = machine.inside.source
        levels.append(Level("nvlink", domain.group, inside.alpha_us, inside.gbs, domain.names, 1.0, source))
    levels += _network(partitions, machine, oversubscription, len(facts.nodes))
    switched = sum(level.kind != "nvlink" for level in levels) > 1
    if switched and oversubscription is None and not any(partition.oversubscription for partition in partitions):
        notes.append("no oversubscription is known: what enters a switch is taken to leave it (--oversubscription)")
    numbers = np.arange(len(facts.nodes), dtype=np.int64)
    return Cluster(
        names=facts.nodes,
        usable=slots,
        nvlink_domain=domain.group if levels and levels[0].kind == "nvlink" and domain is not None else numbers,
        levels=tuple(levels),
        inside_alpha_us=inside.alpha_us,
        inside_gbs=inside.gbs,
        rails=rails,
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
    return equal_groups("nvlink", np.arange(len(facts.nodes)) // per_domain), facts.partitions


def _network(
    partitions: Sequence[Partition], machine: Machine, oversubscription: float | None, nodes: int
) -> list[Level]:
    """The levels of the network. A GPU's share is what its node puts on the network, and above each partition that
    over its oversubscription; each level further up costs two more switches."""
    if nodes < 2:
        return []
    try:
        link = machine.outside()
    except ValueError as lacking:
        raise ModelError(str(lacking)) from None
    shown = [partition for partition in partitions if partition.groups < nodes]
    if not shown or shown[-1].groups > 1:
        top = "spine" if shown else "fabric"
        top = "fabric" if any(partition.kind == top for partition in shown) else top
        shown.append(Partition(top, np.zeros(nodes, np.int64), ("",)))
    levels: list[Level] = []
    gbs = link.gbs
    first = machine.network.source if machine.network is not None else ""
    for number, partition in enumerate(shown):
        taper = partition.oversubscription or 1.0
        out = oversubscription if number == 0 and oversubscription is not None else taper
        source = first if number == 0 else f"{first}; {link.gbs / gbs:g} times oversubscribed, two more switches"
        alpha = link.alpha_us + SWITCH_US * number
        levels.append(Level(partition.kind, partition.group, alpha, gbs, partition.names, out, source))
        gbs /= max(out, 1.0)
    return levels


def rails_of(system: str, nics: tuple[int, float] | None) -> int:
    """As many rails as a node has NICs for the job: the usual cabling of systems with several, by their vendors'
    reference architectures. 0 where a node has one, or the system is none that is known."""
    if nics is not None:
        return nics[0] if nics[0] > 1 else 0
    try:
        spec = find_system(system)
    except UnknownSystemError:
        return 0
    return spec.compute_nics if spec.compute_nics > 1 else 0


def equal_groups(kind: str, group: Ints) -> Partition:
    """Groups that have no names of their own: `leaf1`, `leaf2`, ... `group[node]` numbers them from 0."""
    return Partition(kind, group, tuple(f"{kind}{number + 1}" for number in range(int(group.max()) + 1)))
