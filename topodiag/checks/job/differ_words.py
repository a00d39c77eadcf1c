"""For JOB002, JOB003 and JOB004: what a text itself says is not the same everywhere, or shared by two ranks."""

from __future__ import annotations

from typing import Any

from topodiag.checks.interface import JobCheck
from topodiag.checks.shared.words import quoted
from topodiag.model.finding import Confidence, Cost, Finding, Severity
from topodiag.model.job import Job

DIFFERS = "differs"
"""Kind of such lines; `what` of their details says what differs (evidence/nccl_log/grammar/rank_states.py)."""
VERSION, SETTING, GPU = "version", "setting", "gpu"
_WORDS = {
    GPU: ("ranks share a GPU", "one rank on each GPU", "set the device from the local rank before init, or"
          " CUDA_VISIBLE_DEVICES for each task"),
    VERSION: ("a version is not the same everywhere", "one version on all nodes", "start the same image on all nodes"),
    SETTING: ("a setting is not the same everywhere", "one value on all ranks",
              "export settings once, in the job script; remove nccl.conf lines"
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
            f"{noun}, in the text's own words: {quoted(told[0].text)}",
            observed=quoted(told[0].text, 300),
            expected=expected,
            fix=(fix,),
            cost=Cost(
                text="the ranks share one GPU's compute and links"
                if what == GPU
                else "ranks disagree on messages or choices: init fails, or a collective hangs"
            ),
            evidence=[event.origin for event in told],
            confidence=Confidence.LOW,
        )
    ]
