"""The canonical map as JSON, of which all other formats are translations, and what holds for each of them."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np

from topodiag.lazy import regex
from topodiag.model.cluster import PlaceMap
from topodiag.model.errors import TopodiagError

_HOST = regex(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,252}", re.ASCII)


class UnwritableMapError(TopodiagError):
    """A map that a format cannot say, or that is none."""


def check(place: PlaceMap) -> None:
    """Every host a name that no launcher misreads, and no GPU for two ranks. Raises UnwritableMapError."""
    if not place.ranks:
        raise UnwritableMapError("the map has no ranks")
    for host in place.hosts:
        if not _HOST.fullmatch(host):
            cleaned = "".join(c if c.isprintable() else "?" for c in host[:60])
            raise UnwritableMapError(f"{cleaned!r} is no host name that a launcher takes")
    known = np.flatnonzero(place.gpu >= 0)
    pairs = np.stack([place.host[known], place.gpu[known]], axis=1)
    _, first, counts = np.unique(pairs, axis=0, return_index=True, return_counts=True)
    if (counts > 1).any():
        rank = int(known[first[counts > 1][0]])
        raise UnwritableMapError(f"GPU {place.gpu[rank]} of {place.hosts[place.host[rank]]} has two ranks")


def rows(place: PlaceMap) -> list[dict[str, Any]]:
    """One object per rank. `nic` is the rail of its GPU, null where there is none."""
    rails = [rail if rail >= 0 else None for rail in place.rail.tolist()] or [None] * place.ranks
    local, names = place.local.tolist(), list(place.groups)
    columns = [place.groups[name].tolist() for name in names]
    objects = []
    for rank, (host, gpu) in enumerate(zip(place.host.tolist(), place.gpu.tolist(), strict=True)):
        groups = {name: column[rank] for name, column in zip(names, columns, strict=True) if column[rank] >= 0}
        row = {"rank": rank, "host": place.hosts[host], "local_rank": local[rank], "gpu": gpu if gpu >= 0 else None}
        objects.append({**row, "nic": rails[rank], "groups": groups})
    return objects


def to_json(place: PlaceMap) -> str:
    """The map alone, one rank per line."""
    check(place)
    lines = ",\n".join(json.dumps(row) for row in rows(place))
    return f'{{"levels": {json.dumps(dict(place.levels))}, "map": [\n{lines}\n]}}\n'


def misnumbered(place: PlaceMap) -> str:
    """A sentence where the ranks of a host are not on its GPUs 0, 1, 2, ... in their order: launchers hand out GPUs by
    the local rank, so that nothing but CUDA_VISIBLE_DEVICES can say otherwise. "" where they are, or nobody knows."""
    order = np.lexsort([np.arange(place.ranks), place.host])
    host, gpu = place.host[order], place.gpu[order]
    falls = np.flatnonzero((host[1:] == host[:-1]) & (gpu[1:] < gpu[:-1]) & (gpu[1:] >= 0))
    if falls.size:
        rank = int(order[falls[0] + 1])
        return (
            f"rank {rank} has GPU {place.gpu[rank]} of {place.hosts[place.host[rank]]} after a rank with a higher GPU: "
            "launchers number GPUs by local rank, so set CUDA_VISIBLE_DEVICES per process"
        )
    other = np.flatnonzero((place.gpu >= 0) & (place.gpu != place.local))
    if not other.size:
        return ""
    first = place.host[other[0]]
    names = ",".join(str(gpu) for gpu in place.gpu[place.host == first].tolist())
    hosts = np.unique(place.host[other]).size
    more = f", and likewise on {hosts - 1} more" if hosts > 1 else ""
    return (
        f"ranks of {place.hosts[first]} sit on GPUs {names}: launchers count from 0 unless the scheduler hides the "
        f"others, so set CUDA_VISIBLE_DEVICES={names} there{more}"
    )
