"""For JOB008: steps of a training that wait for data, and saves of checkpoints that stop it, by its own log."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median
from typing import Any

from topodiag.checks.interface import JobCheck
from topodiag.checks.job.slow.late_words import LATE
from topodiag.checks.words import quoted
from topodiag.lazy import dataclass
from topodiag.model.data_waits import DataWaits, data_waits
from topodiag.model.finding import Confidence, Cost, Finding, Severity
from topodiag.model.job import Event, Job
from topodiag.words.fold import plural
from topodiag.words.units import percent, spell_s

KEPT_UP = "less than a tenth of of a step are spent waiting for data"

RARE = 0.05
"""Share of the time between two saves below which a save costs little."""


@dataclass(frozen=True, slots=True)
class SavePauses:
    """Lines that time a save for which training stopped: the seconds of the longest, its share of the time between
    saves (None where one line or no clock tells), and how many there were."""

    longest: Event
    seconds: float
    share: float | None
    count: int


def save_pauses(job: Job) -> tuple[SavePauses, ...]:
    """The saves of checkpoints that stop a job, by its own lines; none where they are rare."""
    events = [event for event in job.events if event.kind == LATE and event.details.get("what") == "checkpoint"]
    if not events:
        return ()
    longest = max(events, key=_seconds)
    same = [event for event in events if _who(event) == _who(longest)]
    between = _between(same)
    share = min(median(map(_seconds, same)) / between, 1.0) if between else None
    if share is not None and share < RARE:
        return ()
    return (SavePauses(longest, _seconds(longest), share, sum(event.count for event in same)),)


def _seconds(event: Event) -> float:
    return float(event.details["seconds"])


def _who(event: Event) -> tuple[int, str, int]:
    return event.rank, event.host, event.pid


def _between(events: Sequence[Event]) -> float | None:
    """Seconds from one line to the next, in the mean of those of one rank."""
    times = [ts for event in events for ts in (event.ts, event.last_ts) if ts is not None]
    count = sum(event.count for event in events)
    if count < 2 or not times or max(times) <= min(times):
        return None
    return (max(times) - min(times)) / (count - 1)


def tell_pauses(check: JobCheck[Any], observed: Sequence[SavePauses]) -> Iterator[Finding]:
    """The finding on saves that stop a job."""
    for each in observed:
        took = spell_s(each.seconds)
        share = f", {percent(each.share)} of the time from one save to the next" if each.share is not None else ""
        yield check.finding(
            Severity.WARNING,
            f"training stops for {took} while a checkpoint is saved{share}",
            observed=f"{plural(each.count, 'such line')}: {quoted(each.longest.text, 300)}",
            expected="saves that end within two minutes, or that go on while the job trains",
            fix=(
                "save asynchronously (a copy to host memory, and writing while training goes on), and from all ranks"
                " at once, each its own shard",
                "time a write of the same size to that directory (`dd if=/dev/zero of=PATH bs=16M count=640"
                " oflag=direct`): where it is fast, the time is spent in gathering and serialising, not in the store",
                "leave the links alone: all ranks wait until the last one has written",
            ),
            cost=Cost(share=each.share, text=f"{took} for each save"),
            evidence=[each.longest.origin],
            confidence=Confidence.MEDIUM,
        )


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
            fix=(
                "give the loader as many workers as the cores of a rank allow, and let them stay (persistent_workers,"
                " prefetch_factor); far more workers than cores, or a thread pool in each, make it slower"
                " (OMP_NUM_THREADS)",
                "read the same files alone, with one worker and without training: if the store is slow, keep a copy on"
                " local disks, pack small files, decode or prepare them once",
                "leave the links alone: a rank that waits for its batch comes late, and the others wait for it in the"
                " next collective",
            ),
            nodes=[waits.series.host] if waits.series.host else [],
            ranks=[rank] if rank >= 0 else [],
            cost=Cost(share=waits.share, text=f"{spell_s(waits.waited_s)} of a step are spent waiting for data"),
            evidence=list(waits.evidence),
            confidence=Confidence.MEDIUM,
        )
