"""Stack dumps among the evidence, set beside the job that they are of."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace

from topodiag.evidence.intake.kinds import Kind
from topodiag.evidence.intake.pieces import Intake, Piece
from topodiag.evidence.intake.reading import read_piece
from topodiag.evidence.live.stacks import MAX_BYTES, read_stacks
from topodiag.model.connections import no_connections
from topodiag.model.errors import InputError
from topodiag.model.finding import Input
from topodiag.model.job import Job
from topodiag.model.provenance import NotObserved
from topodiag.model.stacks import Stack

ALONE = "stack dumps"
"""The name of a job of which there is nothing but stacks."""
PART = "part of the stack dumps"


def is_stacks_alone(piece: Piece) -> bool:
    """Whether a piece holds stack dumps and no log."""
    return Kind.STACKS in piece.kinds and not piece.is_any((Kind.NCCL_LOG, Kind.JOB_OUTPUT))


def stack_dumps(intake: Intake) -> tuple[tuple[Stack, ...], tuple[Input, ...], tuple[NotObserved, ...]]:
    """All stacks, the files they came from, and what could not be read. One bad file costs that file."""
    stacks: list[Stack] = []
    inputs: list[Input] = []
    gaps: list[NotObserved] = []
    for piece in intake.of(Kind.STACKS):
        if not is_stacks_alone(piece) and piece.size < 0:
            continue  # standard input is read once, by the reader of logs
        try:
            blob = read_piece(intake, piece, MAX_BYTES)
        except InputError as error:
            gaps.append(NotObserved(PART, str(error)))
            continue
        found = read_stacks(blob.text, piece.name)
        stacks += found
        if is_stacks_alone(piece):
            digest = hashlib.sha256(blob.data).hexdigest()
            inputs.append(Input(piece.name, Kind.STACKS.value, digest, blob.text.count("\n"), len(found)))
    return tuple(stacks), tuple(inputs), tuple(gaps)


def with_stacks(jobs: Sequence[Job], stacks: Sequence[Stack]) -> tuple[Job, ...]:
    """The stacks at the last job, since dumps are of the run that hangs, or as a job of their own."""
    if not stacks:
        return tuple(jobs)
    if jobs:
        return (*jobs[:-1], replace(jobs[-1], stacks=tuple(stacks)))
    return (Job(ALONE, -1, (), (), (), no_connections(), (), stacks=tuple(stacks)),)
