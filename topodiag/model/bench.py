"""Measured collectives: runs of nccl-tests as they were read, their fit, and what was expected of the machine.

Times in microseconds, sizes in bytes, bandwidths in GB/s (1e9 bytes per second). `size` is nccl-tests' first column
(the greater of what one rank sends and receives), algbw = size / time, busbw = algbw x the collective's factor
(nccl-tests doc/PERFORMANCE.md).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import field
from enum import Enum
from math import fsum

from topodiag.lazy import dataclass
from topodiag.model.finding import Confidence, Finding
from topodiag.model.provenance import Origin
from topodiag.words.dialect import Maker

SLOW_PLACEMENT = 0.3
"""Share of the bandwidth that a placement must lack beside another one for the topology to be its bottleneck."""

MPI_PROGRAMS = ("OSU", "IMB")
"""The `program` of runs of the OSU micro-benchmarks and of the Intel MPI Benchmarks."""


@dataclass(frozen=True, slots=True)
class Timing:
    """One block of a row. None where the column was `N/A`, cut off, or no number. `wrong` counts wrong elements.
    `p50_us` and `p99_us` are percentiles of the single iterations, where the run timed them."""

    time_us: float | None = None
    algbw_gbs: float | None = None
    busbw_gbs: float | None = None
    wrong: float | None = None
    p50_us: float | None = None
    p99_us: float | None = None


@dataclass(frozen=True, slots=True)
class BenchRow:
    """One size. `cut` is a row that ended early (the run was aborted)."""

    size: int
    count: int = 0
    dtype: str = ""
    redop: str = ""
    root: int = -1
    out_of_place: Timing = Timing()
    in_place: Timing = Timing()
    cut: bool = False
    origin: Origin | None = None

    @property
    def best(self) -> Timing:
        """Out of place where it was measured, else in place."""
        first = self.out_of_place
        return self.in_place if first.time_us is first.busbw_gbs is None else first

    @property
    def busbw_gbs(self) -> float | None:
        """The better of both blocks: in-place or out-of-place, whichever the machine did better."""
        both = (self.out_of_place.busbw_gbs, self.in_place.busbw_gbs)
        return max((gbs for gbs in both if gbs is not None), default=None)

    @property
    def wrong_values(self) -> float:
        return max(self.out_of_place.wrong or 0.0, self.in_place.wrong or 0.0)


@dataclass(frozen=True, slots=True)
class BenchDevice:
    """One line of `Using devices`. `bus_id` as sysfs writes it; "" where the line has not all of it."""

    rank: int
    host: str
    device: int
    name: str = ""
    bus_id: str = ""
    group: int = 0
    pid: int = 0


@dataclass(frozen=True, slots=True)
class BenchRun:
    """One benchmark run: one header, one table.

    `collective` is nccl-tests' name without `_perf` (`all_reduce`), "" where nothing says it. `nranks` is None where
    neither the device list nor the ratio of the bandwidths tells it; `nranks_why` says which did. `version` is that of
    nccl-tests, `nccl` that of the library as `2.28.9`. `parameters` are the header's (`nGpus`, `graph`, ...).
    `complete` is False for an aborted run. `placement` names the run where a sweep or the user did. `failures` are the
    lines of `errors`, `warnings` what NCCL warned of in the same file.
    """

    collective: str
    rows: tuple[BenchRow, ...]
    devices: tuple[BenchDevice, ...] = ()
    nranks: int | None = None
    nranks_why: str = ""
    version: str = ""
    nccl: str = ""
    maker: Maker | None = None
    """Whose program measured, where its lines tell: rccl-tests is AMD's."""
    parameters: Mapping[str, str] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    commands: Mapping[str, Origin] = field(default_factory=dict)
    """By name the command that sets a variable of `env`, for those that no line of NCCL shows in force."""
    errors: tuple[str, ...] = ()
    failures: tuple[Origin, ...] = ()
    warnings: tuple[Origin, ...] = ()
    notes: tuple[str, ...] = ()
    average_gbs: float | None = None
    out_of_bounds: int | None = None
    complete: bool = True
    placement: str = ""
    source: str = ""
    origin: Origin | None = None
    program: str = "nccl-tests"

    @property
    def is_foreign(self) -> bool:
        """Whether it measured MPI: nothing here models what MPI should reach, so that no check judges it."""
        return self.program in MPI_PROGRAMS

    @property
    def least_bytes(self) -> int:
        """Sizes from which runs are compared: below, latency decides. perftest has many messages under way at once."""
        return 64 << 10 if self.program == "perftest" else 4 << 20

    @property
    def hosts(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(device.host for device in self.devices))

    @property
    def top(self) -> tuple[int, float] | None:
        """Size and bus bandwidth of the greatest size that was measured: the figure of a run, wherever one is."""
        rows = [(row.size, gbs) for row in self.rows if (gbs := row.busbw_gbs) is not None and row.size > 0]
        return max(rows, default=None)

    @property
    def wrong_values(self) -> float:
        """Values that are not what they should be, by the rows or by the line below them."""
        return fsum(row.wrong_values for row in self.rows) or float(self.out_of_bounds or 0)

    @property
    def ranks_per_host(self) -> int | None:
        """The same number on each host, or None where it is not known or not the same."""
        counts = set(Counter(device.host for device in self.devices).values())
        return counts.pop() if len(counts) == 1 else None


