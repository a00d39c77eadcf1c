"""Bundles of many nodes, read by all cores: a capture takes a tenth of a second, and a cluster has thousands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from topodiag.evidence.cluster.bundles import NodeSeen, read_or_why
from topodiag.fleet.workers import cpus, end_with_parent, pool_of, starting

FEW = 24
"""Bundles that one process has read before others would have started."""
_CHUNK = 8
"""Bundles that a worker takes at once."""


def read_many(paths: Sequence[str]) -> Iterator[NodeSeen | str]:
    """What each bundle says of its node, or why it cannot be read, in the order of the paths. Raises TopodiagError when
    a worker dies."""
    cores = cpus()
    if len(paths) <= FEW or cores < 2:
        yield from map(read_or_why, paths)
        return
    with pool_of(min(cores, -(-len(paths) // _CHUNK)), end_with_parent) as pool:
        with starting():
            read = pool.map(read_or_why, paths, chunksize=_CHUNK)
        yield from read
