"""The document of `diagnose`: that of its parts, and the verdict, who is who, and what happened when."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from topodiag.report.documents.from_model import Of
from topodiag.report.documents.types.common import AtLeastOne, Count, Level, Origin, Place
from topodiag.report.documents.types.result import ResultDocument

State = Literal["healthy", "at_risk", "slow", "hung", "failed", "unknown"]
Check = Annotated[str, Meta(pattern="^[A-Z0-9]{3}[0-9]{3}$")]


class Quantity(Struct, frozen=True, kw_only=True):
    """A number with its unit, and where it was read or the formula that gives it."""

    what: str
    value: float
    unit: str
    source: str


class Price(Struct, frozen=True, kw_only=True):
    """What a cause costs the job; null where the evidence does not give it, and `text` says why."""

    gbs_lost: Annotated[float | None, Meta(description="GB/s lost at the narrowest place, in one direction.")]
    share: Annotated[float | None, Meta(description="Part of it that is lost, 0 to 1.")]
    step_share: Annotated[
        float | None,
        Meta(description="Part of a training step, 0 to 1; null where the layout of the job is not known."),
    ]
    step_range: Annotated[
        list[float] | None,
        Meta(description="The least and the most that it can be where it is not said what is trained."),
    ]
    communication_share: Annotated[
        float | None,
        Meta(description="Part of the communication of a step, 0 to 1, where how long it computes is not known."),
    ]
    step_said: Annotated[str, Meta(description="What the part of a step rests on: the layout, the model.")]
    step_says: Annotated[str, Meta(description="How it stands to the step times of the training's own log.")]
    step_agrees: Annotated[bool, Meta(description="Whether both are the same, of a model that is known.")]
    text: str


class Consequence(Struct, frozen=True, kw_only=True):
    """What follows from a cause; `depth` 1 is directly."""

    check: Annotated[Check, Of("finding.id")]
    where: Annotated[Place, Of("finding.where")]
    message: Annotated[str, Of("finding.message")]
    why: str
    depth: AtLeastOne


class Cause(Struct, frozen=True, kw_only=True):
    """One cause. `predicted` is what the job reaches with it in force, `alone` with it gone and all others in force,
    `all_gone` with every cause gone."""

    check: Annotated[Check, Of("finding.id")]
    status: Literal["established", "likely", "hypothesis", "unknown"]
    severity: Annotated[Literal["info", "warning", "error"], Of("finding.severity")]
    confidence: Annotated[Level, Of("finding.confidence")]
    message: Annotated[str, Of("finding.message")]
    where: Annotated[Place, Of("finding.where")]
    mechanism: str
    cost: Annotated[Price, Of("price")]
    predicted: Annotated[Quantity | None, Of("price.predicted")]
    alone: Annotated[Quantity | None, Of("price.alone")]
    all_gone: Annotated[Quantity | None, Of("price.all_gone")]
    measured: Annotated[Quantity | None, Of("price.measured")]
    agreement: Annotated[Literal["agrees", "part", "exceeds", "not_measured", "not_predicted"], Of("price.agreement")]
    job_share: Annotated[
        float | None,
        Of("price.job_share"),
        Meta(description="Part of what the job could reach that this cause takes by itself, 0 to 1."),
    ]
    says: Annotated[
        str,
        Of("price.says"),
        Meta(description="Predicted and measured loss compared; empty where there is none of both."),
    ]
    fix: Annotated[list[str], Of("finding.fix")]
    confirm: list[str]
    evidence: Annotated[list[Origin], Of("finding.evidence")]
    consequences: list[Consequence]
    contradicted_by: list[Origin]


class JobState(Struct, frozen=True, kw_only=True):
    """One job or measured run. `causes` are places in `verdict.causes`."""

    name: str
    state: State
    headline: str
    causes: list[Count]


class Unrelated(Struct, frozen=True, kw_only=True):
    """A finding that bears on nothing that happened."""

    check: Annotated[Check, Of("id")]
    where: Place
    message: str


class RuledOut(Struct, frozen=True, kw_only=True):
    """What it is not, and what clears it."""

    what: str
    by: str
    evidence: list[Origin]


class NextEvidence(Struct, frozen=True, kw_only=True):
    """An observation that would settle what is open."""

    what: str
    where: str
    command: str
    why: str


class Verdict(Struct, frozen=True, kw_only=True):
    """The answer."""

    state: State
    headline: str
    confidence: Level
    first: Annotated[list[str], Meta(description="What must be read before the causes.")]
    causes: Annotated[list[Cause], Meta(description="In the order of what they cost.")]
    jobs: list[JobState]
    unrelated: list[Unrelated]
    ruled_out: list[RuledOut]
    not_explained: list[str]
    next_evidence: list[NextEvidence]
    joined: Annotated[list[str], Meta(description="What was there of each kind of evidence.")]


class Host(Struct, frozen=True, kw_only=True):
    """A machine by every name that a source gives it; `ties` say how each alias was tied to it."""

    name: str
    aliases: list[str]
    sources: list[str]
    boot: str | None
    ties: dict[str, str]


class Conflict(Struct, frozen=True, kw_only=True):
    """Two sources that say different things of one object."""

    subject: str
    text: str
    check: str | None
    evidence: list[Origin]


class Identity(Struct, frozen=True, kw_only=True):
    """Who is who."""

    hosts: list[Host]
    conflicts: list[Conflict]


class Moment(Struct, frozen=True, kw_only=True):
    """An event. `time` is seconds since the epoch on the case's axis; null where the source has no time."""

    time: float | None
    stamp: str
    within_s: float | None
    source: Annotated[str | None, Of("origin.source")]
    line: Annotated[int | None, Of("origin.line")]
    host: str
    rank: int | None
    what: str
    count: AtLeastOne


class Clock(Struct, frozen=True, kw_only=True):
    """The clock of a source, and how far it is ahead of the case's axis."""

    source: str
    host: str
    zone: str | None
    skew_s: float | None
    within_s: float | None
    how: str


class DiagnosisDocument(ResultDocument, frozen=True, kw_only=True):
    """The result of `diagnose`."""

    schema_version: Annotated[str, Meta(pattern=r"^2\.[0-9]+$")]
    verdict: Verdict
    identity: Identity
    timeline: list[Moment]
    clocks: list[Clock]
