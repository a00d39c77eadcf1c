"""What the ranks of a job show of their nodes: names, NVLink domains, and the NICs that carried their traffic."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from topodiag.lazy import dataclass
from topodiag.model.cluster import Cluster
from topodiag.model.job import Job
from topodiag.model.job_domains import domains
from topodiag.model.job_wires import interface_gbps, wires_of
from topodiag.model.rank_hosts import RankHosts
from topodiag.placement.seats import assign
from topodiag.words.fold import plural
from topodiag.words.units import in_gbps

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
    return {
        "nics": wires.nics,
        "nics_said": f"the log shows {plural(count, 'NIC')} of {in_gbps(gbps)} for a node in use",
    }


def only_used(cluster: Cluster, ranks: RankHosts) -> Cluster:
    """The cluster with no GPUs but those that the ranks sit on: where nobody says what the nodes are, the others of
    the system that they are taken for may not be there."""
    used = np.zeros_like(cluster.usable)
    used.ravel()[assign(cluster, ranks).slot] = True
    width = int(np.flatnonzero(used.any(axis=0)).max(initial=0)) + 1
    note = "the GPUs at hand are those of the ranks (--system NAME for all that the nodes have)"
    notes = cluster.notes if used.all() else (*cluster.notes, note)
    return replace(cluster, usable=used[:, :width], notes=notes)
