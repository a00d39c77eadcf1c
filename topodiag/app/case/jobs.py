"""The jobs of a case: rebuilt from NCCL's logs, with all that other texts say of them: step times of trainings, and
settings that job scripts and launchers give to a job whose log is another file, where its own lines say none.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypeVar

from topodiag.app.case.inspector import inspected, with_inspection
from topodiag.app.case.job_numbers import by_number, job_number, named, numbers_of
from topodiag.app.case.progress import look_ahead, with_progress
from topodiag.app.case.ras import (
    Readings,
    attached,
    is_only,
    job_of,
    last_with,
    ras_answers,
    read_texts,
    with_diagnostics,
    with_ras,
    with_stacks,
    with_step_waits,
)
from topodiag.evidence.assignments import COMMANDED, assigned, stated_in
from topodiag.evidence.flight.flight_recorder import read_flight
from topodiag.evidence.host.settings import of_shell
from topodiag.evidence.intake.kind_of_file import speaking_kinds
from topodiag.evidence.intake.log_plan import is_read
from topodiag.evidence.intake.one_file import HEAD_BYTES
from topodiag.evidence.intake.pieces import STDIN, STDIN_NAME, Intake, read_piece, spooled
from topodiag.evidence.interface import Blob
from topodiag.evidence.kinds import Kind
from topodiag.evidence.layout.job_settings import read_arguments
from topodiag.evidence.live.diagnostics import MAX_BYTES as DIAGNOSTICS_BYTES
from topodiag.evidence.live.diagnostics import TRACE_MAX_BYTES, read_diagnostics, read_trace
from topodiag.evidence.live.stacks import MAX_BYTES as STACKS_BYTES
from topodiag.evidence.live.stacks import read_stacks
from topodiag.evidence.live.step_times import MAX_BYTES as STEPS_BYTES
from topodiag.evidence.live.step_times import holds_steps, lines_of_file, read_steps
from topodiag.lazy import dataclass
from topodiag.model.errors import InputError
from topodiag.model.finding import Input
from topodiag.model.job import FlightRecord, GivenSetting, Job
from topodiag.model.layout import JobSettings, Layout
from topodiag.model.provenance import MAX_QUOTE, PART, NotObserved, Origin
from topodiag.model.result import Case
from topodiag.model.steps import StepSeries
from topodiag.words.units import grouped
from topodiag.writing import replacing
from topodiag_probes.secrets import without_secrets

_T = TypeVar("_T")
Read = Callable[[int, int], None]
"""Called with the bytes of logs that were read so far, and with those there are (0: not known)."""


@dataclass(frozen=True, slots=True)
class LogOptions:
    """How to read logs. `workers`: processes (None: all cores); `dask`: a scheduler's address, `local` or `slurm`;
    `layout` is the declared layout of the job, None where it is not declared. `flight` are dumps of torch's flight
    recorder; `save` is where the facts go. Without `sums` the sha256 of a log is taken only to tell copies."""

    workers: int | None = None
    dask: str | None = None
    layout: Layout | None = None
    flight: tuple[str, ...] = ()
    save: str | None = None
    sums: bool = True


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

    logs = (piece for piece in intake.pieces if not any(is_only(piece, kind) for kind in _BESIDE))
    own = replace(trained.intake, pieces=tuple(piece for piece in logs if piece.name not in trained.read_whole))
    beside = any(text.values for text in texts)
    logged = Case()
    if not beside or chosen.flight or any(is_read(piece) for piece in own.pieces):
        try:
            logged = _logged(own, chosen, on_progress)
        except InputError as error:
            if not beside or chosen.flight or chosen.save is not None:
                raise
            logged = Case(not_observed=(NotObserved(PART, str(error)),))
    inputs, gaps = (*logged.inputs, *asked), (*logged.not_observed, *silent)
    return replace(logged, jobs=with_texts(logged.jobs), inputs=inputs, not_observed=gaps)


def _logged(intake: Intake, chosen: LogOptions, on_progress: Read | None) -> Case:
    """The jobs of logs and of the recorder's dumps. Raises InputError where there are none to read."""
    from topodiag.evidence.nccl_log.rebuild.rebuild import rebuild  # noqa: PLC0415 - numpy, which only logs need
    from topodiag.evidence.nccl_log.rebuild.roles import descriptions  # noqa: PLC0415
    from topodiag.evidence.nccl_log.tables.saved import save  # noqa: PLC0415
    from topodiag.fleet.ingest import ingest  # noqa: PLC0415

    with spooled(intake, is_read) as plain, look_ahead(plain) as ahead:
        ingested = ingest(plain, workers=chosen.workers, dask=chosen.dask, on_progress=on_progress, ahead=ahead,
                          sums=chosen.sums)  # fmt: skip
        dumps = {dump.file: dump.name for dump in ingested.flight}
        records, problems = read_flight(tuple(dict.fromkeys((*dumps, *chosen.flight))), dumps)
        rebuilt = rebuild(ingested.facts, ingested.files, chosen.layout, descriptions(records))
        rebuilt = tuple(of_number for job in rebuilt for of_number in by_number(job))
        rebuilt = with_progress(rebuilt, ahead, chosen.workers)
    if chosen.save is not None:
        with replacing(chosen.save, private=True) as stream:
            save(stream, ingested.facts, ingested.files, without_secrets)
    gaps = [NotObserved(PART, note) for note in ingested.notes]
    gaps += [NotObserved(PART, note, unreadable=True) for note in ingested.damaged]
    gaps += [NotObserved("part of the flight recorder", problem) for problem in problems]
    # The facts are let go with this frame: their memory is better used by the checks.
    return Case(
        jobs=_with_flight(rebuilt, records), inputs=ingested.inputs, not_observed=tuple(gaps), unread=ingested.unread
    )


