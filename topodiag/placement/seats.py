"""Where the ranks of a job ran, and what they show of their nodes (names, NVLink domains, the NICs that carried their
traffic); ranks on seats, by a launcher's rule, or by hosts and GPUs as a file names them, as slots of a cluster; and
which GPUs of a cluster can be used: the free ones, without those that words take out; and which of them are used last,
for faults of their nodes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from topodiag.lazy import dataclass
from topodiag.model.cluster import Assignment, Bools, Cluster, Ints, RankHosts, ranks_on
from topodiag.model.errors import InputError, TopodiagError
from topodiag.model.job import Job
from topodiag.model.job_rings import domains
from topodiag.model.job_waits import silent_host
from topodiag.model.job_wires import interface_gbps, wires_of
from topodiag.words.hosts import short_name
from topodiag.words.node_sets import NodeSetError, expand, gpu_list, short
from topodiag.words.units import few, first_of, grouped, in_gbps, plural

DEFAULT_SYSTEM = "dgx-h100"
RACK_SYSTEM, RACK_GPUS = "gb200-nvl72", 4
"""What nodes are taken for whose log shows NVLink between them, and the most GPUs that such a node has."""


@dataclass(frozen=True, slots=True)
class RankNodes:
    """What ranks show of their nodes: `hosts` in the order of their first ranks, the `system` that they are taken for
    where nobody says it, `domain[host]`, the NVLink domains of a job's log (() where it shows none), and `nics`, what
    carried a node's traffic (count, Gb/s each) as a log shows it, which `nics_said` puts into words."""

    hosts: tuple[str, ...] = ()
    system: str = DEFAULT_SYSTEM
    domain: tuple[str, ...] = ()
    nics: tuple[int, float] | None = None
    nics_said: str = ""


UNSEEN = RankNodes()
"""Nobody says where ranks sit."""


def rank_nodes_of(ranks: RankHosts | None, job: Job | None) -> RankNodes:
    """What ranks show of their nodes; of a `job`, what its log shows too. UNSEEN without ranks."""
    if ranks is None:
        return UNSEEN
    seen = RankNodes(ranks.hosts)
    if job is None:
        return seen
    seen = replace(seen, **_wires(job))
    small = int(np.bincount(ranks.host).max(initial=0)) <= RACK_GPUS
    if not small or not any(communicator.mnnvl for communicator in job.communicators):
        return seen
    of = domains(job)
    return replace(seen, system=RACK_SYSTEM, domain=tuple(of.get(host, host) for host in ranks.hosts))


def _wires(job: Job) -> dict[str, Any]:
    """The NICs that carried the job, as fields of Seen; none where the log does not say, or says no rate."""
    wires = wires_of([job])
    if wires.kind == "sockets":
        gbps = interface_gbps(job)
        note = f"the log shows TCP sockets between nodes: {in_gbps(gbps)} of a node, as NCCL models its interfaces"
        return {"nics": (1, gbps), "nics_said": note}
    if wires.nics is None:
        return {}
    count, gbps = wires.nics
    note = f"the log shows {plural(count, 'NIC')} of {in_gbps(gbps)} for a node in use"
    return {"nics": wires.nics, "nics_said": note}


def only_used(cluster: Cluster, ranks: RankHosts) -> Cluster:
    """The cluster with no GPUs but those that the ranks sit on: where nobody says what the nodes are, the others of
    the system that they are taken for may not be there."""
    used = np.zeros_like(cluster.usable)
    used.ravel()[assign(cluster, ranks).slot] = True
    width = int(np.flatnonzero(used.any(axis=0)).max(initial=0)) + 1
    note = "the GPUs at hand are those of the ranks (--system NAME for all that the nodes have)"
    notes = cluster.notes if used.all() else (*cluster.notes, note)
    return replace(cluster, usable=used[:, :width], notes=notes)


