"""A measured run in `facts.benchmarks`: rows, fit, expectation and what would explain a low one."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from topodiag.report.documents.types.common import Level


class Timing(Struct, frozen=True, kw_only=True):
    """Time and bandwidths of one size; null where the output has none."""

    time_us: float | None
    algbw_gbs: float | None
    busbw_gbs: float | None
    wrong: float | None


class Row(Struct, frozen=True, kw_only=True):
    """One size. The figures are those out of place, or in place where there are no others."""

    bytes: int
    time_us: float | None
    algbw_gbs: float | None
    busbw_gbs: float | None
    wrong: float | None
    expected_busbw_gbs: float | None
    count: int
    type: str
    redop: str | None
    root: int
    in_place: Timing
    cut: bool


class Regime(Struct, frozen=True, kw_only=True):
    """Sizes over which one line T = alpha + bytes / beta fits."""

    low_bytes: int
    high_bytes: int
    alpha_us: float
    beta_gbs: float | None
    alpha_range_us: tuple[float | None, float | None]
    beta_range_gbs: tuple[float | None, float | None]
    points: int


class Fit(Struct, frozen=True, kw_only=True):
    """alpha_us of the smallest sizes, beta_gbs (algorithm bandwidth) of the largest; null beta: the times do not
    grow."""

    alpha_us: float | None
    beta_gbs: float | None
    regimes: list[Regime]
    plateau_busbw_gbs: float | None
    bound_from_bytes: int | None
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
    bytes: int | None
    measured_gbs: float | None
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

    collective: str | None
    nranks: int | None
    nranks_why: str
    rows: list[Row]
    fit: Fit
    expected_busbw_gbs: float | None
    expected: Expected | None
    verdict: Annotated[str, Meta(pattern="^(normal|low|impossible|unknown)$")]
    severe: Annotated[bool, Meta(description="Low, and so far below that something is broken.")]
    why: str
    gate: BenchGate
    hypotheses: list[Hypothesis]
    ruled_out: list[str]
    hosts: list[str]
    devices: list[RunDevice]
    nccl_version: str | None
    nccl_tests_version: str | None
    parameters: dict[str, str]
    settings: dict[str, str]
    average_busbw_gbs: float | None
    out_of_bounds: Annotated[int | None, Meta(description="Wrong values that the run itself counted.")]
    complete: bool
    errors: list[str]
    notes: list[str]
    placement: str | None
    source: str
    line: int | None
