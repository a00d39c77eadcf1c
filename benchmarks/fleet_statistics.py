"""Prints how many odd nodes `topodiag fleet compare` finds in simulated fleets, and how many it names falsely.

    python benchmarks/fleet_statistics.py [--fleets N] [--seed N]

Fleets of 3 to 5,000 nodes (the logarithm is uniform), of which 0 to 5 % are odd: each in one fact, number or counter.
Beside them there is what a healthy fleet shows: roll-outs by rack, at random, or just begun in one rack; nodes that
show a part of the facts; numbers with noise, some of it with heavy tails; counters that rise at different rates. Found
is an odd node that an outlier names, false a healthy one. Targets: 99 % found, 1 false node in 1,000.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from topodiag.fleet.compare import compared  # noqa: E402
from topodiag.fleet.digest import Digest, Facts  # noqa: E402
from topodiag.model.fleet import FactKind, NodeFact  # noqa: E402

TARGET_FOUND, TARGET_FALSE = 0.99, 1 / 1000
SMALLEST, LARGEST = 3, 5000
_RACKS = (8, 16, 18, 32)
Floats = NDArray[np.float64]
Values = dict[tuple[str, str, str], str]

_HARD: Values = {
    **{("pci", f"gpu{at}", "width"): "16" for at in range(8)},
    **{("nvlink", f"gpu{at}", "links"): "18 active" for at in range(8)},
    **{("nic", f"mlx5_{at}/1", "rate"): "400" for at in range(8)},
    **{("pairing", f"gpu{at}", "nearest network cards"): f"mlx5_{at} over PIX" for at in range(8)},
    ("acs", "0000:16:00.0", "redirects peers"): "no",
}
_SOFT: Values = {
    ("driver", "", "NVIDIA driver"): "570.86.15",
    ("os", "", "kernel"): "5.15.0-1066",
    ("kernel command line", "", "iommu"): "pt",
    ("limits", "", "locked memory"): "-1",
    **{("firmware", f"mlx5_{at}", "firmware"): "28.41.1000" for at in range(8)},
    **{("mtu", f"mlx5_{at}/1", "MTU"): "4096" for at in range(8)},
}
_OTHER = ("other", "another", "a third")
_NUMBERS = {"bandwidth": ("GB/s", 370.0, 0.01), "latency": ("us", 20.0, 0.04), "memory": ("bytes", 1e12, 0.0002)}


@dataclass(frozen=True)
class Simulated:
    """One fleet and the hosts that are odd in it."""

    nodes: list[Digest]
    odd: frozenset[str]


@dataclass
class Score:
    """What came of some fleets."""

    fleets: int = 0
    nodes: int = 0
    odd: int = 0
    found: int = 0
    false: int = 0

    def __str__(self) -> str:
        share = self.found / self.odd if self.odd else 1.0
        return (f"{self.fleets:5} fleets  {self.nodes:8,} nodes  {self.odd:6,} odd  found {share:7.2%}"
                f"  false {self.false} ({1000 * self.false / max(self.nodes, 1):.3f} in 1,000)")  # fmt: skip


def simulate(dice: np.random.Generator, most: int = LARGEST) -> Simulated:
    """A fleet with its odd nodes."""
    count = int(np.exp(dice.uniform(np.log(SMALLEST), np.log(most + 1))))
    values = [dict(_HARD | _SOFT) for _ in range(count)]
    rack = int(dice.choice(_RACKS))
    if dice.random() < 0.5:
        _roll_out(values, rack, dice)
    hours = dice.uniform(50, 2000, count)
    load = _loads(count, dice)
    drawn = _Drawn(values, _numbers(count, dice), _counters(hours, load, dice), hours, load)
    wanted = int(count * dice.uniform(0, 0.05)) or int(count >= 5 and dice.random() < 0.3)
    odd = dice.choice(count, wanted, replace=False).tolist()
    for at in odd:
        drawn.spoil(at, dice)
    silent = set(np.flatnonzero(dice.random(count) < 0.01).tolist()) - set(odd)
    nodes = [drawn.digest(at, rack, at in silent) for at in range(count)]
    return Simulated(nodes, frozenset(nodes[at].host for at in odd))


def _roll_out(values: list[Values], rack: int, dice: np.random.Generator) -> None:
    """One to three facts of software on some nodes: whole racks, a single rack, or any."""
    count, racks = len(values), -(-len(values) // rack)
    keys = [list(_SOFT)[at] for at in dice.choice(len(_SOFT), int(dice.integers(1, 4)), replace=False)]
    kind = dice.choice(["racks", "begun", "random"])
    if kind == "begun" and racks >= 8:
        chosen = range(rack, 2 * rack)
    elif kind == "racks" and racks >= 4:
        some = set(dice.choice(racks, int(racks * dice.uniform(0.25, 0.75)), replace=False).tolist())
        chosen = [at for at in range(count) if at // rack in some]
    elif count >= 10:
        chosen = dice.choice(count, int(count * dice.uniform(0.3, 0.7)), replace=False).tolist()
    else:
        return
    for at in chosen:
        for key in keys:
            values[at][key] = "rolled out"


def _numbers(count: int, dice: np.random.Generator) -> dict[str, Floats]:
    made = {}
    for name, (_, usual, noise) in _NUMBERS.items():
        heavy = dice.random() < 0.3
        drawn = dice.standard_t(5, count) if heavy else dice.standard_normal(count)
        made[name] = usual * np.exp(noise * drawn)
    return made


def _loads(count: int, dice: np.random.Generator) -> Floats:
    """TB an hour of a port by node; on half of the fleets a few nodes ran the large job."""
    busy = dice.random(count) < 0.05 * (dice.random() < 0.5)
    return np.exp(0.7 * dice.standard_normal(count)) * np.where(busy, 40.0, 1.0)


def _counters(hours: Floats, load: Floats, dice: np.random.Generator) -> Floats:
    """Errors of a port in its time up: none on half of the fleets, else at rates that differ by node, by the hour or by
    what was carried."""
    if dice.random() < 0.5:
        return np.zeros(len(hours))
    rates = dice.gamma(1.5, 0.2, len(hours)) * (load if dice.random() < 0.5 else 1.0)
    return dice.poisson(rates * hours).astype(float)


@dataclass
class _Drawn:
    """What was drawn for the nodes of a fleet, by number."""

    values: list[Values]
    numbers: dict[str, Floats]
    counters: Floats
    hours: Floats
    load: Floats

    def spoil(self, at: int, dice: np.random.Generator) -> None:
        """One fault of one node."""
        kind = dice.choice(["fact", "permuted", "number", "counter"], p=[0.7, 0.1, 0.1, 0.1])
        values = self.values[at]
        if kind == "fact" or (len(self.values) < 10 and kind in {"number", "counter"}):
            values[list(values)[int(dice.integers(len(values)))]] = str(dice.choice(_OTHER))
        elif kind == "permuted":
            one, other = (("pairing", f"gpu{gpu}", "nearest network cards") for gpu in dice.choice(8, 2, replace=False))
            values[one], values[other] = values[other], values[one]
        elif kind == "number":
            name = str(dice.choice(list(self.numbers)))
            self.numbers[name][at] *= 1 + dice.uniform(0.8, 2) if name == "latency" else 1 - dice.uniform(0.2, 0.5)
        else:
            self.counters[at] = (self.hours[at] * 50 + 5000) * max(1.0, self.load[at])

    def digest(self, at: int, rack: int, silent: bool) -> Digest:
        by_family: dict[str, list[tuple[tuple[str, str, str], str]]] = {}
        for (family, part, key), value in self.values[at].items():
            if not (silent and family in {"firmware", "limits"}):
                by_family.setdefault(family, []).append(((part, key, ""), value))
        port, errors = ("mlx5_0/1", "symbol_error", "errors"), float(self.counters[at])
        return Digest(
            host=f"n{at:05d}",
            path="",
            time="",
            machine=frozenset(),
            traits=(("product", "DGX H100"), ("GPU", "H100"), ("role", "GPU node"), ("captured in", "")),
            places=(("rack", f"r{at // rack}"),),
            facts=tuple(Facts(family, tuple(own)) for family, own in by_family.items()),
            numbers=tuple(
                NodeFact("bench", "", name, float(own[at]), FactKind.NUMBER, _NUMBERS[name][0])
                for name, own in self.numbers.items()
            ),
            counters=(NodeFact("nic", *port[:2], errors, FactKind.COUNTER, port[2]),) if errors else (),
            counted=Facts("counters", ((port, "nic"),)),
            carried=(("mlx5_0/1", float(self.load[at] * self.hours[at] * 1e12)),),
            uptime_s=float(self.hours[at]) * 3600,
            findings=(),
            unexplained=(),
        )


def judge(fleet: Simulated, score: Score) -> set[str]:
    """Compare a fleet and count; the hosts that are wrong."""
    named = {host for cohort in compared(fleet.nodes)[0] for each in cohort.outliers for host in each.nodes}
    score.fleets += 1
    score.nodes += len(fleet.nodes)
    score.odd += len(fleet.odd)
    score.found += len(named & fleet.odd)
    score.false += len(named - fleet.odd)
    return named ^ fleet.odd


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--fleets", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=18)
    asked = parser.parse_args()
    dice = np.random.default_rng(asked.seed)
    began = time.process_time()
    by_size = {limit: Score() for limit in (9, 99, 999, LARGEST)}
    for _ in range(asked.fleets):
        fleet = simulate(dice)
        judge(fleet, next(score for limit, score in by_size.items() if len(fleet.nodes) <= limit))
    for limit, score in by_size.items():
        print(f"up to {limit:5} nodes: {score}")
    totals = [sum(getattr(each, name) for each in by_size.values()) for name in Score.__dataclass_fields__]
    whole = Score(*totals)
    print(f"all              : {whole}   targets {TARGET_FOUND:.0%}, {1000 * TARGET_FALSE:g} in 1,000")
    print(f"CPU {time.process_time() - began:.0f} s")
    good = whole.found >= TARGET_FOUND * whole.odd and whole.false <= TARGET_FALSE * whole.nodes
    raise SystemExit(0 if good else 1)


if __name__ == "__main__":
    main()
