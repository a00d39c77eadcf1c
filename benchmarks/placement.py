"""Prints what placing large jobs costs: time and memory of price, audit and solve, and the gap to the bound.

    python benchmarks/placement.py [--gpus 1024 16384 100000] [--holes 0 0.05] [--share 0.95]

Nodes of 8 GPUs, 16 under a leaf, a spine twice oversubscribed, 8 rails; of the GPUs the share `holes` is broken at
random, and the job takes `share` of the others with tp 8 and pp 8. Each size runs in a process of its own, whose peak
memory is printed with what the interpreter and numpy take alone. Growth is time over GPUs, as a ratio to the row above:
1 is linear.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


def work(gpus: int, holes: float, share: float) -> None:
    """Run one size in this process; print what it took as JSON."""
    import numpy as np  # noqa: PLC0415 - counted with the memory

    from topodiag.model.cluster import Cluster, Demand, Level  # noqa: PLC0415
    from topodiag.placement.audit import audit  # noqa: PLC0415
    from topodiag.placement.groups import Talk  # noqa: PLC0415
    from topodiag.placement.price import price_placement  # noqa: PLC0415
    from topodiag.placement.seats import by_rule  # noqa: PLC0415
    from topodiag.placement.solve import solve  # noqa: PLC0415

    alone = _peak()
    nodes = gpus // 8
    random = np.random.default_rng(0)
    numbers = np.arange(nodes)
    machines = Cluster(
        tuple(f"node{n:06d}" for n in range(nodes)),
        random.random((nodes, 8)) >= holes,
        numbers,
        (Level("leaf", numbers // 16, 5.0, 45.0), Level("spine", np.zeros(nodes, np.int64), 7.0, 22.5)),
        1.0,
        400.0,
        8,
    )
    world = int(machines.free * share) // 64 * 64
    ranks = np.arange(world).reshape(8, -1, 8)  # pp, dp, tp
    demands = (
        Demand("tp", ranks.reshape(-1, 8), "all_reduce", 64e6, calls=160, keep_together=True),
        Demand("pp", np.moveaxis(ranks, 0, 2).reshape(-1, 8), "send_recv", 32e6, calls=16),
        Demand("dp", np.moveaxis(ranks, 1, 2).reshape(-1, world // 64), "all_reduce", 1e9, exposed=0.5),
    )
    block = by_rule(machines, "block", world)
    price_s, before = _timed(lambda: price_placement(machines, demands, block))
    solve_s, made = _timed(lambda: solve(machines, demands, world))
    audit_s, _ = _timed(lambda: audit(machines, Talk(world, demands), block))
    print(
        json.dumps(
            {
                "gpus": gpus,
                "holes": holes,
                "ranks": world,
                "price_s": price_s,
                "audit_s": audit_s,
                "solve_s": solve_s,
                "alone_mb": alone,
                "peak_mb": _peak(),
                "block_ms": before.step_us / 1e3,
                "step_ms": made.cost.step_us / 1e3,
                "bound_ms": made.bound_us / 1e3,
                "gap": made.gap,
                "split": sum(split.groups for split in made.splits),
            }
        )
    )


def _timed(call: Callable[[], T]) -> tuple[float, T]:
    start = time.process_time()
    made = call()
    return time.process_time() - start, made


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpus", type=int, nargs="+", default=[1024, 16_384, 100_000])
    parser.add_argument("--holes", type=float, nargs="+", default=[0.0, 0.05])
    parser.add_argument("--share", type=float, default=0.95)
    parser.add_argument("--work", nargs=3, metavar=("GPUS", "HOLES", "SHARE"), help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.work:
        work(int(asked.work[0]), float(asked.work[1]), float(asked.work[2]))
        return
    print("seconds are of CPU; MB are of the whole process\n")
    print(
        f"{'GPUs':>7} {'holes':>5} {'ranks':>7} {'price s':>8} {'audit s':>8} {'solve s':>8} {'growth':>6} {'MB':>5}"
        f" {'block ms':>9} {'step ms':>8} {'bound ms':>8} {'gap':>7} {'split':>6}"
    )
    for holes in asked.holes:
        _rows(asked.gpus, holes, asked.share)


def _rows(sizes: Sequence[int], holes: float, share: float) -> None:
    last: dict[str, float] = {}
    for gpus in sizes:
        argv = [sys.executable, __file__, "--work", str(gpus), str(holes), str(share)]
        row = json.loads(subprocess.run(argv, capture_output=True, text=True, check=True).stdout)
        growth = row["solve_s"] / last["solve_s"] / (gpus / last["gpus"]) if last else float("nan")
        print(
            f"{gpus:>7} {holes:>5.0%} {row['ranks']:>7} {row['price_s']:>8.2f} {row['audit_s']:>8.2f}"
            f" {row['solve_s']:>8.2f} {growth:>6.2f} {row['peak_mb']:>5.0f} {row['block_ms']:>9.1f}"
            f" {row['step_ms']:>8.1f} {row['bound_ms']:>8.1f} {row['gap']:>7.1%} {row['split']:>6}",
            flush=True,
        )
        last = row


if __name__ == "__main__":
    main()
