"""Traces of NCCL's profiler among the evidence, set beside the job that they are of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from topodiag.app.beside import Beside, read_beside
from topodiag.evidence.intake.pieces import Intake
from topodiag.evidence.kinds import Kind
from topodiag.evidence.live.diagnostics import TRACE_MAX_BYTES as MAX_BYTES
from topodiag.evidence.live.diagnostics import read_trace
from topodiag.model.connections import no_connections
from topodiag.model.job import Job
from topodiag.model.step_waits import StepWaits

ALONE = "profiler traces"
"""The name of a job of which there is nothing but traces."""
PART = "part of the profiler's traces"


def step_waits(intake: Intake) -> Beside[StepWaits]:
    """The waits of all ranks among the evidence."""
    return read_beside(intake, Kind.TRACE, lambda blob: read_trace(blob.text, blob.name), most=MAX_BYTES, part=PART)


def with_step_waits(jobs: Sequence[Job], waits: Sequence[StepWaits]) -> tuple[Job, ...]:
    """The waits at the last job, which a trace of its communicators moves to theirs, or as a job of their own."""
    if not waits:
        return tuple(jobs)
    if not jobs:
        size = max(each.rank for each in waits) + 1
        return (Job(ALONE, size, (), (), (), no_connections(), (), step_waits=tuple(waits)),)
    hashes = {each.comm for each in waits}
    known = [n for n, job in enumerate(jobs) if hashes & {comm.comm_id for comm in job.communicators if comm.comm_id}]
    at = known[-1] if known else len(jobs) - 1
    return (*jobs[:at], replace(jobs[at], step_waits=tuple(waits)), *jobs[at + 1 :])
