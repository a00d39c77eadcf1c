"""What stands beside the log of a job: stacks, profiler traces and lines of NCCL's diagnostics, each set at its job."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from topodiag.app.case.attach import Readings, attached, hashes_of, job_of, last_with, read_texts
from topodiag.evidence.intake.pieces import Intake
from topodiag.evidence.kinds import Kind
from topodiag.evidence.live import diagnostics as nccl_diagnostics
from topodiag.evidence.live import stacks
from topodiag.model.diagnostics import Diagnosis
from topodiag.model.job import Job
from topodiag.model.stacks import Stack
from topodiag.model.step_waits import StepWaits


def stack_dumps(intake: Intake) -> Readings[Stack]:
    """All stacks among the evidence."""
    part, most = "part of the stack dumps", stacks.MAX_BYTES
    return read_texts(intake, Kind.STACKS, lambda blob: stacks.read_stacks(blob.text, blob.name), most=most, part=part)


def with_stacks(jobs: Sequence[Job], dumped: Sequence[Stack]) -> tuple[Job, ...]:
    """The stacks at the last job, since dumps are of the run that hangs, or as a job of their own."""
    if not (jobs and dumped):
        return (job_of("stack dumps", stacks=tuple(dumped)),) if dumped else tuple(jobs)
    return attached(jobs, len(jobs) - 1, stacks=tuple(dumped))


def step_waits(intake: Intake) -> Readings[StepWaits]:
    """The waits of all ranks among the evidence."""
    part, most = "part of the profiler's traces", nccl_diagnostics.TRACE_MAX_BYTES
    return read_texts(
        intake, Kind.TRACE, lambda blob: nccl_diagnostics.read_trace(blob.text, blob.name), most=most, part=part
    )


def with_step_waits(jobs: Sequence[Job], waits: Sequence[StepWaits]) -> tuple[Job, ...]:
    """The waits at the last job, which a trace of its communicators moves to theirs, or as a job of their own."""
    if not (jobs and waits):
        size = max((wait.rank for wait in waits), default=-1) + 1
        return (job_of("profiler traces", size, step_waits=tuple(waits)),) if waits else tuple(jobs)
    hashes = {wait.comm for wait in waits}
    at = last_with(jobs, lambda job: bool(hashes & hashes_of(job)))
    return attached(jobs, at if at >= 0 else len(jobs) - 1, step_waits=tuple(waits))


def diagnostics(intake: Intake) -> Readings[Diagnosis]:
    """All lines of NCCL's own diagnostics among the evidence."""
    part, most = "part of NCCL's diagnostics", nccl_diagnostics.MAX_BYTES
    return read_texts(
        intake, Kind.DIAGNOSTICS, lambda blob: nccl_diagnostics.read_diagnostics(blob.text, blob.name), most=most,
        part=part,
    )  # fmt: skip


def with_diagnostics(jobs: Sequence[Job], lines: Sequence[Diagnosis]) -> tuple[Job, ...]:
    """The lines at the jobs whose communicators they name, else at the last job, or as a job of their own."""
    if not (jobs and lines):
        size = max((line.size for line in lines), default=-1)
        return (job_of("NCCL diagnostics", size, diagnostics=tuple(lines)),) if lines else tuple(jobs)
    hashes, placed = [hashes_of(job) for job in jobs], list(jobs)
    for line in lines:
        at = next((n for n in reversed(range(len(jobs))) if line.comm in hashes[n]), len(jobs) - 1)
        placed[at] = replace(placed[at], diagnostics=(*placed[at].diagnostics, line))
    return tuple(placed)
