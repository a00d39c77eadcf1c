"""The alpha-beta model of a link: a message of n bytes takes alpha + n / beta; and collectives priced by it over links
of one kind: time in us, messages and bytes per rank.

Times in microseconds, sizes in bytes, bandwidths in GB/s (1e9 bytes per second, so 1 GB/s moves 1000 bytes in 1 us). A
size is a number or a numpy array of any shape; the result has its shape, and numbers need no numpy. Source: R. Hockney,
The communication challenge for MPP, Parallel Computing 20 (1994).

n ranks, B bytes as nccl-tests counts its first column: the buffer of all_reduce, broadcast and reduce; the whole
gathered or scattered buffer of all_gather and reduce_scatter; all that one rank sends in all_to_all and send_recv.

Sources of the formulas: R. Thakur, R. Rabenseifner, W. Gropp, Optimization of collective communication operations in
MPICH (2005), for rings, halving and doubling; P. Patarasuk, X. Yuan, Bandwidth optimal all-reduce algorithms for
clusters of workstations (2009), for the ring's 2(n-1)/n; P. Sanders, J. Speck, J. Traff, Two-tree algorithms for full
bandwidth broadcast, reduction and scan (2009), for pipelined trees and their chunks; NCCL v2.28 src/graph/tuning.cc for
what an in-network reduction reaches. Bus bandwidth: nccl-tests doc/PERFORMANCE.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from math import ceil, isfinite, log2
from typing import TYPE_CHECKING, Literal, TypeVar

from topodiag.lazy import dataclass
from topodiag.model.nccl_enums import busbw_factor

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


S = TypeVar("S", float, "npt.NDArray[np.float64]")
"""One size in bytes, or many."""

BYTES_PER_US = 1000.0
"""Bytes that 1 GB/s moves in a microsecond."""


@dataclass(frozen=True, slots=True)
class Link:
    """A link or a tier of equal links, in one direction: `alpha_us` per message, `gbs` sustained. Raises ValueError
    for a latency below 0 or a bandwidth that is not above 0."""

    alpha_us: float
    gbs: float
    name: str = ""

    def __post_init__(self) -> None:
        if not (0 <= self.alpha_us < float("inf") and self.gbs > 0 and isfinite(self.gbs)):
            raise ValueError(f"a link has a latency of at least 0 us and a bandwidth above 0 GB/s: {self}")

    def time_us(self, size: S) -> S:
        """alpha + n / beta."""
        return self.alpha_us + size / (self.gbs * BYTES_PER_US)

    @property
    def crossover(self) -> float:
        """The size in bytes, alpha x beta, at which latency and transfer take as long: above it the link is bound by
        bandwidth, below it by latency. At it half of the bandwidth is reached (Hockney's n_1/2)."""
        return self.alpha_us * self.gbs * BYTES_PER_US

    def bound(self, size: float) -> Literal["latency", "bandwidth"]:
        """`latency` or `bandwidth`: which term of a message of this size is the greater."""
        return "bandwidth" if size > self.crossover else "latency"


@dataclass(frozen=True, slots=True)
class Term:
    """One step of a derivation, as every model gives it: a number, and where it comes from. `unit` is a word of the
    published result (`us`, `GB/s`, `bytes`, `messages`, `ranks`, ...), "" for a ratio."""

    name: str
    value: float
    unit: str
    formula: str


COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "all_to_all", "send_recv")
ALGORITHMS = ("ring", "tree", "halving_doubling", "nvls", "direct", "unchunked_ring")
IN_NCCL = ("ring", "tree", "nvls", "direct")
"""What NCCL can choose; the others are there to compare with."""

MAX_CHUNKS = 1024
"""Most pieces that a pipelined buffer is cut into: below it no gain is left that matters."""

NVLS_EFFICIENCY = 0.73
"""What a reduction in the NVSwitch reaches of the links. NCCL v2.28 reckons 0.85 (src/graph/tuning.cc, nvlsEfficiency
of Hopper) of the 8 x 40 GB/s that its channel search settles on where the links have 370.8: 476 GB/s of bus bandwidth
on eight H100, where about 480 is published."""

_LARGEST_RANKS = 1 << 24


