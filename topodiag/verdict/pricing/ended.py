"""Causes that ended a job or keep it from starting: they cost all of it, whatever the links would carry."""

from __future__ import annotations

from datetime import UTC, datetime

from topodiag.model.case import Case
from topodiag.model.finding import Severity
from topodiag.model.job import Job
from topodiag.model.verdict import Agreement, Cause, Price

_STOPS = ("JOB001", "JOB005", "JOB006", "JOB009", "NET008", "TOP001")
"""Findings that say that a job does not go on, where they are errors."""


def ended(cause: Cause, case: Case) -> Price | None:
    """The price of a cause that a job died or hangs of; None where none did."""
    findings = [cause.finding, *(consequence.finding for consequence in cause.consequences)]
    # What ends after wrong results took no time from the run.
    stops = any(finding.id in _STOPS and finding.severity is Severity.ERROR for finding in findings)
    if cause.finding.id == "BEN004" or not stops:
        return None
    named = {name for finding in findings for name in finding.where.jobs}
    jobs = [job for job in case.jobs if not named or job.name in named]
    return Price(None, 1.0, text=f"100 %: {_since(jobs)}", agreement=Agreement.NOT_PREDICTED, job_share=1.0)


def _since(jobs: list[Job]) -> str:
    """When the job stopped, as far as its log says."""
    worlds = [job.world for job in jobs if job.world is not None]
    begun = any(world.init_complete for world in worlds) or any(job.flight for job in jobs)
    if worlds and not begun:
        return "no step ran"
    first = min((event.ts for job in jobs for event in job.events if event.ts is not None), default=None)
    # Several runs may stand in one log: what is dated later refutes it, and where no step was seen, none is missed.
    seen = begun or any(job.progress or job.steps for job in jobs)
    if first is None or not seen or any(progress.last_s > first for job in jobs for progress in job.progress):
        return "the job stopped"
    return f"no step ran after {datetime.fromtimestamp(first, UTC):%Y-%m-%d %H:%M:%S} (the log's own clock)"
