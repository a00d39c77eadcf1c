"""Proof of life in texts of jobs: what programs printed while they worked, counted by the catalogue of sentences over
whole files, and whether the stream of a log was cut."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from topodiag.evidence.intake.pieces import STDIN, Intake, Piece
from topodiag.evidence.intake.reading import blocks_of
from topodiag.evidence.kinds import Kind
from topodiag.evidence.nccl_log.input.streams import JSON_LINES, WRAPPED_LINES, Reading
from topodiag.evidence.signatures import engine
from topodiag.model.errors import InputError
from topodiag.model.job import Job
from topodiag.model.progress import Progress

OF_LINES = frozenset({Kind.NCCL_LOG, Kind.JOB_OUTPUT, Kind.STEPS, Kind.TEXT})
"""Kinds of texts in which lines of programs stand."""
_MENDED = (JSON_LINES, WRAPPED_LINES)
"""Layers that mend lines of NCCL's for their reader: other lines are whole as they stand."""


def progress_of(intake: Intake, pieces: Sequence[Piece]) -> tuple[Progress, ...]:
    """The progress of each of these texts. Standard input can be read once, and its reader has it; what cannot be
    opened is said by the reader of logs."""
    progress: list[Progress] = []
    for piece in pieces:
        packed = piece.held is not None or (piece.member and not piece.spooled)
        if piece.path != STDIN and not packed and piece.is_any(OF_LINES):
            progress += _read(intake, piece)[0]
    return tuple(progress)


def with_progress(jobs: Sequence[Job], intake: Intake) -> tuple[Job, ...]:
    """The jobs with the progress of their logs. Logs are looked through only where an init stands open, a process
    ended or NCCL's lines do not show what all ranks used: elsewhere nothing is asked of it. `intake` holds plain files
    (spool); standard input was read, and is left out."""
    asked = {file for job in jobs if _is_asked(job) for file in job.files}
    if not asked:
        return tuple(jobs)
    read = {
        piece.name: _read(intake, replace(piece, coding=tuple(layer for layer in piece.coding if layer not in _MENDED)))
        for piece in intake.pieces
        if piece.name in asked and piece.path != STDIN
    }
    nothing: tuple[tuple[Progress, ...], bool] = ((), False)
    return tuple(
        replace(
            job,
            progress=tuple(line for file in job.files for line in read.get(file, nothing)[0]),
            cut_logs=tuple(file for file in job.files if read.get(file, nothing)[1]),
        )
        for job in jobs
    )


def _is_asked(job: Job) -> bool:
    ended = any(event.kind == "ended" for event in job.events)
    in_part = len(job.ranks) < job.world_size or not len(job.connections.flows.via)
    return ended or in_part or any(communicator.unfinished for communicator in job.communicators)


def _read(intake: Intake, piece: Piece) -> tuple[tuple[Progress, ...], bool]:
    """The progress of a text, and whether it ends in the middle of a line; nothing of one that is gone."""
    last = [b"\n"]
    try:
        with blocks_of(intake, piece, Reading()) as blocks:
            progress = tuple(engine.progress(_remembering(blocks, last), piece.name))
    except InputError:
        return (), False
    return progress, last[0] != b"\n"


def _remembering(blocks: Iterable[bytes], last: list[bytes]) -> Iterator[bytes]:
    for block in blocks:
        if block:
            last[0] = block[-1:]
        yield block
