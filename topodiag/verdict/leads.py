"""What an excerpt is like, beside what was found in it: a lead where nothing else points anywhere.

What is established stands alone. Where nobody can say how it is, the lead that is most like comes first, as a note;
where what is found only shows an effect, the first lead stands behind it in the headline. Where other causes than the
one that was found remain possible, the leads are named in the verdict and nothing else changes: in sight where the
words speak for another cause than the one found, aside where they agree. Where all that checks judged is well and the
words speak clearly for a fault that no check cleared, nobody can say how it is.
"""

from __future__ import annotations

import math
from dataclasses import replace

from topodiag.checks.likeness import like, title_of
from topodiag.model.finding import Severity, Status
from topodiag.model.likeness import Likely, Likeness
from topodiag.model.result import Result
from topodiag.model.verdict import CauseStatus, State, Verdict
from topodiag.verdict.state import left_open

LEAST_OF_HEALTHY = -0.5
"""Score below which a lead says too little beside checks that looked and found all well."""
_OPEN = ("JOB001", "JOB005", "JOB009", "BEN001", "BEN005")
"""Checks that see what something did and leave open what."""


def with_leads(result: Result, likeness: Likeness) -> Result:
    """The result with what its texts are like, where that is worth a word."""
    verdict = result.verdict
    if verdict is None or not leaves_open(result) or not _may_be(result, verdict, likeness):
        return result
    harmless = likeness.harmless and not _is_effect(verdict)
    notes = (like(each, harmless=harmless) for each in _likely(result, verdict, likeness))
    leads = tuple(each for each in notes if each is not None)
    if not leads:
        return result
    agree = likeness.causes[0].check in _found(result)
    return _placed(result, replace(verdict, leads=leads), harmless=harmless, agree=agree)


def _placed(result: Result, verdict: Verdict, *, harmless: bool, agree: bool) -> Result:
    """The result with the leads of its new `verdict` where they belong; `agree`: the words speak for what was found."""
    first = verdict.leads[0]
    if _is_effect(verdict) and not agree:
        headline = f"{verdict.headline}; what did it is not in sight, the text {title_of(first)}"
        return replace(result, verdict=replace(verdict, headline=headline))
    if verdict.state is State.HEALTHY:
        headline = f"{verdict.headline}, but it {title_of(first)}"
        return replace(result, verdict=replace(verdict, state=State.UNKNOWN, headline=headline))
    if harmless and result.jobs:  # a job that was read, and is like those that were well: its own headline says more
        return replace(result, verdict=verdict)
    if _found(result) or verdict.state is not State.UNKNOWN:
        return replace(result, verdict=replace(verdict, leads_aside=bool(verdict.causes) and agree))
    own = [each for each in result.findings if each.id == first.id]  # a note of the check itself says more
    rest = [each for each in result.findings if each.id != first.id]
    headline = f"nothing here is established; it {first.message}"
    return replace(result, findings=(*(own or [first]), *rest), verdict=replace(verdict, headline=headline))


def leaves_open(result: Result) -> bool:
    """Whether the findings leave open what is wrong, if anything is: then it is worth asking what texts are like."""
    verdict = result.verdict
    if verdict is None:
        return False
    if _found(result):
        return bool(verdict.causes) and verdict.causes[0].status is not CauseStatus.ESTABLISHED
    if left_open(result) and not result.jobs:
        return False  # what a check leaves open itself, with what would tell, says more than a resemblance
    # Ranks that were compared, step by step: a resemblance to slow ones says less.
    return not (_only_steps(result) and any(each.check == "JOB008" for each in result.with_status(Status.CLEAN)))


def _may_be(result: Result, verdict: Verdict, likeness: Likeness) -> bool:
    """Whether texts that are more like harmless ones may say anything here. Where an effect stands, something is wrong
    whatever they are like."""
    return not likeness.harmless or _is_effect(verdict) or not (_found(result) or verdict.state is State.HEALTHY)


def _is_effect(verdict: Verdict) -> bool:
    return bool(verdict.causes) and verdict.causes[0].finding.id in _OPEN


def _found(result: Result) -> set[str]:
    return {each.id for each in result.findings if each.severity > Severity.INFO}


def _only_steps(result: Result) -> bool:
    """Whether a training printed nothing but its steps."""
    return bool(result.jobs) and all(job.steps and not job.events for job in result.jobs)


def _likely(result: Result, verdict: Verdict, likeness: Likeness) -> list[Likely]:
    """The causes that no check has found or cleared."""
    told = _found(result) | {outcome.check for outcome in result.with_status(Status.CLEAN)}
    least = LEAST_OF_HEALTHY if verdict.state is State.HEALTHY else -math.inf
    return [each for each in likeness.causes if each.check not in told and each.score >= least]


__all__ = ["leaves_open", "with_leads"]
