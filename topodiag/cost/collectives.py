"""Collectives priced by the alpha-beta model: time in us, messages and bytes per rank, and each term by name.

n ranks, B bytes per rank as nccl-tests counts its first column: the buffer of all_reduce, broadcast and reduce; the
whole gathered or scattered buffer of all_gather and reduce_scatter; all that one rank sends in all_to_all. Formulas:
R. Thakur, R. Rabenseifner, W. Gropp, Optimization of collective communication operations in MPICH (2005); ring:
P. Patarasuk, X. Yuan, Bandwidth optimal all-reduce algorithms (2009); double trees: P. Sanders et al., Two-tree
algorithms for full bandwidth broadcast, reduction and scan (2009). Bus bandwidth: nccl-tests doc/PERFORMANCE.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import ceil, log2

from topodiag.cost.alpha_beta import BYTES_PER_US, Link, S

COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "all_to_all", "send_recv")
ALGORITHMS = ("ring", "tree", "halving_doubling", "nvls", "direct", "unchunked_ring")

TREE_CHUNKS = 64
"""Pieces into which a tree's buffer is cut: enough that filling the pipeline is small, as NCCL's steps do."""


class NotModelledError(ValueError):
    """An algorithm that a collective does not have, or a number of ranks that it cannot work with."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What an algorithm does for one collective: messages in a row, and the bytes per rank that pass its link, as a
    share of B."""

    messages: float
    share: float
    formula: str


def busbw_factor(collective: str, ranks: int) -> float:
    """busbw / algbw of nccl-tests: what of the buffer each rank's link must carry."""
    n = ranks
    if n < 2:
        return 0.0 if collective not in ("broadcast", "reduce", "send_recv") else 1.0
    if collective == "all_reduce":
        return 2 * (n - 1) / n
    if collective in ("all_gather", "reduce_scatter", "all_to_all"):
        return (n - 1) / n
    return 1.0


def shape(collective: str, algorithm: str, ranks: int) -> Shape:
    """Messages and traffic of a collective by an algorithm over `ranks` ranks. Raises NotModelledError."""
    if collective not in COLLECTIVES:
        raise NotModelledError(f"no collective {collective!r}; there are {', '.join(COLLECTIVES)}")
    if ranks < 1:
        raise NotModelledError(f"{ranks} ranks: at least 1")
    maker = _SHAPES.get(algorithm, {}).get(collective)
    if maker is None:
        have = [name for name, makers in _SHAPES.items() if collective in makers]
        raise NotModelledError(f"{collective} has no algorithm {algorithm!r}; it has {', '.join(have)}")
    if ranks == 1:
        return Shape(0, 0.0, "one rank sends nothing")
    return maker(ranks)


def _ring(steps: Callable[[int], int], share: Callable[[int], float], formula: str) -> Callable[[int], Shape]:
    return lambda n: Shape(steps(n), share(n), formula)


def _log(n: int) -> int:
    return ceil(log2(n))


def _tree_chunked(rounds: Callable[[int], int], factor: float, formula: str) -> Callable[[int], Shape]:
    """A pipelined tree: the depth and the chunks in a row; each chunk is B / TREE_CHUNKS."""

    def made(n: int) -> Shape:
        steps = rounds(n) + TREE_CHUNKS - 1
        return Shape(steps, factor * steps / TREE_CHUNKS, formula)

    return made


