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
from topodiag.lazy import dataclass
from topodiag.model.connections import no_connections
from topodiag.model.errors import InputError
from topodiag.model.finding import Input
from topodiag.model.job import Job
from topodiag.model.provenance import NotObserved

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
