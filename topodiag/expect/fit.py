"""Fits time = alpha + size / beta to a measured sweep, one pair per regime, and reads off plateau, floor and bound.

NCCL changes algorithm and protocol with the size (LL, LL128, Simple; tree, ring, NVLS), so a sweep is several straight
lines. Where they part is searched over all ways to cut the sweep (dynamic programming); how many there are is chosen by
a Bayesian information criterion (Schwarz 1978) on relative errors, because a timing's noise grows with the time. Within
a regime the line is found by iteratively reweighted least squares with Huber's weights (Huber 1964), so that one slow
size does not bend it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate, groupby, pairwise
from math import fsum
from statistics import median

from topodiag.model.bench import BenchRow, BenchRun, Fit, Regime
from topodiag.words.units import most_of

MAX_POINTS = 160
"""Sizes that are fitted; a sweep in steps of bytes has more, and neighbours of it are merged."""
MAX_REGIMES = 5
MIN_POINTS = 4
"""Sizes per regime: a line through three points always looks good."""
PENALTY = 1.3
"""Times the criterion's weight per parameter: searching for the best cut is more tempting than one parameter more."""
NOISE_FLOOR = 0.005
"""Relative error below which fits are equally good: times are printed with three to five digits."""
SEARCH_FLOOR = 0.02
"""Relative error below which the search does not tell lines apart: four sizes can lie on a line by chance."""
HUBER = 1.345
"""Standard deviations from which a point counts less: 95 % efficient where all noise is normal (Huber 1964)."""
OUTLIER = 0.25
"""A size that is this much slower or faster than both neighbours is left out of the search for regimes."""
SMALL_BYTES = 4096
"""Sizes up to this show latency alone: at 1 GB/s they take 4 us."""
STILL_RISING = 1.3
"""busbw that grew more than this from the last size but one, scaled to a doubling, has no plateau yet."""

LEAST, MOST = 1e-3, 1e12
"""Bounds of a time in microseconds, and of a bandwidth in GB/s, that is a measurement."""

Point = tuple[float, float]
"""Size in bytes, time in microseconds."""


def fit_run(run: BenchRun) -> Fit:
    """The fit of a run's rows; regimes are empty with fewer than three sizes. Never raises."""
    rows = main_rows(run.rows)
    points = [(row.size, row.best.time_us) for row in rows if row.best.time_us and row.size > 0]
    regimes = fit_points(_merged([(float(size), float(time)) for size, time in points if time is not None]))
    plateau, bound = _plateau(rows)
    return Fit(regimes, plateau, bound, _floor(rows))


