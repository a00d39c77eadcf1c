"""What NCCL's RAS said of a running job: how far each rank has launched its operations, and which processes answer.

Counts are launches, not completions. Ranks are those of their communicator, hosts are addresses.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from topodiag.model.provenance import Origin

RUNNING = "RUNNING"
GONE = frozenset({"FINALIZE", "ABORT", "NOCOMM", "UNKNOWN"})
"""States of a rank that leaves a communicator or has left it. NCCL before 2.26 prints UNKNOWN for NOCOMM."""


@dataclass(frozen=True, slots=True)
class RasProcess:
    """One process as RAS names it. `gpus` as printed, `0` or `0 (NVML 3)`."""

    host: str
    pid: int
    gpus: str = ""

    @property
    def key(self) -> tuple[str, int]:
        return (self.host, self.pid)


@dataclass(frozen=True, slots=True)
class RasMember:
    """One rank of a communicator. `process` is None where RAS does not say it. `state` is INIT, RUNNING, FINALIZE,
    ABORT or NOCOMM, "" unknown. `counts` are operations launched by collective; "" stands for the sum of all, which is
    what NCCL before 2.26 prints. `missing`: it gave no data. `error` is what NCCL would return to it."""

    rank: int
    process: RasProcess | None = None
    state: str = ""
    counts: Mapping[str, int] = field(default_factory=dict)
    missing: bool = False
    error: str = ""
    origin: Origin | None = None


@dataclass(frozen=True, slots=True)
class RasCommunicator:
    """One communicator. `hash` is the commId of NCCL's log. `size` is 0 where the text does not say it. `members` are
    those that were listed: text lists outliers alone. `counts` are by collective how many ranks launched how many
    operations, `states` how many ranks are in which state."""

    hash: int
    size: int = 0
    members: tuple[RasMember, ...] = ()
    counts: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    states: Mapping[str, int] = field(default_factory=dict)
    origin: Origin | None = None


@dataclass(frozen=True, slots=True)
class RasEvent:
    """One event of a monitor: `what` is PEER_DEAD, PEER_UNRESPONSIVE, PEER_RECOVERED, ... `time` in seconds of the
    epoch, the zone of the host that answered read as UTC."""

    what: str
    time: float | None
    process: RasProcess | None = None
    origin: Origin | None = None


@dataclass(frozen=True, slots=True)
class RasAnswer:
    """One answer of RAS, or the events of one monitor.

    `time` in seconds of the epoch, the zone of the host that answered read as UTC; text has none. `form` is text, json
    or monitor. `processes` is how many the job has, 0 where that is not said; `total` how many communicators. `dead`
    are processes that RAS gave up, `silent` those that gave no data to this answer.
    """

    source: str
    version: str = ""
    time: float | None = None
    form: str = "text"
    nodes: int = 0
    processes: int = 0
    total: int = 0
    communicators: tuple[RasCommunicator, ...] = ()
    silent: tuple[RasProcess, ...] = ()
    dead: tuple[RasProcess, ...] = ()
    events: tuple[RasEvent, ...] = ()
    whole: bool = True
    """Whether the answer came to its end."""
    origin: Origin | None = None