_SHAPES: Mapping[str, Mapping[str, Callable[[int], Shape]]] = {
    "ring": {
        "all_reduce": _ring(lambda n: 2 * (n - 1), lambda n: 2 * (n - 1) / n, "2(n-1)(alpha + (B/n)/beta)"),
        "all_gather": _ring(lambda n: n - 1, lambda n: (n - 1) / n, "(n-1)(alpha + (B/n)/beta)"),
        "reduce_scatter": _ring(lambda n: n - 1, lambda n: (n - 1) / n, "(n-1)(alpha + (B/n)/beta)"),
        "broadcast": _ring(lambda n: n - 1 + n - 1, lambda n: (2 * n - 2) / n, "(2n-2)(alpha + (B/n)/beta), n chunks"),
        "reduce": _ring(lambda n: n - 1 + n - 1, lambda n: (2 * n - 2) / n, "(2n-2)(alpha + (B/n)/beta), n chunks"),
    },
    "tree": {
        "all_reduce": _tree_chunked(lambda n: 2 * _log(n), 2.0, "2 x binary tree up and down, 64 chunks in a row"),
        "broadcast": _tree_chunked(_log, 1.0, "depth + 63 chunks of B/64 in a row"),
        "reduce": _tree_chunked(_log, 1.0, "depth + 63 chunks of B/64 in a row"),
    },
    "halving_doubling": {
        "all_reduce": lambda n: Shape(2 * _log(n), 2 * (n - 1) / n, "2 log2(n) alpha + 2(n-1)/n B/beta"),
        "all_gather": lambda n: Shape(_log(n), (n - 1) / n, "log2(n) alpha + (n-1)/n B/beta"),
        "reduce_scatter": lambda n: Shape(_log(n), (n - 1) / n, "log2(n) alpha + (n-1)/n B/beta"),
    },
    "nvls": {
        # Each GPU sends its share once and the switch reduces: B in, B out, both directions at once.
        "all_reduce": lambda n: Shape(2, 1.0, "2 alpha + B/beta: the switch reduces and multicasts"),
        "all_gather": lambda n: Shape(1, (n - 1) / n, "alpha + (n-1)/n B/beta: received shares"),
        "reduce_scatter": lambda n: Shape(1, (n - 1) / n, "alpha + (n-1)/n B/beta: sent shares"),
        "broadcast": lambda n: Shape(1, 1.0, "alpha + B/beta: the switch multicasts"),
    },
    "direct": {
        "all_to_all": lambda n: Shape(n - 1, (n - 1) / n, "(n-1)(alpha + (B/n)/beta)"),
        "all_gather": lambda n: Shape(n - 1, (n - 1) / n, "(n-1)(alpha + (B/n)/beta)"),
        "reduce_scatter": lambda n: Shape(n - 1, (n - 1) / n, "(n-1)(alpha + (B/n)/beta)"),
        "send_recv": lambda n: Shape(1, 1.0, "alpha + B/beta"),
        "broadcast": lambda n: Shape(
            1, 1.0, "alpha + B/beta, all receivers at once over one multicast or shared memory"
        ),
    },
    "unchunked_ring": {
        "all_reduce": lambda n: Shape(2 * (n - 1), 2.0 * (n - 1), "2(n-1)(alpha + B/beta): every hop carries all of B"),
    },
}


def time_us(collective: str, algorithm: str, ranks: int, size: S, link: Link) -> S:
    """Time of a collective of `size` bytes (one or many) whose ranks all use links of one kind."""
    made = shape(collective, algorithm, ranks)
    return made.messages * link.alpha_us + made.share * size / (link.gbs * BYTES_PER_US)


def bytes_per_rank(collective: str, algorithm: str, ranks: int, size: S) -> S:
    """Bytes that a rank's link carries in its busier direction."""
    return shape(collective, algorithm, ranks).share * size


def busbw_gbs(collective: str, ranks: int, size: float, took_us: float) -> float:
    """What nccl-tests would print, GB/s; 0 for no time."""
    return size / (took_us * BYTES_PER_US) * busbw_factor(collective, ranks) if took_us > 0 else 0.0


@dataclass(frozen=True, slots=True)
class Stage:
    """One phase of a hierarchical collective: its name, the ranks in each group, and the bytes and link of each."""

    name: str
    collective: str
    algorithm: str
    ranks: int
    share: float
    """Bytes of this phase as a share of B."""
    link: Link

    def time_us(self, size: S) -> S:
        return time_us(self.collective, self.algorithm, self.ranks, size * self.share, self.link)


def leaders(nodes: int, per_node: int, inside: Link, outside: Link) -> tuple[Stage, ...]:
    """All-reduce by leaders: a ring in every node, a ring of one leader per node over the network with the whole
    buffer, then a broadcast in the node (alpha + B/beta)."""
    return (
        Stage("all-reduce in the node", "all_reduce", "ring", per_node, 1.0, inside),
        Stage("all-reduce of the leaders", "all_reduce", "ring", nodes, 1.0, outside),
        *((Stage("broadcast in the node", "broadcast", "direct", per_node, 1.0, inside),) if per_node > 1 else ()),
    )


def two_level(nodes: int, per_node: int, inside: Link, outside: Link) -> tuple[Stage, ...]:
    """All-reduce in shares: reduce-scatter in the node, all-reduce of each share among equal local ranks (one per
    rail), all-gather in the node. `outside` is one rank's own way to the network."""
    return (
        Stage("reduce-scatter in the node", "reduce_scatter", "ring", per_node, 1.0, inside),
        Stage("all-reduce on the rails", "all_reduce", "ring", nodes, 1.0 / per_node, outside),
        Stage("all-gather in the node", "all_gather", "ring", per_node, 1.0, inside),
    )


def total_us(stages: tuple[Stage, ...], size: S) -> S:
    """The phases one after the other."""
    first, *rest = stages
    took = first.time_us(size)
    for stage in rest:
        took = took + stage.time_us(size)
    return took
