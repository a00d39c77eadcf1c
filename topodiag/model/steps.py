"""How long the steps of a training took, as its log prints them."""

from __future__ import annotations

from enum import Enum

from topodiag.lazy import dataclass
from topodiag.model.provenance import Origin

WARM_UP, MOST_WARM_UP = 0.1, 10
"""Share of the steps of a start that are not judged, at least 1, and how many at most: compilers and allocators work
there, and communicators are made."""


class PartOf(Enum):
    """What a part of a step does; BACKWARD of data-parallel training holds its all-reduce."""

    DATA = "data"
    FORWARD = "forward"
    BACKWARD = "backward"
    COMPUTE = "compute"
    COMMUNICATION = "communication"
    OPTIMIZER = "optimizer"
    REST = "rest"


@dataclass(frozen=True, slots=True)
class StepPart:
    """A part of a step as its log names it, and its seconds."""

    name: str
    of: PartOf
    seconds: float


@dataclass(frozen=True, slots=True)
class Step:
    """One step, or the mean of those since the line before. `value` in the unit of its series; `time` in seconds of the
    epoch, the log's own zone read as UTC, None without a date; `work` is the batch times the sequence length as far as
    the line says them, None where it says neither; `waited` are the seconds of it for which it waited for data, None
    where the line does not say them; `opens`: it is the first of an epoch; `parts` are those that the line times."""

    number: int
    value: float
    time: float | None = None
    work: float | None = None
    origin: Origin | None = None
    waited: float | None = None
    opens: bool = False
    parts: tuple[StepPart, ...] = ()


@dataclass(frozen=True, slots=True)
class StepSeries:
    """The steps of one start of one training, in the order of the log. `unit` is `s` for seconds a step, or a rate:
    `tokens/s`, `samples/s`, `TFLOP/s`. `rank` -1 and `host` "" where nothing names them. `smoothed`: each value is a
    mean over steps before it."""

    source: str
    steps: tuple[Step, ...]
    unit: str = "s"
    rank: int = -1
    host: str = ""
    smoothed: bool = False

    @property
    def costs(self) -> tuple[float, ...]:
        """What each step took, in seconds, or in a unit of which only ratios count."""
        return tuple(step.value if self.unit == "s" else 1 / step.value for step in self.steps)

    @property
    def who(self) -> str:
        """The process as a reader knows it; "" where nothing names it."""
        return f"rank {self.rank}" if self.rank >= 0 else self.host


def warm_up(count: int) -> int:
    """How many of so many steps of one start are its warm-up."""
    return min(max(round(WARM_UP * count), 1), MOST_WARM_UP)
