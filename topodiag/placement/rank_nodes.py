"""Where the ranks of a job ran, and what they show of their nodes: names, NVLink domains, and the NICs that carried
their traffic."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from topodiag.lazy import dataclass
from topodiag.model.cluster import Cluster, RankHosts, ranks_on
from topodiag.model.errors import InputError
from topodiag.model.job import Job
from topodiag.model.job_rings import domains
from topodiag.model.job_waits import silent_host
from topodiag.model.job_wires import interface_gbps, wires_of
from topodiag.placement.seats import assign
from topodiag.words.units import first_of, grouped, in_gbps, plural

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
