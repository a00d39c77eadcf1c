"""When a number is far from those of its siblings: robust statistics that a few sick nodes do not move.

Ten siblings and more: the modified z-score, 0.6745 (x - median) / MAD (Iglewicz and Hoaglin, 1993), and far beyond what
nine tenths of the siblings have. Four to nine: the range of the others. Fewer have no rule. A difference below the
noise of what measured it is none, at any number of deviations.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from topodiag.lazy import dataclass
from topodiag.model.fleet import How

Floats = NDArray[np.float64]

MANY = 10
"""Siblings for which deviations say something; Azure's node checks warn below that."""
FEWEST = 4
MOST_Z = 3.5
"""Iglewicz and Hoaglin's limit."""
_TAIL = 4.5
"""How much farther than nine tenths of its siblings a number is that is odd: rates that were measured have heavy tails,
of which 3.5 deviations name some nodes in a thousand on a healthy fleet (benchmarks/fleet_statistics.py)."""
_BEYOND = 1.5
"""Of the range of the others, for a few siblings."""
NOISE = {"bytes": 0.02, "GB/s": 0.03, "TFLOPS": 0.02, "us": 0.10}
"""Share of the median that repeated measurements differ by: sizes of memory differ with what the kernel reserves,
nccl-tests by 2 to 3 %, matrix products by 1 to 2 %, latencies by 5 to 10 %."""
_OTHER_NOISE = 0.05
_ODD_SHARE = 0.05
"""Of numbers of which most are equal, as for categories."""


@dataclass(frozen=True, slots=True)
class Far:
    """Which of the values are far away, by which rule, and how far: in deviations or as a ratio to the median."""

    mask: NDArray[np.bool_]
    distance: Floats
    median: float
    how: How


def far(values: Floats, unit: str) -> Far | None:
    """The odd ones among values of siblings. None where there are too few for any rule."""
    if len(values) < FEWEST:
        return None
    median = float(np.median(values))
    floor = max(NOISE.get(unit, _OTHER_NOISE) * abs(median), 1e-12)
    away = np.abs(values - median)
    if len(values) < MANY:
        return _among_few(values, median, floor)
    spread = float(np.median(away))
    if spread == 0:  # most are equal: a category, but for the noise
        outliers = away > floor
        few = outliers.sum() <= max(1, int(_ODD_SHARE * len(values)))
        return Far(outliers & few, values / median if median else values, median, How.UNLIKE)
    z = 0.6745 * (values - median) / spread
    # The deviation of few values is itself uncertain: the limit is twice as far for ten, and near 3.5 for hundreds.
    limit = max(MOST_Z * (1 + MANY / len(values)), _TAIL * float(np.quantile(np.abs(z), 0.9, method="lower")))
    return Far((np.abs(z) > limit) & (away > floor), z, median, How.FAR)


def _among_few(values: Floats, median: float, floor: float) -> Far:
    """Farther from the others than one and a half times their range, and beyond the noise."""
    outliers = np.zeros(len(values), bool)
    for at in range(len(values)):
        others = np.delete(values, at)
        low, high = others.min(), others.max()
        beyond = max(low - values[at], values[at] - high)
        outliers[at] = beyond > _BEYOND * (high - low) + floor
    if outliers.sum() > 1:  # no majority stands against them
        outliers[:] = False
    return Far(outliers, values / median if median else values, median, How.RATIO)


LEAST_EVENTS = 20
"""Of a counter: below that many, chance decides."""
_TIMES = 10.0
"""How much faster than nine tenths of its siblings a counter rises that is odd."""
LEAST_HOURS = 1.0


_NONE_SEEN = 3.0
"""Events that may have been to come where none was seen: the limit of 95 % (the rule of three)."""


def rises_faster(counts: Floats, hours: Floats, carried: Floats | None = None) -> tuple[NDArray[np.bool_], Floats]:
    """Which counters rise far faster than those of their siblings, and all rates, per hour. Counters of siblings that
    all rise are the site's; one that alone is not zero is its own. `carried` are the bytes of the same parts, NaN where
    they are not known: a counter that is high because its part carried more is not odd."""
    rates = counts / np.maximum(hours, LEAST_HOURS)
    if len(counts) < FEWEST:
        return np.zeros(len(counts), bool), rates
    usual = float(np.quantile(rates, 0.9, method="lower"))
    faster = (counts >= LEAST_EVENTS) & (rates > _TIMES * usual)
    if carried is not None and faster.any():
        faster &= ~_by_traffic(counts, carried)
    return faster, rates


def _by_traffic(counts: Floats, carried: Floats) -> NDArray[np.bool_]:
    """Which counters are high for what was carried alone. Siblings that carried next to nothing do not say what is
    usual."""
    known = carried > 0
    explained = np.zeros(len(counts), bool)
    if known.sum() < FEWEST:
        return explained
    usual = float(np.quantile(counts[known] / carried[known], 0.9, method="lower"))
    others = carried[known].sum() - carried
    with np.errstate(divide="ignore", invalid="ignore"):
        explained[known] = (counts / carried <= _TIMES * np.maximum(usual, _NONE_SEEN / others))[known]
    return explained
