"""Texts that stand beside the logs of a job: what NCCL's RAS answered, stacks that a profiler dumped."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from topodiag.evidence.intake.pieces import Intake, Piece
from topodiag.evidence.intake.reading import read_piece
from topodiag.evidence.interface import Blob
from topodiag.evidence.kinds import Kind
from topodiag.lazy import dataclass
from topodiag.model.errors import InputError
from topodiag.model.finding import Input
from topodiag.model.provenance import NotObserved

_T = TypeVar("_T")


def is_alone(piece: Piece, kind: Kind) -> bool:
    """Whether a piece is of this kind and holds no log."""
    return kind in piece.kinds and not piece.is_any((Kind.NCCL_LOG, Kind.JOB_OUTPUT))


@dataclass(frozen=True, slots=True)
class Readings(Generic[_T]):
    """What was found in all pieces, by the name of the piece; the files it came from, and what could not be read."""

    found: tuple[tuple[str, tuple[_T, ...]], ...] = ()
    inputs: tuple[Input, ...] = ()
    gaps: tuple[NotObserved, ...] = ()

    @property
    def all(self) -> tuple[_T, ...]:
        return tuple(each for _, several in self.found for each in several)


def read_beside(
    intake: Intake, kind: Kind, read: Callable[[Blob], Sequence[_T]], *, most: int, part: str
) -> Readings[_T]:
    """What `read` finds in each piece of a kind. One bad file, and
    one of more than `most` bytes, costs itself; `part` says in words what is not observed then."""
    pairs: list[tuple[str, tuple[_T, ...]]] = []
    inputs: list[Input] = []
    gaps: list[NotObserved] = []
    for piece in intake.of(kind):
        whole_file = is_alone(piece, kind)
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
