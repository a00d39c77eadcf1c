"""The questions that the alpha-beta model answers: one buffer over tiers, a collective under placements, what a
measured time says, flat against hierarchical. Each answer is a value that a report can show."""

from __future__ import annotations

from collections.abc import Sequence
from math import log

from topodiag.cost.collectives import Link, NotModelledError, Term, algbw_gbs, busbw_gbs
from topodiag.cost.hierarchy import Regimes, Stage, Stages, leaders, regimes, total_us, two_level
from topodiag.cost.spread import FastestWay, Spread, bound, price
from topodiag.cost.tiers import LackingError, Machine, Tier
from topodiag.lazy import dataclass
from topodiag.model.errors import TopodiagError


class ModelError(TopodiagError):
    """A question that the model cannot answer as asked."""


# --- one buffer over all tiers ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LinkPrice:
    """One tier and one buffer: its time, how many times the fastest tier's, and where it turns bandwidth-bound."""

    tier: Tier
    time_us: float
    ratio: float

    @property
    def link(self) -> Link:
        return self.tier.link


def ask_links(size: float, *, machine: Machine | None = None, links: Sequence[Link] = ()) -> tuple[LinkPrice, ...]:
    """One buffer of `size` bytes over all tiers of the machine, or over the links given, against the first of them."""
    tiers = machine.tiers if machine is not None else tuple(Tier("given", link, 2, link.gbs) for link in links)
    first = tiers[0].link.time_us(size)
    return tuple(LinkPrice(tier, tier.link.time_us(size), tier.link.time_us(size) / first) for tier in tiers)


def link_terms(link_price: LinkPrice, size: float) -> tuple[Term, ...]:
    """The derivation of one tier's time."""
    link = link_price.link
    return (
        Term(f"{link.name} alpha", link.alpha_us, "us", "latency of one message"),
        Term(f"{link.name} beta", link.gbs, "GB/s", link_price.tier.source),
        Term(f"{link.name} crossover", link.crossover, "bytes", "alpha x beta: bound by bandwidth above it"),
        Term(f"{link.name} time", link_price.time_us, "us", "alpha + B/beta"),
    )


# --- a collective under two placements ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PricedPlacement:
    """One placement priced. `bound_us` is what no algorithm beats there."""

    spread: Spread
    priced: FastestWay
    algbw_gbs: float
    busbw_gbs: float
    bound_us: float


@dataclass(frozen=True, slots=True)
class Placements:
    """A collective under placements, the first the one that is meant. `fastest`: no algorithm was asked for."""

    collective: str
    size: float
    placed: tuple[PricedPlacement, ...]
    fastest: bool = True

    @property
    def gain(self) -> float:
        """The last placement's time over the first one's; 1 where neither takes any."""
        first, last = self.placed[0].priced.time_us, self.placed[-1].priced.time_us
        return last / first if first > 0 else 1.0


def spread_over(machine: Machine, nodes: int, per_node: int) -> Spread:
    """`nodes` domains with `per_node` ranks each. Raises ModelError where a domain has not so many GPUs."""
    if per_node > machine.domain:
        raise ModelError(f"{per_node} ranks per node: {machine.name} has {machine.domain} GPUs in one domain")
    try:
        inside = machine.inside.link
        over_spine = bool(machine.leaf) and nodes * machine.domain > machine.leaf
        outside = machine.outside(over_spine=over_spine) if nodes > 1 else inside
        return Spread(nodes, per_node, inside, outside, machine.switch)
    except LackingError as lacking:
        raise ModelError(str(lacking)) from None


def price_placements(
    machine: Machine,
    collective: str,
    size: float,
    placements: Sequence[tuple[int, int]],
    algorithm: str = "auto",
) -> Placements:
    """A collective of `size` bytes under each placement of (nodes, ranks per node). Raises ModelError."""
    answers = []
    for nodes, per_node in placements:
        spread = spread_over(machine, nodes, per_node)
        try:
            priced = price(collective, spread, size, algorithm)
        except NotModelledError as unknown:
            raise ModelError(str(unknown)) from None
        took = priced.time_us
        answers.append(
            PricedPlacement(
                spread,
                priced,
                algbw_gbs(size, took),
                busbw_gbs(collective, spread.ranks, size, took),
                bound(collective, spread, size),
            )
        )
    return Placements(collective, size, tuple(answers), algorithm == "auto")


