"""The document of `fleet compare`."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from topodiag.report.documents.from_model import Of
from topodiag.report.documents.types.common import Count, Finding, Input, NotObserved, Tool, Version


class Reason(Struct, frozen=True, kw_only=True):
    """Why a node is to be left out: the check and its sentence."""

    check: str
    message: str


class FleetNode(Struct, frozen=True, kw_only=True):
    """One node: `verdict` is `fail` where no job should get it for now."""

    host: str
    path: str
    time: str
    cohort: Count
    verdict: Literal["pass", "fail"]
    reasons: list[Reason]


class EqualFact(Struct, frozen=True, kw_only=True):
    """A fact that is equal on all `nodes` that show it; `values` are the distinct ones by part."""

    family: str
    key: str
    parts: list[str]
    values: list[str]
    unit: str
    nodes: Annotated[Count, Of("known")]


class OddFact(Struct, frozen=True, kw_only=True):
    """A fact that few nodes have otherwise than most. `explained_by` is the node's own check that tells it, if any.
    `gbs_lost` is what each node loses at its narrowest place, by the price of the node's own checks; `unpriced` says
    why there is none."""

    family: str
    key: str
    parts: list[str]
    value: str
    usual: str
    unit: str
    nodes: list[str]
    usual_nodes: Annotated[Count, Of("usual_count")]
    known_nodes: Annotated[Count, Of("total")]
    how: str
    distance: float | None
    gbs_lost: float | None
    unpriced: str
    source: str
    explained_by: str


class SplitFact(Struct, frozen=True, kw_only=True):
    """A fact by which nodes fall into populations."""

    family: str
    key: str
    parts: list[str]


class Population(Struct, frozen=True, kw_only=True):
    """One population: the value of each fact of the split, in its order, and the nodes."""

    values: list[str]
    nodes: list[str]


class Association(Struct, frozen=True, kw_only=True):
    """What else divides the nodes so; `jaccard` is the overlap of both sets of nodes, 0 to 1."""

    attribute: str
    values: list[str]
    jaccard: float


class Split(Struct, frozen=True, kw_only=True):
    """Populations, the largest first."""

    facts: list[SplitFact]
    groups: list[Population]
    association: Association | None


class Cohort(Struct, frozen=True, kw_only=True):
    """Nodes of one kind. `compared` is 0 where there are too few for a majority."""

    name: str
    traits: dict[str, str]
    nodes: list[str]
    compared: Count
    equal: Annotated[list[EqualFact], Of("same")]
    outliers: list[OddFact]
    populations: list[Split]
    varying: Annotated[list[list[str]], Meta(description="(family, key) of facts without a usual value.")]


class Unexplained(Struct, frozen=True, kw_only=True):
    """A line of trouble that no finding explains, on `nodes` nodes."""

    what: str
    text: str
    nodes: Annotated[Count, Of("count")]


class FleetDocument(Struct, frozen=True, kw_only=True):
    """`fleet compare`: a fleet beside itself."""

    schema_version: Version
    tool: Tool
    nodes: list[FleetNode]
    cohorts: list[Cohort]
    findings: Annotated[list[Finding], Meta(description="Worst first, folded over nodes.")]
    failed: Annotated[list[str], Meta(description="Hosts to leave out now.")]
    inputs: Annotated[
        list[Input],
        Meta(description="One for each capture; sha256 of the list that sha256sum prints of its files."),
    ]
    not_observed: Annotated[list[NotObserved], Meta(description="Captures left out, and why.")]
    unexplained: list[Unexplained]
