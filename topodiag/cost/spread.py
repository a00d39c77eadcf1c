"""A communicator over two kinds of links: so many ranks in each NVLink domain or node, the rest over the network.

Every rank has its own part of its node's way to the network (`outside`), as on rail-optimised fabrics, and NCCL's rings
use the parts of all ranks of the communicator in a node. So few ranks of a communicator in a node means little network.
"""

from __future__ import annotations

from functools import lru_cache

from topodiag.cost.collectives import (
    IN_NCCL,
    NVLS_EFFICIENCY,
    Link,
    NotModelledError,
    S,
    Shape,
    Term,
    algorithms,
    shape,
    terms,
)
from topodiag.cost.hierarchy import bound_us, total_us, two_level
from topodiag.lazy import dataclass
from topodiag.words.units import spell_us


@dataclass(frozen=True, slots=True)
class Spread:
    """`nodes` groups of `per_node` ranks. `inside` is one rank's way to the others of its group, `outside` one rank's
    own part of the network. `switch` says whether the inside has a reducing switch (NVLink SHARP)."""

    nodes: int
    per_node: int
    inside: Link
    outside: Link
    switch: bool = False

    def __post_init__(self) -> None:
        if self.nodes < 1 or self.per_node < 1:
            raise ValueError(f"at least one node with one rank: {self}")

    @property
    def ranks(self) -> int:
        return self.nodes * self.per_node

    @property
    def level(self) -> str:
        """The tier that carries it: the slower link, where there are two."""
        return self.inside.name if self.nodes == 1 else self.outside.name

    @property
    def ring_link(self) -> Link:
        """One hop of a ring through all ranks: the latency of the mean hop, the bandwidth of the lesser of a rank's
        inside and the ways out of all ranks in the node together."""
        if self.nodes == 1:
            return self.inside
        if self.per_node == 1:
            return self.outside
        between = self.nodes / self.ranks
        alpha = between * self.outside.alpha_us + (1 - between) * self.inside.alpha_us
        return Link(alpha, min(self.inside.gbs, self.outside.gbs * self.per_node), self.outside.name)


def available(collective: str, spread: Spread) -> tuple[str, ...]:
    """The algorithms that NCCL can use there, and phases where there are two tiers. Raises NotModelledError."""
    have = [name for name in algorithms(collective) if name in IN_NCCL]
    if collective not in ("all_to_all", "send_recv"):
        have = [name for name in have if name != "direct"]
    if "nvls" in have and (spread.nodes > 1 or not spread.switch or spread.per_node < 2):
        have.remove("nvls")
    if spread.nodes > 1 and spread.per_node > 1 and collective != "send_recv":
        have.append("two_level")
        if spread.switch and collective == "all_reduce":
            have.append("nvls_tree")
    return tuple(have)


def time_us(collective: str, algorithm: str, spread: Spread, size: S) -> S:
    """Time of a collective of `size` bytes (one or many). Raises NotModelledError."""
    if algorithm == "two_level":
        return total_us(two_level(spread.nodes, spread.per_node, spread.inside, spread.outside, collective), size)
    if collective == "all_to_all" and spread.nodes > 1:
        return _all_to_all(spread, size)
    form, link = _shape(collective, algorithm, spread)
    return form.time_us(size, link)


def _shape(collective: str, algorithm: str, spread: Spread) -> tuple[Shape, Link]:
    if algorithm == "nvls_tree":
        return _nvls_tree(collective, spread)
    if algorithm == "nvls" and spread.nodes > 1:
        raise NotModelledError("NVLS ends at the NVLink domain: nvls_tree goes on between them")
    form, link = shape(collective, algorithm, spread.ranks), spread.ring_link
    if algorithm == "tree" and spread.nodes > 1 and spread.per_node > 1:
        # NCCL's trees: a chain through the ranks of a node, a tree over the nodes.
        both = 2 if collective == "all_reduce" else 1
        over = shape(collective, "tree", spread.nodes)
        depth = over.depth + both * (spread.per_node - 1)
        alpha = over.depth * spread.outside.alpha_us + both * (spread.per_node - 1) * spread.inside.alpha_us
        form = Shape(depth, max(over.share, form.share), form.formula, depth)
        link = Link(alpha / depth, link.gbs, link.name)
    if collective == "send_recv" and spread.nodes > 1:
        link = spread.outside
    return form, link


def _nvls_tree(collective: str, spread: Spread) -> tuple[Shape, Link]:
    """NCCL's NVLSTree: switches reduce and multicast inside, each rank's part goes by two trees over the nodes. Both
    run at once, so that the slower of them sets the pace."""
    if collective != "all_reduce" or spread.nodes == 1 or spread.per_node == 1 or not spread.switch:
        raise NotModelledError("nvls_tree is an all_reduce over several domains with a reducing switch")
    over, within = shape(collective, "tree", spread.nodes), shape(collective, "nvls", spread.per_node)
    depth = over.depth + 2
    alpha = (over.depth * spread.outside.alpha_us + 2 * spread.inside.alpha_us) / depth
    ways_out = spread.per_node * spread.outside.gbs
    words = "(2 log2 nodes + 2 + c-1)(alpha + B/(c beta)), beta of"
    if within.share / spread.inside.gbs >= over.share / ways_out:
        form = Shape(depth, within.share, f"{words} the switch: {NVLS_EFFICIENCY:g} of the links", depth)
        return form, Link(alpha, spread.inside.gbs, spread.outside.name)
    return Shape(depth, over.share, f"{words} the ways out: {over.share:g} B", depth), Link(
        alpha, ways_out, spread.outside.name
    )


