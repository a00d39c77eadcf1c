"""Texts that say more of a job than its log (RAS, stacks, traces): how they are read, and set at their job."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence, Set
from dataclasses import replace
from typing import Any, Generic, TypeVar

from topodiag.evidence.intake.pieces import Intake, Piece
from topodiag.evidence.intake.reading import read_piece
from topodiag.evidence.interface import Blob
from topodiag.evidence.kinds import Kind
from topodiag.lazy import dataclass
from topodiag.model.connections import no_connections
from topodiag.model.diagnostics import Diagnosis
from topodiag.model.errors import InputError
from topodiag.model.finding import Input
from topodiag.model.job import Job
from topodiag.model.provenance import NotObserved
from topodiag.model.stacks import Stack
from topodiag.model.step_waits import StepWaits
from topodiag.words.fold import grouped

_T = TypeVar("_T")


def is_only(piece: Piece, kind: Kind) -> bool:
    """Whether a piece is of this kind and holds no log."""
    return kind in piece.kinds and not piece.is_any((Kind.NCCL_LOG, Kind.JOB_OUTPUT))


@dataclass(frozen=True, slots=True)
class Readings(Generic[_T]):
    """What was found in all pieces, the files it came from, and what could not be read."""

    values: tuple[_T, ...] = ()
    inputs: tuple[Input, ...] = ()
    gaps: tuple[NotObserved, ...] = ()


def read_texts(
    intake: Intake, kind: Kind, read: Callable[[Blob], Sequence[_T]], *, most: int, part: str
) -> Readings[_T]:
    """What `read` finds in each piece of a kind. One bad file, and one of more than `most` bytes, costs itself; `part`
    says in words what is not observed then."""
    values: list[_T] = []
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
        own = read(blob)
        values += own
        if whole_file:
            digest = hashlib.sha256(blob.data).hexdigest()
            inputs.append(Input(piece.name, kind.value, digest, blob.data.count(b"\n"), len(own)))
    return Readings(tuple(values), tuple(inputs), tuple(gaps))


def job_of(name: str, size: int = -1, hosts: Sequence[str] = (), **held: Any) -> Job:
    """A job of which there is nothing but this."""
    return Job(name, size, (), (), (), no_connections(), tuple(hosts), **held)


def attached(
    jobs: Sequence[Job], at: int, name: str, size: int = -1, hosts: Sequence[str] = (), **held: Any
) -> tuple[Job, ...]:
    """The jobs, with these fields of the job of this number; where that is -1, as a job of their own with this name."""
    if at < 0:
        return (*jobs, job_of(name, size, hosts, **held))
    return (*jobs[:at], replace(jobs[at], **held), *jobs[at + 1 :])


def last_with(jobs: Sequence[Job], is_one: Callable[[Job], bool]) -> int:
    """The number of the last job that is one; -1 for none: what is said later is of the run that is looked into."""
    return next((at for at in reversed(range(len(jobs))) if is_one(jobs[at])), -1)


def owner_of(jobs: Sequence[Job], hashes: Set[int], pids: Set[int] | None = None) -> int:
    """The number of the last job with a communicator of these hashes, else of the last with all of these processes, by
    its log or by RAS; -1 for none."""
    at = last_with(jobs, lambda job: any(comm.comm_id in hashes for comm in job.communicators if comm.comm_id))
    if at >= 0 or pids is None:
        return at
    return last_with(jobs, lambda job: pids <= {process.pid for process in job.processes} or pids <= _pids_of_ras(job))


def _pids_of_ras(job: Job) -> set[int]:
    members = (member for answer in job.ras for comm in answer.communicators for member in comm.members)
    return {member.process.pid for member in members if member.process is not None}


def _owner_or_last(jobs: Sequence[Job], hashes: Set[int]) -> int:
    at = owner_of(jobs, hashes)
    return at if at >= 0 else len(jobs) - 1


def with_stacks(jobs: Sequence[Job], dumped: Sequence[Stack]) -> tuple[Job, ...]:
    """The stacks at the last job, since dumps are of the run that hangs, or as a job of their own."""
    return attached(jobs, len(jobs) - 1, "stack dumps", stacks=tuple(dumped)) if dumped else tuple(jobs)


def with_step_waits(jobs: Sequence[Job], waits: Sequence[StepWaits]) -> tuple[Job, ...]:
    """The waits at the last job, which a trace of its communicators moves to theirs, or as a job of their own."""
    if not waits:
        return tuple(jobs)
    at, size = _owner_or_last(jobs, {wait.comm for wait in waits}), max(wait.rank for wait in waits) + 1
    return attached(jobs, at, "profiler traces", size, step_waits=tuple(waits))


def with_diagnostics(jobs: Sequence[Job], lines: Sequence[Diagnosis]) -> tuple[Job, ...]:
    """The lines at the jobs whose communicators they name, else at the last job, or as a job of their own."""
    owners = {comm: _owner_or_last(jobs, {comm}) for comm in {line.comm for line in lines}}
    updated = tuple(jobs)
    for at, own in grouped((owners[line.comm], line) for line in lines).items():
        size = max(line.size for line in own)
        updated = attached(updated, at, "NCCL diagnostics", size, diagnostics=tuple(own))
    return updated
