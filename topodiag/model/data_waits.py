"""How much of the steps of a training is waiting for data, by the columns of its own log.

A loader that keeps up makes a step wait for milliseconds. What waits for it is no communication: ranks that come late
to a collective make the others wait there as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import fsum, isnan
from statistics import median

from topodiag.lazy import dataclass
from topodiag.model.provenance import Origin
from topodiag.model.steps import Step, StepSeries, warm_up

MOST = 0.5
"""Share of all time that is waiting from which on the input sets the pace."""
LEAST = 0.15
"""Share of all time that must be waiting where only some steps wait."""
OF_SLOW = 0.8
"""Share of what slow steps take beyond the others that must be waiting."""
SLOW = 1.5
"""Times the time of a fast step that makes a step slow."""
FAST = 0.2
"""Share of the steps that are the fast ones."""
FEWEST_SLOW = 3
"""Slow steps below which they are chance."""
FEWEST = 3
"""Lines after the warm-up without which nothing is said, where each of them waits for its most part."""
FEWEST_LONG, NEARLY_ALL, LONG_S = 2, 0.9, 1.0
"""And where each of them waits for nearly all of its time, and for seconds: a loader that only fills its queue again
does not make two steps far apart wait so."""
FEWEST_MIXED = 8
"""And where they differ."""
FEWEST_EVEN, EVEN = 30, 0.01
"""Lines from which on waits can be too even for a loader, and how far they differ then, of the usual one: with a
pipeline on the GPUs (DALI) a loop waits there for its own work."""


@dataclass(frozen=True, slots=True)
class DataWaits:
    """Steps that wait for data: of so many lines, the share of all time that is waiting, seconds of a step and of its
    waiting in the mean, how many lines are slow by it, and the seconds of a step that does not wait."""

    series: StepSeries
    lines: int
    share: float
    step_s: float
    waited_s: float
    slow: int
    usual_s: float
    evidence: tuple[Origin, ...]

    @property
    def always(self) -> bool:
        """Whether nearly all lines wait."""
        return self.slow > 0.9 * self.lines


def data_waits(series: StepSeries) -> DataWaits | None:
    """The waiting of a series; None where its log does not say it, says too little, or shows that the input keeps
    up."""
    pairs = _timed_steps(series)
    if len(pairs) < FEWEST and not _nothing_else(pairs):
        return None
    waits = [waited for _, waited in pairs]
    # Logs count the waiting in the time of a step, or beside it: then it is longer than its step somewhere.
    beside = any(waited > step.value * 1.001 for step, waited in pairs)
    costs = [step.value + (waited if beside else 0.0) for step, waited in pairs]
    share = fsum(waits) / fsum(costs)
    mixed = len(pairs) >= FEWEST_MIXED
    slow: list[int] = []
    if share >= MOST:
        slow = [at for at, cost in enumerate(costs) if waits[at] >= MOST * cost]
        if len(slow) < (FEWEST_SLOW if mixed else len(pairs)) or (len(slow) == len(pairs) and _is_even(waits)):
            return None
    elif share >= LEAST and mixed:
        slow = _slow_by_data(costs, waits)
    if not slow:
        return None
    count, worst = len(pairs), sorted(sorted(slow, key=lambda at: -waits[at])[:3])
    usual = median(cost - waited for cost, waited in zip(costs, waits, strict=True))
    evidence = tuple(origin for at in worst if (origin := pairs[at][0].origin) is not None)
    return DataWaits(series, count, share, fsum(costs) / count, fsum(waits) / count, len(slow), usual, evidence)


def _timed_steps(series: StepSeries) -> list[tuple[Step, float]]:
    """The steps after the warm-up with their waiting; none where some do not say it."""
    if series.unit != "s" or series.smoothed:
        return []
    first = warm_up(len(series.steps))
    rows = zip(series.column("waited")[first:], series.column("opens")[first:], strict=True)
    if any(isnan(waited) and not opens for waited, opens in rows):
        return []
    steps = [step for step in series.steps[first:] if not step.opens]
    return [(step, step.waited) for step in steps if step.waited is not None]


def _is_even(waits: Sequence[float]) -> bool:
    """Whether many steps wait equally long: what reads files takes now longer, now shorter."""
    usual = median(waits)
    return len(waits) >= FEWEST_EVEN and median(abs(wait - usual) for wait in waits) < EVEN * usual


def _nothing_else(pairs: Sequence[tuple[Step, float]]) -> bool:
    """Whether the few steps that are told, of which none are neighbours, do nothing but wait."""
    spread_out = all(later.number - one.number > 1 for (one, _), (later, _) in pairwise(pairs))
    only_wait = all(waited >= LONG_S and waited >= NEARLY_ALL * step.value for step, waited in pairs)
    return len(pairs) >= FEWEST_LONG and spread_out and only_wait


def _slow_by_data(costs: Sequence[float], waits: Sequence[float]) -> list[int]:
    """Places of the steps that take far longer than the fast ones, and do so by waiting; none where they are few, or
    long by something else."""
    of_fast = sorted(costs)[int(FAST * (len(costs) - 1))]
    slow = [at for at, cost in enumerate(costs) if cost > SLOW * of_fast]
    fast = [at for at in range(len(costs)) if at not in set(slow)]
    if len(slow) < FEWEST_SLOW or not fast:
        return []
    usual, unwaited = median(costs[at] for at in fast), median(waits[at] for at in fast)
    beyond = fsum(costs[at] - usual for at in slow)
    return slow if fsum(max(waits[at] - unwaited, 0.0) for at in slow) >= OF_SLOW * beyond else []
