"""How many groups the free GPUs can hold at most, for a class of seats: what a bound may count on.

Shares are weighed (placement/worth.py), and what a region of the network holds is rounded down to what shares of it can
add up to: groups that lie in it whole, and shares of groups that lie further out.
"""

from __future__ import annotations

from math import gcd

import numpy as np

from topodiag.model.cluster import Cluster, Ints
from topodiag.placement.shares import Class, regions
from topodiag.placement.worth import WHOLE, Worth, worths


def most_groups(
    cluster: Cluster,
    size: int,
    allowed: Class,
    *,
    level: int,
    copies: int = 1,
    largest: int | None = None,
    rows: int = 1,
) -> Ints:
    """By region of a level (0 the nodes, past the last level the one of all nodes), the most groups of `size` that lie
    in it. No node holds more than `largest` of one group; each rank of a share has `copies` in its node at least, so
    that no share is larger than its node over `copies`; and each stands for `rows` ranks of its node."""
    free = cluster.usable.sum(axis=1).astype(np.int64) // rows
    most = int(free.max(initial=0))
    largest = size if largest is None else largest
    least = min([size for size in allowed.least if size], default=size)
    if least > min(largest, most // copies) and (size > largest or size * copies > most):
        return np.zeros(int(_region(cluster, level).max(initial=0)) + 1, np.int64)
    held = [
        _groups_by_region(cluster, free, worth, allowed, at=(level, size, min(largest, size)))
        for worth in worths(size, least, most, copies, min(largest, size))
    ]
    fewest: Ints = np.minimum.reduce(held)
    return fewest


def _region(cluster: Cluster, level: int) -> Ints:
    return regions(cluster)[level - 1] if level else np.arange(cluster.nodes, dtype=np.int64)


def _groups_by_region(cluster: Cluster, free: Ints, worth: Worth, allowed: Class, *, at: tuple[int, int, int]) -> Ints:
    """Groups by region of a level, by one worth of shares. `at`: the level, the size and the largest share."""
    level, size, largest = at
    value = np.asarray(worth.node, np.int64)[free]
    region = np.arange(cluster.nodes, dtype=np.int64)
    for number in range(level + 1):
        if number:
            outer = _region(cluster, number)
            value = np.bincount(_of(region, outer), weights=value).astype(np.int64)
            region = outer
        later = next((size for size in allowed.least[number:] if size), 0) if number < level else 0
        step = gcd(WHOLE, *worth.share[later : size - later + 1]) if later else WHOLE
        value = value // step * step
        if not later:
            # Nothing of a group lies further out: a region that holds no whole one holds none.
            room = np.bincount(region, weights=np.minimum(free, largest), minlength=len(value))
            value = np.where(room >= size, value, 0)
    held: Ints = value // WHOLE
    return held


def _of(inner: Ints, outer: Ints) -> Ints:
    """The region of an outer level that each region of an inner one lies in."""
    regions = np.zeros(int(inner.max(initial=0)) + 1, np.int64)
    regions[inner] = outer
    return regions
