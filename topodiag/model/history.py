"""A node over time: its captures, the states of its links, and how far its counters grew. Values only."""

from __future__ import annotations

from topodiag.lazy import dataclass
from topodiag.model.clock_text import stamp
from topodiag.model.finding import Finding, Input, Outcome
from topodiag.model.fleet import NodeFact
from topodiag.words.states import GOOD

OFF = frozenset({"off", "Disabled"})
"""States that an administrator set: neither up nor down."""


FALLS = frozenset({"link_downed", "carrier_down_count", "link_down_events", "link_down_events_phy"})
"""Counters of how often a link fell: of InfiniBand (PortCounters), the kernel's net device, ethtool of mlx5."""


@dataclass(frozen=True, slots=True)
class Capture:
    """One capture of a node. `id` is the sha256 of what it holds, however it is packed. Times are Unix seconds, None
    where the capture does not tell them. `errors` are the findings at error level, each as `ID place`: a capture
    without any is a good one. `facts` may leave out those that are known to be equal."""

    id: str
    host: str
    time_s: float | None = None
    boot_s: float | None = None
    source: str = ""
    errors: tuple[str, ...] = ()
    facts: tuple[NodeFact, ...] = ()

    @property
    def day(self) -> str:
        """`2026-11-22 09:15`, in UTC."""
        return spell_time(self.time_s)


@dataclass(frozen=True, slots=True)
class Spell:
    """One state of a part from the first sample that showed it to the last one. `boot` names the boot; `first_s` and
    `last_s` are seconds since it, `time_s` is the Unix time of the first sample. `fallen`: how often its own counter
    says that it fell after the first sample (0 where nothing counts)."""

    state: str
    boot: str
    first_s: float
    last_s: float
    time_s: float
    fallen: int = 0

    @property
    def up(self) -> bool:
        return self.state.lower() in GOOD

    @property
    def down(self) -> bool:
        return not self.up and self.state not in OFF

    @property
    def length_s(self) -> float:
        """How long the state is known to have lasted."""
        return self.last_s - self.first_s

    @property
    def end_s(self) -> float:
        """Unix time of the last sample."""
        return self.time_s + self.length_s


@dataclass(frozen=True, slots=True)
class PartStates:
    """The states of one part (`mlx5_0/1`, `gpu3/link6`, `eth0`), in the order of time."""

    part: str
    spells: tuple[Spell, ...]


@dataclass(frozen=True, slots=True)
class Growth:
    """How far a counter grew between captures of one boot, summed over `hours`. A counter that went back, a new boot or
    a new part starts anew and grew by nothing there."""

    family: str
    part: str
    key: str
    count: int
    hours: float
    now: int
    unit: str = ""


@dataclass(frozen=True, slots=True)
class NodeHistory:
    """What is known of a node over time. `before` is the capture that `now` is held against, and `basis` says which it
    is: `last good capture`, `capture before`, `capture given`. `same` counts facts that are equal in both and are
    not in them. `end_s`: when the states were sampled last, Unix time."""

    host: str
    now: Capture | None = None
    before: Capture | None = None
    basis: str = "last good capture"
    states: tuple[PartStates, ...] = ()
    grown: tuple[Growth, ...] = ()
    same: int = 0
    end_s: float | None = None

    @property
    def name(self) -> str:
        return self.host


@dataclass(frozen=True, slots=True)
class NodeFailures:
    """A node whose captures fail again and again: `times` that a failure was new, the failures by how often they were
    seen, and the days of the first and the last."""

    host: str
    times: int
    captures: int
    failures: tuple[tuple[str, int], ...]
    first: str
    last: str


@dataclass(frozen=True, slots=True)
class RisingCounter:
    """A counter that rose on few parts: `count` in `hours` on this one; `parts` of `total` parts of its kind rose."""

    host: str
    part: str
    key: str
    count: int
    hours: float
    parts: int
    total: int


@dataclass(frozen=True, slots=True)
class Track:
    """A node over time, to be drawn: (Unix time, errors) of each capture, and the states of parts that went down."""

    host: str
    captures: tuple[tuple[float, tuple[str, ...]], ...]
    states: tuple[PartStates, ...] = ()


@dataclass(frozen=True, slots=True)
class FleetHistory:
    """What a store answers. `findings` are those of FLT003 and FLT004, folded over nodes; `common` are counters that
    rose on many parts, with how many of how many. `aside` names what was given and not added; `inputs` are the
    captures and the files of watches that the store holds; `tracks` are the nodes that fail or change, the worst first.
    """

    hosts: int = 0
    captures: int = 0
    first_s: float | None = None
    last_s: float | None = None
    watched: int = 0
    added: int = 0
    known_before: int = 0
    compared: int = 0
    findings: tuple[Finding, ...] = ()
    outcomes: tuple[Outcome, ...] = ()
    failing: tuple[NodeFailures, ...] = ()
    rising: tuple[RisingCounter, ...] = ()
    common: tuple[tuple[str, int, int], ...] = ()
    aside: tuple[str, ...] = ()
    inputs: tuple[Input, ...] = ()
    tracks: tuple[Track, ...] = ()


def spell_time(time_s: float | None) -> str:
    """A Unix time in UTC to the minute."""
    return (stamp(time_s) if time_s is not None else "")[:16] or "an unknown time"
