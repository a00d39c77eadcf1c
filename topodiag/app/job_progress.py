"""Proof of life in the logs of jobs: what their programs printed while they worked, and whether a stream was cut."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from topodiag.evidence.intake.pieces import STDIN, Intake, Piece
from topodiag.evidence.intake.reading import blocks_of
from topodiag.evidence.nccl_log.input.streams import CUT_HEADS, JSON_LINES, WRAPPED_LINES, Reading
from topodiag.evidence.signatures import engine
from topodiag.model.errors import InputError
from topodiag.model.job import Job
from topodiag.model.progress import Progress

_OF_LINES = (JSON_LINES, CUT_HEADS, WRAPPED_LINES)


@dataclass(slots=True)
class LogEnds:
    """By name of the log, the progress that it shows; the logs that end in the middle of a line."""

    progress: dict[str, tuple[Progress, ...]] = field(default_factory=dict)
    cut: set[str] = field(default_factory=set)


def with_progress(jobs: Sequence[Job], intake: Intake) -> tuple[Job, ...]:
    """The jobs with the progress of their logs. Logs are looked through only where an init stands open or a process
    ended: everywhere else nothing is asked of it. `intake` holds plain files (spool); standard input was read, and is
    left out."""
    asked = {file for job in jobs if _is_asked(job) for file in job.files}
    if not asked:
        return tuple(jobs)
    ends = _ends(intake, asked)
    return tuple(
        replace(
            job,
            progress=tuple(line for file in job.files for line in ends.progress.get(file, ())),
            cut_logs=tuple(file for file in job.files if file in ends.cut),
        )
        for job in jobs
    )


def _is_asked(job: Job) -> bool:
    ended = any(event.kind == "ended" for event in job.events)
    return ended or any(each.unfinished for each in job.communicators)


def _ends(intake: Intake, asked: set[str]) -> LogEnds:
    ends = LogEnds()
    for piece in intake.pieces:
        if piece.name not in asked or piece.path == STDIN:
            continue
        last = [b"\n"]
        try:
            with blocks_of(intake, _as_it_stands(piece), Reading()) as blocks:
                ends.progress[piece.name] = tuple(engine.progress(_remembering(blocks, last), piece.name))
        except InputError:  # gone since it was read: nothing is said of it
            continue
        if last[0][-1:] != b"\n":
            ends.cut.add(piece.name)
    return ends


def _as_it_stands(piece: Piece) -> Piece:
    """The piece without the layers that mend lines of NCCL's for their reader: other lines are whole as they stand."""
    return replace(piece, coding=tuple(layer for layer in piece.coding if layer not in _OF_LINES))


def _remembering(blocks: Iterable[bytes], last: list[bytes]) -> Iterator[bytes]:
    for block in blocks:
        if block:
            last[0] = block[-1:]
        yield block


__all__ = ["LogEnds", "with_progress"]