class NotModelledError(ValueError):
    """An algorithm that a collective does not have, or a number of ranks that it cannot work with."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What an algorithm does: `messages` one after the other, and the bytes that pass a rank's busier direction, as a
    share of B. `depth` above 0 is a pipeline of so many hops, whose chunks are as many as pay (`chunks`)."""

    messages: float
    share: float
    formula: str
    depth: int = 0

    def chunks(self, size: S, link: Link) -> S:
        """Pieces that make a pipeline fastest: sqrt((d-1) share B / (alpha beta)), from 1 to MAX_CHUNKS."""
        if self.depth < 2:
            return size * 0 + 1
        if link.crossover <= 0:  # no latency, or one that vanishes beside the bandwidth
            return size * 0 + MAX_CHUNKS
        best: S = ((self.depth - 1) * self.share * size / link.crossover) ** 0.5
        return _between(best, 1.0, float(MAX_CHUNKS))

    def count(self, size: float, link: Link) -> float:
        """Messages that pass one after the other until the last rank is done."""
        return self.depth + self.chunks(size, link) - 1 if self.depth else self.messages

    def time_us(self, size: S, link: Link) -> S:
        """messages x alpha + share x B / beta; a pipeline of c chunks: (d + c - 1)(alpha + share x B / (c beta))."""
        moved = self.share * size / (link.gbs * BYTES_PER_US)
        if not self.depth:
            return self.messages * link.alpha_us + moved
        chunks = self.chunks(size, link)
        return (self.depth + chunks - 1) * (link.alpha_us + moved / chunks)


def _between(value: S, low: float, high: float) -> S:
    if isinstance(value, (int, float)):
        return min(max(value, low), high)
    return value.clip(low, high)


def algorithms(collective: str) -> tuple[str, ...]:
    """The algorithms that a collective has. Raises NotModelledError for a collective that is none."""
    if collective not in COLLECTIVES:
        raise NotModelledError(f"no collective {collective!r}; there are {', '.join(COLLECTIVES)}")
    return tuple(name for name in ALGORITHMS if collective in _SHAPES[name])


@lru_cache(maxsize=1 << 12)
def shape(collective: str, algorithm: str, ranks: int) -> Shape:
    """Messages and traffic of a collective by an algorithm over `ranks` ranks. Raises NotModelledError."""
    have = algorithms(collective)
    if not 1 <= ranks <= _LARGEST_RANKS:
        raise NotModelledError(f"{ranks} ranks: it takes 1 to {_LARGEST_RANKS}")
    if algorithm not in have:
        raise NotModelledError(f"{collective} has no algorithm {algorithm!r}; it has {', '.join(have)}")
    if ranks == 1:
        return Shape(0, 0.0, "one rank sends nothing")
    if algorithm == "halving_doubling" and ranks & (ranks - 1):
        raise NotModelledError(f"halving and doubling takes a power of two of ranks, not {ranks}")
    return _SHAPES[algorithm][collective](ranks)


Maker = Callable[[int], Shape]


def _rounds(n: int) -> int:
    return ceil(log2(n))


def _chain(n: int) -> Shape:
    return Shape(n - 1, 1.0, "(n-1 + c-1)(alpha + B/(c beta)), a chain of c chunks", depth=n - 1)


def _tree(n: int) -> Shape:
    depth = _rounds(n)
    return Shape(depth, 1.0, "(log2 n + c-1)(alpha + B/(c beta)), two trees with half of B each, c chunks", depth)


def _tree_both_ways(n: int) -> Shape:
    # A rank is a leaf of one tree and inside the other: it sends B/2 up, B/2 up and 2 x B/2 down, 2 B in all.
    depth, share = 2 * _rounds(n), 2.0 if n > 2 else 1.0
    return Shape(depth, share, f"(2 log2 n + c-1)(alpha + {share:g} B/(c beta)), two trees up and down", depth)


def _switch(messages: int, share: Callable[[int], float], formula: str) -> Maker:
    return lambda n: Shape(messages, share(n) / NVLS_EFFICIENCY, f"{formula}, over {NVLS_EFFICIENCY:g} of the links")


def _part(n: int) -> float:
    return (n - 1) / n


def _once(_: int) -> float:
    return 1.0


