"""Prints how often the solver is within a percent of the best placement there is, on small random clusters.

    python benchmarks/placement_exact.py [--cases 1000] [--ranks 16] [--first 0]

Each case (tests/placement/exact_search.py) is solved, then all placements are searched for one that is faster by more
than a percent. Searches that take too long are counted apart. The bound must never be above the best. The gap to it is
printed too: where what is found is the best to a percent, the rest of the gap is the bound's.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.placement.exact_search import MOST_RANKS, TooLargeError, better, random_case
from topodiag.placement.solve import solve

WITHIN = 1.01


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--ranks", type=int, default=MOST_RANKS)
    parser.add_argument("--first", type=int, default=0)
    asked = parser.parse_args()
    within = open_ends = 0
    worse: list[tuple[float, int]] = []
    gaps: list[float] = []
    solving = 0.0
    for seed in range(asked.first, asked.first + asked.cases):
        machines, demands, world = random_case(seed, asked.ranks)
        start = time.perf_counter()
        made = solve(machines, demands, world)
        solving += time.perf_counter() - start
        gaps.append(made.gap)
        try:
            best = better(machines, demands, world, made.cost.step_us / WITHIN)
        except TooLargeError:
            open_ends += 1
            continue
        if best is None:
            within += 1
            continue
        worse.append((made.cost.step_us / best - 1, seed))
        if best < made.bound_us * (1 - 1e-9):
            sys.exit(f"case {seed}: the bound of {made.bound_us:.3f} us is above the best, {best:.3f} us")
    judged = within + len(worse)
    print(f"{judged} cases judged, {open_ends} searches given up; {solving / asked.cases * 1e3:.0f} ms per solution")
    print(f"within 1 % of the best: {within} of {judged} ({within / max(judged, 1):.1%})")
    at_bound = sum(gap < WITHIN - 1 for gap in gaps)
    print(f"within 1 % of the bound: {at_bound} of {len(gaps)}; gap to it {median(gaps):.1%} in the middle,"
          f" {sum(gaps) / len(gaps):.1%} on average, {max(gaps):.0%} at most")  # fmt: skip
    for gap, seed in sorted(worse, reverse=True)[:10]:
        print(f"  case {seed}: {gap:.1%} above the best")


if __name__ == "__main__":
    main()
