"""Which hosts of a job NVLink joins, by what its logs show."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from topodiag.model.job import Job
from topodiag.words.joined import Sets


def domains(job: Job) -> Mapping[str, str]:
    """The NVLink domain of each host, named after one host of it.

    Hosts that reach each other by P2P or shared memory are one domain: trays of a rack (MNNVL), or containers of one
    machine with names of their own. So are the hosts of a communicator that NCCL counts as one node.
    """
    known = dict.fromkeys([*job.hosts, *(rank.host for rank in job.ranks)])
    sets = Sets[str]()

    def join(a: str, b: str) -> None:
        if a in known and b in known:
            low, high = sorted((sets.root(a), sets.root(b)))
            sets.join(high, low)

    hosts, flows = job.connections.hosts, job.connections.flows
    near = [at for at, via in enumerate(job.connections.vias) if via.startswith(("P2P", "SHM", "direct shared"))]
    if near and len(hosts) > 1:
        across = (flows.host >= 0) & (flows.peer_host >= 0) & (flows.host != flows.peer_host) & np.isin(flows.via, near)
        for a, b in zip(flows.host[across].tolist(), flows.peer_host[across].tolist(), strict=True):
            join(hosts[a], hosts[b])
    for communicator in job.communicators:
        if communicator.nodes == 1 and len(communicator.hosts) > 1:
            for host in communicator.hosts[1:]:
                join(communicator.hosts[0], host)
    return {host: sets.root(host) for host in known}
