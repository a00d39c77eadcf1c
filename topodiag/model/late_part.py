"""Ranks that are late in a part of each step, by the parts that all of them print: the others wait for them elsewhere.

Ranks of one step end it together. So a rank that takes longer for its data or its forward pass shows no longer step: it
waits less than the others in the part that holds the communication. That exchange is what is looked for; a part that
is long on one rank, while nobody waits the less for it, proves nothing.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from itertools import chain
from math import fsum

import numpy as np
import numpy.typing as npt

from topodiag.lazy import dataclass
from topodiag.model.steps import PartOf, Step, StepSeries, timed_parts, warm_up

Floats = npt.NDArray[np.float64]

FEWEST_STEPS = 5
"""Steps after the warm-up that all ranks must print."""
FEWEST_RANKS = 3
"""Ranks without which only waiting for data is judged: of two stages of a pipeline each waits in another part."""
LEAST = 0.1
"""Share of a step that a rank must be late by."""
TIMES = 1.5
"""Times as long as on the others that its part must take."""
MOSTLY = 0.8
"""Share of the steps in which it must be so: runs vary, by a fifth and more."""
MOST_RANKS = 0.25
"""Share of the ranks above which they are a kind of their own."""
GIVEN_BACK = 0.5
"""Share of its lateness by which the rank must wait less than the others."""
_REST = "the rest of the step"


@dataclass(frozen=True, slots=True)
class LatePart:
    """A rank that is late in `part`: seconds of a step there, those of the others, those of a whole step; where the
    others wait, how long, and how many steps of how many ranks say so."""

    series: StepSeries
    who: str
    part: str
    of: PartOf
    own_s: float
    usual_s: float
    step_s: float
    waits_in: tuple[str, ...]
    waited_s: float
    steps: int
    ranks: int
    step: Step

    @property
    def late_s(self) -> float:
        return self.own_s - self.usual_s


@dataclass(frozen=True, slots=True)
class _Table:
    """Seconds by rank, part and step, of steps that all ranks print."""

    series: tuple[StepSeries, ...]
    names: tuple[str, ...]
    kinds: tuple[PartOf, ...]
    seconds: Floats
    step_s: float
    last: tuple[Step, ...]


def late_parts(several: Sequence[StepSeries]) -> tuple[LatePart, ...] | None:
    """The ranks that are late, the latest first; none where they are many; None where ranks cannot be compared."""
    table = _table(_last_of_each(several))
    if table is None:
        return None
    parts: list[LatePart] = []
    for part, kind in enumerate(table.kinds):
        few = kind is not PartOf.DATA and len(table.series) < FEWEST_RANKS
        if few or kind in (PartOf.COMMUNICATION, PartOf.REST):
            continue
        late = [rank for rank in range(len(table.series)) if _is_late(table, rank, part)]
        if 0 < len(late) <= max(1, MOST_RANKS * len(table.series)):
            parts += (straggler for rank in late if (straggler := _finding(table, rank, part, late)) is not None)
    return tuple(sorted(parts, key=lambda part: -part.late_s))


def _last_of_each(several: Sequence[StepSeries]) -> Iterator[StepSeries]:
    """The last start of each rank that times parts of its steps. Where nothing else names them files are ranks, if
    their names differ in numbers or single letters only (`train.3.log`, `worker-c.out`): other words name other runs,
    of which nothing is compared."""
    last: dict[tuple[int, str, str], StepSeries] = {}
    for series in several:
        if series.smoothed or not all(len(step.parts) > 0 for step in series.steps):
            continue
        last[series.rank, series.host, "" if series.who else series.source] = series
    if len({re.sub(r"\d+|\b[A-Za-z]\b", "", file) for _, _, file in last if file}) <= 1:
        yield from last.values()


def _table(several: Iterator[StepSeries]) -> _Table | None:
    series = tuple(several)
    rows = _common(series) if len(series) > 1 else []
    if not rows or len(rows[0]) < FEWEST_STEPS:
        return None
    named = timed_parts(list(chain(*rows)))
    seconds = np.array([[[_seconds(step, name) for step in row] for name in named] for row in rows])
    seconds = seconds.reshape(len(rows), len(named), len(rows[0]))
    whole = seconds.sum(axis=1)
    names, kinds = [*named], [*named.values()]
    if all(one_series.unit == "s" for one_series in series):
        total = np.array([[step.value for step in row] for row in rows])
        seconds = np.concatenate([seconds, np.clip(total - whole, 0, None)[:, None, :]], axis=1)
        names, kinds, whole = [*names, _REST], [*kinds, PartOf.REST], total
    step_s = float(np.median(whole))
    return _Table(series, tuple(names), tuple(kinds), seconds, step_s, tuple(row[-1] for row in rows))


def _common(series: Sequence[StepSeries]) -> list[list[Step]]:
    """By rank, the steps after the warm-up that all ranks print."""
    by_number = [{step.number: step for step in one_series.steps} for one_series in series]
    numbers = sorted(set.intersection(*(set(steps) for steps in by_number)))
    numbers = numbers[warm_up(len(numbers)) :]
    return [[steps[number] for number in numbers] for steps in by_number]


def _seconds(step: Step, name: str) -> float:
    return next(part.seconds for part in step.parts if part.name == name)


def _excess(table: _Table, rank: int, part: int, numbers: Sequence[int] = ()) -> Floats:
    """Seconds of each step that a rank takes beyond the median of the others."""
    own = table.seconds[rank, part]
    others = [at for at in range(len(table.series)) if at != rank and at not in numbers]
    excess: Floats = own - np.median(table.seconds[others, part], axis=0)
    return excess


def _is_late(table: _Table, rank: int, part: int) -> bool:
    excess = _excess(table, rank, part)
    late = float(np.median(excess))
    own = float(np.median(table.seconds[rank, part]))
    mostly = float(np.mean(excess > late / 2)) >= MOSTLY
    return mostly and late >= LEAST * table.step_s and own >= TIMES * (own - late)


def _finding(table: _Table, rank: int, part: int, late: Sequence[int]) -> LatePart | None:
    """The finding on one rank; None where another rank is nearly as late, or the others do not wait for it."""
    excess = float(np.median(_excess(table, rank, part, late)))
    for other in range(len(table.series)):
        if other not in late and np.median(table.seconds[rank, part] - table.seconds[other, part]) < excess / 2:
            return None
    others = [at for at, kind in enumerate(table.kinds) if at != part and kind is not PartOf.DATA]
    gains = {at: -float(np.median(_excess(table, rank, at, late))) for at in others}
    waited = fsum(gain for gain in gains.values() if gain > 0)
    if waited < GIVEN_BACK * excess:
        return None
    places = sorted((at for at, gain in gains.items() if gain >= waited / 4), key=lambda at: -gains[at])
    own = float(np.median(table.seconds[rank, part]))
    series = table.series[rank]
    who = series.who or os.path.basename(series.source)
    return LatePart(
        series, who, table.names[part], table.kinds[part], own, max(own - excess, 0.0), table.step_s,
        tuple(table.names[at] for at in places), waited, table.seconds.shape[2], len(table.series), table.last[rank],
    )  # fmt: skip
