"""Collectives in phases: inside the nodes, between them, inside again. Each phase is a collective over links of one
kind, and the phases follow one another (no overlap between them, so a bound from above on a pipelined one).

Sources: the leaders of P. Sanders, J. Traff, The hierarchical factor algorithm for all-to-all communication (2002) and
of MPICH's SMP-aware collectives; the shares of NCCL's rail-wise trees and of J. Cho et al., BlueConnect: decomposing
all-reduce for deep learning on heterogeneous network hierarchy (2019).
"""

from __future__ import annotations

from collections.abc import Sequence

from topodiag.cost.collectives import BYTES_PER_US, Link, NotModelledError, S, shape, time_us
from topodiag.lazy import dataclass


@dataclass(frozen=True, slots=True)
class Stage:
    """One phase: its name, the ranks in each group, its bytes as a share of B, and the link."""

    name: str
    collective: str
    algorithm: str
    ranks: int
    share: float
    link: Link

    def time_us(self, size: S) -> S:
        return time_us(self.collective, self.algorithm, self.ranks, size * self.share, self.link)

    @property
    def formula(self) -> str:
        of = "B" if self.share == 1 else f"B x {self.share:.4g}"
        return f"{shape(self.collective, self.algorithm, self.ranks).formula}, n = {self.ranks}, of {of}"


Stages = tuple[Stage, ...]


def leaders(nodes: int, per_node: int, inside: Link, outside: Link) -> Stages:
    """All-reduce by leaders: a ring in every node, a ring of one leader per node over the network with the whole
    buffer, then a broadcast in the node (alpha + B/beta)."""
    return (
        Stage("all-reduce in the node", "all_reduce", "ring", per_node, 1.0, inside),
        Stage("all-reduce of the leaders", "all_reduce", "ring", nodes, 1.0, outside),
        *((Stage("broadcast in the node", "broadcast", "direct", per_node, 1.0, inside),) if per_node > 1 else ()),
    )


def two_level(
    nodes: int,
    per_node: int,
    inside: Link,
    outside: Link,
    collective: str = "all_reduce",
) -> Stages:
    """Any collective in shares, every rank on its own way to the network (`outside`: one rank's own, its rail).

    all_reduce: reduce-scatter in the node, all-reduce of each share among equal local ranks, all-gather in the node.
    all_gather: among equal local ranks, then in the node. reduce_scatter: the other way round. broadcast: the root
    scatters in its node, each rail broadcasts its share, all-gather in the node; reduce: the other way round.
    all_to_all: to the local rank of the same rail in the node, then one message per node. Raises NotModelledError.
    """
    if collective not in _PHASES:
        raise NotModelledError(f"{collective} has no phases")
    algorithm, before, after = _PHASES[collective]
    words = collective.replace("_", "-")
    if algorithm == "direct":
        inner = Stage(before, collective, algorithm, per_node, 1.0, inside)
        return inner, Stage(f"{words} on the rails", collective, algorithm, nodes, 1.0, outside)
    rails = Stage(f"{words} on the rails", collective, algorithm, nodes, 1.0 / per_node, outside)
    scatter = Stage(before, "reduce_scatter", "ring", per_node, 1.0, inside)
    gather = Stage(after, "all_gather", "ring", per_node, 1.0, inside)
    return tuple(stage for stage in (scatter, rails, gather) if stage.name)


_PHASES = {
    "all_reduce": ("ring", "reduce-scatter in the node", "all-gather in the node"),
    "all_gather": ("ring", "", "all-gather in the node"),
    "reduce_scatter": ("ring", "reduce-scatter in the node", ""),
    "broadcast": ("tree", "scatter in the root's node", "all-gather in the node"),
    "reduce": ("tree", "reduce-scatter in the node", "gather in the root's node"),
    "all_to_all": ("direct", "all-to-all in the node", ""),
}
"""How a collective goes over the rails, and what goes before and after it in the nodes."""


def total_us(stages: Sequence[Stage], size: S) -> S:
    """The phases one after the other."""
    first, *rest = stages
    took = first.time_us(size)
    for stage in rest:
        took = took + stage.time_us(size)
    return took


def bound_us(collective: str, size: float, nodes: int, per_node: int, *, inside: Link, outside: Link) -> float:
    """What no algorithm of ranks (without a reducing switch) can beat: the bytes that must leave each node over all
    its ranks' ways out, and those that must leave each rank over all its links. Latency left out."""
    m, k = nodes, per_node
    n = m * k
    rank_gbs = (inside.gbs if k > 1 else 0.0) + (outside.gbs if m > 1 else 0.0)
    if n < 2:
        return 0.0
    ways = {"all_reduce": 2.0, "all_gather": 1.0, "reduce_scatter": 1.0}.get(collective)
    if ways is not None:
        from_node, from_rank = ways * (m - 1) / m * size, ways * (n - 1) / n * size
    elif collective == "all_to_all":
        from_node, from_rank = k * (n - k) / n * size, (n - 1) / n * size
    else:
        # The root's copy leaves its node once, and each rank receives one: its links take it in together.
        from_node, from_rank = (size if m > 1 else 0.0), size
    return max(from_node / (k * outside.gbs), from_rank / rank_gbs) / BYTES_PER_US


@dataclass(frozen=True, slots=True)
class Regimes:
    """Where a hierarchy pays, in bytes of the buffer. Below `latency_to` both the flat and the phased algorithm are
    bound by latency, above `bandwidth_from` both by bandwidth. The gains are the limits for no bytes and for all."""

    latency_to: float
    bandwidth_from: float
    gain_small: float
    gain_large: float


def regimes(flat: Sequence[Stage], phased: Sequence[Stage]) -> Regimes:
    """The regimes of two algorithms whose times are alpha' + B/beta', as rings and direct phases are."""
    (flat_us, flat_slope), (phased_us, phased_slope) = _line(flat), _line(phased)
    ends = sorted(us / slope if slope > 0 else 0.0 for us, slope in ((flat_us, flat_slope), (phased_us, phased_slope)))
    gains = (old / new if new > 0 else 1.0 for old, new in ((flat_us, phased_us), (flat_slope, phased_slope)))
    return Regimes(*ends, *gains)


def _line(stages: Sequence[Stage]) -> tuple[float, float]:
    """Latency in us and slope in us per byte: read at nothing and, for pipelines, at a size that latency has no part
    in any more."""
    far = 1e15
    start = total_us(stages, 0.0)
    return start, (total_us(stages, far) - start) / far