_SHAPES: Mapping[str, Mapping[str, Maker]] = {
    "ring": {
        "all_reduce": lambda n: Shape(2 * (n - 1), 2 * _part(n), "2(n-1)(alpha + (B/n)/beta)"),
        "all_gather": lambda n: Shape(n - 1, _part(n), "(n-1)(alpha + (B/n)/beta)"),
        "reduce_scatter": lambda n: Shape(n - 1, _part(n), "(n-1)(alpha + (B/n)/beta)"),
        "broadcast": _chain,
        "reduce": _chain,
    },
    "tree": {"all_reduce": _tree_both_ways, "broadcast": _tree, "reduce": _tree},
    "halving_doubling": {
        "all_reduce": lambda n: Shape(2 * _rounds(n), 2 * _part(n), "2 log2(n) alpha + 2(n-1)/n B/beta"),
        "all_gather": lambda n: Shape(_rounds(n), _part(n), "log2(n) alpha + (n-1)/n B/beta"),
        "reduce_scatter": lambda n: Shape(_rounds(n), _part(n), "log2(n) alpha + (n-1)/n B/beta"),
    },
    "nvls": {
        # Every rank's buffer leaves it once for the switch to reduce, and the result comes in once, the other way.
        "all_reduce": _switch(2, _once, "2 alpha + B/beta: the switch reduces and multicasts"),
        "all_gather": _switch(1, _part, "alpha + (n-1)/n B/beta: what comes in"),
        "reduce_scatter": _switch(1, _part, "alpha + (n-1)/n B/beta: what goes out"),
        "broadcast": _switch(1, _once, "alpha + B/beta: the switch multicasts"),
        "reduce": _switch(1, _once, "alpha + B/beta: the switch reduces"),
    },
    "direct": {
        "all_reduce": lambda n: Shape(2, 2 * _part(n), "2 alpha + 2(n-1)/n B/beta: all peers at once, twice"),
        "all_gather": lambda n: Shape(1, _part(n), "alpha + (n-1)/n B/beta: all peers at once"),
        "reduce_scatter": lambda n: Shape(1, _part(n), "alpha + (n-1)/n B/beta: all peers at once"),
        "broadcast": lambda n: Shape(1, 1.0, "alpha + B/beta: all receivers read at once"),
        "all_to_all": lambda n: Shape(n - 1, _part(n), "(n-1)(alpha + (B/n)/beta)"),
        "send_recv": lambda n: Shape(1, 1.0, "alpha + B/beta"),
    },
    "unchunked_ring": {
        "all_reduce": lambda n: Shape(2 * (n - 1), 2.0 * (n - 1), "2(n-1)(alpha + B/beta): every hop carries all of B"),
    },
}  # fmt: skip
"""Direct all_reduce, all_gather and broadcast need links that reach every peer at full rate: a switch, shared
memory. NCCL uses them below its rings (symmetric memory); here they show the least that latency can be."""


def time_us(collective: str, algorithm: str, ranks: int, size: S, link: Link) -> S:
    """Time of a collective of `size` bytes (one or many) whose ranks all use links of one kind."""
    return shape(collective, algorithm, ranks).time_us(size, link)


def bytes_per_rank(collective: str, algorithm: str, ranks: int, size: S) -> S:
    """Bytes that a rank's link carries in its busier direction."""
    moved = shape(collective, algorithm, ranks).share * size
    return moved * NVLS_EFFICIENCY if algorithm == "nvls" else moved


def busbw_gbs(collective: str, ranks: int, size: float, took_us: float) -> float:
    """What nccl-tests would print, GB/s; 0 for no time."""
    return algbw_gbs(size, took_us) * busbw_factor(collective, ranks)


def algbw_gbs(size: float, took_us: float) -> float:
    """Bytes over time, GB/s; 0 for no time."""
    return size / (took_us * BYTES_PER_US) if took_us > 0 else 0.0


def terms(collective: str, algorithm: str, ranks: int, size: float, link: Link) -> tuple[Term, ...]:
    """The derivation of one time."""
    form = shape(collective, algorithm, ranks)
    count = form.count(size, link)
    moved = bytes_per_rank(collective, algorithm, ranks, size)
    took = form.time_us(size, link)
    return (
        Term("alpha", link.alpha_us, "us", f"latency of one message{_on(link)}"),
        Term("beta", link.gbs, "GB/s", f"bandwidth of one rank, one direction{_on(link)}"),
        Term("messages", count, "messages", "one after the other"),
        Term("bytes per rank", moved, "bytes", "in the busier direction"),
        Term("latency", count * link.alpha_us, "us", "messages x alpha"),
        Term("transfer", took - count * link.alpha_us, "us", "what the bytes take"),
        Term("time", took, "us", form.formula),
    )


def _on(link: Link) -> str:
    return f", {link.name}" if link.name else ""
