"""How long the steps of a training took, as its log prints them."""

from __future__ import annotations

import zlib
from array import array
from collections.abc import Mapping, Sequence
from enum import Enum
from math import isnan, nan
from typing import Any, overload

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


class Quotes:
    """Short texts that are much alike, packed _TOGETHER at a time: steps of a log differ in a few digits."""

    def __init__(self) -> None:
        self._packed: list[bytes] = []
        self._open: list[str] = []
        self._block, self._texts = -1, [""]

    def add(self, text: str) -> None:
        """One line more."""
        self._open.append(text)
        if len(self._open) == _TOGETHER:
            self._packed.append(zlib.compress("\n".join(self._open).encode(), 1))
            self._open.clear()

    def __getitem__(self, at: int) -> str:
        block, place = divmod(at, _TOGETHER)
        if block == len(self._packed):
            return self._open[place]
        if block != self._block:
            self._block, self._texts = block, zlib.decompress(self._packed[block]).decode().split("\n")
        return self._texts[place]


_TOGETHER = 512


class Steps(Sequence[Step]):
    """Steps of one log by columns, in a tenth of the memory: a step is made where it is asked for. Columns are named
    as fields of Step, and NaN is None; `line` is of its origin, 0 none, and `row` the number of its quote and parts."""

    def __init__(
        self, source: str, columns: Mapping[str, array[Any]], quotes: Quotes, parts: Mapping[int, tuple[StepPart, ...]]
    ) -> None:
        self.columns = columns
        self._source, self._quotes, self._parts = source, quotes, parts

    def __len__(self) -> int:
        return len(self.columns["number"])

    @overload
    def __getitem__(self, at: int) -> Step: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[Step, ...]: ...
    def __getitem__(self, at: int | slice) -> Step | tuple[Step, ...]:
        if isinstance(at, slice):
            return tuple(self[place] for place in range(*at.indices(len(self))))
        own = {name: column[at] for name, column in self.columns.items()}
        time, work, waited = (None if isnan(own[name]) else own[name] for name in ("time", "work", "waited"))
        row = own["row"]
        origin = Origin(self._source, own["line"] or None, self._quotes[row])
        parts = self._parts.get(row, ())
        return Step(own["number"], own["value"], time, work, origin, waited, bool(own["opens"]), parts)


@dataclass(frozen=True, slots=True)
class StepSeries:
    """The steps of one start of one training, in the order of the log. `unit` is `s` for seconds a step, or a rate:
    `tokens/s`, `samples/s`, `TFLOP/s`. `rank` -1 and `host` "" where nothing names them. `bar`: the
    words before the progress bar that was read and how much it counts, `train: 200`, "" where lines were read."""

    source: str
    steps: Sequence[Step]
    unit: str = "s"
    rank: int = -1
    host: str = ""
    bar: str = ""

    def column(self, name: str) -> Sequence[float]:
        """A field of all steps, NaN where it is None."""
        if isinstance(self.steps, Steps):
            return self.steps.columns[name]
        values = (getattr(step, name) for step in self.steps)
        return [nan if value is None else value for value in values]

    @property
    def smoothed(self) -> bool:
        """Whether each value is a mean over steps before it."""
        return bool(self.bar)

    @property
    def who(self) -> str:
        """The process as a reader knows it; "" where nothing names it."""
        return f"rank {self.rank}" if self.rank >= 0 else self.host


def timed_parts(steps: Sequence[Step]) -> dict[str, PartOf]:
    """The parts that each of these steps times."""
    named = {part.name: part.of for part in steps[0].parts} if steps else {}
    for step in steps:
        own = {part.name for part in step.parts}
        named = {name: of for name, of in named.items() if name in own}
    return named


def warm_up(count: int) -> int:
    """How many of so many steps of one start are its warm-up."""
    return min(max(round(WARM_UP * count), 1), MOST_WARM_UP)
