"""Jobs of one rank each in the same logs: what is left of one job whose launcher did not join its processes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from topodiag.model.job import Job


def noted(jobs: Sequence[Job]) -> tuple[Job, ...]:
    """The same jobs; the first of several that all have one rank says what that may mean.

    NCCL sees nothing wrong there: each process makes a communicator of its own, as a build of nccl-tests without MPI
    does under mpirun, and the bus bandwidth comes out as 0.
    """
    if len(jobs) < 2 or any(job.world_size != 1 for job in jobs):
        return tuple(jobs)
    note = (
        f"all {len(jobs)} jobs in these logs have one rank: if they were meant as one job, the launcher did not join"
        " its processes (nccl-tests built with MPI=1? srun --mpi=pmix? torchrun with the same --rdzv-endpoint?)"
    )
    return (replace(jobs[0], notes=(*jobs[0].notes, note)), *jobs[1:])