def ranks_of(job: Job, name: str) -> RankHosts:
    """Host and GPU of each world rank; the GPU as NVML counts, else as CUDA does, else by the bus id's place in its
    node. Ranks that left no line sit where the others of their job leave room, if that is one host. Raises InputError
    for a job of which ranks can be anywhere."""
    ranks = sorted(job.ranks, key=lambda rank: rank.rank)
    if not ranks:
        raise InputError(name, "names no rank", hint="NCCL_DEBUG=INFO prints them")
    hosts = {rank.rank: rank.host for rank in ranks}
    gpus = {rank.rank: rank.nvml_dev if rank.nvml_dev >= 0 else rank.cuda_dev for rank in ranks}
    if min(gpus.values()) < 0 or len(set(zip(hosts.values(), gpus.values(), strict=True))) < len(hosts):
        by_bus = _by_bus([rank.host for rank in ranks], [rank.bus_id for rank in ranks])
        gpus = {rank.rank: gpu for rank, gpu in zip(ranks, by_bus, strict=True)}
    missing = [rank for rank in range(job.world_size) if rank not in hosts]
    notes: tuple[str, ...] = ()
    if missing:
        host = silent_host(job)
        if not host:
            lost = f"{len(missing)} of {job.world_size} ranks left no line"
            hint = f"{lost}: give their logs too, or say where ranks sit (--hostfile, ...)"
            raise InputError(name, f"says nothing of rank {missing[0]}", hint=hint)
        hosts |= dict.fromkeys(missing, host)
        gpus |= dict.fromkeys(missing, -1)
        some = first_of([str(rank) for rank in missing], 8)
        notes = (
            f"ranks without a line in the log are taken to be on {host}, where others of the job leave room: {some}",
        )
    order = range(len(hosts))
    rank_hosts = ranks_on(name, [hosts[rank] for rank in order], [gpus[rank] for rank in order])
    return replace(rank_hosts, notes=notes)


def _by_bus(hosts: list[str], buses: list[str]) -> list[int]:
    """CUDA_VISIBLE_DEVICES makes every process call its GPU 0: then bus ids count them. -1 where that fails too."""
    numbers = np.full(len(hosts), -1, np.int64)
    for members in grouped((host, place) for place, host in enumerate(hosts)).values():
        order = sorted({buses[place] for place in members})
        if "" not in order and len(order) == len(members):
            for place in members:
                numbers[place] = order.index(buses[place])
    return [int(number) for number in numbers]


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


def keep_free(name: str, usable: Bools, index: Mapping[str, int], free: Mapping[str, tuple[int, ...] | None]) -> Bools:
    """The slots that are usable and free. Raises InputError for a node that is not in the cluster or a GPU that it does
    not have."""
    mask = np.zeros_like(usable)
    for node, gpus in free.items():
        number = index.get(node)
        if number is None:
            raise InputError(name, f"node {short(node)!r} is not in the cluster")
        if gpus is None:
            mask[number] = usable[number]
            continue
        if gpus and gpus[-1] >= usable.shape[1]:
            raise InputError(name, f"node {short(node)!r} has no GPU {gpus[-1]}")
        mask[number, list(gpus)] = usable[number, list(gpus)]
    return mask


def take_out(usable: Bools, index: Mapping[str, int], words: Sequence[str]) -> Bools:
    """The slots without those that `gpu[01-04]` or `gpu07:0,3` names. Raises NodeSetError."""
    mask = usable.copy()
    for written in words:
        nodes, colon, gpus = written.partition(":")
        chosen = list(gpu_list(gpus)) if colon else []
        for node in expand(nodes):
            number = index.get(node)
            if number is None:
                raise NodeSetError(f"node {short(node)!r} is not in the cluster")
            if chosen and chosen[-1] >= usable.shape[1]:
                raise NodeSetError(f"node {short(node)!r} has no GPU {chosen[-1]}")
            mask[number, chosen if colon else slice(None)] = False
    return mask


def prefer_healthy(cluster: Cluster, world: int, faults: Mapping[str, tuple[str, ...]]) -> Cluster:
    """The cluster without its faulty nodes where `world` ranks fit on the others; else with a note that names the
    faulty nodes that take part."""
    faulty = [number for number, name in enumerate(cluster.names) if name in faults and cluster.usable[number].any()]
    if not faulty:
        return cluster
    named = few([f"{cluster.names[number]} ({', '.join(faults[cluster.names[number]])})" for number in faulty])
    usable = cluster.usable.copy()
    usable[faulty] = False
    have = f"{plural(len(faulty), 'node has a fault', 'nodes have faults')}: {named}"
    if int(usable.sum()) >= world:
        return replace(cluster, usable=usable, notes=(*cluster.notes, f"{have}; no rank is put there"))
    short = f"{world} ranks do not fit on the others, so ranks are put there (--exclude leaves them out)"
    return replace(cluster, notes=(*cluster.notes, f"{have}; {short}"))


def is_usable(cluster: Cluster, assignment: Assignment) -> bool:
    """Whether every rank of a layout sits on a GPU that may be used."""
    return bool(np.asarray(cluster.usable).ravel()[assignment.slot].all())
