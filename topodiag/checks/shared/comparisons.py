"""One of several alike beside the others: ranks, hosts, ports, GPUs, links. Comparisons of peers are these two.

A comparison says how many peers it takes before one can be odd (`least`), which share of them must agree (`agree`)
or may stand apart (`most`), how far apart is far (`factor`), and below which difference nobody cares (`floor`, in the
unit of the values).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from math import inf
from typing import Generic, TypeVar

from topodiag.lazy import dataclass
from topodiag.words.units import grouped

K = TypeVar("K", bound=Hashable)
V = TypeVar("V", bound=Hashable)

LEAST = 3
"""Peers below which nothing tells which one is odd."""
HALF = 0.5
QUARTER = 0.25


@dataclass(frozen=True, slots=True)
class Outliers(Generic[K, V]):
    """`outliers` have another value than the `count` of `of` peers that have `usual`."""

    usual: V
    count: int
    of: int
    outliers: tuple[K, ...]


@dataclass(frozen=True, slots=True)
class Far(Generic[K]):
    """`outliers` are far from `usual`, the median of all."""

    usual: float
    of: int
    outliers: tuple[K, ...]


def tallied(pairs: Iterable[tuple[K, V]]) -> dict[K, Counter[V]]:
    """How often each value comes, by the key beside it."""
    return {key: Counter(values) for key, values in grouped(pairs).items()}


def majority(values: Iterable[V]) -> V | None:
    """The value that more than half of the peers have, or None when there is none."""
    tally = Counter(values)
    if not tally:
        return None
    value, count = tally.most_common(1)[0]
    return value if count > HALF * tally.total() else None


def unlike(values: Mapping[K, V], *, agree: float = HALF) -> Outliers[K, V] | None:
    """The peers with another value than the one that more than `agree` of all have; None where they are fewer than
    LEAST, all agree, or too few agree."""
    tally = Counter(values.values())
    if len(values) < LEAST or len(tally) < 2:
        return None
    usual, count = tally.most_common(1)[0]
    if count <= agree * len(values):
        return None
    return Outliers(usual, count, len(values), tuple(key for key, value in values.items() if value != usual))


def far(
    values: Mapping[K, float],
    *,
    factor: float,
    floor: float = 0.0,
    least: int = LEAST,
    most: float = QUARTER,
    close: float = inf,
) -> Far[K] | None:
    """The peers whose value is more than `factor` times the median (`factor` above 1), or less than that (below 1),
    and more than `floor` away from it. None where there are fewer than `least`, where more than a part of `most` (one
    at least) would be odd, or where one of the rest is further than `close` times from the median."""
    if len(values) < least:
        return None
    from statistics import median  # noqa: PLC0415 - slow to load: fractions and random numbers

    usual = median(values.values())
    above = factor > 1
    outliers = tuple(
        key
        for key, value in values.items()
        if (value > factor * usual if above else value < factor * usual) and abs(value - usual) > floor
    )
    rest = [value for key, value in values.items() if key not in set(outliers)]
    if not outliers or not rest or len(outliers) > max(1, most * len(values)):
        return None
    spread = max(rest) > close * usual if above else min(rest) < usual / close
    return None if spread else Far(usual, len(values), outliers)
