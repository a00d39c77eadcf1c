"""What a job's logs say that is wrong, and no finding explains: warnings of NCCL, return codes, errors of the
application. Decides no finding."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from topodiag.checks.job.absent import MET
from topodiag.checks.job.harmless import why_harmless
from topodiag.checks.job.launches import LAUNCHED
from topodiag.checks.job.unreached import TRIED_AGAIN
from topodiag.checks.unexplained import unexplained
from topodiag.lazy import regex
from topodiag.model.finding import Outcome
from topodiag.model.job import Event, Job
from topodiag.model.result import Trouble

WHAT = {"WARN": "NCCL WARN", "ABORT": "NCCL WARN", "UNWIND": "return code", "APP": "error of the application"}
"""What a line is called, by the level of its event."""

FIRST_ERROR = "JOB005"
"""It counts what came after the first error, so that those lines are told."""

DIED = "JOB009"
"""It names the end of a process that came first: further words on it, and on those that followed, are told."""

_CODE = regex(r"-> [1-68]\b")
"""ncclResult_t but for 7, which is no error: in progress."""


def troubles(jobs: Sequence[Job], outcomes: Sequence[Outcome]) -> tuple[Trouble, ...]:
    """Of all jobs, in the order of their logs. `outcomes` are those of the same jobs."""
    made: list[Trouble] = []
    for job in jobs:
        findings = [each for outcome in outcomes if outcome.node == job.name for each in outcome.findings]
        if not any(finding.id == FIRST_ERROR for finding in findings):
            died = any(finding.id == DIED for finding in findings)
            made += unexplained(_lines(job, ends_told=died), findings)
    return tuple(made)


def _lines(job: Job, *, ends_told: bool) -> Iterator[Trouble]:
    for event in job.events:
        what = WHAT.get(event.level)
        if (ends_told and event.kind == "ended") or event.kind in (LAUNCHED, MET, TRIED_AGAIN):
            continue
        if what is not None and (event.level != "UNWIND" or _CODE.search(event.text)):
            yield _trouble(what, event, job)


def _trouble(what: str, event: Event, job: Job) -> Trouble:
    return Trouble(what, event.text.strip(), job.name, event.origin, event.count, why_harmless(event, job))
