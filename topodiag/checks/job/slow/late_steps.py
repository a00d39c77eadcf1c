"""For JOB008: steps of a training that wait for data, by its own log."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from topodiag.checks.interface import JobCheck
from topodiag.model.data_waits import DataWaits, data_waits
from topodiag.model.finding import Confidence, Cost, Finding, Severity
from topodiag.model.job import Job
from topodiag.words.units import percent, spell_s

KEPT_UP = "less than a tenth of of a step are spent waiting for data"


def late_for_data(job: Job) -> tuple[DataWaits, ...]:
    """The waiting of the last start of each rank that prints it, the worst first."""
    found = [waits for pace in job.paces if (waits := data_waits(pace.series)) is not None]
    return tuple(sorted(found, key=lambda each: -each.share)[:1])


def tell_waits(check: JobCheck[Any], job: Job, observed: Sequence[DataWaits]) -> Iterator[Finding]:
    """The finding on steps that wait for data."""
    for waits in observed:
        who = waits.series.who
        of = f" of {who}" if who else ""
        rank = waits.series.rank
        if waits.always:
            message = f"steps{of} wait for data {percent(waits.share)} of their time: the input sets the pace"
        else:
            message = (
                f"{waits.slow} of {waits.lines} steps{of} are long because they wait for data: {percent(waits.share)}"
                " of all time goes to waiting for input"
            )
        yield check.finding(
            Severity.WARNING,
            message,
            observed=f"of {spell_s(waits.step_s)} a step, {spell_s(waits.waited_s)} are waiting for data in the mean of"
            f" {waits.lines} lines after the warm-up; without it a step takes {spell_s(waits.usual_s)}",
            expected=KEPT_UP,
            advice=check.advice("waits for data"),
            nodes=[waits.series.host] if waits.series.host else [],
            ranks=[rank] if rank >= 0 else [],
            cost=Cost(share=waits.share, text=f"{spell_s(waits.waited_s)} of a step are spent waiting for data"),
            evidence=list(waits.evidence),
            confidence=Confidence.MEDIUM,
        )
