"""The canonical map of a placement: one row per rank, as every `topodiag place --format json` prints it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from topodiag.model.cluster import Assignment, Cluster, Ints


def map_json(cluster: Cluster, assignment: Assignment, groups: Mapping[str, Ints]) -> list[dict[str, Any]]:
    """`rank`, `host`, `local_rank` (its place among the job's ranks on that node, by GPU), `gpu`, `nic` (its rail, null
    where the fabric has none) and `groups`: by dimension the number of its group (`groups[dimension][rank]`, -1 for
    none)."""
    node = cluster.node_of(assignment.slot).tolist()
    gpu = cluster.gpu_of(assignment.slot).tolist()
    local = local_ranks(cluster, assignment).tolist()
    ids = {name: numbers.tolist() for name, numbers in groups.items()}
    return [
        {
            "rank": rank,
            "host": cluster.names[node[rank]],
            "local_rank": local[rank],
            "gpu": gpu[rank],
            "nic": gpu[rank] % cluster.rails if cluster.rails else None,
            "groups": {name: numbers[rank] for name, numbers in ids.items() if numbers[rank] >= 0},
        }
        for rank in range(assignment.ranks)
    ]


def local_ranks(cluster: Cluster, assignment: Assignment) -> Ints:
    """The place of each rank among the job's ranks on its node, in the order of GPUs."""
    import numpy as np  # noqa: PLC0415 - reports of a scan need none

    order = np.argsort(assignment.slot, kind="stable")
    node = cluster.node_of(assignment.slot[order])
    first = np.flatnonzero(np.concatenate([[True], node[1:] != node[:-1]]))
    counts = np.diff(np.append(first, node.size))
    made = np.empty(assignment.ranks, np.int64)
    made[order] = np.arange(node.size) - np.repeat(first, counts)
    return made
