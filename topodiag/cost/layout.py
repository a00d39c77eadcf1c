"""Which ranks a dimension of a training job joins, by the order in which its dimensions are numbered.

Rank r sits on GPU r, nodes in their order. The first dimension of the order varies fastest, as in Megatron-LM
(core/parallel_state.py, RankGenerator). Expert parallelism divides what context and data parallelism span together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from math import prod

DIMENSIONS = ("tp", "cp", "dp", "pp")
MEGATRON = ("tp", "cp", "dp", "pp")
"""Megatron-LM's default, tp-cp-ep-dp-pp."""


class LayoutError(ValueError):
    """Sizes that do not fit together."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Sizes of the dimensions and their order, the fastest first. Raises LayoutError."""

    tp: int = 1
    cp: int = 1
    ep: int = 1
    pp: int = 1
    dp: int = 1
    order: tuple[str, ...] = MEGATRON

    def __post_init__(self) -> None:
        if sorted(self.order) != sorted(DIMENSIONS):
            raise LayoutError(f"an order names tp, cp, dp and pp once each, not {'-'.join(self.order)}")
        if self.cp * self.dp % self.ep:
            raise LayoutError(f"ep {self.ep} does not divide cp x dp = {self.cp * self.dp}")

    @property
    def sizes(self) -> Mapping[str, int]:
        return {"tp": self.tp, "cp": self.cp, "dp": self.dp, "pp": self.pp}

    @property
    def world(self) -> int:
        return prod(self.sizes.values())

    def stride(self, dimension: str) -> int:
        """Ranks from one member of a group to the next."""
        return prod(self.sizes[name] for name in self.order[: self.order.index(dimension)])

    def group(self, dimension: str, base: int = 0) -> range:
        """The ranks of the group of rank `base` (whose own place in the dimension is 0)."""
        step = self.stride(dimension)
        return range(base, base + step * self.sizes[dimension], step)

    def worst(self, dimension: str, domain: int) -> range:
        """The group over the most domains of `domain` ranks: where a group does not divide a domain, some straddle."""
        step, size = self.stride(dimension), self.sizes[dimension]
        blocks = min(self.world // (step * size), 64)
        groups = [self.group(dimension, block * step * size) for block in range(blocks)]
        return max(groups, key=lambda ranks: len({rank // domain for rank in ranks}))

    def replicas(self) -> tuple[int, ...]:
        """The ranks that hold the same dense weights as rank 0, or its context: cp fastest, then dp."""
        return tuple(b + a for b, a in product(self.group("dp"), self.group("cp")))

    def experts(self) -> tuple[int, ...]:
        """The expert-parallel group of rank 0."""
        return self.replicas()[: self.ep]

    def expert_replicas(self) -> tuple[int, ...]:
        """The ranks that hold the same experts as rank 0."""
        return self.replicas()[:: self.ep]

    def shards(self, size: int) -> tuple[int, ...]:
        """A group of HSDP that shares one copy of the weights. Raises LayoutError."""
        if size < 1 or (self.cp * self.dp) % size:
            raise LayoutError(f"a shard group of {size} does not divide cp x dp = {self.cp * self.dp}")
        return self.replicas()[:size]

    def shard_replicas(self, size: int) -> tuple[int, ...]:
        """The ranks that hold the same shard as rank 0."""
        return self.replicas()[::size]


def order_of(text: str) -> tuple[str, ...]:
    """`tp-cp-ep-dp-pp` and the like; the place of `ep` follows from the others. Raises LayoutError."""
    names = tuple(name for name in text.lower().split("-") if name != "ep")
    if not set(names) <= set(DIMENSIONS) or len(set(names)) < len(names):
        raise LayoutError(f"an order names each of tp, cp, dp and pp at most once, not {text[:40]!r}")
    return (*names, *(name for name in DIMENSIONS if name not in names))
