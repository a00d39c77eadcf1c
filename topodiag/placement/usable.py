"""Which GPUs of a cluster can be used: the free ones, without those that words take out; and which of them are used
last, for faults of their nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from topodiag.model.cluster import Assignment, Bools, Cluster
from topodiag.model.errors import InputError
from topodiag.words.node_sets import NodeSetError, expand, gpu_list, short
from topodiag.words.units import few, plural


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
