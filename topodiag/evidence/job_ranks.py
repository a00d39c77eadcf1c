"""Where the ranks of a job ran, from its logs: host and GPU of every world rank."""

from __future__ import annotations

import numpy as np

from topodiag.evidence.rank_files import ranks_on
from topodiag.model.errors import InputError
from topodiag.model.job import Job
from topodiag.model.rank_hosts import RankHosts


def ranks_of(job: Job, name: str) -> RankHosts:
    """Host and GPU of each world rank; the GPU as NVML counts, else as CUDA does, else by the bus id's place in its
    node. Raises InputError for a job of which some ranks left no line."""
    ranks = sorted(job.ranks, key=lambda each: each.rank)
    if not ranks:
        raise InputError(name, "names no rank", hint="NCCL_DEBUG=INFO prints them")
    known = {each.rank for each in ranks}
    missing = next((number for number in range(job.world_size) if number not in known), None)
    if missing is not None:
        lost = job.world_size - len(known)
        raise InputError(name, f"says nothing of rank {missing}", hint=f"{lost} of {job.world_size} ranks left no line")
    hosts = [each.host for each in ranks]
    gpus = [each.nvml_dev if each.nvml_dev >= 0 else each.cuda_dev for each in ranks]
    if not _distinct(hosts, gpus):
        gpus = _by_bus(hosts, [each.bus_id for each in ranks])
    return ranks_on(name, hosts, gpus)


def _distinct(hosts: list[str], gpus: list[int]) -> bool:
    return len(set(zip(hosts, gpus, strict=True))) == len(hosts) and min(gpus) >= 0


def _by_bus(hosts: list[str], buses: list[str]) -> list[int]:
    """CUDA_VISIBLE_DEVICES makes every process call its GPU 0: then bus ids count them. -1 where that fails too."""
    made = np.full(len(hosts), -1, np.int64)
    by_host: dict[str, list[int]] = {}
    for place, host in enumerate(hosts):
        by_host.setdefault(host, []).append(place)
    for members in by_host.values():
        order = sorted({buses[place] for place in members})
        if "" not in order and len(order) == len(members):
            for place in members:
                made[place] = order.index(buses[place])
    return [int(each) for each in made]
