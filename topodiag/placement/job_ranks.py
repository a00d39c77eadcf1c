"""Where the ranks of a job ran, from its logs: host and GPU of every world rank."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from topodiag.model.errors import InputError
from topodiag.model.job import Job
from topodiag.model.rank_hosts import RankHosts, ranks_on
from topodiag.model.silent_ranks import silent_host
from topodiag.words.fold import first_of, grouped


def ranks_of(job: Job, name: str) -> RankHosts:
    """Host and GPU of each world rank; the GPU as NVML counts, else as CUDA does, else by the bus id's place in its
    node. Ranks that left no line sit where the others of their job leave room, if that is one host. Raises InputError
    for a job of which ranks can be anywhere."""
    ranks = sorted(job.ranks, key=lambda rank: rank.rank)
    if not ranks:
        raise InputError(name, "names no rank", hint="NCCL_DEBUG=INFO prints them")
    hosts = {rank.rank: rank.host for rank in ranks}
    gpus = {rank.rank: rank.nvml_dev if rank.nvml_dev >= 0 else rank.cuda_dev for rank in ranks}
    if not _distinct(list(hosts.values()), list(gpus.values())):
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


def _distinct(hosts: list[str], gpus: list[int]) -> bool:
    return len(set(zip(hosts, gpus, strict=True))) == len(hosts) and min(gpus) >= 0


def _by_bus(hosts: list[str], buses: list[str]) -> list[int]:
    """CUDA_VISIBLE_DEVICES makes every process call its GPU 0: then bus ids count them. -1 where that fails too."""
    numbers = np.full(len(hosts), -1, np.int64)
    for members in grouped((host, place) for place, host in enumerate(hosts)).values():
        order = sorted({buses[place] for place in members})
        if "" not in order and len(order) == len(members):
            for place in members:
                numbers[place] = order.index(buses[place])
    return [int(number) for number in numbers]
