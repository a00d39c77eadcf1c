"""How well sweeps find planted faults: a simulated fabric of 64 nodes, 1,000 seeds, at most three rounds.

    python benchmarks/sweep_simulation.py [SEEDS]

Each seed plants one NIC (the way to it at half width), one cable, one leaf and one slow GPU at random, and sweeps; then
the same fabric without faults. Printed: how many of each kind are named (confirmed and told apart), how many sweeps
named anything that was not planted (with the upper end of the 95 % interval), and what it took in runs and rounds.
Then two racks, where the rails between them have but one another to be compared with: one fault at a time, of every
kind by turns, among them what joins the racks.

`sweep_fabric.py` says what the simulation leaves out.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from random import Random

from benchmarks.sweep_fabric import Noise, fabric_of, false_alarms, found, plant, sweep
from topodiag.sweep.values import Part

NOISES = (
    ("quiet: 2 % scatter, 1 % of runs slow by chance", Noise()),
    ("busy: 4 % scatter, 3 % of runs slow by chance", Noise(0.04, 0.03)),
)


def upper(count: int, of: int) -> float:
    """The upper end of Wilson's 95 % interval of a share."""
    z = 1.96
    share = count / of
    middle = share + z * z / (2 * of)
    half = z * (share * (1 - share) / of + z * z / (4 * of * of)) ** 0.5
    return (middle + half) / (1 + z * z / of)


def main() -> None:
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    fabric = fabric_of()
    for name, noise in NOISES:
        began = time.monotonic()
        named: Counter[str] = Counter()
        rounds: Counter[int] = Counter()
        runs: list[int] = []
        wrong = healthy_wrong = 0
        for seed in range(seeds):
            faults = plant(fabric, Random(10_000_000 + seed))
            made = sweep(fabric, faults, seed, noise)
            named.update(part.kind for part in faults if found(made.judgement, part))
            wrong += bool(false_alarms(made.judgement, faults))
            rounds[len(made.plans)] += 1
            runs.append(made.runs)
            healthy_wrong += bool(sweep(fabric, {}, seed, noise).judgement.confirmed)
        print(f"{name}: {seeds} seeds, {len(fabric.nodes)} nodes, 8 racks")
        for kind, words in (("pcie", "NIC"), ("link", "cable"), ("leaf", "leaf"), ("gpu", "slow GPU")):
            print(f"  {words:9s} named in {100 * named[kind] / seeds:6.1f} % of sweeps")
        for words, count in (("with four faults", wrong), ("without faults", healthy_wrong)):
            print(f"  false alarms {words}: {count} of {seeds} sweeps (below {100 * upper(count, seeds):.2f} %)")
        spread = ", ".join(f"{count} after round {number}" for number, count in sorted(rounds.items()))
        print(f"  {sum(runs) / seeds:.0f} runs on average, {max(runs)} at most; ended: {spread}")
        print(f"  ({time.monotonic() - began:.0f} s)", flush=True)
    for name, noise in NOISES:
        for nodes in (16, 32):
            two_racks(nodes, noise, name, seeds)


def two_racks(nodes: int, noise: Noise, name: str, seeds: int) -> None:
    fabric = fabric_of(nodes, 2)
    tried: Counter[str] = Counter()
    named: Counter[str] = Counter()
    wrong = healthy_wrong = runs = 0
    for seed in range(seeds):
        random = Random(20_000_000 + seed)
        planted = plant(fabric, random)
        planted[Part("between", "rack1 and rack2", random.randrange(fabric.rails))] = random.uniform(0.5, 0.75)
        part = list(planted)[seed % len(planted)]
        made = sweep(fabric, {part: planted[part]}, seed, noise)
        tried[part.kind] += 1
        named[part.kind] += found(made.judgement, part)
        wrong += bool(false_alarms(made.judgement, {part: planted[part]}))
        runs += made.runs
        healthy_wrong += bool(sweep(fabric, {}, seed, noise).judgement.confirmed)
    print(f"two racks of {nodes // 2} nodes, one fault, {name}: {seeds} seeds, {runs / seeds:.0f} runs on average")
    print("  named: " + ", ".join(f"{kind} {named[kind]} of {tried[kind]}" for kind in tried))
    print(f"  false alarms: {wrong} with the fault, {healthy_wrong} without (below "
          f"{100 * upper(wrong, seeds):.2f} % and {100 * upper(healthy_wrong, seeds):.2f} %)", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
