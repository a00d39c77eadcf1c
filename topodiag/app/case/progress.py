"""Proof of life in texts of jobs: what programs printed while they worked, counted by the catalogue of sentences over
whole files, and which of the ends that a log names ended a launch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from topodiag.app.case.job_numbers import (
    by_number,
    file_of,
    line_of,
    named,
    reported_job,
    runs_of,
    without,
    without_streams,
)
from topodiag.app.case.ras import job_of
from topodiag.app.case.starts import ranks_behind
from topodiag.app.case.text_read import NOTHING, TextRead, is_full_bar, read_text
from topodiag.evidence.intake.pieces import STDIN, Intake, Piece
from topodiag.evidence.kinds import Kind
from topodiag.evidence.nccl_log.grammar import ends as text_ends
from topodiag.evidence.nccl_log.grammar.ends import OF_SOURCE
from topodiag.evidence.nccl_log.input.json_lines import MENDED
from topodiag.fleet.read_ahead import ReadAhead
from topodiag.model.events import LEAST_PROGRESS, MOST_BUFFERED, Progress
from topodiag.model.job import Event, Job
from topodiag.model.provenance import Origin
from topodiag.model.result import Case
from topodiag.words.units import grouped

OF_LINES = frozenset({Kind.NCCL_LOG, Kind.JOB_OUTPUT, Kind.STEPS, Kind.TEXT})
"""Kinds of texts in which lines of programs stand."""


def with_work(case: Case, intake: Intake, pieces: Sequence[Piece]) -> Case:
    """The case with the progress of each of these texts and of the other streams of their jobs, and its jobs with the
    ends of those that the reader of logs knows nothing of; a full bar ends the work in its stream where the other shows
    the end. Standard input can be read once, and its reader has it; what cannot be opened is said by the reader of
    logs."""
    names = without_streams(piece.name for piece in (*pieces, *intake.pieces))
    streams = {names[piece.name] for piece in pieces}
    others = [piece for piece in intake.of(Kind.TEXT) if names[piece.name] in streams and piece not in pieces]
    read = dict(_read_all(intake, (*pieces, *others)))

    def done(job: Job) -> tuple[Origin, ...]:
        last = {series.source: series.steps[-1].number for series in job.steps}
        streams = {name for file in (*job.files, *last) if (name := names.get(file, file)) != file}
        ends = [(file, end) for file, end in read.items() if file in last or names[file] in streams]
        shown = (*job.done, *_all_done((file, end) for file, end in ends if file not in job.files))
        others = [(file, end) for file, end in ends if shown and all(file != origin.source for origin in shown)]
        full = (Origin(file, end.word[0]) for file, end in others if is_full_bar(end.word[1], last.get(file)))
        return (*shown, *full)

    progress = tuple(line for text in read.values() for line in text.progress)
    return replace(case, progress=progress, jobs=tuple(replace(job, done=done(job)) for job in case.jobs))


def lone_job(intake: Intake, pieces: Sequence[Piece]) -> tuple[tuple[Progress, ...], tuple[Job, ...], list[TextRead]]:
    """The progress of texts of which nothing else can be judged; a job where one ends with a traceback, or all show
    their work done; and the texts themselves."""
    read = tuple(_read_all(intake, pieces))
    progress = tuple(line for _, text in read for line in text.progress)
    last = tuple(text.last for _, text in read if text.last is not None and text.last.details["last"])
    done = () if last or any(text.progress and not text.done for _, text in read) else _all_done(read)
    texts = [text for _, text in read]
    if not (last or done):
        return progress, (), texts
    files = (*map(file_of, last), *(origin.source for origin in done))
    job = job_of("job", events=last, files=files, done=done, progress=progress if done else ())
    return progress, named(by_number(job)), texts


def _all_done(read: Iterable[tuple[str, TextRead]]) -> tuple[Origin, ...]:
    return tuple(Origin(file, text.done) for file, text in read if text.done)


def _read_all(intake: Intake, pieces: Sequence[Piece]) -> Iterator[tuple[str, TextRead]]:
    for piece in pieces:
        packed = piece.held is not None or (piece.member and not piece.spooled)
        if piece.path != STDIN and not packed and piece.is_any(OF_LINES):
            yield piece.name, read_text(intake, piece)


def look_ahead(intake: Intake) -> ReadAhead[TextRead]:
    """What the plain files of an intake (spool) hold, for `with_progress`; standard input was read, and is left out."""
    files = [piece for piece in intake.pieces if piece.path != STDIN]
    codings = (tuple(layer for layer in piece.coding if layer not in MENDED) for piece in files)
    pieces = {piece.name: replace(piece, coding=coding) for piece, coding in zip(files, codings, strict=True)}
    return ReadAhead(partial(read_text, Intake()), pieces)  # files alone: no other process has standard input


def with_progress(jobs: Sequence[Job], ahead: ReadAhead[TextRead], workers: int | None = None) -> tuple[Job, ...]:
    """The jobs with the progress and the ends of their logs, which `workers` processes look through (None: all cores)
    where that was not begun. It is asked for only where an init stands open, a process or a communicator ended or
    NCCL's lines do not show what all ranks used: elsewhere nothing is asked of it."""
    read = ahead.results({file for job in jobs if _needs_progress(job) for file in job.files}, workers)
    ended = [_with_ends(job, {file: read[file] for file in job.files if file in read}) for job in jobs]
    return tuple(launch for job in ended for launch in _launches(job, read, is_only=len(ended) == 1) or (job,))


