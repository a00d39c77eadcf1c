"""What an excerpt of a job's log leaves open, and what proves that a job worked after a line: lines of progress."""

from __future__ import annotations

from topodiag.model.job import Job
from topodiag.model.progress import LEAST_PROGRESS, MOST_BUFFERED, Progress
from topodiag.model.provenance import Origin

_LEFT_BEHIND = frozenset({"peer closed", "watchdog", "timeout", "stalled"})
"""What ranks say that lost another one, or wait for it."""


def met(job: Job) -> bool:
    """Whether the logs show that ranks came together: an init that completed, or connections. An excerpt that ends
    before that shows neither that a network works nor that nothing went wrong on it."""
    return any(
        bool(communicator.completed.any()) or bool(communicator.transports) for communicator in job.communicators
    )


def others_fell_first(job: Job) -> bool:
    """Whether ranks report that another one is gone, or wait for it, while logs of ranks are missing: why that one
    ended stands in its own."""
    world = job.world
    whole = world is not None and not world.inferred and len(world.known) == world.nranks
    return not whole and any(event.secondary or event.kind in _LEFT_BEHIND for event in job.events)


def went_on(job: Job, since: Origin | None) -> Progress | None:
    """Progress whose last line stands below `since`. In another log it counts too: where in time it stands is not
    known, so ask this only of what lets no progress be."""
    return next((progress for progress in _enough(job) if _is_below(progress.last, since) is not False), None)


def began_after(job: Job, end: Origin | None) -> Progress | None:
    """Progress of the same log whose first line stands below `end`: what came before it ended no job. Of a process
    without ranks beside it, progress far below: it was started again."""
    alone = not job.ranks and all(event.rank < 0 for event in job.events)
    return next(
        (
            progress
            for progress in _enough(job)
            if _is_below(progress.first, end) or (alone and _is_below(progress.last, end, MOST_BUFFERED))
        ),
        None,
    )


def _enough(job: Job) -> list[Progress]:
    starts = [
        (series.steps[0].origin, series.steps[-1].origin, len(series.steps)) for series in job.steps if series.steps
    ]
    steps = [Progress("progress.step", number, first, last) for first, last, number in starts if first and last]
    return [progress for progress in (*job.progress, *steps) if progress.number >= LEAST_PROGRESS]


def _is_below(line: Origin, mark: Origin | None, lines: int = 0) -> bool | None:
    """Whether one line stands more than so many lines below another one; None where both are not of one file."""
    if mark is None or mark.line is None or line.source != mark.source:
        return None
    return (line.line or 0) > mark.line + lines
