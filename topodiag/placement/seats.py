"""Ranks on seats: a launcher's rule, or hosts and GPUs as a file names them, as slots of a cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from topodiag.model.cluster import Assignment, Cluster, Ints, RankHosts
from topodiag.model.errors import InputError, TopodiagError
from topodiag.words.hosts import short_name
from topodiag.words.units import first_of, plural

RULES = ("block", "cyclic", "alphabetical")
"""How launchers number ranks: node by node (Slurm's block, torchrun, mpirun by slot), one rank per node in turn
(Slurm's cyclic, mpirun by node), or node by node with the nodes sorted by their names as text (node10 before node9)."""


class SeatError(TopodiagError):
    """A rule that is none, or more ranks than seats."""


def by_rule(cluster: Cluster, rule: str, world: int = 0) -> Assignment:
    """The launcher's numbering of the free GPUs. `world` 0 is all of them. Raises SeatError."""
    world = world or cluster.free
    if rule not in RULES:
        raise SeatError(f"{rule[:40]!r} is no rule: {', '.join(RULES)}")
    check_room(cluster, world)
    if rule == "alphabetical":
        order = np.argsort(np.asarray(cluster.names), kind="stable")
        which = np.repeat(order, cluster.usable[order].sum(axis=1))
        gpu = np.nonzero(cluster.usable[order])[1]
        return Assignment((which * cluster.slots + gpu)[:world].astype(np.int64))
    slots = cluster.free_slots()
    if rule == "block":
        return Assignment(slots[:world].astype(np.int64))
    turn = (np.cumsum(cluster.usable, axis=1) - 1)[cluster.usable]  # each slot's place among the free ones of its node
    return Assignment(slots[np.lexsort((slots, turn))][:world].astype(np.int64))


def check_room(cluster: Cluster, world: int) -> None:
    """Raises SeatError where so many ranks have no seats."""
    if world > cluster.free:
        what = f"{world} ranks do not fit on {cluster.free} usable GPUs of {plural(cluster.nodes, 'node')}"
        raise SeatError(what, hint="take in more nodes, or ask for fewer ranks")


def assign(cluster: Cluster, ranks: RankHosts, world: int = 0) -> Assignment:
    """Ranks of a file on the cluster's slots: where it names no GPU, a node's ranks take its free GPUs in their order.
    Raises InputError for a host that the cluster lacks, more ranks than free GPUs, a GPU taken twice or not free."""
    node = _nodes_of(cluster, ranks)[ranks.host]
    free = cluster.usable.sum(axis=1)
    gpu = ranks.gpu
    if ranks.whole:
        gpu = np.full(int(free[node].sum()), -1, np.int64)
        node = np.repeat(node, free[node])
    if world:
        if node.size < world:
            raise InputError(ranks.name, f"has room for {node.size} ranks, and the layout has {world}")
        node, gpu = node[:world], gpu[:world]
    over = np.flatnonzero(np.bincount(node, minlength=cluster.nodes) > free)
    if over.size:
        many = int((node == over[0]).sum())
        raise InputError(
            ranks.name,
            f"puts {many} ranks on node {cluster.names[over[0]]}, which has {free[over[0]]} usable GPUs",
            hint="--system, --topology or --bundles say what the nodes have",
        )
    slot = np.where(gpu >= 0, node * cluster.slots + gpu, -1)
    _check_gpus(cluster, ranks, node, gpu, slot)
    rest = np.flatnonzero(gpu < 0)
    if rest.size:
        left = cluster.usable.copy()
        left.ravel()[slot[gpu >= 0]] = False
        order = rest[np.argsort(node[rest], kind="stable")]
        counts = np.bincount(node[rest], minlength=cluster.nodes)
        nth = np.arange(order.size) - np.repeat(np.cumsum(counts) - counts, counts)
        nodes_with, gpus_with = np.nonzero(left)
        starts = np.searchsorted(nodes_with, np.arange(cluster.nodes))
        slot[order] = node[order] * cluster.slots + gpus_with[starts[node[order]] + nth]
    return Assignment(slot.astype(np.int64))


def _nodes_of(cluster: Cluster, ranks: RankHosts) -> Ints:
    """The node of each host, by its name or by the first part of it, as logs and launchers differ in that."""
    index = {name: number for number, name in enumerate(cluster.names)}
    shorts = _shorts(cluster.names)
    numbers = np.empty(len(ranks.hosts), np.int64)
    for place, host in enumerate(ranks.hosts):
        number = index.get(host, shorts.get(short_name(host), -1))
        if number < 0:
            some = first_of(cluster.names, 3)
            raise InputError(ranks.name, f"host {host[:60]!r} is not in the cluster", hint=f"its nodes are {some}")
        numbers[place] = number
    return numbers


def _shorts(names: Sequence[str]) -> Mapping[str, int]:
    shorts: dict[str, int] = {}
    for number, name in enumerate(names):
        first = short_name(name)
        shorts[first] = -1 if first in shorts else number
    return shorts


def _check_gpus(cluster: Cluster, ranks: RankHosts, node: Ints, gpu: Ints, slot: Ints) -> None:
    named = np.flatnonzero(gpu >= 0)
    wide = named[gpu[named] >= cluster.slots]
    bad = wide if wide.size else named[~cluster.usable.ravel()[slot[named]]]
    if bad.size:
        rank = int(bad[0])
        where = f"GPU {gpu[rank]} of node {cluster.names[node[rank]]}"
        raise InputError(ranks.name, f"puts rank {rank} on {where}, which is not usable")
    kept, counts = np.unique(slot[named], return_counts=True)
    if (counts > 1).any():
        taken = int(kept[counts > 1][0])
        two = named[slot[named] == taken][:2].tolist()
        where = f"GPU {taken % cluster.slots} of node {cluster.names[taken // cluster.slots]}"
        raise InputError(ranks.name, f"puts ranks {two[0]} and {two[1]} both on {where}")
