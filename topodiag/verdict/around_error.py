"""Which events belong to the failure of a case: those round the first error of its first cause."""

from __future__ import annotations

from collections.abc import Sequence

from topodiag.model.finding import Finding
from topodiag.model.result import Result
from topodiag.model.timeline import Moment

BEFORE_S, AFTER_S = 600.0, 300.0
"""An event counts for a failure from ten minutes before to five after it (join of RSC, arXiv 2410.21680)."""


def around_first_error(result: Result) -> list[Moment]:
    """Events in the window round the first cause, in order, without those that only frame a job. Where its own lines
    have no time, the first of what follows from it is taken."""
    verdict = result.verdict
    if verdict is None or not verdict.causes:
        return []
    first = verdict.causes[0]
    timed = [moment for moment in result.timeline.moments if moment.time is not None]
    below = [consequence.finding for consequence in first.consequences]
    begin = next(filter(None, (_begins(timed, group) for group in ([first.finding], below))), None)
    if begin is None:
        return []
    return [
        moment
        for moment in timed
        if moment.time is not None and begin - BEFORE_S <= moment.time <= begin + AFTER_S and not moment.frames
    ]


def _begins(timed: Sequence[Moment], findings: Sequence[Finding]) -> float | None:
    """The time of the first event that stands in the evidence of these findings."""
    lines = {(line.source, line.line) for finding in findings for line in finding.evidence}
    hits = [moment.time for moment in timed if moment.origin and (moment.origin.source, moment.origin.line) in lines]
    return min((time for time in hits if time is not None), default=None)
