"""NCCL's Inspector beside the machine: a synthetic job of two nodes whose expectation is known, fast or slow alike.

python -m benchmarks.inspector_machine [--seeds N] [--first N]

Sixteen H100 with eight NICs of 400 Gb/s run one AllReduce of 1 GiB a step. The log and the capture of the machine are
fixtures, the records are simulated: NCCL's model expects EXPECTED GB/s. A job at more than half of it is healthy, one
at a third of it in each call is JOB015. One of its ranks that comes late is JOB008 and nothing else, and does not hide
that the machine is slow: the shortest kernels hold no waiting.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np

from benchmarks.inspector import CHECKS, Group, Shape, Times, hash_of, lines_of, take
from topodiag.app.logs import logs
from topodiag.app.scan import scan
from topodiag.checks.job.slow.inspector import BelowModel
from topodiag.evidence.live.inspector import InspectorReader
from topodiag.expect.inspector import beside_model
from topodiag.model.finding import Finding
from topodiag.model.job import Job
from topodiag.model.node import Node

LOG = Path(__file__).resolve().parents[1] / "fixtures" / "jobs" / "healthy"
MACHINE = "fixture:dgx-h100-healthy"
EXPECTED = 470.0
"""GB/s of bus bandwidth, about what `topodiag bench` expects there of an AllReduce of 1 GiB."""
BYTES = 1 << 30
SHAPE = Shape(hours=10, steps_an_hour=36)


@dataclass(frozen=True)
class Machine:
    """`share` of the expectation that each call reaches, and the microseconds by which a rank comes late."""

    share: float = 0.9
    late_rank: int = -1
    late_us: float = 2500.0


def cases(seed: int) -> dict[str, Machine]:
    """One of each, with a share and a rank of its own for each seed."""
    random = np.random.default_rng(seed)
    where = int(random.integers(16))
    return {
        "healthy": Machine(random.uniform(0.6, 1.05)),
        "slow machine": Machine(random.uniform(0.2, 0.4)),
        "late rank": Machine(random.uniform(0.6, 1.05), where),
        "slow machine and late rank": Machine(random.uniform(0.2, 0.4), where, 12_000.0),
    }


WANTED = {
    "healthy": [],
    "slow machine": ["JOB015"],
    "late rank": ["JOB008"],
    "slow machine and late rank": ["JOB008", "JOB015"],
}


@cache
def _logged() -> Job:
    """The job as its log shows it, with the machine's captures. The fixtures name the buses differently."""
    (job,) = logs([str(LOG)]).jobs
    (node,) = scan([MACHINE]).nodes
    buses = [gpu.bus_id or "" for gpu in node.gpus]
    machines: dict[str, Node] = {host: replace(node, host=host) for host in job.hosts}
    ranks = tuple(replace(rank, bus_id=buses[rank.cuda_dev]) for rank in job.ranks)
    return replace(job, machines=machines, ranks=ranks)


def times_of(machine: Machine, seed: int) -> Times:
    """Kernel times of the ranks in microseconds, a row a step."""
    random = np.random.default_rng(seed)
    ranks = len(_logged().ranks)
    usual = BYTES * 2 * (ranks - 1) / ranks / (EXPECTED * machine.share) / 1e3
    arrived = random.exponential(8.0, (SHAPE.steps, ranks))
    if machine.late_rank >= 0:
        arrived[:, machine.late_rank] += machine.late_us
    took = usual * random.lognormal(0.0, 0.03, (SHAPE.steps, 1))
    made: Times = arrived.max(1, keepdims=True) + took - arrived
    return made


def read(machine: Machine, seed: int) -> Job:
    """The job with its records beside the model."""
    job, times = _logged(), times_of(machine, seed)
    ranks = job.ranks
    world = next(each for each in job.communicators if each.nranks == len(ranks))
    group = Group(
        "dp", np.arange(len(ranks)), "AllReduce", BYTES, 0.0, len(job.hosts), 2 * (len(ranks) - 1) / len(ranks)
    )
    reader = InspectorReader()
    for rank in ranks:
        first = next(lines_of(group, times, rank.rank, SHAPE))
        here = f'"hostname":"{rank.host}","pid":{rank.pid}}},"coll_perf"'
        first = first.replace(f"{hash_of(group):#x}", f"{world.comm_id:#x}")
        first = first[: first.index('"hostname"')] + here + first.partition('"coll_perf"')[2]
        take(reader, first.encode(), f"{rank.host}-{rank.pid}.log", times[:, rank.rank], SHAPE)
    job = replace(job, inspection=reader.found())
    return replace(job, inspection=beside_model(job))


def findings(job: Job) -> list[Finding]:
    return [finding for check in (*CHECKS, BelowModel()) for finding in check.judge(job).findings]


def is_named(name: str, machine: Machine, found: Sequence[Finding]) -> bool:
    """Whether what is told is what is wrong, and nothing else."""
    late = next((each for each in found if each.id == "JOB008"), None)
    where = late is None or late.where.ranks == (machine.late_rank,)
    return sorted(each.id for each in found) == WANTED[name] and where


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=50)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    chosen = parser.parse_args()
    right: Counter[str] = Counter()
    for seed in range(chosen.first, chosen.first + chosen.seeds):
        for name, machine in cases(seed).items():
            found = findings(read(machine, seed))
            right[name] += is_named(name, machine, found)
            if not is_named(name, machine, found):
                print(f"  seed {seed}, {name}, {machine}: {[(each.id, each.message) for each in found]}")
    for name in WANTED:
        print(f"{name}: {right[name]} of {chosen.seeds} right")


if __name__ == "__main__":
    main()
