"""What was there of each kind of evidence, in a few words: a verdict rests on what it saw."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence, Set
from typing import TYPE_CHECKING

from topodiag.model.case import Case
from topodiag.model.ras import answered
from topodiag.model.result import Result
from topodiag.verdict.scene import Scene
from topodiag.words.fold import plural

if TYPE_CHECKING:
    from topodiag.model.job import Job


def joined(result: Result, case: Case) -> tuple[str, ...]:
    """`log 16/16 ranks`, `captures 1/2 nodes`, `nccl-tests none`, `flight recorder 8 ranks`, ..."""
    texts = []
    scene = Scene(case)
    hosts = scene.hosts(host for job in case.jobs for host in job.hosts)
    seen = sum(len(job.ranks) for job in case.jobs)
    world = sum(max(job.world_size, len(job.ranks)) for job in case.jobs)
    logged = sum(map(_is_logged, case.jobs))
    read = f"log {seen}/{world} ranks" if world else f"log of {plural(logged, 'job')}, no rank named"
    texts.append(read if logged else "log none")
    texts += _captures(scene.captured, hosts)
    programs = Counter(benchmark.run.program for benchmark in result.benchmarks)
    texts += [f"{name} {plural(number, 'run')}" for name, number in programs.items()] or ["nccl-tests none"]
    flight = len({record.rank for job in case.jobs for record in job.flight})
    texts += [f"flight recorder {plural(flight, 'rank')}"] if flight else []
    texts += _asked(case.jobs)
    steps = sum(len(step.steps) for job in case.jobs for step in job.steps)
    texts += [f"training log {plural(steps, 'line')} of steps"] if steps else []
    texts += [f"hostfiles {len(case.layouts)}"] if case.layouts else []
    texts += [f"cluster {plural(len(case.clusters), 'file')}"] if case.clusters else []
    return tuple(texts)


def _is_logged(job: Job) -> bool:
    return bool(job.processes or job.ranks) or not (job.steps or job.ras)


def _asked(jobs: Sequence[Job]) -> list[str]:
    """How many ranks answered RAS."""
    asked = [counted for job in jobs if (counted := answered(job.ras)) is not None]
    return [f"RAS {sum(seen for seen, _ in asked)}/{sum(total for _, total in asked)} ranks"] if asked else []


def _captures(captured: Set[str], hosts: Set[str]) -> list[str]:
    """How many nodes of the jobs have a capture; without a job, how many nodes."""
    if not hosts:
        return [f"captures {plural(len(captured), 'node')}" if captured else "captures none"]
    beside = captured - hosts
    texts = [f"captures {len(captured & hosts)}/{len(hosts)} nodes"]
    return texts + ([f"{plural(len(beside), 'capture')} of no node of a job"] if beside else [])
