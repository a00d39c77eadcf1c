"""What a run does not say by itself: its number of ranks and its collective, from the numbers of its rows.

`size` is `count` elements, times the ranks where the buffer has one part per rank; bus bandwidth is algorithm
bandwidth times a factor of the number of ranks (nccl-tests doc/PERFORMANCE.md). Both are printed with two decimals, so
each row gives an interval, and the number of ranks is the one integer in all of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median

from topodiag.evidence.nccl_tests.words import SHARED, TYPE_BYTES
from topodiag.model.bench import BenchRow

MAX_RANKS = 1 << 20
NEAR = 0.02
"""How far the printed ratio of two bandwidths may be from the factor."""
LEAST_GBS = 0.01 / NEAR
"""From here on the last digits of both, each off by 0.005, move the ratio by less than that."""
ROWS = 64
"""Rows that are asked, the largest: small ones say less and are many."""


def parts(rows: Sequence[BenchRow]) -> int | None:
    """How many parts of `count` elements a buffer has: 1, or the ranks. None where rows do not agree or say nothing."""
    seen = set()
    for row in rows[-ROWS:]:
        width = TYPE_BYTES.get(row.dtype)
        if width is None or not row.count or not row.size:
            continue
        seen.add(row.size // (row.count * width) if row.size % (row.count * width) == 0 else 0)
    return seen.pop() if len(seen) == 1 and 0 not in seen else None


def no_traffic(rows: Sequence[BenchRow]) -> bool:
    """Whether every bus bandwidth is 0.00 although bytes went: the factor of one rank."""
    timings = [timing for row in rows for timing in (row.out_of_place, row.in_place) if timing.busbw_gbs is not None]
    return any((timing.algbw_gbs or 0) >= 0.1 for timing in timings) and all(
        timing.busbw_gbs == 0 for timing in timings
    )


def collective_of(rows: Sequence[BenchRow], checked: tuple[bool, bool], nranks: int | None = None) -> str:
    """The collective from operation, root, parts and the ratio of the bandwidths; "" where several would fit.

    `checked`: whether the results were checked out of place and in place. All-to-all and send/receive cannot be checked
    in place. `nranks`: what the device list tells.
    """
    if not rows:
        return ""
    reducing, rooted = rows[-1].redop not in {"", "none"}, any(row.root >= 0 for row in rows)
    whole, ratio = parts(rows), _ratio(rows)
    even = ratio is None or abs(ratio - 1) < NEAR
    if whole == 1 and rooted:
        return ("reduce" if reducing else "broadcast") if even else ""
    if whole == 1 and reducing:
        return _reduction_of(ratio, checked, nranks)
    if whole == 1 and ratio is not None and even:
        return "sendrecv"  # all others without a root and a reduction divide their data by the ranks
    if whole is not None and whole > 1 and not rooted and (ratio is None or abs(ratio - 1 + 1 / whole) < NEAR):
        if reducing:
            return "reduce_scatter"
        return {(True, False): "alltoall", (True, True): "all_gather"}.get(checked, "")
    return ""


def _reduction_of(ratio: float | None, checked: tuple[bool, bool], nranks: int | None) -> str:
    """What reduces without a root and keeps its size."""
    if ratio is None:
        return "all_reduce"
    even = abs(ratio - 1) < NEAR
    unlike = nranks is not None and abs(ratio - 2 * (nranks - 1) / nranks) > NEAR
    if even and (unlike or checked == (True, False)):
        return "sendrecv"  # the only one without a root and with a factor of 1; it goes through the operations too
    if even and nranks is None and checked == (False, False):
        return ""  # an all-reduce of two ranks, or send/receive of any number
    return "all_reduce" if ratio == 0 or (ratio > 1 - NEAR and not unlike) else ""


def ranks_of(rows: Sequence[BenchRow], collective: str, *, exact: bool = False) -> tuple[int | None, str]:
    """The number of ranks that the bandwidths tell, and how. `exact`: they carry six decimals (JSON)."""
    whole = parts(rows) if collective in SHARED else None
    if whole is not None and whole > 1:
        return whole, "size against count"
    twice = 2 if collective == "all_reduce" else 1  # how often each part of a buffer goes out
    if twice == 1 and collective not in SHARED:
        return None, ""  # the ratio does not depend on the ranks
    low, high = 1.0, float(MAX_RANKS)
    for alg, bus in _pairs(rows):
        slack_a, slack_b = _slack(alg, exact=exact), _slack(bus, exact=exact)
        # factor = twice x (n - 1) / n, so n = twice / (twice - factor).
        least = (bus - slack_b) / (alg + slack_a)
        most = (bus + slack_b) / max(alg - slack_a, 1e-9)
        low = max(low, twice / (twice - least) if least < twice else math.inf)
        high = min(high, twice / (twice - most) if most < twice else math.inf)
    if low > MAX_RANKS:
        return None, ""
    first, last = math.ceil(low - 1e-9), math.floor(min(high, MAX_RANKS) + 1e-9)
    return (first, "busbw / algbw") if first == last else (None, "")


def _pairs(rows: Sequence[BenchRow]) -> list[tuple[float, float]]:
    return [
        (timing.algbw_gbs, timing.busbw_gbs)
        for row in sorted(rows, key=lambda row: row.size)[-ROWS:]
        for timing in (row.out_of_place, row.in_place)
        if timing.algbw_gbs is not None and timing.busbw_gbs is not None and timing.algbw_gbs >= 0.2
    ]


def _ratio(rows: Sequence[BenchRow]) -> float | None:
    """busbw / algbw where both have digits enough."""
    pairs = [(alg, bus) for alg, bus in _pairs(rows) if alg >= LEAST_GBS]
    return median(bus / alg for alg, bus in pairs) if pairs else None


def _slack(value: float, *, exact: bool) -> float:
    """Half of the last digit printed: six columns hold two decimals below 1000, then one, then none."""
    if exact:
        return 1e-6
    return 0.0051 if value < 1000 else 0.051 if value < 10_000 else 0.51 if value < 1e6 else value / 20
