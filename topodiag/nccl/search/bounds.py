"""How often something can be had that takes one of several ways, each of which takes room of several kinds.

A channel that spares one set of links takes more of another: across sockets less of PCIe, but of the link between the
CPUs. By each set alone there would be room for more channels than by both together. With any weights on the sets, all
channels take no more than the weighted room, and each no less than its cheapest way: every choice of weights is a
bound (weak duality of linear programmes). The tightest one for two sets is where two ways cost the same.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import combinations

Way = tuple[int, ...]
"""What it takes of each set."""

Choice = tuple[int, Sequence[Way]]
"""How often one of some ways has to be taken."""

_MOST_WAYS = 8
"""Of more ways not every two are weighed against each other."""


def undercut(ways: Collection[Way]) -> tuple[Way, ...]:
    """Those that no other one undercuts: one that takes no more of any set."""
    return tuple(
        way
        for way in ways
        if not any(other != way and all(less <= more for less, more in zip(other, way, strict=True)) for other in ways)
    )


def by_pairs(free: Sequence[int], choices: Sequence[Choice], most: int) -> int:
    """How often one of each choice fits into what is free, `most` at most: by any two sets between which ways trade."""
    for one, other, weights in dict.fromkeys(_trades(choices)):
        room = weights[0] * free[one] + weights[1] * free[other]
        need = sum(
            times * min(weights[0] * way[one] + weights[1] * way[other] for way in ways) for times, ways in choices
        )
        if need:
            most = min(most, room // need)
    return most


def _trades(choices: Sequence[Choice]) -> Iterator[tuple[int, int, tuple[int, int]]]:
    """Two sets, and the weights at which two ways cost the same."""
    for _, ways in choices:
        for way, other in combinations(ways[:_MOST_WAYS], 2):
            saved = [(at, b - a) for at, (a, b) in enumerate(zip(way, other, strict=True)) if a != b]
            less = [(at, gain) for at, gain in saved if gain > 0]
            more = [(at, -gain) for at, gain in saved if gain < 0]
            for one, gain in less:
                for two, loss in more:
                    yield one, two, (loss, gain)


def weighed(size: int, part: int) -> Callable[[int], int]:
    """The weight of a piece: however pieces are chosen that a link of `size` holds together, they weigh no more than
    `size` itself does. A link of 48 GB/s has room for one piece of 26, not for 1.8 of them. `part` is at most half of
    `size`.

    A dual feasible function of bin packing: Carlier, Clautiaux and Moukrim 2007, "New reduction procedures and lower
    bounds for the two-dimensional bin packing problem with fixed orientation".
    """
    whole = size // part

    def weight(piece: int) -> int:
        if 2 * piece == size:
            return whole
        return 2 * (piece // part) if 2 * piece < size else 2 * (whole - (size - piece) // part)

    return weight
