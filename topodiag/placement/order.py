"""Demands by weight, and the families of ranks that the heaviest join.

Demands are taken from the heaviest down. The ranks that the heaviest one joins are blocks; those that the two heaviest
join are families of blocks, and so on: laid side by side (placement/pack.py), every group of a grid layout lies as
compactly as its dimension deserves, and any other groups do too.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from topodiag.model.cluster import Demand, Ints


def weight(demand: Demand) -> float:
    """What a split of this demand would cost, up to a factor: bytes that each rank sends and waits for in a step. A
    demand that belongs inside a domain comes before any other."""
    return demand.bytes * demand.urgency * (1e6 if demand.keep_together else 1.0)


def heaviest_first(demands: Sequence[Demand]) -> list[Demand]:
    """Demands with more than one rank in a group, the heaviest first; of equal ones the smaller groups."""
    real = [demand for demand in demands if demand.talks]
    return sorted(real, key=lambda demand: (-weight(demand), demand.size, demand.dimension))


def by_family(numbers: Ints, family: Ints) -> list[Ints]:
    """These numbers in parts of one family each, in the order of the families; `family` is that of every number."""
    order = numbers[np.argsort(family[numbers], kind="stable")]
    return np.split(order, np.flatnonzero(np.diff(family[order])) + 1)


def labels(world: int, demands: Sequence[Demand]) -> list[Ints]:
    """For each prefix of the demands, the family that every rank belongs to: the least rank that it is joined with."""
    family = np.arange(world, dtype=np.int64)
    numbers: list[Ints] = []
    for demand in demands:
        family = _components(family, demand.groups)
        numbers.append(family)
    return numbers


def _components(family: Ints, groups: Ints) -> Ints:
    """Families after all members of each group are joined: connected components, by least labels passed on."""
    current = family.copy()
    while True:
        lowest = current[groups].min(axis=1)
        after = current.copy()
        np.minimum.at(after, groups.ravel(), np.repeat(lowest, groups.shape[1]))
        # A family whose representative was joined to a lower one follows it.
        after = after[after]
        least = np.full(len(after), len(after), np.int64)
        np.minimum.at(least, family, after)
        after = np.minimum(after, least[family])
        if np.array_equal(after, current):
            return after
        current = after
