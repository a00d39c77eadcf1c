"""The jobs of a case: rebuilt from NCCL's logs, with all that other texts say of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from topodiag.app.case.inspector import inspected, with_inspection
from topodiag.app.case.job_numbers import by_number, named
from topodiag.app.case.progress import look_ahead, with_progress
from topodiag.app.case.ras import (
    Readings,
    attached,
    is_only,
    last_with,
    ras_answers,
    read_texts,
    with_diagnostics,
    with_ras,
    with_stacks,
    with_step_waits,
)
from topodiag.app.case.step_times import step_times, with_arguments, with_steps
from topodiag.evidence.flight.flight_recorder import read_flight
from topodiag.evidence.intake.log_plan import is_read
from topodiag.evidence.intake.pieces import Intake, Piece
from topodiag.evidence.intake.spool import spooled
from topodiag.evidence.kinds import Kind
from topodiag.evidence.live.diagnostics import MAX_BYTES as DIAGNOSTICS_BYTES
from topodiag.evidence.live.diagnostics import TRACE_MAX_BYTES, read_diagnostics, read_trace
from topodiag.evidence.live.stacks import MAX_BYTES as STACKS_BYTES
from topodiag.evidence.live.stacks import read_stacks
from topodiag.lazy import dataclass
from topodiag.model.errors import InputError
from topodiag.model.job import FlightRecord, Job
from topodiag.model.layout import Layout
from topodiag.model.provenance import PART, NotObserved
from topodiag.model.result import Case
from topodiag.writing import replacing
from topodiag_probes.secrets import without_secrets

_T = TypeVar("_T")
Read = Callable[[int, int], None]
"""Called with the bytes of logs that were read so far, and with those there are (0: not known)."""


@dataclass(frozen=True, slots=True)
class LogOptions:
    """How to read logs. `workers`: processes (None: all cores); `dask`: a scheduler's address, `local` or `slurm`;
    `layout` is the declared layout of the job, None where it is not
    declared. `flight` are dumps of torch's flight recorder; `save` is where the facts go."""

    workers: int | None = None
    dask: str | None = None
    layout: Layout | None = None
    flight: tuple[str, ...] = ()
    save: str | None = None


def job_case(intake: Intake, options: LogOptions | None = None, on_progress: Read | None = None) -> Case:
    """The jobs in what was gathered. Raises InputError where there is no log and no dump to read."""
    chosen = options or LogOptions()
    answers, measured, trained = ras_answers(intake), inspected(intake), step_times(intake)
    dumped = _texts(intake, Kind.STACKS, read_stacks, STACKS_BYTES, "the stack dumps")
    reported = _texts(intake, Kind.DIAGNOSTICS, read_diagnostics, DIAGNOSTICS_BYTES, "NCCL's diagnostics")
    traced = _texts(intake, Kind.TRACE, read_trace, TRACE_MAX_BYTES, "the profiler's traces")
    texts: tuple[Readings[Any], ...] = (answers, dumped, reported, traced, measured, trained.read)
    asked = tuple(taken for text in texts for taken in text.inputs)
    silent = tuple(gap for text in texts for gap in text.gaps)

    def with_texts(jobs: tuple[Job, ...]) -> tuple[Job, ...]:
        jobs = with_diagnostics(with_stacks(with_ras(jobs, answers.values), dumped.values), reported.values)
        jobs = with_inspection(with_step_waits(jobs, traced.values), next(iter(measured.values), None))
        return named(with_arguments(with_steps(jobs, trained.read.values), trained.arguments))

    own = replace(trained.intake, pieces=tuple(_logs_of(intake, trained.read_whole)))
    beside = any(text.values for text in texts)
    logged = Case()
    if not beside or chosen.flight or any(is_read(piece) for piece in own.pieces):
        try:
            logged = _logged(own, chosen, on_progress)
        except InputError as error:
            if not beside or chosen.flight or chosen.save is not None:
                raise
            logged = Case(not_observed=(NotObserved(PART, str(error)),))
    return replace(
        logged,
        jobs=with_texts(logged.jobs),
        inputs=(*logged.inputs, *asked),
        not_observed=(*logged.not_observed, *silent),
    )


def _logged(intake: Intake, chosen: LogOptions, on_progress: Read | None) -> Case:
    """The jobs of logs and of the recorder's dumps. Raises InputError where there are none to read."""
    from topodiag.evidence.nccl_log.rebuild.rebuild import rebuild  # noqa: PLC0415 - numpy, which only logs need
    from topodiag.evidence.nccl_log.rebuild.roles import descriptions  # noqa: PLC0415
    from topodiag.evidence.nccl_log.tables.saved import save  # noqa: PLC0415
    from topodiag.fleet.ingest import ingest  # noqa: PLC0415

    with spooled(intake, is_read) as plain, look_ahead(plain) as ahead:
        ingested = ingest(plain, workers=chosen.workers, dask=chosen.dask, on_progress=on_progress, ahead=ahead)
        dumps = {dump.file: dump.name for dump in ingested.flight}
        records, problems = read_flight(tuple(dict.fromkeys((*dumps, *chosen.flight))), dumps)
        rebuilt = rebuild(ingested.facts, ingested.files, chosen.layout, descriptions(records))
        rebuilt = tuple(of_number for job in rebuilt for of_number in by_number(job))
        rebuilt = with_progress(rebuilt, ahead, chosen.workers)
    if chosen.save is not None:
        with replacing(chosen.save, private=True) as stream:
            save(stream, ingested.facts, ingested.files, without_secrets)
    # The facts are let go with this frame: their memory is better used by the checks.
    return Case(
        jobs=_with_flight(rebuilt, records),
        inputs=ingested.inputs,
        not_observed=(
            *(NotObserved(PART, note) for note in ingested.notes),
            *(NotObserved(PART, note, unreadable=True) for note in ingested.damaged),
            *(NotObserved("part of the flight recorder", problem) for problem in problems),
        ),
        unread=ingested.unread,
    )


def _texts(intake: Intake, kind: Kind, read: Callable[[str, str], Sequence[_T]], most: int, noun: str) -> Readings[_T]:
    return read_texts(intake, kind, lambda blob: read(blob.text, blob.name), most=most, part=f"part of {noun}")


_BESIDE = (Kind.RAS, Kind.STACKS, Kind.INSPECTOR, Kind.DIAGNOSTICS, Kind.TRACE)
"""Kinds of texts that have readers of their own, where no log stands in them."""


def _logs_of(intake: Intake, taken: Collection[str]) -> Iterator[Piece]:
    """The pieces that the reader of logs reads: `taken` are the names of those that another has read whole."""
    for piece in intake.pieces:
        if piece.name not in taken and not any(is_only(piece, kind) for kind in _BESIDE):
            yield piece


def _with_flight(jobs: tuple[Job, ...], records: tuple[FlightRecord, ...]) -> tuple[Job, ...]:
    """The records at the last job that has such ranks: dumps are of the run that died. Without logs they are a job."""
    if not records:
        return jobs
    most = max(record.rank for record in records)
    at = last_with(jobs, lambda job: job.world_size > most)
    size = max(most + 1, *(len(ranks) for record in records for ranks in record.groups.values()), 0)
    return attached(jobs, at, "flight recorder", size, flight=records)