def _all_to_all(spread: Spread, size: S) -> S:
    """Both tiers at once: what goes to the own node over the inside, the rest over the rank's own way out."""
    n, k = spread.ranks, spread.per_node
    out = (n - k) * spread.outside.alpha_us + (n - k) / n * size / (spread.outside.gbs * 1000)
    own = (k - 1) * spread.inside.alpha_us + (k - 1) / n * size / (spread.inside.gbs * 1000)
    return _greater(out, own)


def _greater(one: S, other: S) -> S:
    if isinstance(one, (int, float)) and isinstance(other, (int, float)):
        return max(one, other)
    import numpy as np  # noqa: PLC0415 - numbers need none

    return np.maximum(one, other)


@dataclass(frozen=True, slots=True)
class FastestWay:
    """The fastest way, its time, and its derivation."""

    algorithm: str
    time_us: float
    terms: tuple[Term, ...] = ()


def price(collective: str, spread: Spread, size: float, algorithm: str = "auto") -> FastestWay:
    """One collective of `size` bytes by an algorithm, or by the fastest of `available`. Raises NotModelledError."""
    if spread.ranks == 1:
        return FastestWay("none", 0.0, (Term("time", 0.0, "us", "one rank sends nothing"),))
    took, name = fastest(collective, spread, size, algorithm)
    return FastestWay(name, took, derivation(collective, name, spread, size))


@lru_cache(maxsize=1 << 14)
def fastest(collective: str, spread: Spread, size: float, algorithm: str = "auto") -> tuple[float, str]:
    """The time of `price`, us, and the algorithm, without a derivation: a placement asks for the same few again and
    again. Raises NotModelledError."""
    if spread.ranks == 1:
        return 0.0, "none"
    names = available(collective, spread) if algorithm == "auto" else (algorithm,)
    return min((time_us(collective, name, spread, size), name) for name in names)


def derivation(collective: str, algorithm: str, spread: Spread, size: float) -> tuple[Term, ...]:
    """The terms of one time, the last of which is the time itself."""
    if algorithm == "two_level":
        stages = two_level(spread.nodes, spread.per_node, spread.inside, spread.outside, collective)
        parts = tuple(
            Term(stage.name, stage.time_us(size), "us", f"{stage.formula}, {stage.link.name or 'link'}")
            for stage in stages
        )
        return (*_links(spread), *parts, Term("time", total_us(stages, size), "us", "the phases one after the other"))
    if collective == "all_to_all" and spread.nodes > 1:
        n, k = spread.ranks, spread.per_node
        took = _all_to_all(spread, size)
        words = f"max of (n-k) messages out and (k-1) inside, B/n each; n = {n}, k = {k}"
        out = Term("bytes out", (n - k) / n * size, "bytes", "(n-k)/n B")
        return (*_links(spread), out, Term("time", took, "us", words))
    form, link = _shape(collective, algorithm, spread)
    if spread.nodes == 1 or spread.per_node == 1:
        return terms(collective, algorithm, spread.ranks, size, link)
    count = form.count(size, link)
    latency, took = count * link.alpha_us, form.time_us(size, link)
    return (
        *_links(spread),
        Term("beta", link.gbs, "GB/s", f"min(inside, {spread.per_node} x network): all ranks of a node send"),
        Term("messages", count, "messages", "one after the other"),
        Term("latency", latency, "us", f"messages x {spell_us(link.alpha_us)}, the mean hop"),
        Term("transfer", took - latency, "us", "what the bytes take"),
        Term("time", took, "us", form.formula),
    )


def _links(spread: Spread) -> tuple[Term, ...]:
    inside, outside = spread.inside, spread.outside
    return (
        Term("inside alpha", inside.alpha_us, "us", inside.name),
        Term("inside beta", inside.gbs, "GB/s", f"{inside.name}, one rank, one direction"),
        Term("network alpha", outside.alpha_us, "us", outside.name),
        Term("network beta", outside.gbs, "GB/s", f"{outside.name}, one rank's part, one direction"),
    )


def bound(collective: str, spread: Spread, size: float) -> float:
    """The physical bound, us; see hierarchy.bound_us. With a reducing switch an all-reduce may need half of it."""
    least = bound_us(collective, size, spread.nodes, spread.per_node, inside=spread.inside, outside=spread.outside)
    return least / 2 if spread.switch and collective == "all_reduce" else least
