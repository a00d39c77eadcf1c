"""The declared layout of a training job: its sizes, their order, and the ranks of one group of each dimension.

The convention is Megatron's (megatron/core/parallel_state.py, RankGenerator): the first dimension of the order varies
fastest. Experts divide the data and context dimensions. Pure arithmetic: a job of a million ranks costs nothing here;
the groups of all ranks are layout_groups.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import product
from math import gcd, prod

from topodiag.lazy import dataclass
from topodiag.model.dimensions import (
    DIMENSIONS,
    NAMES,
    ORDER,
    RANKED,
    Divides,
    Sizes,
    listed,
    that_divide,
)
from topodiag.model.errors import TopodiagError
from topodiag.words.text import clean

COPIES = tuple(dimension for dimension in DIMENSIONS if dimension.repeats_weights)
"""Dimensions whose ranks hold the same dense weights, the fastest first."""
_LARGEST = 1 << 24
"""No job has more ranks; keeps a mistyped size from filling the memory."""


class LayoutError(TopodiagError):
    """A layout that is none, or that does not make the number of ranks that the job has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout(Sizes):
    """Sizes of the dimensions; `dp` 0 is what the others leave. `order`: the first varies fastest.

    `group`, `replicas` and the like are the ranks of one group, with an open `dp` counting as 1.
    """

    order: str = ORDER

    def for_world(self, world_size: int) -> Layout:
        """The same with its data dimension filled in. Raises LayoutError when it does not make that many ranks."""
        for name in NAMES:
            size = getattr(self, name) or (1 if name == "dp" else 0)
            if not 1 <= size <= _LARGEST:
                raise LayoutError(f"{name} of the layout is {size}", hint="sizes are 1 or more")
        model = self.replica
        dp = self.dp or world_size // model
        if dp < 1 or model * dp != world_size:
            factors = self.replica_words + (f" x dp {self.dp}" if self.dp else "")
            says = f"needs {model * dp} ranks" if self.dp else f"needs a multiple of {model} ranks"
            raise LayoutError(f"the layout {factors} {says}; the job has {world_size}", hint="correct the layout")
        whole = replace(self, dp=dp)
        if whole.copies % self.ep:
            words = " x ".join(f"{copy.name} {getattr(whole, copy.name)}" for copy in reversed(COPIES))
            raise LayoutError(f"ep {self.ep} of the layout does not divide {words}", hint="correct the layout")
        self.names()
        return whole

    def names(self) -> tuple[str, ...]:
        """The dimensions, fastest first; those left out have size 1. Raises LayoutError for an order that is none."""
        names = tuple(self.order.lower().split("-"))
        unknown = [name for name in names if name not in NAMES]
        left_out = [name for name in NAMES if name not in names]
        wanted = [name for name in left_out if getattr(self, name) > 1]
        if unknown or wanted or len(set(names)) != len(names):
            raise LayoutError(
                f"the order {clean(self.order, limit=80)} does not name each dimension of the layout once",
                hint=f"as {ORDER}, fastest first",
            )
        return names + tuple(left_out)

    @property
    def filled(self) -> Layout:
        """The same with an open data dimension of size 1."""
        return self if self.dp else replace(self, dp=1)

    @property
    def sizes(self) -> Mapping[str, int]:
        """Of the dimensions that number the ranks."""
        return {name: getattr(self, name) or 1 for name in RANKED}

    @property
    def all_sizes(self) -> Mapping[str, int]:
        """Of all dimensions, those that number the ranks first."""
        return {**self.sizes, **{name: getattr(self, name) for name in NAMES if name not in RANKED}}

    def over(self, *what: Divides) -> int:
        """Among how many ranks the job shares these: the product of the sizes."""
        return prod(getattr(self, dimension.name) or 1 for dimension in that_divide(*what))

    @property
    def copies(self) -> int:
        """Ranks that hold the same dense weights."""
        return prod(self.sizes[copy.name] for copy in COPIES)

    @property
    def replica(self) -> int:
        """Ranks of one replica: of all dimensions that number the ranks but the data dimension."""
        return prod(size for name, size in self.sizes.items() if name != "dp")

    @property
    def replica_words(self) -> str:
        return " x ".join(f"{name} {size}" for name, size in self.sizes.items() if name != "dp")

    @property
    def least_world(self) -> int:
        """Ranks of the smallest job of these sizes: experts take their ranks out of those that repeat the weights."""
        return self.replica * self.ep // gcd(replace(self, dp=1).copies, self.ep)

    @property
    def world(self) -> int:
        return prod(self.sizes.values())

    @property
    def dense_order(self) -> tuple[str, ...]:
        """The dimensions that number the ranks, fastest first. Raises LayoutError."""
        return dense_order(self.order)

    def stride(self, dimension: str) -> int:
        """Ranks from one member of a group to the next."""
        order = self.dense_order
        return prod(self.sizes[name] for name in order[: order.index(dimension)])

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
        """The ranks that hold the same dense weights as rank 0, or its context: cp fastest, dp slowest."""
        return tuple(map(sum, product(*(self.group(copy.name) for copy in reversed(COPIES)))))

    def experts(self) -> tuple[int, ...]:
        """The expert-parallel group of rank 0."""
        return self.replicas()[: self.ep]

    def expert_replicas(self) -> tuple[int, ...]:
        """The ranks that hold the same experts as rank 0."""
        return self.replicas()[:: self.ep]

    def shards(self, size: int) -> tuple[int, ...]:
        """A group of HSDP that shares one copy of the weights. Raises LayoutError."""
        replicas = self.replicas()
        if size < 1 or len(replicas) % size:
            words = " x ".join(copy.name for copy in COPIES)
            raise LayoutError(f"a shard group of {size} does not divide {words} = {len(replicas)}")
        return replicas[:size]

    def shard_replicas(self, size: int) -> tuple[int, ...]:
        """The ranks that hold the same shard as rank 0."""
        return self.replicas()[::size]


def dense_order(text: str) -> tuple[str, ...]:
    """An order as `tp-cp-ep-dp-pp` without `ep`, whose place follows from the others. Raises LayoutError."""
    names = tuple(name for name in text.lower().split("-") if name in RANKED or name not in NAMES)
    if not set(names) <= set(RANKED) or len(set(names)) < len(names):
        raise LayoutError(f"an order names each of {listed(RANKED, 'and')} at most once, not {text[:40]!r}")
    return (*names, *(name for name in RANKED if name not in names))
