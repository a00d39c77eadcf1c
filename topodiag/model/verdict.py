"""The verdict of a case: its state, its causes in the order of what they cost, and what is still open.

A verdict relates findings and prices them. It is never more certain than its evidence.
"""

from __future__ import annotations

from enum import Enum

from topodiag.lazy import dataclass
from topodiag.model.finding import Confidence, Finding
from topodiag.model.provenance import Origin


class State(Enum):
    """How a job, or the whole case, is. The worst state of its jobs is the state of a case."""

    HEALTHY = "healthy"
    AT_RISK = "at_risk"
    """Nothing is lost yet: a fault that no job met, or that costs nothing on this job's path."""
    SLOW = "slow"
    HUNG = "hung"
    FAILED = "failed"
    UNKNOWN = "unknown"


class CauseStatus(Enum):
    """How well a cause is founded, the best first."""

    ESTABLISHED = "established"
    """There is direct evidence of it."""
    LIKELY = "likely"
    """The evidence fits it, and others remain possible."""
    HYPOTHESIS = "hypothesis"
    UNKNOWN = "unknown"


class Agreement(Enum):
    """How the loss that a cause predicts stands to the loss that was measured."""

    AGREES = "agrees"
    """Both are equal within the tolerance: that is the proof."""
    PART = "part"
    """The cause predicts less than what is missing: the rest is unexplained."""
    EXCEEDS = "exceeds"
    """The cause predicts more than what is missing: it is not in force, or the expectation is wrong."""
    NOT_MEASURED = "not_measured"
    NOT_PREDICTED = "not_predicted"


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number with its unit: `what` it is ("busbw of all_reduce, 2 nodes"), `source` where it was read or the formula
    that gives it."""

    what: str
    value: float
    unit: str = "GB/s"
    source: str = ""


@dataclass(frozen=True, slots=True)
class Price:
    """What a cause costs this job. `gbs_lost` (GB/s) and `share` (0 to 1) are those of the narrowest place, the very
    numbers of the finding wherever it is printed, or what the job's collective loses where the finding has none;
    `step_share` 0 to 1. None where the evidence does not give it. `text` is the cost in a sentence, or why there is no
    number.

    `predicted` is what the job reaches with all causes in force, `alone` with this cause gone and all others in force,
    `all_gone` with every cause gone, `measured` what was measured: all of the same quantity and unit. `job_share` is
    the part of `all_gone` that this cause takes by itself: causes are put in order by it.
    """

    gbs_lost: float | None = None
    share: float | None = None
    step_share: float | None = None
    text: str = ""
    predicted: Quantity | None = None
    alone: Quantity | None = None
    all_gone: Quantity | None = None
    measured: Quantity | None = None
    agreement: Agreement = Agreement.NOT_MEASURED
    says: str = ""
    """The comparison in a sentence, "" where there is none to make."""
    job_share: float | None = None
    step_range: tuple[float, float] | None = None
    """The least and the most that `step_share` can be where it is not said what is trained; the same twice where it
    is."""
    step_said: str = ""
    """What the share of a step rests on: the layout and where it is from, the model given or assumed."""
    communication_share: float | None = None
    """0 to 1: part of the communication of a step, where a check of layouts gives it and how long the job computes is
    not known; None where `step_share` is."""
    step_says: str = ""
    """How that stands to what the training's own log measured, in a sentence; "" where it measured nothing."""
    step_agrees: bool = False
    """Whether both are the same within the tolerance, of a model that is known."""


@dataclass(frozen=True, slots=True)
class Consequence:
    """A finding that follows from a cause, how, and how many steps below the cause it stands (1 is directly)."""

    finding: Finding
    why: str
    depth: int = 1


@dataclass(frozen=True, slots=True)
class Cause:
    """One cause with all that follows from it. `mechanism` is a sentence: how it makes the job slow or fail.
    `contradicted_by` is evidence of the case that speaks against it; `confirm` are commands or steps that would settle
    it."""

    finding: Finding
    status: CauseStatus
    mechanism: str = ""
    price: Price = Price()
    consequences: tuple[Consequence, ...] = ()
    contradicted_by: tuple[Origin, ...] = ()
    confirm: tuple[str, ...] = ()

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Its own finding, and those that follow from it."""
        return (self.finding, *(consequence.finding for consequence in self.consequences))


@dataclass(frozen=True, slots=True)
class RuledOut:
    """What it is not: `what` in words ("NVLink"), `by` the evidence that clears it, in words, and its lines."""

    what: str
    by: str
    evidence: tuple[Origin, ...] = ()


@dataclass(frozen=True, slots=True)
class NextEvidence:
    """The observation that would settle what is open: a command for a named host, and why."""

    what: str
    where: str = ""
    command: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True)
class JobState:
    """How one job of the case is; `causes` are the places of its causes in the verdict."""

    name: str
    state: State
    headline: str = ""
    causes: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer. `headline` is one line for a reader. `first` are sentences that must be read before the causes
    (topology does not matter here, the expectation was wrong). `not_explained` are lines or losses that nothing
    explains, `joined` what was there of each kind of evidence ("log 4/4 ranks")."""

    state: State = State.UNKNOWN
    headline: str = ""
    confidence: Confidence = Confidence.LOW
    first: tuple[str, ...] = ()
    causes: tuple[Cause, ...] = ()
    jobs: tuple[JobState, ...] = ()
    unrelated: tuple[Finding, ...] = ()
    ruled_out: tuple[RuledOut, ...] = ()
    not_explained: tuple[str, ...] = ()
    next_evidence: tuple[NextEvidence, ...] = ()
    joined: tuple[str, ...] = ()
