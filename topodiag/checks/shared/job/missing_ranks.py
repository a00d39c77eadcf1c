"""For JOB001: processes that waited where all ranks meet, and others that did not come."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from topodiag.checks.interface import Advice, JobCheck
from topodiag.checks.words import quoted, rank_word
from topodiag.lazy import dataclass, regex
from topodiag.model.finding import Confidence, Cost, Finding, Severity
from topodiag.model.job import Event, Job

ABSENT = "absent"
"""The fault of a line that says so (evidence/signatures/catalogue/process.toml)."""
MET = "met"
"""Kind of the lines that ranks print at torch's store (framework.toml of the catalogue)."""
_CAME = regex(r"\b(\d{1,6})/(\d{1,6}) clients joined|barrier: (\d{1,6})/(\d{1,6})")
_WORKERS = regex(r"world_size=(\d{1,6}), (?:worker_count|num_workers_joined)=(\d{1,6})")
_MOST_RANKS = 1 << 16
_FIX = (
    "the log of a process that did not come: it never started (launcher, scheduler, image), ended before, or"
    " meets elsewhere (MASTER_ADDR, MASTER_PORT, the coordinator's address)",
    "more processes than the world size: two launches with one address, or a wrong --nnodes, --nproc_per_node",
    "nodes that start slowly: a longer timeout of the rendezvous",
)


@dataclass(frozen=True, slots=True)
class Meeting:
    """A barrier at torch's store that is not over: how many it waits for, how many it saw, and which ranks never came
    to it, where all those that it saw left a line. `ahead`: a start whose ranks are ten seconds apart shows as much."""

    world: int
    came: int
    missing: tuple[int, ...]
    told: tuple[Event, ...]
    ahead: bool = False


def absent_at_meeting(check: JobCheck[Any], job: Job) -> Iterator[Finding]:
    """The finding on a store, a coordinator or a barrier at which not all ranks came in time, else on a store's barrier
    with which the log ends."""
    events = [event for event in job.events if event.details.get("fault") == ABSENT]
    meeting = _open_meeting(job, over=not events)
    if not events:
        if meeting is not None:
            yield _still_waiting(check, meeting)
        return
    # Who counts who came is at the meeting, and is quoted before those that wait for one more thing.
    events.sort(key=lambda event: not _count(event))
    count = _count(events[0])
    missing = list(meeting.missing) if meeting is not None else []
    yield check.finding(
        check.where(ranks=missing),
        Advice(Severity.ERROR),
        f"not all processes came to where the job meets{count}" + (f"; {_never(missing)}" if missing else ""),
        observed=quoted(events[0].text, 200),
        expected="as many processes as the world size says, within the time that the first one waits",
        fix=_FIX,
        cost=Cost(text="the job does not begin"),
        evidence=[event.origin for event in events],
        confidence=Confidence.HIGH if _CAME.search(events[0].text) or "all" in events[0].details else Confidence.MEDIUM,
    )


def _still_waiting(check: JobCheck[Any], meeting: Meeting) -> Finding:
    """A warning: the log shows who waits, and not how it ended. Information where a healthy start looks the same."""
    came, world = meeting.came, meeting.world
    missing = list(meeting.missing)
    if came > world:
        what = f"{came} processes came to a store at which {world} ranks meet"
    else:
        what = f"{came} of {world} ranks came to the store at which the job meets, and wait there"
    if meeting.ahead:
        what += " when the log ends, ten seconds or more after the first one"
    return check.finding(
        check.where(ranks=missing),
        Advice(Severity.INFO if meeting.ahead else Severity.WARNING),
        what + (f"; {_never(missing)}" if missing else ""),
        observed=quoted(meeting.told[0].text, 200),
        expected=f"{world} ranks, each once, and torch's `Completed store-based barrier` behind these lines",
        fix=(f"look first at the log of {rank_word(missing)}", *_FIX) if missing else _FIX,
        cost=Cost(text="the others wait, and give up when the time of the barrier is over"),
        evidence=[event.origin for event in meeting.told],
        confidence=Confidence.LOW if meeting.ahead else Confidence.MEDIUM,
    )


def _never(missing: Sequence[int]) -> str:
    return f"{rank_word(missing)} never came"


def _open_meeting(job: Job, *, over: bool) -> Meeting | None:
    """The last barrier of the store, where ranks wait for others and nothing shows that they went on. `over`: whether
    what ranks do behind the barrier shows its end; where its time ran out, its end is known."""
    by_key: dict[str, list[Event]] = defaultdict(list)
    for event in job.events:
        if event.kind == MET:
            by_key[event.details["key"]].append(event)
    if not by_key or (
        over and (job.steps or any(bool(communicator.completed.any()) for communicator in job.communicators))
    ):
        return None
    events = next(reversed(by_key.values()))
    if over and not any("last" in event.details for event in events):
        return None
    return _meeting_of(events)


def _meeting_of(events: Sequence[Event]) -> Meeting | None:
    """What the lines of one barrier say, where they do not say that all came."""
    waits = [event for event in events if "came" in event.details]
    if not waits or any("all" in event.details for event in events):
        return None
    world = int(waits[-1].details["world"])
    came = max(int(event.details["came"]) for event in waits)
    seen = {int(event.details["ranks"]) for event in events}
    # Without its own words for it, an old torch's start that went well ends with the line of the rank that came last.
    if world < 2 or world > _MOST_RANKS or came == world or len(seen) >= world:
        return None
    missing = tuple(sorted(set(range(world)) - seen)) if len(seen) == came else ()
    return Meeting(world, came, missing, tuple(waits), ahead=not _waited(waits, came))


def _waited(waits: Sequence[Event], came: int) -> bool:
    """Whether a rank said more than once that it waits, or all that came say so: one line is what a rank prints that
    is ten seconds ahead of the others."""
    lines = Counter[str]()
    for event in waits:
        lines[event.details["ranks"]] += event.count
    return max(lines.values()) > 1 or len(lines) >= max(came, 2)


def _count(event: Event) -> str:
    """How many came of how many, where the line counts them."""
    text, named = event.text, event.details
    if "all" in named:
        return f": {named['came']} of {named['all']} did"
    came, workers = _CAME.search(text), _WORKERS.search(text)
    if came is not None:
        return f": {came[1] or came[3]} of {came[2] or came[4]} did"
    return f": {workers[2]} for {workers[1]} ranks" if workers is not None else ""
