"""The document of `bench read`: what a sweep of runs over the cluster found."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from topodiag.report.documents.from_model import Of
from topodiag.report.documents.types.common import Count, Finding, Input, NotObserved, Tool, Version


class FaultPart(Struct, frozen=True, kw_only=True):
    """One part of the fabric; without `rail` where it is on none."""

    kind: str
    place: str
    rail: int | UnsetType = UNSET


class Fault(Struct, frozen=True, kw_only=True):
    """Parts of which one is at fault: several where the runs cannot tell them apart."""

    confirmed: bool
    check: str | None
    where: list[str]
    parts: list[FaultPart]
    nics: list[str]
    not_told_apart: str | None
    share: Annotated[float | None, Meta(description="Of what is normal; null where its runs failed.")]
    rounds: list[int]
    runs: list[str]


class GapSide(Struct, frozen=True, kw_only=True):
    """One of the two placements."""

    run: Annotated[str, Of("run.id")]
    gbs: float | None


class Gap(Struct, frozen=True, kw_only=True):
    """Two placements of one collective of which one is more than 30 % slower."""

    check: str
    collective: str
    ranks: int
    lost: float
    best: GapSide
    worst: GapSide


class NextRound(Struct, frozen=True, kw_only=True):
    """The round that would tell the suspects apart."""

    round: int
    runs: Count


class SweepRun(Struct, frozen=True, kw_only=True):
    """One run beside those of its kind."""

    id: Annotated[str, Of("run.id")]
    round: int
    kind: Annotated[str, Of("run.kind")]
    nodes: Annotated[list[str], Of("run.nodes")]
    rail: Annotated[int | None, Of("run.rail")]
    gpus: Annotated[list[int], Of("run.gpus")]
    standing: Literal["normal", "low", "failed", "unknown"]
    gbs: float | None
    reference_gbs: Annotated[float | None, Of("reference")]
    share: float | None
    why: str


class SweepDocument(Struct, frozen=True, kw_only=True):
    """The verdict on a sweep, and every run."""

    schema_version: Version
    tool: Tool
    inputs: list[Input]
    format: Literal["topodiag-sweep-verdict"]
    version: int
    nodes: str
    rounds: Count
    missing: Count
    faults: list[Fault]
    placements: Annotated[list[Gap], Of("gaps")]
    notes: list[str]
    next: NextRound | None
    runs: list[SweepRun]
    findings: Annotated[list[Finding], Meta(description="Confirmed faults, suspects and slow placements.")]
    not_observed: list[NotObserved]
