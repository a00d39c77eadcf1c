"""A fabric that is not there: bandwidths of a plan's runs under planted faults, noise and runs that are slow by chance.

What a plan finds in it says how well plans are made and judged. It says nothing of NCCL: a run has the bandwidth of its
narrowest part.
"""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

from topodiag.lazy import dataclass
from topodiag.sweep.further import next_round
from topodiag.sweep.judge import judge, places
from topodiag.sweep.parts import crosses, parts_of
from topodiag.sweep.plan import first_round
from topodiag.sweep.values import Fabric, Part, State, SweepJudgement, SweepPlan, SweepResult

NORMAL_GBS = {"intra": 480.0, "gpus": 360.0, "pairs": 45.0, "ring": 45.0, "rails": 48.0, "racks": 40.0, "fabric": 49.0,
              "bisection": 38.0, "settings": 300.0}  # fmt: skip
"""Bus bandwidth of a healthy run of each kind on H100 nodes with eight 400 Gb/s NICs, roughly: only ratios matter."""
ACROSS = 0.95
"""A healthy pair across racks, over one in a rack: two hops more."""


@dataclass(frozen=True, slots=True)
class Noise:
    """`sigma` is the relative scatter of a run. `chance` of all runs are slow by chance (other traffic, a cold clock),
    by a factor that is uniform over `slow`; another attempt knows nothing of it."""

    sigma: float = 0.02
    chance: float = 0.01
    slow: tuple[float, float] = (0.5, 0.9)


def measure(plan: SweepPlan, faults: Mapping[Part, float], random: Random, noise: Noise) -> list[SweepResult]:
    """One result a run. `faults` gives the share of its bandwidth that each bad part still has."""
    made: list[SweepResult] = []
    for run in plan.runs:
        parts = parts_of(run, plan.fabric)
        gbs = NORMAL_GBS[run.kind] * min((share for part, share in faults.items() if part in parts), default=1.0)
        if crosses(run, plan.fabric):
            gbs *= ACROSS
        gbs *= max(random.gauss(1.0, noise.sigma), 0.1)
        if random.random() < noise.chance:
            gbs *= random.uniform(*noise.slow)
        made.append(SweepResult(run.id, plan.round, State.OK, gbs, run.max_bytes))
    return made


@dataclass(frozen=True, slots=True)
class Sweep:
    """A sweep that was simulated: its rounds and what was concluded after the last."""

    plans: tuple[SweepPlan, ...]
    judgement: SweepJudgement

    @property
    def runs(self) -> int:
        return sum(len(plan.runs) for plan in self.plans)


QUIET = Noise()


def sweep(fabric: Fabric, faults: Mapping[Part, float], seed: int, noise: Noise = QUIET, rounds: int = 3) -> Sweep:
    """Rounds until nothing is suspect any more, at most `rounds`."""
    random = Random(seed)
    plan: SweepPlan | None = first_round(fabric)
    plans: list[SweepPlan] = []
    results: list[SweepResult] = []
    judged = SweepJudgement()
    while plan is not None and len(plans) < rounds:
        plans.append(plan)
        results += measure(plan, faults, random, noise)
        judged = judge(plans, results)
        plan = next_round(plans, judged)
    return Sweep(tuple(plans), judged)


def fabric_of(nodes: int = 64, racks: int = 8) -> Fabric:
    """Nodes of eight GPUs and eight rails in equal racks."""
    names = tuple(f"node{number:03d}" for number in range(1, nodes + 1))
    size = -(-nodes // racks)
    rack = {name: f"rack{number // size + 1}" for number, name in enumerate(names)}
    return Fabric(names, nics=tuple(f"mlx5_{rail}" for rail in range(8)), racks=rack)


def plant(fabric: Fabric, random: Random) -> dict[Part, float]:
    """One NIC (its way to the GPU at half width), one cable, one leaf and one slow GPU, each anywhere, except that NIC
    and cable are no ports of that leaf, which would hide them, and not of one node."""
    leaf = Part("leaf", random.choice(sorted(set(fabric.racks.values()))), random.randrange(fabric.rails))
    ports: list[tuple[str, int]] = []
    while len(ports) < 2:
        node, rail = random.choice(fabric.nodes), random.randrange(fabric.rails)
        hidden = fabric.racks[node] == leaf.place and rail == leaf.rail
        if not hidden and node not in {other for other, _ in ports}:
            ports.append((node, rail))
    return {
        Part("pcie", *ports[0]): 0.5,
        Part("link", *ports[1]): random.uniform(0.3, 0.7),
        leaf: random.uniform(0.5, 0.75),
        Part("gpu", random.choice(fabric.nodes), random.randrange(fabric.gpus)): random.uniform(0.6, 0.75),
    }


def found(judged: SweepJudgement, part: Part) -> bool:
    """Whether it is named, confirmed and told apart from every other place."""
    return any(places(fault.parts) == places([part]) for fault in judged.confirmed)


def false_alarms(judged: SweepJudgement, faults: Mapping[Part, float]) -> int:
    """Confirmed faults that name no planted part."""
    planted = places(faults)
    return sum(not (places(fault.parts) & planted) for fault in judged.confirmed)
