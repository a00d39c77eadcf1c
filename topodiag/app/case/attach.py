"""Texts that say more of a job than its log (RAS, stacks, traces): how they are read, and set at their job."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Generic, TypeVar

from topodiag.evidence.intake.pieces import Intake, Piece
from topodiag.evidence.intake.reading import read_piece
from topodiag.evidence.interface import Blob
from topodiag.evidence.kinds import Kind
from topodiag.evidence.live import diagnostics as nccl_diagnostics
from topodiag.evidence.live import stacks
from topodiag.lazy import dataclass
from topodiag.model.connections import no_connections
from topodiag.model.diagnostics import Diagnosis
from topodiag.model.errors import InputError
from topodiag.model.finding import Input
from topodiag.model.job import Job
from topodiag.model.provenance import NotObserved
from topodiag.model.stacks import Stack
from topodiag.model.step_waits import StepWaits

_T = TypeVar("_T")


def is_only(piece: Piece, kind: Kind) -> bool:
    """Whether a piece is of this kind and holds no log."""
    return kind in piece.kinds and not piece.is_any((Kind.NCCL_LOG, Kind.JOB_OUTPUT))


@dataclass(frozen=True, slots=True)
class Readings(Generic[_T]):
    """What was found in all pieces, by the name of the piece; the files it came from, and what could not be read."""

    by_piece: tuple[tuple[str, tuple[_T, ...]], ...] = ()
    inputs: tuple[Input, ...] = ()
    gaps: tuple[NotObserved, ...] = ()

    @property
    def all(self) -> tuple[_T, ...]:
        return tuple(value for _, values in self.by_piece for value in values)


def read_texts(
    intake: Intake, kind: Kind, read: Callable[[Blob], Sequence[_T]], *, most: int, part: str
) -> Readings[_T]:
    """What `read` finds in each piece of a kind. One bad file, and one of more than `most` bytes, costs itself; `part`
    says in words what is not observed then."""
    pairs: list[tuple[str, tuple[_T, ...]]] = []
    inputs: list[Input] = []
    gaps: list[NotObserved] = []
    for piece in intake.of(kind):
        whole_file = is_only(piece, kind)
        if not whole_file and piece.size < 0 and piece.held is None:
            continue  # standard input that goes on is read once, by the reader of logs
        try:
            blob = read_piece(intake, piece, most)
        except InputError as error:
            gaps.append(NotObserved(part, str(error)))
            continue
        values = tuple(read(blob))
        pairs.append((piece.name, values))
        if whole_file:
            digest = hashlib.sha256(blob.data).hexdigest()
            inputs.append(Input(piece.name, kind.value, digest, blob.data.count(b"\n"), len(values)))
    return Readings(tuple(pairs), tuple(inputs), tuple(gaps))


def attached(jobs: Sequence[Job], at: int, **held: object) -> tuple[Job, ...]:
    """The jobs, with these fields of the job of this number."""
    return (*jobs[:at], replace(jobs[at], **held), *jobs[at + 1 :])  # type: ignore[arg-type]


def job_of(name: str, size: int = -1, hosts: Sequence[str] = (), **held: Any) -> Job:
    """A job of which there is nothing but this."""
    return Job(name, size, (), (), (), no_connections(), tuple(hosts), **held)


def hashes_of(job: Job) -> set[int]:
    """The hashes of its communicators."""
    return {comm.comm_id for comm in job.communicators if comm.comm_id}


def last_with(jobs: Sequence[Job], is_one: Callable[[Job], bool]) -> int:
    """The number of the last job that is one; -1 for none: what is said later is of the run that is looked into."""
    return next((at for at in reversed(range(len(jobs))) if is_one(jobs[at])), -1)


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
