"""What texts beside its log say of a job: a line of NCCL's own diagnostics (2.31 and later), where a process was when
its stack was dumped, and how long the steps of a rank's transfers waited, by the trace of NCCL's example profiler
plug-in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from math import fsum

from topodiag.lazy import dataclass
from topodiag.model.provenance import Origin


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """`ok`: NCCL tagged it so; every other line is INFO, a difference or data that were not there. `comm` is the hash
    of the communicator, 0 where none is named, `size` its ranks (-1); `ranks` are those that the line lists, of this
    communicator."""

    ok: bool
    subject: str
    text: str
    comm: int = 0
    size: int = -1
    ranks: tuple[int, ...] = ()
    origin: Origin | None = None


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame as the dump prints it: function, and file without its line."""

    function: str
    file: str

    def __str__(self) -> str:
        return f"{self.function} ({self.file})"


@dataclass(frozen=True, slots=True)
class Stack:
    """The main thread of one process, innermost frame first. `rank` -1 and `label` "" where nothing names them."""

    pid: int
    rank: int
    label: str
    frames: tuple[Frame, ...]
    origin: Origin | None = None

    @property
    def who(self) -> str:
        """The process as a reader knows it."""
        return f"rank {self.rank}" if self.rank >= 0 else self.label or f"process {self.pid}"


@dataclass(frozen=True, slots=True)
class StepWaits:
    """One rank of one communicator. `us` by state of a step (SendWait, RecvGpuWait, ...), microseconds together;
    `peers` are the ranks to which it waited to send, by microseconds of SendPeerWait."""

    comm: int
    rank: int
    us: Mapping[str, float]
    peers: Mapping[int, float] = field(default_factory=dict)
    origin: Origin | None = None

    @property
    def total_us(self) -> float:
        return fsum(self.us.values())

    def share(self, state: str) -> float:
        """Part of the waiting that is in this state, 0 to 1."""
        return self.us.get(state, 0.0) / self.total_us if self.total_us > 0 else 0.0
