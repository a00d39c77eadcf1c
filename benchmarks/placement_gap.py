"""Prints how far the solver is from its bound on random clusters of 4 to 32 nodes with holes, jobs of 17 to 256 ranks.

    python benchmarks/placement_gap.py [--cases 60] [--first 0] [--rails 0 8] [--tries N]

Tensor, pipeline and data dimensions of random sizes and weights, holes of 0 to 30 %, leaves of 4 or 8 nodes under a
spine of a quarter to all of their bandwidth. Such jobs are too large to search through, so that a gap is the bound's
and the solver's together. --tries gives the local search more time; the bound knows no rails.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence

import numpy as np

from topodiag.model.cluster import Cluster, Demand, Level
from topodiag.placement.solve import solve

FEWEST, MOST = 17, 256


def random_case(seed: int, rails: int) -> tuple[Cluster, list[Demand], int]:
    """A cluster, the demands of a job, and its ranks."""
    random = np.random.default_rng(seed)
    while True:
        nodes, leaf = int(random.integers(4, 33)), int(random.choice([4, 8]))
        usable = random.random((nodes, 8)) >= float(random.choice([0.0, 0.05, 0.15, 0.3]))
        tp, pp = int(random.choice([2, 4, 8])), int(random.choice([1, 2, 4]))
        dp = int(usable.sum() * random.uniform(0.5, 1.0)) // (tp * pp)
        if dp >= 1 and FEWEST <= tp * pp * dp <= MOST:
            break
    numbers = np.arange(nodes)
    spine = float(random.choice([11.25, 22.5, 45.0]))
    levels = (Level("leaf", numbers // leaf, 5.0, 45.0), Level("spine", numbers * 0, 7.0, spine))
    machines = Cluster(tuple(f"n{n}" for n in numbers), usable, numbers, levels, 1.0, 400.0, rails)
    ranks = np.arange(tp * pp * dp).reshape(pp, dp, tp)
    size = 2.0 ** random.integers(22, 28, size=3)
    often, stages = float(random.integers(10, 200)), float(random.integers(1, 40))
    demands = [
        Demand("tp", ranks.reshape(-1, tp), "all_reduce", size[0], calls=often, keep_together=True),
        Demand("pp", np.moveaxis(ranks, 0, 2).reshape(-1, pp), "send_recv", size[1], calls=stages),
        Demand("dp", np.moveaxis(ranks, 1, 2).reshape(-1, dp), "all_reduce", 8 * size[2], exposed=0.5),
    ]
    return machines, [demand for demand in demands if demand.size > 1], tp * pp * dp


def row(rails: int, seeds: Sequence[int], tries: int | None) -> str:
    gaps = []
    start = time.process_time()
    for seed in seeds:
        machines, demands, world = random_case(seed, rails)
        gaps.append(solve(machines, demands, world, tries=tries).gap)
    each = (time.process_time() - start) / len(gaps)
    found = np.asarray(gaps)
    shares = "  ".join(f"{np.mean(found <= limit + 1e-9):>5.0%}" for limit in (0.0, 0.01, 0.05, 0.2))
    return f"{rails:>5}  {shares}  {np.median(found):>6.1%}  {found.mean():>6.1%}  {found.max():>6.0%}  {each:>7.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=60)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--rails", type=int, nargs="+", default=[0, 8])
    parser.add_argument("--tries", type=int, help="of the local search, instead of by size")
    asked = parser.parse_args()
    print("rails  gap 0   <1 %   <5 %  <20 %  middle    mean    most  CPU s each")
    for rails in asked.rails:
        print(row(rails, range(asked.first, asked.first + asked.cases), asked.tries), flush=True)


if __name__ == "__main__":
    main()
