"""How the rings of groups go through the leaves of a cluster."""

from __future__ import annotations

import numpy as np

from topodiag.model.cluster import Assignment, Cluster, Ints


def ring_crossings(cluster: Cluster, groups: Ints, assignment: Assignment) -> tuple[Ints, Ints]:
    """(crossings, leaves) of the ring of each group, one entry per row: how often the ring goes from one leaf to
    another, and how many leaves the group uses; 0 and 0 where it uses one. The cluster needs a level above the NVLink
    domains. NCCL numbers the nodes of a communicator by their first rank, and rings go through the nodes in that order.
    (NCCL src/init.cc, initTransportsRank; src/graph/connect.cc, connectRings; v2.28.)"""
    leaves = next(level for level in cluster.levels if level.kind != "nvlink")
    # Groups that differ only in the GPU of each node have the same ring through the nodes.
    nodes, which = np.unique(cluster.node_of(assignment.slot[groups]), axis=0, return_inverse=True)
    rows, size = nodes.shape
    order = np.argsort(nodes, axis=1, kind="stable")
    by_node = np.take_along_axis(nodes, order, axis=1)
    first = np.ones((rows, size), bool)
    first[:, 1:] = by_node[:, 1:] != by_node[:, :-1]
    at = np.zeros((rows, size), np.int64)
    np.put_along_axis(at, order, first.astype(np.int64), axis=1)
    # A rank on a node that the ring already has stands for the node last added, and so adds no crossing.
    last = np.maximum.accumulate(np.where(at == 1, np.arange(size), 0), axis=1)
    leaf = np.take_along_axis(leaves.group[nodes], last, axis=1)
    crossings = (leaf != np.roll(leaf, 1, axis=1)).sum(axis=1)
    distinct = 1 + (np.diff(np.sort(leaf, axis=1), axis=1) != 0).sum(axis=1)
    crossed = which.ravel()
    return crossings[crossed].astype(np.int64), np.where(distinct > 1, distinct, 0)[crossed].astype(np.int64)
