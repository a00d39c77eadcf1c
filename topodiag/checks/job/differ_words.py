"""For JOB002 and JOB003: what a text itself says is not the same on all ranks or nodes."""

from __future__ import annotations

from typing import Any

from topodiag.checks.interface import JobCheck
from topodiag.checks.shared.words import quoted
from topodiag.model.finding import Confidence, Cost, Finding, Severity
from topodiag.model.job import Job

DIFFERS = "differs"
"""Kind of such lines; `what` of their details says what differs (evidence/nccl_log/grammar/rank_states.py)."""
VERSION, SETTING = "version", "setting"
_WORDS = {
    VERSION: ("a version", "one version on all nodes", "start the same image on all nodes"),
    SETTING: ("a setting", "one value on all ranks", "export settings once, in the job script; remove nccl.conf lines"
              " of single nodes"),
}  # fmt: skip


def told_to_differ(check: JobCheck[Any], job: Job, what: str) -> list[Finding]:
    """One finding for all lines of a job that say it; none without."""
    told = [event for event in job.events if event.kind == DIFFERS and event.details.get("what") == what]
    if not told:
        return []
    noun, expected, fix = _WORDS[what]
    return [
        check.finding(
            Severity.WARNING,
            f"{noun} is not the same everywhere, in the text's own words: {quoted(told[0].text)}",
            observed=quoted(told[0].text, 300),
            expected=expected,
            fix=(fix,),
            cost=Cost(text="ranks disagree on messages or choices: init fails, or a collective hangs"),
            evidence=[event.origin for event in told],
            confidence=Confidence.LOW,
        )
    ]