def _texts(intake: Intake, kind: Kind, read: Callable[[str, str], Sequence[_T]], most: int, noun: str) -> Readings[_T]:
    return read_texts(intake, kind, lambda blob: read(blob.text, blob.name), most=most, part=f"part of {noun}")


_BESIDE = (Kind.RAS, Kind.STACKS, Kind.INSPECTOR, Kind.DIAGNOSTICS, Kind.TRACE)
"""Kinds of texts that have readers of their own, where no log stands in them."""


def _with_flight(jobs: tuple[Job, ...], records: tuple[FlightRecord, ...]) -> tuple[Job, ...]:
    """The records at the last job that has such ranks: dumps are of the run that died. Without logs they are a job."""
    if not records:
        return jobs
    most = max(record.rank for record in records)
    at = last_with(jobs, lambda job: job.world_size > most)
    size = max(most + 1, *(len(ranks) for record in records for ranks in record.groups.values()), 0)
    return attached(jobs, at, "flight recorder", size, flight=records)


ALONE = "training log"
"""The name of a job of which there is nothing but its steps."""
STEP_TIMES = "part of the step times"
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

    series = read_texts(intake, Kind.STEPS, read, most=STEPS_BYTES, part=STEP_TIMES)
    inputs = tuple(source for source in series.inputs if source.path in texts)
    if back:
        intake = replace(intake, stdin=io.BytesIO(back[0]))
    mixed = (piece.name for piece in intake.of(Kind.STEPS) if piece.path == STDIN and piece.name not in only)
    why = "holds NCCL's lines and steps: save it to a file, and the steps are read"
    gaps = tuple(NotObserved(STEP_TIMES, f"{name} {why}") for name in mixed)
    read_all = replace(series, inputs=inputs, gaps=(*series.gaps, *gaps))
    return StepTimes(read_all, intake, tuple(arguments), frozenset(texts))


def _looked_through(intake: Intake) -> Intake:
    """The evidence with the logs whose ends do not show the steps that they hold: packed ones have no last bytes, and
    others end with errors. Mostly the first or the last rank prints steps, so these files come first."""
    logs = [piece for piece in intake.of(Kind.NCCL_LOG, Kind.JOB_OUTPUT) if Kind.STEPS not in piece.kinds]
    hidden = [piece for piece in logs if piece.size >= 0 and (piece.coding or piece.size > 2 * HEAD_BYTES)]
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


SCRIPT_BYTES = 1 << 20
"""A script has kilobytes."""


def with_scripts(case: Case, intake: Intake) -> Case:
    """The case, with what scripts set for its job where it has one alone: of several nobody knows which one they start.
    Files that disagree about a variable say nothing of it, and what NCCL's lines or commands among them say comes
    first."""
    if len(case.jobs) != 1:
        return case
    givens: list[GivenSetting] = []
    for piece in intake.of(Kind.TEXT, Kind.PROGRAM, Kind.NODE_TEXT):
        if piece.path == STDIN or piece.size > SCRIPT_BYTES or (piece.sources and piece.sources != ("settings",)):
            continue
        with suppress(InputError):  # said where all that is left out is
            givens += _settings(read_piece(intake, piece, SCRIPT_BYTES))
    by_name = grouped((given.name, given) for given in givens)
    agreed = {name: own[-1] for name, own in by_name.items() if own[-1].value and len({one.value for one in own}) == 1}
    sources = dict.fromkeys(value.origin.source for value in agreed.values() if value.origin is not None)
    known = {item.path for item in case.inputs}
    inputs = tuple(Input(source, Kind.TEXT.value, records=1) for source in sources if source not in known)
    processes = tuple(replace(process, settings={**agreed, **process.settings}) for process in case.jobs[0].processes)
    job = replace(case.jobs[0], processes=processes)
    return replace(case, jobs=(job,), inputs=(*case.inputs, *inputs)) if agreed else case


def _settings(blob: Blob) -> list[GivenSetting]:
    """What a text sets. In one that is no script a sentence may advise a setting: only its commands count. Of an
    environment that a shell on a node printed nobody knows that a job had it."""
    if of_shell(blob.text):
        return []
    read, above = [], ""
    script = blob.data.startswith(b"#!")
    for number, line in blob.lines():
        row = stated_in(line, above)
        settings = list(assigned(line, above)) if script else row[1] if row else []
        origin = Origin(blob.name, number, line[:MAX_QUOTE])
        read += [GivenSetting(name, value, COMMANDED, origin) for name, value in settings]
        above = line
    return read