def _with_ends(job: Job, read: Mapping[str, TextRead]) -> Job:
    events = tuple(_where_last(event, read) for event in _with_waits(job.events))
    for file, end in read.items():
        lowest = max((line_of(event) for event in events if event.kind != "note"), default=0)
        events = tuple(met for event in events for met in _met(event, end, file, lowest))
        events = _without_passed(events, end, file)
        events = _with_last(job, events, end.last) if end.last is not None else events
        events = _with_behind(events, file, end)
    progress = tuple(line for end in read.values() for line in end.progress)
    cut = tuple(file for file, end in read.items() if end.is_cut)
    return replace(job, progress=progress, done=_all_done(read.items()), cut_logs=cut, events=events)


def _with_waits(events: Sequence[Event]) -> Iterator[Event]:
    """The events, each refusal of a place as a note where the scheduler has one for that pod further below: it waited.
    In a pod's own events no line of a refusal names it."""
    placed = [(file_of(met), line_of(met), met.details["placed"]) for met in events if "placed" in met.details]
    for event in events:
        pod, at = event.details.get("unit"), line_of(event)
        waited = event.details.get("how") == "no room" and any(
            file == file_of(event) and (at < line if pod == name else not pod and at < line <= at + _TEARDOWN_LINES)
            for file, line, name in placed
        )
        yield replace(event, kind="note") if waited else event


def _last_line(event: Event, read: Mapping[str, TextRead]) -> int:
    """Where an event stands once more among the last lines of its text, 0 where it does not: of equal lines an event
    has the first."""
    return read.get(file_of(event), NOTHING).lines.get(event.text.strip(), 0) if event.count > 1 else 0


def _where_last(event: Event, read: Mapping[str, TextRead]) -> Event:
    """An end with which the text ends, and which stood far above as well: at its last line."""
    line = _last_line(event, read)
    if "again" not in event.details or event.origin is None or line <= line_of(event) + MOST_BUFFERED:
        return event
    return replace(event, origin=replace(event.origin, line=line))


def _with_last(job: Job, events: tuple[Event, ...], last: Event) -> tuple[Event, ...]:
    """The events with the exception that ends a text: at its event, or one more where nothing but exceptions and faults
    of a machine are known of the job. One that was caught ends nothing."""
    text = last.text.strip()
    if alike := [event for event in events if event.text.strip() == text]:
        own = [event for event in alike if file_of(event) == file_of(last)] or alike
        return tuple(
            replace(event, details={**event.details, **last.details}, origin=last.origin)
            if event in own and event.details.get("how") == "exception"
            else event
            for event in events
        )
    known = (event.kind == "device" or event.details.get("how") == "exception" for event in events)
    return (*events, last) if not job.ranks and all(known) and last.details["last"] else events


def _with_behind(events: tuple[Event, ...], file: str, end: TextRead) -> tuple[Event, ...]:
    """The events, where the job of this file was ended from outside with the ranks that were behind by then."""
    stopped = [event for event in events if file_of(event) == file and event.details.get("how") in _FROM_OUTSIDE]
    ranks, line = ranks_behind(end.lines) if stopped else ((), "")
    named = {"behind": ",".join(map(str, ranks)), "line behind": line}
    return tuple(replace(e, details={**e.details, **named}) if ranks and e in stopped else e for e in events)


