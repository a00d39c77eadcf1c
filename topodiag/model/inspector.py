"""What NCCL's Inspector measured of the collectives of a job, aggregated by communicator.

A kernel of a collective runs from the rank's arrival until the data of all ranks are there: the rank that arrives last
has the shortest one. `clean` times are those shortest kernels, which hold the transfer and no waiting.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import Enum
from functools import cached_property

from topodiag.lazy import dataclass
from topodiag.model.provenance import Origin


@dataclass(frozen=True, slots=True)
class InspectorMember:
    """One rank of a communicator and where it runs, with one line that it wrote. Metrics name no process but the number
    of the GPU: `pid` is then -2 less that number, and `rank` counts the GPUs of the communicator."""

    rank: int
    host: str
    pid: int
    origin: Origin | None = None

    @property
    def gpu(self) -> int:
        """The number of the GPU as the process counts, where no process is named; -1 otherwise."""
        return -2 - self.pid if self.pid <= -2 else -1


class MadeOf(Enum):
    """What the calls of a communicator are."""

    CALLS = "calls"
    """Single calls, matched by their sequence number."""
    MEANS = "means"
    """Means of the calls of a dump: samples of Prometheus, as many GPUs as the communicator has ranks."""
    MEANS_OF_SEVERAL = "means of several"
    """The same of GPUs that may be those of several communicators: which of them belong together is not known."""


@dataclass(frozen=True, slots=True)
class HourOfCalls:
    """The calls dumped within one hour (hours since the epoch) and the median of their clean times in microseconds."""

    hour: int
    calls: int
    clean_us: float


@dataclass(frozen=True, slots=True)
class CallsOfOneSize:
    """The calls of one collective within a quarter of an octave of sizes. `bytes` is the largest of them; times in
    microseconds, bus bandwidths in GB/s. `clean_us` is the median of the shortest kernels, `busbw_gbs` the bus
    bandwidth of the same. `busbw_mid_gbs` is the median of what the calls reached with their waiting: that of their
    slowest rank. `best_us` is the time that a tenth of the calls stays below: they share the links with
    no other call."""

    collective: str
    bytes: int
    calls: int
    clean_us: float
    busbw_gbs: float
    busbw_mid_gbs: float
    by_hour: tuple[HourOfCalls, ...] = ()
    best_us: float = 0.0


@dataclass(frozen=True, slots=True)
class LastArrivals:
    """How often a rank came last, and the microseconds that the other ranks waited then, by the mean of them."""

    times: int
    wait_us: float


@dataclass(frozen=True, slots=True)
class InspectorCommunicator:
    """One communicator. `calls` are those that at least half of the seen members recorded with the GPU's time;
    `time_us` is what they took together, the mean over the members, and `wait_us` the waiting in it, of which rare long
    waits are cut. `last` says by rank who came last. `missing` counts the sequence numbers that a member did not
    record."""

    hash: int
    name: str
    nranks: int
    nnodes: int
    members: Mapping[int, InspectorMember]
    sizes: tuple[CallsOfOneSize, ...] = ()
    calls: int = 0
    time_us: float = 0.0
    wait_us: float = 0.0
    last: Mapping[int, LastArrivals] = field(default_factory=dict)
    missing: int = 0
    made_of: MadeOf = MadeOf.CALLS

    @property
    def is_one(self) -> bool:
        """Whether all of its members are known to be of one communicator."""
        return self.made_of is not MadeOf.MEANS_OF_SEVERAL

    @property
    def enough_calls(self) -> float:
        """The share of calls that are enough: a mean of many says what many say."""
        return 1.0 if self.made_of is MadeOf.CALLS else 0.2


@dataclass(frozen=True, slots=True)
class ModelComparison:
    """The fastest of the communicators of one kind (`alike` of them) beside what is expected of its machine: `gbs` is
    what a tenth of its calls exceeded, `expected_gbs` what NCCL's model expects of it alone. `sharing` communicators,
    itself one of them, may use its wires at the same time. `is_low` where it is far below its part of the
    expectation; `machine` is what was assumed, `hosts_seen` of its hosts were captured."""

    comm: InspectorCommunicator
    alike: int
    size: CallsOfOneSize
    gbs: float
    expected_gbs: float
    sharing: int
    is_low: bool
    machine: str
    hosts_seen: int
    hosts: int

    @property
    def part_gbs(self) -> float:
        """Its part of the expectation where all that share its wires are busy, GB/s."""
        return self.expected_gbs / self.sharing


@dataclass(frozen=True)
class Inspection:
    """All that the Inspector wrote of one job. `records` are those of collectives, `transfers` those of sends and
    receives, `untimed` those whose time is not the GPU's, `unread` the lines that are no record. `one_in` calls was
    kept: above 1 the calls were too many for the memory. `samples` are those of Prometheus' metrics, `unclocked` those
    of a release that does not say whose clock timed them, `others` lines of other metrics, `other_jobs` the jobs that
    are left out beside that of most samples; `full` where there were more samples than are kept. `beside_model` is
    made once the machines of the job are known, `not_beside` says why it is not. Of the samples `rates` are bandwidths
    without a time, of which times were made."""

    communicators: tuple[InspectorCommunicator, ...]
    records: int = 0
    transfers: int = 0
    untimed: int = 0
    unread: int = 0
    one_in: int = 1
    samples: int = 0
    unclocked: int = 0
    others: int = 0
    other_jobs: int = 0
    full: bool = False
    rates: int = 0
    beside_model: tuple[ModelComparison, ...] = ()
    not_beside: str = "the captures of the nodes and NCCL's log are not beside the records: topodiag diagnose takes all"

    @cached_property
    def missing(self) -> int:
        return sum(communicator.missing for communicator in self.communicators)

    @cached_property
    def hours(self) -> tuple[int, ...]:
        """All hours of which there are calls."""
        return tuple(sorted({h.hour for c in self.communicators for s in c.sizes for h in s.by_hour}))
