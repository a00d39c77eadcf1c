"""The share of a step that a cause is predicted to take, beside how much longer the job's steps became.

What a log of steps measures is a change: how much longer a step takes than before, in the same start and at the same
batch. A cause that was there from the first step changes none of them. So agreement is said only of a cause that stands
alone, and with its condition: that it began then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from topodiag.model.job import Job
from topodiag.model.result import Case
from topodiag.model.step_pace import Pace, says_change, says_waits
from topodiag.model.verdict import Agreement, Cause
from topodiag.verdict.pricing.agreement import TOLERANCE, compare
from topodiag.words.units import percent

_AT_START = ("ENV", "GDR", "NET", "NUM", "P2P", "TOP")
"""Checks of what NCCL prints while it makes its communicators; NET008, a port that fails, comes later."""
TOGETHER_S = 300.0
"""Seconds within which a change of the steps and a line of a cause are of one time: a line of steps may be the mean of
many of them, and a fault may be told by a watch that looks every few minutes."""


def with_measured_steps(causes: Sequence[Cause], case: Case, bears: Callable[[Cause, Job], bool]) -> list[Cause]:
    """The causes with the comparison, where the log of a job shows that its steps became longer. `bears` says whether a
    cause is of a job."""
    ordered = list(causes)
    for job in case.jobs:
        pace = _slower(job)
        if pace is None:
            continue
        priced = [at for at, cause in enumerate(ordered) if cause.price.step_share is not None and bears(cause, job)]
        if len(priced) == 1:
            at = priced[0]
            says, agrees = _compared(ordered[at], pace, job, case)
            price = replace(ordered[at].price, step_says=says, step_agrees=agrees)
            ordered[at] = replace(ordered[at], price=price)
    return ordered


def open_steps(causes: Sequence[Cause], case: Case) -> tuple[str, ...]:
    """Of each job whose steps became longer what no cause explains, in a sentence."""
    if any(cause.price.step_agrees for cause in causes):
        return ()
    texts = []
    for job in case.jobs:
        for pace in job.paces[:1]:
            if says_waits(pace):
                continue
            if pace.slower > 1:
                texts.append(f"{says_change(pace)}: no cause that is known began then")
            elif pace.drift > 1:
                longer = f"{percent(pace.drift - 1)} longer little by little"
                texts.append(f"steps became {longer}: no cause is known for it")
    return tuple(texts)


def _slower(job: Job) -> Pace | None:
    return next((pace for pace in job.paces[:1] if pace.slower > 1 and not says_waits(pace)), None)


def _compared(cause: Cause, pace: Pace, job: Job, case: Case) -> tuple[str, bool]:
    """The sentence, and whether both are the same."""
    price = cause.price
    assert price.step_share is not None  # noqa: S101 - the caller asked
    lost = 1 - 1 / pace.slower
    least, most = price.step_range or (price.step_share, price.step_share)
    measured = f"{says_change(pace)}: {percent(lost)} of a step"
    if _is_from_the_start(cause, job):
        return f"{measured}; the cause was there when the job began, so it did not change them", False
    began, gap_s = _began(cause, pace, case)
    if gap_s:
        return f"{measured}, and the cause is of another time: it does not explain that", False
    if price.step_range is not None and least == most:
        agrees = compare(1.0, 1 - price.step_share, 1 - lost, "the cause").agreement is Agreement.AGREES
        words = f"predicted {percent(price.step_share)}"
        return f"{measured}, {words}: " + (f"the cause explains it{began}" if agrees else "these differ"), agrees
    # Of a model that is only assumed, a value inside the range is no proof.
    fits = least * (1 - TOLERANCE) <= lost <= most * (1 + TOLERANCE)
    low, high = round(100 * least), round(100 * most)
    words = f"predicted {f'{low}-' if low < high else ''}{percent(high / 100)} by the model that is trained"
    return f"{measured}, {words}: " + (f"that fits{began}" if fits else "these differ"), False


def _is_from_the_start(cause: Cause, job: Job) -> bool:
    """Whether NCCL's lines at the start of the job show it or what follows from it."""
    at_start = (finding for finding in cause.findings if finding.id.startswith(_AT_START) and finding.id != "NET008")
    return any(line.source in job.files for finding in at_start for line in finding.evidence)


def _began(cause: Cause, pace: Pace, case: Case) -> tuple[str, bool]:
    """Words on when the cause began, and whether that was at another time."""
    lines = {(line.source, line.line) for line in cause.finding.evidence if line.line is not None}
    moments = [(moment, moment.origin) for moment in case.timeline.moments if moment.origin is not None]
    of_cause = (moment.time for moment, origin in moments if (origin.source, origin.line) in lines)
    times = [time for time in of_cause if time is not None]
    change = says_change(pace, timed=False)
    at = next((moment.time for moment in case.timeline.moments if change and moment.what == change), None)
    if not times or at is None:
        return ", if it began then", False
    gap_s = min(abs(time - at) for time in times)
    return (", and its first line is of that time", False) if gap_s <= TOGETHER_S else ("", True)
