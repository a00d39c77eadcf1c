"""The documents of `place audit` and `place solve`: times in ms per step, shares in percent."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from topodiag.report.documents.from_model import Of
from topodiag.report.documents.types.common import (
    AtLeastOne,
    Count,
    Finding,
    Input,
    NotNegative,
    NotObserved,
    Tool,
    Version,
)

Levels = Annotated[
    dict[str, Count], Meta(description="Groups of each level that the job's nodes lie in, innermost first.")
]
Gain = Annotated[
    float,
    Meta(
        description="Throughput to regain (audit) or regained (solve); of communication alone where compute is not"
        " known."
    ),
]


class MappedRank(Struct, frozen=True, kw_only=True):
    """Where a rank sits."""

    rank: Count
    host: str
    local_rank: Count
    gpu: Count | None
    nic: Annotated[Count | None, Meta(description="The rail of the GPU, null where the fabric has none.")]
    groups: Annotated[dict[str, Count], Meta(description="The number of the rank's group by dimension.")]


class Demand(Struct, frozen=True, kw_only=True):
    """What a group of a dimension says in a step."""

    collective: Annotated[str, Of("demand.collective")]
    calls: Annotated[float, Of("demand.calls")]
    bytes: Annotated[float, Of("demand.bytes")]


class AuditCost(Struct, frozen=True, kw_only=True):
    """What a dimension costs as it lies, and with the same ranks packed on the same GPUs (`best_ms`)."""

    ms_per_step: NotNegative
    level: str
    bound_ms: NotNegative
    best_ms: NotNegative
    lost_percent: float
    groups: Count
    size: Count
    split: Annotated[list[Count], Meta(description="Numbers of the groups that lie in more domains than they need.")]
    demands: list[Demand]


class AuditGroup(Struct, frozen=True, kw_only=True):
    """One group of a dimension."""

    dimension: str
    id: Count
    level: str
    domains: AtLeastOne
    ms_per_step: float
    best_ms: float
    lost_percent: NotNegative


class WorstGroup(Struct, frozen=True, kw_only=True):
    """The group that loses most."""

    dimension: str
    id: Count
    ranks: list[int]
    nodes: list[str]
    level: str
    ms_per_step: float
    best_ms: float


class WorstExchange(Struct, frozen=True, kw_only=True):
    """The two ranks whose exchange would cost most; `dimension_ms` is before and after."""

    ranks: list[int]
    dimension: str
    id: Count
    lost_ms: float
    dimension_ms: list[float]


class AuditDocument(Struct, frozen=True, kw_only=True):
    """`place audit`: what a layout costs, dimension by dimension."""

    schema_version: Version
    tool: Tool
    inputs: list[Input]
    map: list[MappedRank]
    levels: Levels
    cost: dict[str, AuditCost]
    findings: Annotated[list[Finding], Meta(description="Worst first, in a stable order.")]
    violations: Annotated[
        list[Finding], Meta(description="Old name of `findings`, and equal to it; it goes in the next version.")
    ]
    gain_percent: Gain
    step_ms: Annotated[float | None, Meta(description="The whole step, null where nothing says what is computed.")]
    communication_ms: float
    best_communication_ms: float
    hardly_matters: str
    groups: list[AuditGroup]
    worst: WorstGroup | None
    worst_exchange: WorstExchange | None
    assumed: list[str]
    not_observed: list[NotObserved]


class SolveCost(Struct, frozen=True, kw_only=True):
    """What a dimension costs in the map that was found, and what it cost before."""

    ms_per_step: NotNegative
    level: str
    bound_ms: NotNegative
    before_ms_per_step: NotNegative
    groups: Count
    size: Count


class Split(Struct, frozen=True, kw_only=True):
    """Groups that could not be kept together, one of them with its nodes, and why."""

    dimension: str
    groups: Count
    of: Count
    ranks: Annotated[list[int], Of("example")]
    nodes: list[str]
    why: str


class Before(Struct, frozen=True, kw_only=True):
    """The layout that the map is compared with."""

    name: str
    ms_per_step: float


class SolveDocument(Struct, frozen=True, kw_only=True):
    """`place solve`: a map from ranks to nodes and GPUs, its price and the bound."""

    schema_version: Version
    tool: Tool
    inputs: list[Input]
    map: list[MappedRank]
    levels: Levels
    cost: dict[str, SolveCost]
    findings: Annotated[list[Finding], Meta(description="What the checks say of the map that was found.")]
    splits: list[Split]
    violations: Annotated[
        list[Split], Meta(description="Old name of `splits`, and equal to it; it goes in the next version.")
    ]
    gain_percent: Gain
    ms_per_step: float
    bound_ms: float
    gap_percent: float
    before: Before
    nodes: list[str]
    assumed: list[str]
    not_observed: list[NotObserved]
