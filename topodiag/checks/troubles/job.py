"""What a job's logs say that is wrong, and no finding explains: warnings of NCCL, return codes, errors of the
application. Decides no finding."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from topodiag.checks.network.interfaces.unreached import TRIED_AGAIN
from topodiag.checks.shared.job.text import MET
from topodiag.checks.shared.phrases import meaning
from topodiag.checks.troubles.node import unexplained
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


def troubles(jobs: Sequence[Job], outcomes: Sequence[Outcome]) -> tuple[Trouble, ...]:
    """Of all jobs, in the order of their logs. `outcomes` are those of the same jobs."""
    listed: list[Trouble] = []
    for job in jobs:
        findings = [finding for outcome in outcomes if outcome.node == job.name for finding in outcome.findings]
        if not any(finding.id == FIRST_ERROR for finding in findings):
            died = any(finding.id == DIED for finding in findings)
            listed += unexplained(_lines(job, ends_told=died), findings)
    return tuple(listed)


def _lines(job: Job, *, ends_told: bool) -> Iterator[Trouble]:
    for event in job.events:
        what = WHAT.get(event.level)
        if (ends_told and event.kind == "ended") or event.kind in ("launched", MET, TRIED_AGAIN):
            continue
        if what is not None and (event.level != "UNWIND" or "result" in event.details):
            yield Trouble(what, event.text.strip(), job.name, event.origin, event.count, why_harmless(event, job))


# Warnings and return codes that jobs live with, each with the reason why it tells of no fault.


CLOSED = "return codes of a communicator that was torn down"
GOING_DOWN = "torch and its launcher print it while a job goes down, well or badly: it names no cause"
NO_DEVICE = "the code by which NCCL learns that it finds none of these devices"

_OPTIONAL = regex(r"(?:ibvwrap|ibvsymbols|gdrwrap|nvmlwrap|mlx5dv\w*|net_ib\w*|plugin/\w+|net|init_nvtx)\.cc:\d+ -> ")
"""Files whose calls fail where a library is absent, and whose callers go on (src/plugin/net.cc, ncclNetInit)."""


def why_harmless(event: Event, job: Job) -> str:
    """The reason, "" where the line may tell of a fault."""
    if event.level == "UNWIND":
        return _why_code(event, job)
    if event.kind == "note":
        return meaning("harmless_remark", event.text) or GOING_DOWN
    if event.level == "APP":
        return ""
    return meaning("harmless_to_a_job", event.text)


def _why_code(event: Event, job: Job) -> str:
    """A code is a trouble of its own where the communicator did not come up, or was not given back."""
    world = job.world
    if world is None or not world.init_complete:
        return ""
    if world.destroyed:
        return CLOSED
    return NO_DEVICE if _OPTIONAL.search(f"{event.place} {event.text}") else ""
