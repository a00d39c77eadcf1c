"""What happened, on one axis of time, and how far the clocks of its sources can be trusted."""

from __future__ import annotations

from topodiag.lazy import dataclass
from topodiag.model.provenance import Origin


@dataclass(frozen=True, slots=True)
class Clock:
    """The clock of one source. `zone` as an offset like `+02:00`, "" where unknown; `skew_s` is how many seconds it is
    ahead of the case's axis, `within_s` the uncertainty of that (both seconds; None where nothing ties it), `how` the
    events from which it was estimated, in a sentence."""

    source: str
    host: str = ""
    zone: str = ""
    skew_s: float | None = None
    within_s: float | None = None
    how: str = ""


_FRAME = ("the node boots", "the node is captured", "init of ")


@dataclass(frozen=True, slots=True)
class Moment:
    """One event. `time` is seconds of the epoch on the case's axis (skew taken out), None where the source has no time;
    `stamp` is the time as the source wrote it. A wait counts from its start, not from when it was printed."""

    time: float | None
    what: str
    host: str = ""
    rank: int = -1
    stamp: str = ""
    within_s: float | None = None
    origin: Origin | None = None
    count: int = 1

    @property
    def frames(self) -> bool:
        """Whether it only frames a job and tells of no fault: a boot, a capture, an init."""
        return self.what.startswith(_FRAME)


@dataclass(frozen=True, slots=True)
class Timeline:
    """Moments in order; those without a time stand last."""

    moments: tuple[Moment, ...] = ()
    clocks: tuple[Clock, ...] = ()
