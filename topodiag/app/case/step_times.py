"""Step times of trainings among the evidence, set beside the job that they are of."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import replace

from topodiag.app.case.job_numbers import job_number, numbers_of
from topodiag.app.case.ras import Readings, job_of, read_texts
from topodiag.evidence.intake.kind_of_file import speaking_kinds
from topodiag.evidence.intake.one_file import HEAD_BYTES
from topodiag.evidence.intake.pieces import STDIN, STDIN_NAME, Intake, Piece, read_piece
from topodiag.evidence.interface import Blob
from topodiag.evidence.kinds import Kind
from topodiag.evidence.layout.job_settings import read_arguments
from topodiag.evidence.live.step_times import MAX_BYTES, holds_steps, lines_of_file, read_steps
from topodiag.lazy import dataclass
from topodiag.model.dimensions import JobSettings
from topodiag.model.errors import InputError
from topodiag.model.job import Job
from topodiag.model.provenance import NotObserved
from topodiag.model.steps import StepSeries
from topodiag.words.units import grouped

ALONE = "training log"
"""The name of a job of which there is nothing but its steps."""
PART = "part of the step times"
MOST_LOOKED = 32 << 20
"""Bytes of logs that are looked through for steps that their ends do not show: a part of a second."""


@dataclass(frozen=True, slots=True)
class StepTimes:
    """What was read; `alone` are the names of texts in which nothing else stands, which no other reader needs. `intake`
    is the evidence for those that read the rest: standard input can be read once, and is put back."""

    read: Readings[StepSeries]
    intake: Intake
    arguments: tuple[JobSettings, ...] = ()
    read_whole: frozenset[str] = frozenset()


def step_times(intake: Intake) -> StepTimes:
    """The steps of all texts among the evidence. A text that is known by its steps may hold an error of its job
    anywhere: it is looked through."""
    intake = _looked_through(intake)
    others = (Kind.NCCL_LOG, Kind.JOB_OUTPUT, Kind.NODE_TEXT)
    only = {piece.name for piece in intake.of(Kind.STEPS) if not piece.is_any(others)}
    texts: set[str] = set()
    arguments: list[JobSettings] = []
    back: list[bytes] = []

    def read(blob: Blob) -> tuple[StepSeries, ...]:
        data, name = blob.plain, blob.name
        if name in only and not {Kind.NCCL_LOG, Kind.JOB_OUTPUT} & set(speaking_kinds(data)):
            texts.add(name)
        elif name == STDIN_NAME:
            back.append(data)
        if (settings := read_arguments(data, name)) is not None:
            arguments.append(settings)
        return read_steps(data, name, lines_of_file(blob.data) if b"\r" in blob.data else ())

    series = read_texts(intake, Kind.STEPS, read, most=MAX_BYTES, part=PART)
    inputs = tuple(source for source in series.inputs if source.path in texts)
    if back:
        intake = replace(intake, stdin=io.BytesIO(back[0]))
    gaps = tuple(
        NotObserved(PART, f"{piece.name} holds NCCL's lines and steps: save it to a file, and the steps are read")
        for piece in intake.of(Kind.STEPS)
        if piece.path == STDIN and piece.name not in only
    )
    read_all = replace(series, inputs=inputs, gaps=(*series.gaps, *gaps))
    return StepTimes(read_all, intake, tuple(arguments), frozenset(texts))


def _looked_through(intake: Intake) -> Intake:
    """The evidence with the logs whose ends do not show the steps that they hold: packed ones have no last bytes, and
    others end with errors. Mostly the first or the last rank prints steps, so these files come first."""
    hidden = [piece for piece in intake.of(Kind.NCCL_LOG, Kind.JOB_OUTPUT) if _may_hide(piece)]
    left, texts = MOST_LOOKED, set()
    for piece in (*hidden[:1], *reversed(hidden[1:])):
        if left <= 0:
            break
        try:
            data = read_piece(intake, piece, left).data
        except InputError:  # larger than what is left, or damaged: the reader of logs says so
            continue
        left -= len(data)
        if holds_steps(data):
            texts.add(piece.name)
    pieces = (replace(p, kinds=(*p.kinds, Kind.STEPS)) if p.name in texts else p for p in intake.pieces)
    return replace(intake, pieces=tuple(pieces)) if texts else intake


def _may_hide(piece: Piece) -> bool:
    return Kind.STEPS not in piece.kinds and piece.size >= 0 and (bool(piece.coding) or piece.size > 2 * HEAD_BYTES)


def with_steps(jobs: Sequence[Job], steps: Sequence[StepSeries]) -> tuple[Job, ...]:
    """The steps at the jobs whose logs they stand in; those of another file at the only job, or as a job of their
    own: only the scheduler's number in a file's name says of which they are. The starts of a log of several jobs are
    theirs in order."""
    updated = list(jobs)
    rest: list[StepSeries] = []
    for source, own in grouped((step.source, step) for step in steps).items():
        places = _places(updated, source)
        rest += own if not places else []
        for number, place in enumerate(places):
            part = _of_start(own, number, len(places))
            updated[place] = replace(updated[place], steps=(*updated[place].steps, *part))
    by_job = grouped((job_number(step.source), step) for step in rest)
    updated += (job_of(ALONE, steps=tuple(group)) for group in by_job.values())
    return tuple(updated)


def _places(jobs: Sequence[Job], source: str) -> list[int]:
    """The places of the jobs in whose logs a file is, else of those with the scheduler's number of its name, else that
    of the only job where it has no other number."""
    if places := [at for at, job in enumerate(jobs) if source in job.files]:
        return places
    number = job_number(source)
    places = [at for at, job in enumerate(jobs) if number and number in numbers_of(job)]
    return places or ([0] if len(jobs) == 1 and not (number and numbers_of(jobs[0]) - {""}) else [])


def with_arguments(jobs: Sequence[Job], arguments: Sequence[JobSettings]) -> tuple[Job, ...]:
    """The arguments of trainings at the jobs in whose logs they stand; those of another file at the only job."""
    updated = list(jobs)
    for argument in arguments:
        for place in _places(updated, argument.source):
            if updated[place].training is None and (argument.source in updated[place].files or len(arguments) == 1):
                updated[place] = replace(updated[place], training=argument)
    return tuple(updated)


def _of_start(series: Sequence[StepSeries], number: int, jobs: int) -> Sequence[StepSeries]:
    """The series of one of the jobs of a file: of each rank's starts the one of that number, where there are as many as
    jobs; else all are the last job's."""
    if jobs == 1:
        return series
    by_who = grouped(((one.rank, one.host), one) for one in series)
    if all(len(starts) == jobs for starts in by_who.values()):
        return tuple(starts[number] for starts in by_who.values())
    return series if number == jobs - 1 else ()