@dataclass(frozen=True, slots=True)
class Regime:
    """A range of sizes in which time = alpha + size / beta holds: one algorithm and protocol. `beta_gbs` is algorithm
    bandwidth; the intervals hold 95 %."""

    low: int
    high: int
    alpha_us: float
    beta_gbs: float
    alpha_range: tuple[float, float]
    beta_range: tuple[float, float]
    points: int


@dataclass(frozen=True, slots=True)
class Fit:
    """What the rows of a run say: its regimes in the order of sizes, the plateau, and where it is reached.

    `plateau_gbs` is the bus bandwidth of the greatest sizes; `bound_from` the size from which half of it is reached
    (the crossover alpha x beta of the last regime), None where the sizes do not show it.
    """

    regimes: tuple[Regime, ...] = ()
    plateau_gbs: float | None = None
    bound_from: int | None = None
    latency_us: float | None = None
    """The floor: the least time of the small sizes."""


@dataclass(frozen=True, slots=True)
class Expectation:
    """The bus bandwidth that the machine found should reach, and why. `low_gbs` is the least that is still normal, 0
    where the machine is a guess that may have any network; `limit_gbs` the physical limit; by size in `busbw` (bytes to
    GB/s) and `time_us`."""

    machine: str
    busbw_gbs: float
    low_gbs: float
    limit_gbs: float
    confidence: Confidence
    busbw: Mapping[int, float] = field(default_factory=dict)
    time_us: Mapping[int, float] = field(default_factory=dict)
    latency_us: float | None = None
    terms: tuple[tuple[str, str, str], ...] = ()
    """(name, value with unit, formula), the derivation."""
    own_low_gbs: float | None = None
    """Where the machine is a guess and others fit as well: the least that is normal of it. `low_gbs` is then the least
    of all of them, that of `least_of`."""
    least_of: str = ""
    doubt_gbs: float | None = None
    """Where the machine is a guess: below it a run is low, or it ran on another machine than the one assumed."""

    @property
    def normal_gbs(self) -> float:
        """The least that is called normal."""
        return max(self.low_gbs if self.own_low_gbs is None else self.own_low_gbs, self.doubt_gbs or 0.0)


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """One cause that would explain a measured bandwidth, with what it predicts and what would confirm it."""

    cause: str
    predicted_gbs: float
    likelihood: float
    """0 to 1 over all hypotheses of a run, from how well it predicts and from the evidence for or against it."""
    evidence: tuple[str, ...] = ()
    confirm: tuple[str, ...] = ()
    check: str = ""
    """The id of the check that finds this cause on a node or in a log."""
    shown: bool = False
    """Whether the evidence shows the fault itself: a finding of a check, a setting in force. Else it is inferred from
    the numbers alone."""
    settings: tuple[str, ...] = ()
    """Names of the settings in force that cause it."""
    in_part: bool = False
    """Whether it explains a part of the loss only: something else costs the rest."""


@dataclass(frozen=True, slots=True)
class SettingPrice:
    """A setting of a run that costs bandwidth, by the model of the machine: `without_gbs` is what the run should reach
    without all such settings, `with_gbs` with this one alone; None where the measured loss is its only price. `origin`
    is the command that gives it, None where NCCL's log shows it."""

    name: str
    value: str
    without_gbs: float
    with_gbs: float | None = None
    origin: Origin | None = None


class GateState(Enum):
    """Whether a measurement is accepted. Unknown is no pass: nothing was judged."""

    PASS = "pass"  # noqa: S105 - no password
    FAIL = "fail"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Gate:
    """A file or a run at the gate: `gbs` at `size` bytes against `bar_gbs`, the least that is normal there; None where
    they are not known. `why` in one sentence."""

    path: str
    state: GateState
    collective: str = ""
    size: int | None = None
    gbs: float | None = None
    bar_gbs: float | None = None
    why: str = ""


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A run with all that was made of it. `verdict`: `normal`, `low`, `impossible`, or `unknown` with `why`. `severe`:
    a low run that is so far below that something is broken, not slow."""

    run: BenchRun
    fit: Fit = Fit()
    expected: Expectation | None = None
    verdict: str = "unknown"
    why: str = ""
    hypotheses: tuple[Hypothesis, ...] = ()
    severe: bool = False
    failures: tuple[Finding, ...] = ()
    """What the checks found at error level on the log and the nodes of a run that ended with an error."""
    gate: Gate | None = None
    ruled_out: tuple[str, ...] = ()
    """Causes that the evidence excludes, each with what excludes it."""
    settings: tuple[SettingPrice, ...] = ()
    """Settings that explain a low run, or a part of what it lacks."""
    action: str = ""
    """What would let an unknown run be judged; `why` ends with it."""