@dataclass(frozen=True, slots=True)
class Reading:
    """A measured time read against the placements: the one it fits, or None, and what that means in words."""

    measured_us: float
    fits: PricedPlacement | None
    words: str
    confirm: str = ""
    fix: str = ""


FITS = 1.5
"""A time within this factor of a placement's is read as that placement."""


def read_measured(placements: Placements, measured_us: float) -> Reading:
    """Which placement a measured time speaks for."""
    able = [placement for placement in placements.placed if placement.priced.time_us > 0]
    if measured_us <= 0 or not able:
        return Reading(measured_us, None, "nothing to compare with")
    nearest = min(able, key=lambda placement: abs(log(measured_us / placement.priced.time_us)))
    ratio = measured_us / nearest.priced.time_us
    first = placements.placed[0]
    if measured_us < min(placement.bound_us for placement in placements.placed):
        return Reading(
            measured_us, None, "faster than the links allow: another size, rank count or machine than stated"
        )
    if not 1 / FITS <= ratio <= FITS:
        slow = (
            f"{ratio:.1f} times the nearest of them" if ratio > 1 else f"{1 / ratio:.1f} times faster than the nearest"
        )
        return Reading(measured_us, None, f"fits neither placement: {slow}", "topodiag bench on the run's output")
    if nearest is first:
        return Reading(measured_us, nearest, "as the placement that is meant predicts: nothing to gain by moving ranks")
    far = "scattered over the network" if nearest.spread.per_node == 1 else "spread over more nodes than need be"
    times = measured_us / first.priced.time_us
    return Reading(
        measured_us,
        nearest,
        f"the ranks are {far}: {times:.1f} times what the meant placement takes",
        "the rank-to-node map: topodiag logs PATH --ranks",
        "pack the ranks, as many to a node as it has GPUs",
    )


def ask_collective(
    machine: Machine,
    collective: str,
    size: float,
    *,
    placement: tuple[int, int] | None = None,
    against: tuple[int, int] | None = None,
    algorithm: str = "auto",
    measured_us: float | None = None,
) -> tuple[Placements, Reading | None]:
    """A collective of `size` bytes under `placement` (nodes, ranks on each; by default one full node) and under
    `against` (by default one rank per node), and what a measured time speaks for. Raises ModelError for what the model
    does not know."""
    first = placement or (1, machine.gpus_per_node)
    other = against or (first[0] * first[1], 1)
    # A reducing switch has nothing to do for one rank per node.
    single = other == first or (against is None and algorithm in {"nvls", "nvls_tree"})
    placements = price_placements(machine, collective, float(size), (first,) if single else (first, other), algorithm)
    return placements, read_measured(placements, measured_us) if measured_us is not None else None


# --- flat against hierarchical ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AllReduceMethod:
    """One way to do an all-reduce over nodes: its name and its phases. `regimes` are against the flat ring."""

    name: str
    stages: Stages
    regimes: Regimes | None = None

    def time_us(self, size: float) -> float:
        return total_us(self.stages, size)


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """The ways, the flat ring first."""

    nodes: int
    per_node: int
    ways: tuple[AllReduceMethod, ...]

    def best(self, size: float) -> AllReduceMethod:
        return min(self.ways, key=lambda way: way.time_us(size))


def price_hierarchy(machine: Machine, nodes: int, per_node: int) -> Hierarchy:
    """All-reduce over `nodes` x `per_node` ranks: a flat ring with every hop on the network, NCCL's ring that enters
    each node once and leaves by all its ways, leaders, and shares on the rails. Raises ModelError."""
    spread = spread_over(machine, nodes, per_node)
    inside, outside, ranks = spread.inside, spread.outside, spread.ranks
    flat = (Stage("ring over the network", "all_reduce", "ring", ranks, 1.0, outside),)
    ways = [AllReduceMethod("flat ring", flat)]
    if per_node > 1 and nodes > 1:
        for name, stages in (
            ("ring by node", (Stage("ring by node", "all_reduce", "ring", ranks, 1.0, spread.ring_link),)),
            ("leaders", leaders(nodes, per_node, inside, outside)),
            ("shares", two_level(nodes, per_node, inside, outside)),
        ):
            ways.append(AllReduceMethod(name, stages, regimes(flat, stages)))
    return Hierarchy(nodes, per_node, tuple(ways))


def ask_hierarchy(machine: Machine) -> Hierarchy:
    """The same over all GPUs of the machine, grouped by its NVLink domains."""
    domains = max(machine.gpus // machine.domain, 1)
    return price_hierarchy(machine, domains, machine.gpus // domains)
