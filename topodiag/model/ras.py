"""What NCCL's RAS said of a running job: how far each rank has launched its operations, and which processes answer.

Counts are launches, not completions. Ranks are those of their communicator, hosts are addresses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

from topodiag.lazy import dataclass
from topodiag.model.provenance import Origin
from topodiag.words.units import plural

RUNNING = "RUNNING"
MONITOR = "monitor"
"""Form of an answer that holds events alone."""
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

    @property
    def named(self) -> tuple[RasProcess, ...]:
        """All processes that it names."""
        members = (member.process for communicator in self.communicators for member in communicator.members)
        named = (*members, *self.silent, *self.dead, *(event.process for event in self.events))
        return tuple(process for process in named if process is not None)


def answered(answers: Sequence[RasAnswer]) -> tuple[int, int] | None:
    """How many ranks the last answer has data of, and of how many; None where no answer counts them."""
    last = next((answer for answer in reversed(answers) if answer.form != MONITOR), None)
    if last is None:
        return None
    world = max(last.communicators, key=lambda comm: comm.size, default=None)
    total = max(last.processes, world.size if world is not None else 0)
    lost = len({process.key for process in (*last.silent, *last.dead)})
    if world is not None and world.size == total:
        lost = max(lost, sum(member.missing for member in world.members))
    return (max(total - lost, 0), total) if total else None


def launches_go_on(answers: Sequence[RasAnswer]) -> bool | None:
    """Whether ranks launched operations between the first and the last answer that counts them; None where fewer than
    two do: text counts what is not in order alone."""
    whole = (answer.communicators for answer in answers if answer.form == "json")
    counted = [{comm.hash: _launches(comm) for comm in communicators} for communicators in whole]
    if len(counted) < 2:
        return None
    first, last = counted[0], counted[-1]
    both = first.keys() & last.keys()
    return any(last[comm] > first[comm] for comm in both) if both else None


def says_answers(answers: Sequence[RasAnswer]) -> str:
    """What answers say together where they show nobody behind; "" where none counts ranks, or some do not answer."""
    counted = answered(answers)
    if counted is None or counted[0] < counted[1]:
        return ""
    words = {
        None: "and nobody is behind in what it shows", True: "their launches go on, and nobody is behind",
        False: "nobody is behind, and nobody launched anything between the answers",
    }  # fmt: skip
    return f"{counted[0]} of {plural(counted[1], 'rank')} answered RAS, {words[launches_go_on(answers)]}"


def _launches(comm: RasCommunicator) -> int:
    return sum(launched * ranks for by_count in comm.counts.values() for launched, ranks in by_count.items())