def _met(event: Event, end: TextRead, file: str, lowest: int) -> Iterator[Event]:
    """What a text shows of an event when its last lines are known: nothing where that was no end, and a note where the
    process was killed when its work was done. `lowest` is the last line of all that happened: where a loader lost a
    worker far above the end of this file, and nothing ended below, the program goes on."""
    how = event.details.get("how")
    if _is_no_end(event, end):
        yield from (replace(event, kind="note"),) if how == "killed" else ()
    elif how != "worker" or file_of(event) != file or line_of(event) < lowest or not _is_far_above(event, end):
        yield event


def _is_no_end(event: Event, end: TextRead) -> bool:
    """Whether the program handled an exception, or lost a worker of its data loader or was killed when its work was
    done, or did its work though a rank met what follows from an end: ranks leave one after the other."""
    if end.done and _is_of_leaving(event, is_below=end.done < line_of(event)):
        return True
    how, done = event.details.get("how"), end.done
    if how == "killed" and not done and text_ends.says_done(end.word[1]):
        done = end.word[0]
    return (how in ("worker", "killed") and 0 < done < line_of(event)) or event.text.strip() in end.handled


def _without_passed(events: tuple[Event, ...], end: TextRead, file: str) -> tuple[Event, ...]:
    """The events without errors of transports, where nothing else went wrong in a text that goes on far below them: one
    way that cannot take a message says what it would of a peer that left, and another way takes it."""
    met = [event for event in events if event.kind != "note"]
    of_transport = (event.kind == "other" and "transport" in event.details for event in met)
    below = max(end.lines.values(), default=0) - max(map(line_of, met), default=0)
    return without(events, met) if below > _FAR and all(of_transport) and {file} >= set(map(file_of, met)) else events


def _is_of_leaving(event: Event, *, is_below: bool = False) -> bool:
    """Whether this is what ranks meet, or launchers say, when a process leaves; `is_below` the end of its work NCCL
    itself fails as well, but refuses no call."""
    refused = any(map(event.text.__contains__, _REFUSED))
    return not refused and event.kind in _OF_LEAVING and (event.secondary or is_below)


_OF_LAUNCH = frozenset(
    {"hung up", "limit", "preempted", "cancelled", "node failure", "port taken", "root", "fatal", "usage"}
)
"""Ends of all processes of a launch, by `how`; torch's summary of failures names the `root`."""
_FROM_OUTSIDE = frozenset({"limit", "cancelled"})
_OF_WORK = frozenset({"exception", "crash", "worker", "fatal"})
_AT_START = frozenset({"usage", "no program", "no room"})
"""Ends of programs that ran, and of those that did not, by `how`."""
_OF_LEAVING = frozenset({"other", "peer closed"})
"""Kinds of events that ranks meet when others leave."""
_REFUSED = ("ncclInvalid", "invalid usage", "invalid argument")
"""Words of the results with which NCCL refuses a call."""
_ALL_ENDED = ("=   EXIT CODE: ", "=   KILLED BY SIGNAL: ", "mpirun noticed ", "mpiexec noticed ", "mpirun detected ")
"""How lines of mpirun's begin when all of its processes have ended."""
_FAR = 200
"""Lines below an error that only a process which lives on prints."""
_TEARDOWN_LINES = 40
"""Lines that processes print after the launch has ended: what stands further below is of a later one."""


def _launches(job: Job, read: Mapping[str, TextRead], *, is_only: bool) -> tuple[Job, ...]:
    """The earlier launches of a job, as one job for each that Slurm ended, and the last launch: below the end of an
    earlier one a program goes on or starts, ranks call collectives, or the scheduler ends another job. Nothing where
    the logs show one launch."""
    lines = grouped((file_of(event), line_of(event)) for event in job.events if event.kind == "ended")
    began = {file: max(end.began, end.starts.last(lines.get(file, ()), end.done)) for file, end in read.items()}
    if job.ranks:
        return _earlier_ends(job, began, read) if is_only else ()
    left = (event for event in job.events if event.kind == "ended" or _is_of_leaving(event))
    over = {file_of(event): began[file_of(event)] for event in left if line_of(event) < began.get(file_of(event), 0)}
    if len(job.files) == 1 and (ends := _past_ends(job, read)):
        over[job.files[0]] = max(*ends, over.get(job.files[0], 0))
    for event in _refused_starts(job, read):
        over[file_of(event)] = max(line_of(event), over.get(file_of(event), 0))
    if not over:
        return ()
    past = [e for e in job.events if max(line_of(e), _last_line(e, read)) <= over.get(file_of(e), -1)]
    runs = tuple(enumerate(runs_of(past, _TEARDOWN_LINES), 1))
    started = [replace(job, name=f"job {at}", events=run, progress=(), done=(), is_past=True) for at, run in runs]
    return (*started, replace(job, name=f"job {len(runs) + 1}", events=without(job.events, past)))


