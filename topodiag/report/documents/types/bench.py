"""A measured run in `facts.benchmarks`: rows, fit, expectation and what would explain a low one."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from topodiag.report.documents.from_model import Of
from topodiag.report.documents.types.common import Level


class Timing(Struct, frozen=True, kw_only=True):
    """Time and bandwidths of one size; null where the output has none."""

    time_us: float | None
    algbw_gbs: float | None
    busbw_gbs: float | None
    wrong: float | None


class Row(Struct, frozen=True, kw_only=True):
    """One size. The figures are those out of place, or in place where there are no others."""

    bytes: Annotated[int, Of("size")]
    time_us: Annotated[float | None, Of("best.time_us")]
    algbw_gbs: Annotated[float | None, Of("best.algbw_gbs")]
    busbw_gbs: Annotated[float | None, Of("best.busbw_gbs")]
    wrong: Annotated[float | None, Of("best.wrong")]
    expected_busbw_gbs: float | None
    count: int
    type: Annotated[str, Of("dtype")]
    redop: str | None
    root: int
    in_place: Timing
    cut: bool


class Regime(Struct, frozen=True, kw_only=True):
    """Sizes over which one line T = alpha + bytes / beta fits."""

    low_bytes: Annotated[int, Of("low")]
    high_bytes: Annotated[int, Of("high")]
    alpha_us: float
    beta_gbs: float | None
    alpha_range_us: Annotated[tuple[float | None, float | None], Of("alpha_range")]
    beta_range_gbs: Annotated[tuple[float | None, float | None], Of("beta_range")]
    points: int


class Fit(Struct, frozen=True, kw_only=True):
    """alpha_us of the smallest sizes, beta_gbs (algorithm bandwidth) of the largest; null beta: the times do not
    grow."""

    alpha_us: float | None
    beta_gbs: float | None
    regimes: list[Regime]
    plateau_busbw_gbs: Annotated[float | None, Of("plateau_gbs")]
    bound_from_bytes: Annotated[int | None, Of("bound_from")]
    latency_us: float | None


class ExpectedTerm(Struct, frozen=True, kw_only=True):
    """One step of the derivation."""

    name: str
    value: str
    formula: str


class Expected(Struct, frozen=True, kw_only=True):
    """What the machine should reach: bus bandwidth at the largest sizes, the least that is normal, and the limit."""

    machine: str
    busbw_gbs: float
    low_gbs: float
    limit_gbs: float
    confidence: Level
    latency_us: float | None
    terms: list[ExpectedTerm]


class Hypothesis(Struct, frozen=True, kw_only=True):
    """A cause that would explain the measured bandwidth."""

    cause: str
    predicted_gbs: float
    likelihood: float
    evidence: list[str]
    confirm: list[str]
    check: str | None
    shown: Annotated[bool, Meta(description="The evidence shows the fault itself; else the numbers alone tell it.")]


class BenchGate(Struct, frozen=True, kw_only=True):
    """Whether the run is accepted: what was measured at its largest size, and the least that is normal there."""

    state: Annotated[str, Meta(pattern="^(pass|fail|unknown)$")]
    bytes: Annotated[int | None, Of("size")]
    measured_gbs: Annotated[float | None, Of("gbs")]
    bar_gbs: float | None
    why: str


class RunDevice(Struct, frozen=True, kw_only=True):
    """The GPU of a rank of the run."""

    rank: int
    host: str
    device: int
    name: str
    bus_id: str | None


class Benchmark(Struct, frozen=True, kw_only=True):
    """One run of nccl-tests and the verdict on it."""

    collective: Annotated[str | None, Of("run.collective")]
    nranks: Annotated[int | None, Of("run.nranks")]
    nranks_why: Annotated[str, Of("run.nranks_why")]
    rows: list[Row]
    fit: Fit
    expected_busbw_gbs: Annotated[float | None, Of("expected.busbw_gbs")]
    expected: Expected | None
    verdict: Annotated[str, Meta(pattern="^(normal|low|impossible|unknown)$")]
    severe: Annotated[bool, Meta(description="Low, and so far below that something is broken.")]
    why: str
    gate: BenchGate
    hypotheses: list[Hypothesis]
    ruled_out: list[str]
    hosts: Annotated[list[str], Of("run.hosts")]
    devices: Annotated[list[RunDevice], Of("run.devices")]
    nccl_version: Annotated[str | None, Of("run.nccl")]
    nccl_tests_version: Annotated[str | None, Of("run.version")]
    parameters: Annotated[dict[str, str], Of("run.parameters")]
    settings: Annotated[dict[str, str], Of("run.env")]
    average_busbw_gbs: Annotated[float | None, Of("run.average_gbs")]
    out_of_bounds: Annotated[
        int | None, Of("run.out_of_bounds"), Meta(description="Wrong values that the run itself counted.")
    ]
    complete: Annotated[bool, Of("run.complete")]
    errors: Annotated[list[str], Of("run.errors")]
    notes: Annotated[list[str], Of("run.notes")]
    placement: Annotated[str | None, Of("run.placement")]
    source: Annotated[str, Of("run.source")]
    line: Annotated[int | None, Of("run.origin.line")]
