"""For JOB001: processes that each came up as the only rank of their job."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from topodiag.checks.interface import JobCheck
from topodiag.checks.shared.words import hosts_word
from topodiag.model.finding import Confidence, Cost, Finding, Severity
from topodiag.model.job import Job


def judge_alone(check: JobCheck[Any], job: Job, peers: Sequence[Job]) -> Iterator[Finding]:
    """The finding on a job of one rank: a note by itself, a warning where other processes are as alone."""
    if not is_alone(job):
        return
    others = [each for each in peers if is_alone(each)]
    hosts = sorted({host for each in (job, *others) for host in each.hosts})
    count = 1 + len(others)
    yield check.finding(
        Severity.WARNING if others else Severity.INFO,
        f"{count} processes on {hosts_word(hosts) or 'a node'} came up as the only rank of a job each"
        if others
        else f"a communicator of one rank on {hosts_word(hosts) or 'a node'}: it talks to nobody",
        observed="Channel 00 : 0" if job.world is None or job.world.inferred else "nranks 1",
        expected="one communicator of all processes that were started",
        fix=(
            "print rank and world size in each process: the launcher's variables (RANK, WORLD_SIZE, SLURM_*, OMPI_*) do"
            " not reach them, or nobody reads them",
            "nccl-tests without MPI=1 know no other process: build them with MPI, or use -g",
        ),
        nodes=hosts,
        cost=Cost(text="nothing is communicated: each process works by itself"),
        evidence=[each.world.origin for each in (job, *others) if each.world is not None],
        confidence=Confidence.MEDIUM if others else Confidence.LOW,
    )


def is_alone(job: Job) -> bool:
    """Whether the largest communicator of a job has one rank, and came up or printed its order."""
    world = job.world
    if world is None or world.nranks != 1:
        return False
    return world.rings.get(0) == (0,) if world.inferred else world.init_complete
