"""What a cause takes from a job or a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from topodiag.model.finding import Finding, Severity
from topodiag.model.result import Case
from topodiag.model.verdict import Agreement, Cause, Price
from topodiag.verdict.moments import waited_s
from topodiag.verdict.pricing.registry import GROUPS, mend_of, without_mend

if TYPE_CHECKING:
    from topodiag.model.job import Job
    from topodiag.placement.job_groups import JobStep
    from topodiag.verdict.pricing.mend import Mend

_STOPS = ("JOB001", "JOB005", "JOB006", "JOB009", "NET008", "TOP001")
"""Findings that say that a job does not go on, where they are errors."""


def ended(cause: Cause, case: Case) -> Price | None:
    """The price of a cause that a job died or hangs of; None where none did."""
    # What ends after wrong results took no time from the run.
    stops = any(finding.id in _STOPS and finding.severity is Severity.ERROR for finding in cause.findings)
    if cause.finding.id == "BEN004" or not stops:
        return None
    named = {name for finding in cause.findings for name in finding.where.jobs}
    jobs = [job for job in case.jobs if not named or job.name in named]
    return Price(None, 1.0, text=f"100 %: {_since(jobs)}", agreement=Agreement.NOT_PREDICTED, job_share=1.0)


def _since(jobs: list[Job]) -> str:
    """When the job stopped, as far as its log says."""
    worlds = [job.world for job in jobs if job.world is not None]
    begun = any(world.init_complete for world in worlds)
    begun = begun or any(job.flight or job.progress or job.steps for job in jobs)
    if not begun and any(not world.inferred for world in worlds):  # else no line of init is in the log
        return "no step ran"
    first = _first_stop(jobs)
    # Several runs may stand in one log: what is dated later refutes it, and where no step was seen, none is missed.
    if first is None or not begun or any(progress.last_s > first for job in jobs for progress in job.progress):
        return "the job stopped"
    what = "the job stopped at" if jobs and all(map(_serves, jobs)) else "no step ran after"
    return f"{what} {datetime.fromtimestamp(first, UTC):%Y-%m-%d %H:%M:%S} (the log's own clock)"


def _serves(job: Job) -> bool:
    """Whether a job answers requests, and takes no steps."""
    kinds = {progress.kind for progress in job.progress}
    return bool(kinds) and "progress.step" not in kinds and not job.steps and job.world is None


def _first_stop(jobs: Sequence[Job]) -> float | None:
    """When the first line about the end was true, by the log's clock: a watchdog's since its rank waits. None where a
    wait has no date: what is dated came later."""
    stops = [(event.ts, waited_s(event) or 0.0) for job in jobs for event in job.events]
    if any(ts is None and waited for ts, waited in stops):
        return None
    return min((ts - waited for ts, waited in stops if ts is not None), default=None)


BY_LAYOUT = "by the layout of the ranks, as `topodiag place audit` prices it"
ASSUMED = "70B parameters assumed"


def priced(causes: Sequence[Cause], case: Case, steps: Sequence[JobStep] = ()) -> tuple[Price, ...]:
    """The price of every cause, in their order; as a share of a step too for the jobs of which `steps` tell one. Never
    raises for what a case holds."""
    by_cause: dict[int, Price] = {}
    mended = []
    for at, cause in enumerate(causes):
        if (stop := ended(cause, case)) is not None:
            by_cause[at] = stop
        elif mends := _mends(cause):
            mended.append((at, cause.finding, mends))
        elif (placed := _placed(cause, case)) is not None:
            by_cause[at] = placed
    if mended:
        from topodiag.verdict.pricing.together import Part, together  # noqa: PLC0415 - NCCL's search and tuning

        by_cause.update(together([Part(*row) for row in mended], case, steps))
    prices = (by_cause.get(at) or without_mend(cause.finding) for at, cause in enumerate(causes))
    basis = BY_LAYOUT if any(step.given for step in steps) else f"{BY_LAYOUT}, {ASSUMED}"
    return tuple(_with_layout(price, cause, basis) for price, cause in zip(prices, causes, strict=True))


def _with_layout(price: Price, cause: Cause, basis: str) -> Price:
    """The price with the share of a step that a check of layouts gives, where not a link was priced."""
    if price.step_share is not None or price.job_share == 1.0:
        return price
    costs = [finding.cost for finding in cause.findings]
    for cost in costs:
        if cost.step_share is not None:
            return replace(price, step_share=cost.step_share, step_said=basis)
    for cost in costs:
        if cost.communication_share is not None:
            return replace(price, communication_share=cost.communication_share, step_said=basis)
    return price


def _mends(cause: Cause) -> tuple[tuple[Mend, Finding], ...]:
    own = mend_of(cause.finding.id)
    if own is not None:
        return ((own, cause.finding),)
    below = ((mend_of(consequence.finding.id), consequence.finding) for consequence in cause.consequences)
    return tuple((mend, finding) for mend, finding in below if mend is not None)


def _placed(cause: Cause, case: Case) -> Price | None:
    """The price of a group's place: that of the cause, else of the first consequence that has one."""
    findings = [finding for finding in cause.findings if finding.id in GROUPS]
    if not findings:
        return None
    from topodiag.verdict.pricing.placed import placement_price  # noqa: PLC0415 - as above

    return next((price for finding in findings if (price := placement_price(finding, case)) is not None), None)
