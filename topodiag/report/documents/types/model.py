"""The documents of `model link`, `collective`, `hierarchy` and `step`: times in microseconds, GB/s of one direction."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from topodiag.report.documents.from_model import Of
from topodiag.report.documents.types.common import AtLeastOne, Finding, NotObserved, Tool, Version

Asked = Annotated[dict[str, Any], Meta(description="what was asked, the machine as `system`, and what was assumed")]


class Term(Struct, frozen=True, kw_only=True):
    """One step of the derivation."""

    name: str
    value: float
    unit: str
    formula: str


class Link(Struct, frozen=True, kw_only=True):
    """T = alpha + bytes / beta of one tier."""

    name: str
    alpha_us: float
    gbs: float


class Tier(Struct, frozen=True, kw_only=True):
    """A tier of a machine, with the rate of its wires where that is known."""

    name: Annotated[str, Of("link.name")]
    alpha_us: Annotated[float, Of("link.alpha_us")]
    gbs: Annotated[float, Of("link.gbs")]
    kind: str
    gpus: int
    line_gbs: float | None
    source: str


class Machine(Struct, frozen=True, kw_only=True):
    """The machine that was priced."""

    name: str
    nodes: int
    gpus_per_node: int
    domain: int
    gpu: Annotated[str | None, Of("gpu.name")]
    tiers: list[Tier]
    assumed: list[str]


class SizePoint(Struct, frozen=True, kw_only=True):
    """The time of one size."""

    bytes: AtLeastOne
    time_us: float


class BoundPoint(Struct, frozen=True, kw_only=True):
    """The time of one size, and what binds it."""

    bytes: AtLeastOne
    time_us: float
    bound: Literal["latency", "bandwidth"]


class PricedTier(Struct, frozen=True, kw_only=True):
    """One buffer over one tier; `ratio` is its time over the first tier's."""

    name: Annotated[str, Of("link.name")]
    alpha_us: Annotated[float, Of("link.alpha_us")]
    gbs: Annotated[float, Of("link.gbs")]
    time_us: float
    ratio: float
    crossover_bytes: Annotated[float, Of("link.crossover")]
    sizes: list[BoundPoint]


class LinkDocument(Struct, frozen=True, kw_only=True):
    """`model link`: the time and the bandwidths at the top are those of the first tier."""

    schema_version: Version
    tool: Tool
    inputs: Asked
    terms: list[Term]
    time_us: float
    algbw_gbs: float
    busbw_gbs: float
    tiers: list[PricedTier]
    findings: list[Finding]
    not_observed: list[NotObserved]


class Placement(Struct, frozen=True, kw_only=True):
    """A collective under one placement."""

    nodes: Annotated[AtLeastOne, Of("spread.nodes")]
    ranks_per_node: Annotated[AtLeastOne, Of("spread.per_node")]
    inside: Annotated[Link, Of("spread.inside")]
    outside: Annotated[Link, Of("spread.outside")]
    algorithm: Annotated[str, Of("priced.algorithm")]
    time_us: Annotated[float, Of("priced.time_us")]
    algbw_gbs: float
    busbw_gbs: float
    bound_us: float
    terms: Annotated[list[Term], Of("priced.terms")]


class Reading(Struct, frozen=True, kw_only=True):
    """What a measured time says."""

    measured_us: float
    fits: Annotated[int | None, Meta(description="index of the placement that the time speaks for")]
    words: str
    confirm: str
    fix: str


class CollectiveDocument(Struct, frozen=True, kw_only=True):
    """`model collective`: the time and the bandwidths at the top are those of the first placement."""

    schema_version: Version
    tool: Tool
    inputs: Asked
    terms: list[Term]
    time_us: float
    algbw_gbs: float
    busbw_gbs: float
    gain: Annotated[float | None, Meta(description="the last placement's time over the first one's")]
    placements: list[Placement]
    reading: Reading | None
    findings: list[Finding]
    not_observed: list[NotObserved]


class Way(Struct, frozen=True, kw_only=True):
    """One way of an all-reduce over a hierarchy, and the sizes at which each regime ends."""

    name: str
    time_us: float
    latency_to_bytes: Annotated[float | None, Of("regimes.latency_to")]
    bandwidth_from_bytes: Annotated[float | None, Of("regimes.bandwidth_from")]
    gain_small: Annotated[float | None, Of("regimes.gain_small")]
    gain_large: Annotated[float | None, Of("regimes.gain_large")]
    sizes: list[SizePoint]


class HierarchyDocument(Struct, frozen=True, kw_only=True):
    """`model hierarchy`: the time and the bandwidths at the top are those of the fastest way."""

    schema_version: Version
    tool: Tool
    inputs: Asked
    terms: list[Term]
    time_us: float
    algbw_gbs: float
    busbw_gbs: float
    best: str
    ways: list[Way]
    findings: list[Finding]
    not_observed: list[NotObserved]


class StepCollective(Struct, frozen=True, kw_only=True):
    """One collective of one dimension of parallelism in a step."""

    dimension: str
    collective: Annotated[str, Of("traffic.collective")]
    calls: Annotated[float, Of("traffic.calls")]
    bytes: Annotated[float, Of("traffic.size")]
    why: Annotated[str, Of("traffic.formula")]
    nodes: Annotated[AtLeastOne, Of("spread.nodes")]
    ranks_per_node: Annotated[AtLeastOne, Of("spread.per_node")]
    tier: Annotated[str, Of("spread.level")]
    algorithm: str
    each_us: float
    time_us: Annotated[float, Of("total_us")]
    exposed_us: float
    share: float
    busbw_gbs: float
    terms: list[Term]


class MemoryGb(Struct, frozen=True, kw_only=True):
    """Memory of one GPU, GB."""

    weights: float
    gradients: float
    optimiser: float
    activations: float


class Misplacement(Struct, frozen=True, kw_only=True):
    """A dimension whose groups are split over twice the domains."""

    dimension: str
    words: str
    step_us: float
    dimension_us: float
    cost: Annotated[float, Meta(description="share of the step that it adds")]


class BetterOrder(Struct, frozen=True, kw_only=True):
    """The order of ranks that makes the step shortest."""

    order: str
    step_us: float


class ScalePoint(Struct, frozen=True, kw_only=True):
    """The step on more nodes, with as much work per GPU."""

    nodes: AtLeastOne
    gpus: AtLeastOne
    time_us: float
    efficiency: float


class StepDocument(Struct, frozen=True, kw_only=True):
    """`model step`: the bandwidths at the top are those of the collective that is waited for longest."""

    schema_version: Version
    tool: Tool
    inputs: Asked
    terms: list[Term]
    time_us: float
    algbw_gbs: float | None
    busbw_gbs: float | None
    compute_us: float
    bubble_us: float
    unhidden_us: float
    tokens_per_s: float
    mfu: float
    dimensions: list[StepCollective]
    memory_gb: MemoryGb
    misplacements: Annotated[list[Misplacement], Of("misplaced")]
    better: Annotated[
        BetterOrder | None,
        Meta(description="the order of ranks that makes the step shortest, where it takes 5 % away"),
    ]
    hardly_matters: Annotated[str, Meta(description="why topology hardly matters to this job, empty where it does")]
    scaling: list[ScalePoint]
    findings: list[Finding]
    not_observed: list[NotObserved]
