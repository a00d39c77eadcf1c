"""How steady the steps of a training are: their time, its spread, when it changed, which steps are slow and how often.

Facts only: a change has many causes, and a log of steps names none. Steps are compared within one start and where the
batch and the sequence are the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from statistics import median

import numpy as np
import numpy.typing as npt

from topodiag.lazy import dataclass
from topodiag.model.clock_text import stamp
from topodiag.model.steps import PartOf, StepSeries, timed_parts, warm_up
from topodiag.words.own_data import patterns
from topodiag.words.units import grouped, percent, plural, spell_s

Floats = npt.NDArray[np.float64]

MIN_JUDGED = 8
"""Steps after the warm-up without which nothing is said of a change."""
MIN_PLATEAU = 5
"""Steps in a row that make a level; fewer slow ones are pauses."""
CHANGED = 1.1
"""Times by which levels must differ: runs vary by a few per cent."""
NOISES = 4.0
"""Median deviations by which levels must differ as well, and up to twice as many of short ones."""
FAST = 0.2
"""Share of the steps that are the fast ones."""
MOSTLY = 0.8
"""Share of what steps take beyond the fast ones that must be waiting for data to lay it there."""
SLOW = 1.5
"""Times the level of its neighbours that makes a step slow."""
DRIFTED = 1.05
"""Times by which a slow drift must change the steps, from the first to the last third."""
_FEW_RANKS = 3
"""Ranks without which none can be called the odd one."""
MIN_DRIFT = 30
"""Steps without which nothing is said of a drift."""
_DEEPEST = 3
_FEW = 0.2
"""Share of the steps of a level that may be as in its neighbour."""
_RECURS = 0.7
"""Share of the slow steps that must lie in the same distance for them to recur."""

_LOSS = patterns("model/lines", "lines")["loss"]


@dataclass(frozen=True, slots=True)
class Level:
    """Steps of one pace in a row. `cost` is the median in seconds, or in 1/rate; `time` that of the first, where the
    line has one."""

    first: int
    last: int
    count: int
    cost: float
    time: float | None = None


@dataclass(frozen=True, slots=True)
class Pace:
    """The pace of one series. `typical` in the series' unit is the median after the warm-up, `low` and `high` hold the
    middle 80 % of the steps; `levels` are in order, `slow` are numbers of single slow steps, `period` the distance in
    which they recur (0: none), `drift` how many times the steps became longer little by little (1: none), `resized` the
    first step of another batch or sequence, -1 where they stay. It is of the `start`th of `starts` of its log."""

    series: StepSeries
    typical: float
    low: float
    high: float
    levels: tuple[Level, ...] = ()
    slow: tuple[int, ...] = ()
    period: int = 0
    drift: float = 1.0
    resized: int = -1
    start: int = 1
    starts: int = 1
    for_data: float = 0.0
    """The share of what steps take beyond the fast ones that is waiting for data, by the log itself; 0 where the log
    does not say it, or steps hardly differ."""

    @property
    def change(self) -> tuple[Level, Level] | None:
        """The first of the great changes from one level to the next: a spell ends by as much as it began."""
        pairs = list(pairwise(self.levels))
        sizes = [abs(float(np.log(after.cost / before.cost))) for before, after in pairs]
        return next((pair for pair, size in zip(pairs, sizes, strict=True) if size > 0.8 * max(sizes)), None)

    @property
    def slower(self) -> float:
        """How many times as long the steps of the last level take as those of the fastest before; 1 where they do not
        take longer."""
        if len(self.levels) < 2:
            return 1.0
        return max(self.levels[-1].cost / min(level.cost for level in self.levels[:-1]), 1.0)


def pace_of(series: StepSeries) -> Pace:
    """The pace of a series; of steps of several sizes that of the largest part of one size."""
    names = ("number", "time", "work", "waited", "value")
    number, time, work, waited, values = (np.asarray(series.column(name)) for name in names)
    work = np.where(np.isnan(work), -1.0, work)
    edges = [0, *(np.flatnonzero(work[1:] != work[:-1]) + 1).tolist(), len(work)]
    first, end = max(pairwise(edges), key=lambda part: part[1] - part[0])
    resized = int(number[edges[1]]) if len(edges) > 2 else -1
    early = warm_up(end - first) if not first else 0
    judged = slice(first + early if first + early < end else first, end)
    number, time, waited, values = (column[judged] for column in (number, time, waited, values))
    costs = values if series.unit == "s" else 1 / values
    low, high = (float(quantile) for quantile in np.quantile(values, (0.1, 0.9)))
    typical = float(np.median(values))
    if len(costs) < MIN_JUDGED:
        return Pace(series, typical, low, high, resized=resized)
    cuts = _merged(costs, _cuts(costs, 0, len(costs), 0))
    drift = _drift(costs, cuts)
    if drift != 1.0:
        cuts = [0, len(costs)]
    levels = tuple(
        Level(int(number[a]), int(number[b - 1]), b - a, float(np.median(costs[a:b])),
              None if np.isnan(time[a]) else float(time[a]))
        for a, b in pairwise(cuts)
    )  # fmt: skip
    spans = zip(levels, pairwise(cuts), strict=True)
    slow = tuple(at for level, (a, b) in spans for at in number[a:b][costs[a:b] > SLOW * level.cost].tolist())
    waits = _for_data(waited, costs) if series.unit == "s" else 0.0
    return Pace(series, typical, low, high, levels, slow, _period(slow), drift, resized, for_data=waits)


def _for_data(waited: Floats, costs: Floats) -> float:
    fast = float(np.quantile(costs, FAST))
    beyond = np.clip(costs - fast, 0, None)
    if not (waited <= costs).all() or float(beyond.mean()) < (CHANGED - 1) * fast:
        return 0.0
    usual = float(np.median(waited[costs <= fast]))
    return float(min(np.clip(waited - usual, 0, None).sum() / beyond.sum(), 1.0))


def _noise(costs: Floats) -> float:
    """The median deviation from the median, at least 0.5 % of it."""
    middle = float(np.median(costs))
    return max(float(np.median(np.abs(costs - middle))), 0.005 * middle)


def _cuts(costs: Floats, begin: int, end: int, depth: int) -> list[int]:
    """Where levels begin and end: the place where the sum of deviations is farthest from nought parts two of them."""
    part = costs[begin:end]
    if len(part) < 2 * MIN_PLATEAU or depth >= _DEEPEST:
        return [begin, end]
    middle, noise = float(np.median(part)), _noise(part)
    rise = np.clip((part - middle) / noise, -8, 8)
    sums = np.abs(np.cumsum(rise - rise.mean()))[MIN_PLATEAU - 1 : len(part) - MIN_PLATEAU]
    at = begin + MIN_PLATEAU + int(np.argmax(sums))
    return sorted({*_cuts(costs, begin, at, depth + 1), *_cuts(costs, at, end, depth + 1)})


def _merged(costs: Floats, cuts: list[int]) -> list[int]:
    """The cuts that part different levels."""
    while len(cuts) > 2:
        spans = list(pairwise(costs[a:b] for a, b in pairwise(cuts)))
        scores = [_contrast(left, right) for left, right in spans]
        if min(scores) >= 1:
            return cuts
        del cuts[1 + scores.index(min(scores))]
    return cuts


def _contrast(one: Floats, other: Floats) -> float:
    """How different two levels are, 1 for just enough. Most steps of one must be above most of the other: a few pauses
    are no level."""
    low, high = sorted((one, other), key=lambda values: float(np.median(values)))
    if np.quantile(high, _FEW) <= np.quantile(low, 1 - _FEW):
        return 0.0
    a, b = float(np.median(low)), float(np.median(high))
    wanted = NOISES * (1 + MIN_PLATEAU / min(len(low), len(high)))
    return min((b / a - 1) / (CHANGED - 1), (b - a) / max(_noise(low), _noise(high)) / wanted)


def _drift(costs: Floats, cuts: list[int]) -> float:
    """How many times the steps became longer little by little; 1 where levels fit better than a line, or nothing
    changed."""
    if len(costs) < MIN_DRIFT:
        return 1.0
    thirds = [float(np.median(third)) for third in np.array_split(costs, 3)]
    if not (thirds[0] < thirds[1] < thirds[2] or thirds[0] > thirds[1] > thirds[2]):
        return 1.0
    line = np.interp(np.arange(len(costs)), np.array([1, 3, 5]) * len(costs) / 6, thirds)
    # Beyond the middle of the outer thirds the line goes on as it was.
    slope = (thirds[2] - thirds[0]) / (len(costs) * 2 / 3)
    line += slope * (np.arange(len(costs)) - np.clip(np.arange(len(costs)), len(costs) / 6, 5 * len(costs) / 6))
    steps = np.concatenate([np.full(b - a, np.median(costs[a:b])) for a, b in pairwise(cuts)])
    off, off_steps = (float(np.median(np.abs(costs - array))) for array in (line, steps))
    times = float(line[-1] / line[0]) if line[0] > 0 else 1.0
    shown = abs(thirds[2] - thirds[0]) > 3 * off and max(times, 1 / times if times > 0 else 1) >= DRIFTED
    even = 1 / 3 < (thirds[1] - thirds[0]) / (thirds[2] - thirds[0]) < 2 / 3
    return times if shown and even and off < off_steps else 1.0


def _period(slow: tuple[int, ...]) -> int:
    """The distance in which most slow steps lie; 0 where they lie in none."""
    if len(slow) < 3:
        return 0
    distance = int(median([b - a for a, b in pairwise(slow)]))
    if distance < 2:
        return 0
    alike = sum(abs(b - a - distance) <= max(1, distance // 50) for a, b in pairwise(slow))
    return distance if alike >= _RECURS * (len(slow) - 1) else 0


# --- words ----------------------------------------------------------------------------------------------------------


def spell_pace(value: float, unit: str) -> str:
    """`1.23 s a step`, `123 ms a step`, `5,821 tokens/s`."""
    if unit != "s":
        return f"{value:,.0f} {unit}" if value >= 100 else f"{value:.3g} {unit}"
    return f"{spell_s(value)} a step"


def says_lost(series: StepSeries) -> str:
    """`the loss is nan from step 500 on`, where it was a number before and is none to the last step; else ""."""
    word = ""
    for at in range(len(series.steps) - 1, -1, -1):
        origin = series.steps[at].origin
        loss = _LOSS.search(origin.text) if origin is not None else None
        if loss is None or loss[1] is None:
            return f"the loss is {word} from step {series.steps[at + 1].number} on" if loss is not None and word else ""
        word = loss[1].lower()
    return ""


def says_change(pace: Pace, *, timed: bool = True) -> str:
    """`steps take 1.8 times as long from step 500 on`; "" where no level follows another."""
    pair = pace.change
    if pair is None:
        return ""
    before, after = pair
    times = after.cost / before.cost
    at = f"from step {after.first} on" + (f" ({stamp(after.time)})" if timed and after.time is not None else "")
    how = f"take {times:.2g} times as long" if times > 1 else f"are {1 / times:.2g} times as fast"
    words = f"steps {how} {at}"
    if times > 1 and pace.levels[-1] is not after and pace.slower < CHANGED:
        words += f", and as before from step {pace.levels[-1].first} on"
    return words


def says_waits(pace: Pace) -> str:
    """That steps are long where they wait for data; "" where the log does not show it."""
    if pace.for_data < MOSTLY:
        return ""
    between = f"{spell_s(pace.low)} and {spell_s(pace.high)}"
    waited = f"{percent(pace.for_data)} of the difference is waiting for data"
    return f"steps take between {between}, and {waited}: not the links"


def says_pace(pace: Pace) -> tuple[str, ...]:
    """The pace in a few sentences: how many steps and how long, what changed, which are slow."""
    series = pace.series
    first, last = series.steps[0].number, series.steps[-1].number
    start = f", start {pace.start} of {pace.starts}" if pace.starts > 1 else ""
    lead = f"steps {first} to {last} ({plural(len(series.steps), 'line')}{start}): "
    if len(pace.levels) > 1:
        levels = (spell_pace(value_of(level.cost, series.unit), series.unit) for level in pace.levels)
        texts = [lead + ", then ".join(levels)]
    else:
        spread = (pace.high - pace.low) / pace.typical
        steady = f", the middle 80 % within {percent(spread)} of each other" if spread < 1 else ""
        texts = [lead + spell_pace(pace.typical, series.unit) + steady]
    texts += filter(None, (says_change(pace), says_waits(pace)))
    if pace.drift != 1:
        longer = f"{percent(abs(pace.drift - 1))} {'longer' if pace.drift > 1 else 'shorter'}"
        texts.append(f"steps became {longer} little by little")
    if pace.period:
        texts.append(f"about every {pace.period} steps one is slow, as checkpoints and evaluations are")
    elif pace.slow:
        texts.append(plural(len(pace.slow), "single slow step"))
    if pace.resized >= 0:
        texts.append(f"batch or sequence changes at step {pace.resized}: only steps of one size are compared")
    if series.smoothed:
        texts.append(f"read from the progress bar `{series.bar}`, whose rate is a mean over past steps")
    return tuple(texts)


def says_steps(paces: Sequence[Pace]) -> tuple[str, ...]:
    """What the ranks of a job say of its steps: the first of them, and who differs from the others."""
    if not paces:
        return ()
    texts = [*says_pace(paces[0])]
    if pairs := odd_ranks(paces):
        texts.append(", ".join(f"{who} prints steps {times:.2g} times as long as its peers" for who, times in pairs))
    elif len(paces) > 1:
        texts.append(f"{len(paces)} ranks print the same pace")
    return tuple(texts)


def odd_ranks(paces: Sequence[Pace]) -> tuple[tuple[str, float], ...]:
    """Ranks whose steps take longer than those of most, at most three, the slowest first, with how many times. Ranks of
    one step wait for each other, so that most logs show none."""
    alike = [pace for pace in paces if pace.series.unit == paces[0].series.unit and pace.series.who]
    if len(alike) < _FEW_RANKS:
        return ()
    costs = {pace.series.who: pace.typical if pace.series.unit == "s" else 1 / pace.typical for pace in alike}
    middle = median(costs.values())
    pairs = [(who, cost / middle) for who, cost in costs.items() if cost > CHANGED * middle]
    return tuple(sorted(pairs, key=lambda pair: -pair[1])[:3]) if 2 * len(pairs) < len(alike) else ()


def last_starts(several: Sequence[StepSeries]) -> tuple[Pace, ...]:
    """The pace of the last start of each rank that has enough steps to be judged, else of its longest; by rank."""
    by_who = grouped(((series.rank, series.host), series) for series in several)
    paces = []
    for _, starts in sorted(by_who.items()):
        whole = [number for number, series in enumerate(starts) if len(series.steps) > MIN_JUDGED]
        at = whole[-1] if whole else max(range(len(starts)), key=lambda number: len(starts[number].steps))
        paces.append(replace(pace_of(starts[at]), start=at + 1, starts=len(starts)))
    return tuple(paces)


def value_of(cost: float, unit: str) -> float:
    """A cost in the unit of its series."""
    return cost if unit == "s" else 1 / cost


FAR = 3.0
"""Times as long as before that are slow, whatever the program does."""
LONGER = 1.5
"""Times as long as before that are slow where the time is in the part that holds the communication."""
MOST = 0.6
"""Share of the growth that must be in one part to name it."""
_LITTLE = 0.2
"""Share of the growth that the forward pass may take there."""


def became_slow(paces: Sequence[Pace]) -> bool:
    """Whether the steps of all ranks that print them became far longer, and stayed so, not by waiting for data."""
    return bool(paces) and all(_became_slow(pace) for pace in paces)


def grown_part(pace: Pace) -> str:
    """The name of the part of a step that holds most of what its steps became longer by; "" where none does."""
    by_part = _growth(pace)
    name, _ = max(by_part, key=by_part.__getitem__, default=("", None))
    return name if by_part and max(by_part.values()) >= MOST else ""


def _became_slow(pace: Pace) -> bool:
    if pace.series.smoothed or says_waits(pace):
        return False
    if pace.slower >= FAR:
        return True
    by_kind = {of: share for (_, of), share in _growth(pace).items()}
    shared = max(by_kind.get(PartOf.COMMUNICATION, 0.0), by_kind.get(PartOf.BACKWARD, 0.0))
    return pace.slower >= LONGER and shared >= MOST and by_kind.get(PartOf.FORWARD, 1.0) <= _LITTLE


def _growth(pace: Pace) -> dict[tuple[str, PartOf], float]:
    """By part, the share of the growth of the steps that it took; none where the steps or their parts do not say."""
    change = pace.change
    if change is None or pace.series.unit != "s" or change[1].cost <= change[0].cost:
        return {}
    before, after = change
    early, late = ([step for step in pace.series.steps if level.first <= step.number <= level.last] for level in change)
    grown = {}
    for name, of in sorted(timed_parts([*early, *late]).items()):
        low, high = (median(p.seconds for s in steps for p in s.parts if p.name == name) for steps in (early, late))
        grown[name, of] = (high - low) / (after.cost - before.cost)
    return grown
