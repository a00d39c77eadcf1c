"""Maps read back: the canonical JSON with its groups, and the index map for Kubernetes.

`{"map": [{"rank", "host", "local_rank", "gpu", "groups": {dimension: number}}], "levels": {kind: count}}` is what
`topodiag place` writes as JSON; everything but rank and host may be missing.
"""

from __future__ import annotations

import numpy as np

from topodiag.evidence.interface import Blob
from topodiag.evidence.json_values import integer, load, objects, text
from topodiag.evidence.layout.rank_files import MAX_MAP, MAX_RANKS, ranks_of_map, ranks_on
from topodiag.model.cluster import Ints
from topodiag.model.errors import InputError
from topodiag.model.place_map import PlaceMap
from topodiag.model.rank_hosts import RankHosts

MAX_DIMENSIONS = 64
MAX_LEVELS = 16


def read_place_map(blob: Blob) -> PlaceMap:
    """The whole map. Raises InputError for what is none."""
    document, why = load(blob, MAX_MAP)
    ranks = ranks_of_map(blob, document, why)
    groups: dict[str, Ints] = {}
    rail = np.full(ranks.ranks, -1, np.int64)
    rows = document.get("map") if isinstance(document, dict) else document
    for _, row in objects(rows, MAX_RANKS):
        rank, said = integer(row.get("rank"), 0, ranks.ranks - 1), row.get("groups")
        nic = integer(row.get("nic"), 0, MAX_RANKS)
        if rank is not None and nic is not None:
            rail[rank] = nic
        if rank is None or not isinstance(said, dict):
            continue
        for name, value in list(said.items())[:MAX_DIMENSIONS]:
            number = integer(value, 0, MAX_RANKS)
            if number is None or (name not in groups and len(groups) >= MAX_DIMENSIONS):
                continue
            if name not in groups:
                groups[name] = np.full(ranks.ranks, -1, np.int64)
            groups[name][rank] = number
    levels = document.get("levels") if isinstance(document, dict) else None
    told = list(levels.items())[:MAX_LEVELS] if isinstance(levels, dict) else []
    counts = [(kind, integer(count, 1, MAX_RANKS)) for kind, count in told]
    known = tuple((kind, count) for kind, count in counts if count is not None)
    rails = rail if (rail >= 0).any() else np.zeros(0, np.int64)
    return PlaceMap(ranks.hosts, ranks.host, ranks.gpu, groups, known, rails)


def read_index_map(blob: Blob) -> RankHosts:
    """Pods by their completion index: `{"pods": [{"index", "node", "ranks", "gpus"}]}`. Raises InputError."""
    document, why = load(blob)
    pods = document.get("pods") if isinstance(document, dict) else None
    if why or not isinstance(pods, list):
        raise InputError(blob.name, why or "has no pods", hint='{"pods": [{"index": 0, "node": "a", "ranks": [0]}]}')
    found: dict[int, tuple[str, int]] = {}
    for place, pod in objects(pods, MAX_RANKS):
        node, ranks = text(pod.get("node")), pod.get("ranks")
        gpus = pod.get("gpus")
        if node is None or not isinstance(ranks, list):
            raise InputError(blob.name, f"pod {place} lacks a node or its ranks")
        numbers = gpus if isinstance(gpus, list) and len(gpus) == len(ranks) else [-1] * len(ranks)
        for rank, gpu in zip(ranks, numbers, strict=True):
            number = integer(rank, 0, MAX_RANKS)
            if number is None or number in found:
                raise InputError(blob.name, f"pod {place} has a rank that is none, or is another pod's")
            slot = integer(gpu, -1, MAX_RANKS)
            found[number] = node, -1 if slot is None else slot
    if sorted(found) != list(range(len(found))):
        raise InputError(blob.name, "leaves out a rank")
    both = [found[rank] for rank in range(len(found))]
    return ranks_on(blob.name, [host for host, _ in both], [gpu for _, gpu in both])
