"""The jobs of a case, judged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from topodiag.app.judge.results import judged_result
from topodiag.checks.registry import Subject
from topodiag.checks.run import run
from topodiag.checks.shared.job.text import wants_operations
from topodiag.checks.spoken import told
from topodiag.checks.troubles.job import troubles
from topodiag.model.debug_settings import HANG, SUBSYSTEMS, next_time
from topodiag.model.job import Job
from topodiag.model.nccl_versions import assumption, is_newer
from topodiag.model.provenance import NotObserved
from topodiag.model.result import Case, Result
from topodiag.verdict.judge import state_of_jobs


def judged(case: Case) -> Result:
    """The jobs of a case, judged, and how the worst of them is."""
    from topodiag.app.judge.placing import seats  # noqa: PLC0415 - prices, which only jobs of known groups need

    outcomes = (*run(Subject.JOB, case.jobs), *seats(case)[0])
    whole = replace(case, not_observed=(*case.not_observed, *not_logged(case.jobs)))
    result = told(judged_result(whole, outcomes, unexplained=troubles(case.jobs, outcomes)))
    return replace(result, state=state_of_jobs(result, case))


ONCE = ("INIT", "ENV", "NET", "GRAPH", "TUNING")
"""Subsystems that print something in every run that has them on, so that silence says that they were off."""
OF_RCCL = (
    "RCCL takes its rings from its own tables and engines (Rome models, MSCCL), so its log is not"
    " compared with the model of the search"
)


def not_logged(jobs: Sequence[Job]) -> list[NotObserved]:
    """What no line tells because its subsystem was off, and what to set next time."""
    versions = sorted({version for job in jobs for version in job.nccl_versions if is_newer(version)})
    gaps = [NotObserved(f"what is new in NCCL {version}", assumption(version)) for version in versions]
    if any(job.library == "RCCL" for job in jobs):
        gaps.append(NotObserved("what RCCL decides by rules of its own", OF_RCCL))
    for job in jobs:
        if not job.processes:
            continue
        hang = wants_operations(job)
        why = f"not logged: {next_time(hang=hang)} (topodiag env prints all of it)"
        gaps += [NotObserved(f"{name}: {SUBSYSTEMS[name]}", why) for name in ONCE if name not in job.subsystems]
        if hang:
            gaps.append(NotObserved(f"{HANG}: which rank entered which operation", why))
    return gaps
