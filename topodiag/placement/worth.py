"""What shares of a group are worth: weights that bound how many groups fragments can hold.

Give every share of a group a weight such that the shares of any group weigh at least 1. Then nodes hold no more groups
than the heaviest shares that they could give weigh together: weights are a solution of the dual of the linear programme
that cuts nodes into shares (P. Gilmore, R. Gomory, A linear programming approach to the cutting-stock problem, 1961;
dual feasible functions). Any such weights give a bound, the best of many a good one. Here they are nondecreasing, two
shares that make a group weigh 1, and no share weighs more than two that make it up.

Weights are whole numbers of WHOLE, so that sums are exact.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from topodiag.lazy import dataclass

WHOLE = 120 * 1024
"""The weight of a group: a multiple of the denominators that weights of small groups have."""
_STEPS = tuple(part * 1024 for part in (0, 15, 20, 24, 30, 40, 45, 48, 60))
_SMALL = 16
"""Sizes of groups up to which combinations of _STEPS are tried."""


@lru_cache(maxsize=512)
def weights(size: int, least: int) -> tuple[tuple[int, ...], ...]:
    """By share from 0 to `size`; the first is proportional to the share, rounded up. Shares are of `least` to
    `size - least`, or all."""
    numbers = [tuple(-(-WHOLE * share // size) for share in range(size + 1))]
    if size <= _SMALL:
        numbers += [_mirrored(size, half) for half in _halves(size, least, ())]
    return tuple(dict.fromkeys(numbers))


def _halves(size: int, least: int, so_far: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Weights of the shares from `least` to half of the group."""
    share = least + len(so_far)
    if share * 2 > size:
        if _adds_up(size, least, _mirrored(size, so_far)):
            yield so_far
        return
    for weight in (WHOLE // 2,) if share * 2 == size else _STEPS:
        if not so_far or weight >= so_far[-1]:
            yield from _halves(size, least, (*so_far, weight))


def _mirrored(size: int, half: tuple[int, ...]) -> tuple[int, ...]:
    numbers = [0] * (size + 1)
    numbers[size] = WHOLE
    for share, weight in enumerate(half, start=size // 2 - len(half) + 1):
        numbers[share], numbers[size - share] = weight, WHOLE - weight
    return tuple(numbers)


def _adds_up(size: int, least: int, weight: tuple[int, ...]) -> bool:
    return all(
        weight[one] + weight[other] >= weight[one + other]
        for one in range(least, size - 2 * least + 1)
        for other in range(one, size - least - one + 1)
    )


@dataclass(frozen=True, slots=True)
class Worth:
    """Weights by share, and by free GPUs of a node the most that it can give of them."""

    share: tuple[int, ...]
    node: tuple[int, ...]


@lru_cache(maxsize=2048)
def worths(size: int, least: int, most: int, copies: int = 1, largest: int | None = None) -> tuple[Worth, ...]:
    """What nodes with 0 to `most` free GPUs are worth by all the weights that matter. No share is above `largest`; each
    rank of a share has `copies` in its node at least, of other groups, so that no share is larger than its node over
    `copies`."""
    top = min(size if largest is None else largest, most // copies)
    if 3 * least > size:
        # Two shares make a group: one whose other share is above the top is of no use.
        least = max(least, size - top)
    shares = (least, min(size - least, top), top)
    nodes = {_node(weight, shares, most, copies): weight for weight in weights(size, least)}
    kept: list[Worth] = []
    for node in sorted(nodes, key=lambda node: (sum(node), node)):
        if not any(all(a <= b for a, b in zip(other.node, node, strict=True)) for other in kept):
            kept.append(Worth(nodes[node], node))
    return tuple(kept)


def _node(weight: tuple[int, ...], shares: tuple[int, int, int], most: int, copies: int) -> tuple[int, ...]:
    """`shares`: the least and the most of a part, and the most of all."""
    size = len(weight) - 1
    allowed = [*range(shares[0], shares[1] + 1), *([size] if size <= shares[2] else [])]
    if copies == 1:
        return tuple(_heaviest(weight, allowed, most))
    return tuple(_heaviest(weight, [s for s in allowed if s * copies <= have], have)[have] for have in range(most + 1))


def _heaviest(weight: tuple[int, ...], allowed: list[int], most: int) -> list[int]:
    """By room from 0 to `most`, the most that shares in it weigh."""
    best = [0]
    for room in range(1, most + 1):
        best.append(max([best[room - 1], *(best[room - s] + weight[s] for s in allowed if s <= room)]))
    return best