def main_rows(rows: Sequence[BenchRow]) -> list[BenchRow]:
    """One row per size in ascending order: of the type, operation and root with most rows; the median of repetitions.
    Cut rows and those without a time stay out."""
    whole = [row for row in rows if not row.cut and _in_bounds(row.best.time_us)]
    chosen = most_of(map(_kind, whole), ("", "", -1))
    mine = sorted((row for row in whole if _kind(row) == chosen), key=lambda row: (row.size, row.best.time_us or 0))
    by_size = (list(group) for _, group in groupby(mine, key=lambda row: row.size))
    return [same[len(same) // 2] for same in by_size]


def _in_bounds(value: float | None) -> bool:
    return value is not None and LEAST <= value <= MOST


def _kind(row: BenchRow) -> tuple[str, str, int]:
    return row.dtype, row.redop, row.root


def fit_points(points: Sequence[Point]) -> tuple[Regime, ...]:
    """Regimes of (bytes, microseconds) in ascending order of sizes, at most MAX_POINTS of them."""
    if len(points) < 3:
        return ()
    edges = [points[0][0], *_cuts(_without_outliers(points)), math.inf]
    return tuple(_regime([point for point in points if low <= point[0] < high]) for low, high in pairwise(edges))


# -- cutting a sweep into regimes --


def _without_outliers(points: Sequence[Point]) -> list[Point]:
    """The points without single sizes that stand far off the line between their neighbours, which agree."""
    kept = [points[0]]
    for before, point, after in zip(points, points[1:], points[2:], strict=False):
        share = (point[0] - before[0]) / (after[0] - before[0])
        level = before[1] + share * (after[1] - before[1])
        # From a flat start to a steep end the line lies above a healthy curve: only much above or below both counts.
        far = point[1] > max(level, after[1]) * (1 + OUTLIER) or point[1] < min(level, before[1]) * (1 - OUTLIER)
        if not far:
            kept.append(point)
    return [*kept, points[-1]]


def _cuts(points: Sequence[Point]) -> list[float]:
    """The sizes from which another regime holds, ascending."""
    count = len(points)
    costs = _Costs(points)
    best: list[list[tuple[float, int]]] = [[(costs(0, end), 0) for end in range(count + 1)]]
    for _ in range(1, min(MAX_REGIMES, count // MIN_POINTS)):
        row = []
        for end in range(count + 1):
            options = [
                (best[-1][cut][0] + costs(cut, end), cut)
                for cut in range(MIN_POINTS, end - MIN_POINTS + 1)
                if math.isfinite(best[-1][cut][0])
            ]
            row.append(min(options, default=(math.inf, 0)))
        best.append(row)
    scores = [row[count][0] + PENALTY * 4 * number * math.log(count) for number, row in enumerate(best)]
    number = min(range(len(scores)), key=lambda start: scores[start])
    cuts, end = [], count
    for level in range(number, 0, -1):
        end = best[level][end][1]
        cuts.append(points[end][0])
    return cuts[::-1]


class _Costs:
    """Minus twice the log-likelihood of the best line through points [low, high), in constant time by prefix sums."""

    def __init__(self, points: Sequence[Point]) -> None:
        scale = points[-1][0]
        terms = [(1 / time, size / scale / time) for size, time in points]
        columns = zip(*((one * one, one * rate, rate * rate, one, rate) for one, rate in terms), strict=True)
        self._sums = list(zip(*(accumulate(column, initial=0.0) for column in columns), strict=True))

    def __call__(self, low: int, high: int) -> float:
        if high - low < min(MIN_POINTS, len(self._sums) - 1):
            return math.inf
        a, b, c, d, e = (after - before for before, after in zip(self._sums[low], self._sums[high], strict=True))
        # Least squares of x + y s = t, each point divided by its t: normal equations [a b; b c] [x y] = [d e].
        if a <= 0 or c <= 0:
            return math.inf  # these times are lost in the rounding of the sums before them
        alpha, slope = _solved(a, b, c, d, e)
        total = max(high - low - alpha * d - slope * e, 0.0)
        # Each regime has a noise of its own: small sizes scatter more than large ones. Two of its points are the line's
        # own.
        return (high - low) * math.log(max(total / (high - low - 1), SEARCH_FLOOR**2))


# -- one regime --


def _regime(points: Sequence[Point]) -> Regime:
    """The robust line through these points with 95 % intervals. A slope of 0 is an infinite bandwidth: the times of
    these sizes do not grow."""
    scale = points[-1][0]
    sizes, times = [size / scale for size, _ in points], [time for _, time in points]
    weights = [1.0] * len(points)
    expected = list(times)
    alpha = slope = 0.0
    for _ in range(20):
        before = (alpha, slope)
        alpha, slope = _line(sizes, times, expected, weights)
        expected = [max(alpha + slope * size, 1e-9) for size in sizes]
        errors = [time / level - 1 for time, level in zip(times, expected, strict=True)]
        # 1.4826 x the median absolute deviation is the standard deviation of normal noise.
        spread = max(1.4826 * median(abs(error) for error in errors), NOISE_FLOOR / 2)
        weights = [min(1.0, HUBER * spread / abs(error)) if error else 1.0 for error in errors]
        if abs(alpha - before[0]) <= 1e-9 * (alpha + 1e-9) and abs(slope - before[1]) <= 1e-9 * (slope + 1e-9):
            break
    alpha_error, slope_error = _errors(sizes, times, expected, weights)
    return Regime(
        low=int(points[0][0]),
        high=int(points[-1][0]),
        alpha_us=alpha,
        beta_gbs=_beta(slope, scale),
        alpha_range=(max(alpha - alpha_error, 0.0), alpha + alpha_error),
        beta_range=(_beta(slope + slope_error, scale), _beta(slope - slope_error, scale)),
        points=len(points),
    )


def _beta(slope: float, scale: float) -> float:
    """GB/s from microseconds per `scale` bytes."""
    return scale / slope / 1e3 if slope > 0 else math.inf


def _sums(
    sizes: Sequence[float], expected: Sequence[float], weights: Sequence[float]
) -> tuple[list[float], float, float, float]:
    relative = [weight / level / level for weight, level in zip(weights, expected, strict=True)]
    a = fsum(relative)
    b = fsum(weight * size for weight, size in zip(relative, sizes, strict=True))
    return relative, a, b, fsum(weight * size * size for weight, size in zip(relative, sizes, strict=True))


def _line(
    sizes: Sequence[float], times: Sequence[float], expected: Sequence[float], weights: Sequence[float]
) -> tuple[float, float]:
    """alpha and slope, neither below 0, by least squares on errors relative to `expected`."""
    relative, a, b, c = _sums(sizes, expected, weights)
    d = fsum(weight * time for weight, time in zip(relative, times, strict=True))
    e = fsum(weight * time * size for weight, time, size in zip(relative, times, sizes, strict=True))
    return _solved(a, b, c, d, e)


def _solved(a: float, b: float, c: float, d: float, e: float) -> tuple[float, float]:
    """x and y, neither below 0, of the normal equations [a b; b c] [x y] = [d e]."""
    det = a * c - b * b
    if det <= 1e-12 * a * c:
        return d / a, 0.0
    alpha, slope = (c * d - b * e) / det, (a * e - b * d) / det
    if alpha < 0:
        return 0.0, e / c
    return (d / a, 0.0) if slope < 0 else (alpha, slope)


def _errors(
    sizes: Sequence[float], times: Sequence[float], expected: Sequence[float], weights: Sequence[float]
) -> tuple[float, float]:
    """Half widths of the 95 % intervals of alpha and slope: the covariance of Huber's estimator, with the errors cut
    where the weights cut them, over the square of the share that is not cut (Huber 1981, 7.6)."""
    freedom = len(sizes) - 2
    _, a, b, c = _sums(sizes, expected, [1.0] * len(sizes))
    det = a * c - b * b
    if freedom < 1 or det <= 1e-12 * a * c:
        return math.inf, math.inf
    total = fsum(
        (weight * (time / level - 1)) ** 2 for weight, time, level in zip(weights, times, expected, strict=True)
    )
    share = sum(weight >= 1 for weight in weights) / len(weights)
    variance = max(total / freedom / max(share, 0.5) ** 2, (NOISE_FLOOR / 2) ** 2)
    wide = _student(freedom)
    return wide * math.sqrt(variance * c / det), wide * math.sqrt(variance * a / det)


_STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)


def _student(freedom: int) -> float:
    """The 97.5 % quantile of Student's t; beyond 10 degrees of freedom by its expansion in 1 / freedom."""
    if freedom <= len(_STUDENT):
        return _STUDENT[freedom - 1]
    z = 1.959964
    return z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)


def _merged(points: Sequence[Point]) -> list[Point]:
    """At most MAX_POINTS points: groups of neighbours by their middle one."""
    step = -(-len(points) // MAX_POINTS) if points else 1
    if step <= 1:
        return list(points)
    groups = [points[start : start + step] for start in range(0, len(points), step)]
    return [sorted(group, key=lambda point: point[1] / point[0])[len(group) // 2] for group in groups]


# -- what the curve shows --


def _floor(rows: Sequence[BenchRow]) -> float | None:
    """The least time up to SMALL_BYTES; one that is less than half of the median was no operation."""
    times = [row.best.time_us for row in rows if 0 < row.size <= SMALL_BYTES and row.best.time_us]
    if not times:
        return None
    middle = median(times)
    return min(time for time in times if time >= middle / 2)


def _plateau(rows: Sequence[BenchRow]) -> tuple[float | None, int | None]:
    """The bus bandwidth of the greatest sizes (the last, or the median of the last three where the last is lower), and
    the size from which half of it is kept, where the sweep shows both sides of it."""
    curve = [(row.size, row.best.busbw_gbs) for row in rows if row.size > 0 and _in_bounds(row.best.busbw_gbs)]
    if not curve:
        return None, None
    top = max(curve[-1][1] or 0.0, median(bus or 0.0 for _, bus in curve[-3:]))
    if len(curve) < 3:
        return top, None
    (size, bus), (last_size, last) = curve[-2], curve[-1]
    still_rising = (last or 0.0) > (bus or 1.0) * STILL_RISING ** math.log2(last_size / size)
    below = [number for number, (_, time) in enumerate(curve) if (time or 0.0) < top / 2]
    if still_rising or not below or below[-1] + 1 >= len(curve):
        return top, None
    return top, curve[below[-1] + 1][0]
