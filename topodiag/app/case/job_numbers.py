"""Texts of several jobs: the number that a scheduler gave to each stands in the names of the files, or the minute in
which a run of a sweep began in that of its folder.

SOURCE: Slurm sbatch(1) (`slurm-%j.out`, `%x_%j.err`), PBS qsub(1) (`name.o1234`, `name.e1234`), LSF bsub (`%J.out`).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import replace

from topodiag.app.case.ras import job_of
from topodiag.model.job import Event, Job
from topodiag.words.own_data import patterns
from topodiag.words.units import grouped

_OF_NAMES = patterns("app/case/texts", "names")
_JOB_LINE = patterns("app/case/texts", "lines")["job"]


def without_streams(paths: Iterable[str]) -> dict[str, str]:
    """The name of each file without the word of its stream: the same for the output of a job and for its errors. Where
    an output and errors alone lie in a folder and one of both names no job (`error.err`), they are one job's."""
    names = {path: _OF_NAMES["stream"].sub("", path) for path in paths}
    folders = grouped((path.rpartition("/")[0], path) for path, name in names.items() if name != path)
    for folder, files in folders.items():
        of_errors = sorted("e" in file.rpartition(".")[2] for file in files)
        if of_errors == [False, True] and any(_OF_NAMES["no_job"].search(names[file]) for file in files):
            names.update(dict.fromkeys(files, f"{folder}/"))
    return names


def job_number(path: str) -> str:
    """The number of a scheduler's job by the name of a file, else the minute in which its run began by that of its
    folder; "" where neither has one."""
    folder, _, name = path.rpartition("/")
    number, began = _OF_NAMES["number"].search(name), _OF_NAMES["began"].findall(folder)
    if number is not None:
        return next(filter(None, number.groups()), "")
    return "".join(began[-1]) if began else ""


def by_number(job: Job) -> tuple[Job, ...]:
    """A job of which no rank is known, as one for each number that its texts have, by their names or by what Slurm says
    in them; texts without a number are one more. The job alone where there are fewer than two numbers: its texts may be
    those of its ranks. Of a job with ranks, what texts with other numbers than those of its ranks say is of other jobs.
    """
    texts = dict.fromkeys((*job.files, *map(file_of, job.events)))
    if len(texts) < 2:
        return (job,)
    reported = {file_of(event): number for event in job.events if (number := reported_job(event))}
    number_of = {file: job_number(file) or reported.get(file, "") for file in texts}
    files = grouped((number_of[file], file) for file in job.files)
    events = grouped((number_of[file_of(event)], event) for event in job.events)
    if job.ranks:
        own = files.keys() | {""} if any(files) else events.keys()
        others = events.keys() - own
        kept = tuple(event for event in job.events if number_of[file_of(event)] in own)
        return (replace(job, events=kept), *(_other_job(number, events[number]) for number in sorted(others)))
    if len(files.keys() - {""}) < 2:
        return (job,)
    return tuple(
        replace(job, name=_name(number, job.name), files=tuple(own), events=tuple(events.get(number, ())))
        for number, own in files.items()
    )


def _other_job(number: str, events: Sequence[Event]) -> Job:
    return job_of(_name(number), events=tuple(events), files=tuple(dict.fromkeys(map(file_of, events))))


def _name(number: str, name: str = "job") -> str:
    return f"job {number}" if number else name


def numbers_of(job: Job) -> frozenset[str]:
    """The numbers by the names of its texts, "" of those that have none."""
    return frozenset(map(job_number, (*job.files, *(series.source for series in job.steps))))


def named(jobs: Sequence[Job]) -> tuple[Job, ...]:
    """The jobs, each with the scheduler's number as its name where there are several numbers, all texts of the job have
    it and no other job has."""
    if len(jobs) < 2:
        return tuple(jobs)
    numbers = [numbers_of(job) for job in jobs]
    if len(frozenset().union(*numbers) - {""}) < 2:
        return tuple(jobs)
    now = [own for own, job in zip(numbers, jobs, strict=True) if not job.is_past]
    return tuple(
        _named(job, *own) if len(own) == 1 and "" not in own and now.count(own) <= 1 else job
        for job, own in zip(jobs, numbers, strict=True)
    )


def _named(job: Job, number: str) -> Job:
    return replace(job, name=f"{_name(number)}, an earlier launch" if job.is_past else _name(number))


def file_of(event: Event) -> str:
    """The text in which an event stands, "" where that is not known."""
    return event.origin.source if event.origin is not None else ""


def reported_job(event: Event) -> str:
    """The number of the scheduler's job that a line of an end is of, "" where it names none."""
    return match[1] if (match := _JOB_LINE.search(event.place or event.text)) is not None else ""


def line_of(event: Event) -> int:
    """The line on which an event stands, 0 where that is not known."""
    return event.origin.line or 0 if event.origin is not None else 0


def without(events: Sequence[Event], others: Sequence[Event]) -> tuple[Event, ...]:
    """The events that are none of the others, of which there may be a hundred thousand."""
    left_out = set(map(id, others))
    return tuple(event for event in events if id(event) not in left_out)


def runs_of(events: Sequence[Event], teardown: int) -> tuple[tuple[Event, ...], ...]:
    """The events of one text by the jobs of a scheduler that ended in it, all of one where it ended fewer than two;
    those of the `teardown` lines below an end are of that job, but for a report, which comes when all have ended."""
    below = (
        (reported_job(event), line_of(event), 0 if event.place else teardown) for event in sorted(events, key=line_of)
    )
    ends = sorted({number: line + lines for number, line, lines in below if number}.values())[:-1]
    runs = grouped((bisect_left(ends, line_of(event)), event) for event in events)
    return tuple(tuple(runs[at]) for at in sorted(runs)) or ((),)