def _earlier_ends(job: Job, began: Mapping[str, int], read: Mapping[str, TextRead]) -> tuple[Job, ...]:
    """The earlier launches, and the last one, of a job whose ranks are known. Where programs ended by themselves both
    far above the last start and below it, all above is earlier; else only starts that failed are, above the end of one
    that worked. Nothing without such ends: a rank may end while others still start."""
    past = [event for event in job.events if line_of(event) + _TEARDOWN_LINES < began.get(file_of(event), 0)]
    last = [event for event in job.events if line_of(event) > began.get(file_of(event), 0)]
    if not all(any(event.details.get("how") in _OF_WORK for event in events) for events in (past, last)):
        past = _refused_starts(job, read)
    if not past:
        return ()
    earlier = job_of("job 1", events=tuple(past), files=job.files, is_past=True)
    return earlier, replace(job, name="job 2", events=without(job.events, past))


def _past_ends(job: Job, read: Mapping[str, TextRead]) -> list[int]:
    """The lines of one file on which launches ended that were not the last."""
    alive = max((line.last.line or 0 for line in job.progress if line.number >= LEAST_PROGRESS), default=0)
    calls = [line_of(event) for event in job.events if _is_call(event)]
    ends = {line_of(event): event for event in job.events if _OF_LAUNCH & {event.details.get("how"), *event.details}}
    numbers = {line: number for line, event in ends.items() if (number := reported_job(event))}
    last_number = numbers.get(max(numbers, default=0), "")
    summed_up = max((line for line, event in ends.items() if "root" in event.details), default=0)
    # What the launcher prints below the head of its summary is of the launch that ended.
    far_above = [line + _TEARDOWN_LINES for line in ends if line + _TEARDOWN_LINES < alive]
    hows = ((line, event.details.get("how", "")) for line, event in ends.items())
    above = {"port taken": max(calls, default=0), "hung up": summed_up - MOST_BUFFERED}
    earlier = [line for line, how in hows if numbers.get(line, last_number) != last_number or line < above.get(how, 0)]
    return [*_ends_of_all(job, read), *far_above, *earlier]


def _ends_of_all(job: Job, read: Mapping[str, TextRead]) -> list[int]:
    """The lines on which mpirun says that all of its processes have ended, far above the last line of the text; and the
    last end, where that is a program's own fatal error and none of the text's last lines."""
    tail = [line for end in read.values() for line in end.lines.values()]
    ends = {max(line_of(event), _last_line(event, read)): event for event in job.events if event.kind == "ended"}
    if not ends or not tail:
        return []
    lines = [line for line, event in ends.items() if event.text.strip().startswith(_ALL_ENDED)]
    far_above = [line for line in lines if line + MOST_BUFFERED < max(tail)]
    last = max(ends)
    return [*far_above, last] if ends[last].details.get("how") == "fatal" and last < min(tail) else far_above


def _is_call(event: Event) -> bool:
    """Whether a watchdog names a collective that a rank called."""
    return event.kind == "watchdog" and "op" in event.details


def _refused_starts(job: Job, read: Mapping[str, TextRead]) -> list[Event]:
    """Programs that found no place, were not found or not read, or did not take their arguments, above the end of one
    that ran, or so far above the end of the text that another one printed it: of a later start, or of another command
    of the script. A launcher's word on another program's end is none of these."""
    ends = [event for event in sorted(job.events, key=line_of) if event.details.get("what") != "CalledProcessError"]
    refused = [
        event for event in ends if event.details.get("how") in _AT_START or event.details.get("what") in OF_SOURCE
    ]
    worked = (e for e in ends if e not in refused and (e.details.get("how") in _OF_WORK or _is_call(e)))
    ran = {file_of(event): line_of(event) for event in worked}
    return [
        event
        for event in refused
        if line_of(event) < ran.get(file_of(event), 0)
        or (event.details.get("how") in _AT_START and _is_far_above(event, read.get(file_of(event), NOTHING)))
    ]


def _is_far_above(event: Event, end: TextRead) -> bool:
    """Whether a line stands above a text's last ones, and not among them again."""
    text = event.text.strip()
    return line_of(event) < min(end.lines.values(), default=0) and not any(text in line for line in end.lines)


def _needs_progress(job: Job) -> bool:
    ended = any(event.kind == "ended" for event in job.events)
    in_part = len(job.ranks) < job.world_size or not len(job.connections.flows.via)
    return ended or in_part or any(comm.unfinished or comm.destroyed for comm in job.communicators)
