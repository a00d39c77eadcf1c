"""What stands beside the log of a job: stacks, profiler traces and lines of NCCL's diagnostics, each set at its job."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from topodiag.app.case.beside import Readings, read_beside
from topodiag.evidence.intake.pieces import Intake
from topodiag.evidence.kinds import Kind
from topodiag.evidence.live import diagnostics as nccl_diagnostics
from topodiag.evidence.live import stacks
from topodiag.model.connections import no_connections
from topodiag.model.diagnostics import Diagnosis
from topodiag.model.job import Job
from topodiag.model.stacks import Stack
from topodiag.model.step_waits import StepWaits


def stack_dumps(intake: Intake) -> Readings[Stack]:
    """All stacks among the evidence."""
    part, most = "part of the stack dumps", stacks.MAX_BYTES
    return read_beside(intake, Kind.STACKS, lambda blob: stacks.read_stacks(blob.text, blob.name), most=most, part=part)


def with_stacks(jobs: Sequence[Job], dumped: Sequence[Stack]) -> tuple[Job, ...]:
    """The stacks at the last job, since dumps are of the run that hangs, or as a job of their own."""
    if not (jobs and dumped):
        return _alone("stack dumps", -1, stacks=dumped) if dumped else tuple(jobs)
    return (*jobs[:-1], replace(jobs[-1], stacks=tuple(dumped)))


def step_waits(intake: Intake) -> Readings[StepWaits]:
    """The waits of all ranks among the evidence."""
    part, most = "part of the profiler's traces", nccl_diagnostics.TRACE_MAX_BYTES
    return read_beside(
        intake, Kind.TRACE, lambda blob: nccl_diagnostics.read_trace(blob.text, blob.name), most=most, part=part
    )


def with_step_waits(jobs: Sequence[Job], waits: Sequence[StepWaits]) -> tuple[Job, ...]:
    """The waits at the last job, which a trace of its communicators moves to theirs, or as a job of their own."""
    if not (jobs and waits):
        size = max((wait.rank for wait in waits), default=-1) + 1
        return _alone("profiler traces", size, step_waits=waits) if waits else tuple(jobs)
    hashes = {wait.comm for wait in waits}
    known = [number for number, job in enumerate(jobs) if hashes & _hashes(job)]
    at = known[-1] if known else len(jobs) - 1
    return (*jobs[:at], replace(jobs[at], step_waits=tuple(waits)), *jobs[at + 1 :])


def diagnostics(intake: Intake) -> Readings[Diagnosis]:
    """All lines of NCCL's own diagnostics among the evidence."""
    part, most = "part of NCCL's diagnostics", nccl_diagnostics.MAX_BYTES
    return read_beside(
        intake, Kind.DIAGNOSTICS, lambda blob: nccl_diagnostics.read_diagnostics(blob.text, blob.name), most=most,
        part=part,
    )  # fmt: skip


def with_diagnostics(jobs: Sequence[Job], lines: Sequence[Diagnosis]) -> tuple[Job, ...]:
    """The lines at the jobs whose communicators they name, else at the last job, or as a job of their own."""
    if not (jobs and lines):
        size = max((line.size for line in lines), default=-1)
        return _alone("NCCL diagnostics", size, diagnostics=lines) if lines else tuple(jobs)
    hashes, placed = [_hashes(job) for job in jobs], list(jobs)
    for line in lines:
        at = next((n for n in reversed(range(len(jobs))) if line.comm in hashes[n]), len(jobs) - 1)
        placed[at] = replace(placed[at], diagnostics=(*placed[at].diagnostics, line))
    return tuple(placed)


def _alone(name: str, size: int, **held: Sequence[Any]) -> tuple[Job]:
    """A job of which there is nothing but this."""
    whole: dict[str, Any] = {field: tuple(values) for field, values in held.items()}
    return (Job(name, size, (), (), (), no_connections(), (), **whole),)


def _hashes(job: Job) -> set[int]:
    return {comm.comm_id for comm in job.communicators if comm.comm_id}
