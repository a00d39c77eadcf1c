"""Stack dumps among the evidence, set beside the job that they are of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from topodiag.app.beside import Beside, read_beside
from topodiag.evidence.intake.pieces import Intake
from topodiag.evidence.kinds import Kind
from topodiag.evidence.live.stacks import MAX_BYTES, read_stacks
from topodiag.model.connections import no_connections
from topodiag.model.job import Job
from topodiag.model.stacks import Stack

ALONE = "stack dumps"
"""The name of a job of which there is nothing but stacks."""
PART = "part of the stack dumps"


def stack_dumps(intake: Intake) -> Beside[Stack]:
    """All stacks among the evidence."""
    return read_beside(intake, Kind.STACKS, lambda blob: read_stacks(blob.text, blob.name), most=MAX_BYTES, part=PART)


def with_stacks(jobs: Sequence[Job], stacks: Sequence[Stack]) -> tuple[Job, ...]:
    """The stacks at the last job, since dumps are of the run that hangs, or as a job of their own."""
    if not stacks:
        return tuple(jobs)
    if jobs:
        return (*jobs[:-1], replace(jobs[-1], stacks=tuple(stacks)))
    return (Job(ALONE, -1, (), (), (), no_connections(), (), stacks=tuple(stacks)),)
