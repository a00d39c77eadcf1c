"""Who is behind or called another operation, by the words of frameworks: one such line is the verdict by itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from topodiag.checks.interface import JobCheck
from topodiag.checks.words import hosts_with, quoted, rank_word, ranks_in
from topodiag.lazy import regex
from topodiag.model.finding import Finding
from topodiag.model.job import Event, Job
from topodiag.words.fold import plural
from topodiag.words.units import in_s

TRUNCATED = regex(
    r"[Mm]essage truncated ?: receiv(?:ing|ed) (\d{1,18}) bytes instead of (\d{1,18})"
    r"|[Mm]ismatched? collective|collective mismatch"
)
"""NET/Socket and the bootstrap, src/transport/net_socket.cc and src/bootstrap.cc v2.4 and later."""
THROUGH = regex(r"Horovod has been shut down\b.{0,200}after one of the ranks (?:has )?finished execution")
"""Horovod common/common.h (SHUT_DOWN_ERROR), the same in all versions: it leaves open whether a rank was through or
met an exception, which its own output shows."""
NO_NEWS = frozenset({"note", "other", "peer closed"})
"""Kinds of events that name no cause by themselves."""
MOST_RANKS = 4096


def by_words(check: JobCheck[Any], job: Job) -> Iterator[Finding]:
    """JOB006 by lines that say which ranks are missing or differ: Horovod's stall check, Gloo's monitored barrier,
    torch's fingerprints of collectives (TORCH_DISTRIBUTED_DEBUG=DETAIL), and truncated messages."""
    stalled = [event for event in job.events if event.kind == "stalled" and "told" not in event.details]
    if stalled:
        yield _stalled(check, job, stalled)
    mismatched = [event for event in job.events if event.kind == "mismatch" and "one" in event.details]
    if mismatched:
        yield _differ(check, job, mismatched)
    events = [event for event in job.events if "told" in event.details]
    if events and not (stalled or mismatched or job.ras):
        yield _told(check, job, events)
    if not (stalled or mismatched or events):
        yield from _ended_early(check, job)
    if not mismatched:
        yield from _cut_short(check, job)


def _cut_short(check: JobCheck[Any], job: Job) -> Iterator[Finding]:
    cut = [event for event in job.events if event.level == "WARN" and TRUNCATED.search(event.text)]
    if cut:
        yield _truncated(check, cut)


def _stalled(check: JobCheck[Any], job: Job, events: Sequence[Event]) -> Finding:
    ranks = _ranks_of(events)
    operation = events[0].details.get("op", "")
    who = rank_word(ranks) if ranks else "some ranks"
    waited = events[0].details.get("waited_ms", "")
    return check.finding(
        check.where(hosts_with(job, ranks), ranks=ranks),
        "stalled",
        f"{who} did not enter {operation or 'an operation'} that the others wait in",
        observed=f"{plural(len(events), 'report')} of ranks that are missing"
        + (f", after {in_s(int(waited) / 1000)}" if waited else ""),
        fix=(
            f"find out what {who if ranks else 'the ranks that the log names below'} was doing instead: a branch, an"
            " evaluation or a checkpoint that only some ranks do, or an exception; `py-spy dump`",
        ),
        evidence=[event.origin for event in events],
    )


def _ended_early(check: JobCheck[Any], job: Job) -> Iterator[Finding]:
    over = [event for event in job.events if event.kind == "peer closed" and THROUGH.search(event.text)]
    if over and not any(_names_cause(event, _line(over[0])) for event in job.events):
        yield _through(check, job, over)


def _names_cause(event: Event, after: int) -> bool:
    """Whether a line says how a rank ended: a launcher's word of the ranks that this ended, below it, is none."""
    if event.kind in NO_NEWS:
        return False
    follows = event.kind == "ended" and event.details.get("how") in ("context", "exit", "aborted", "stopped")
    return not (follows and _line(event) > after)


def _line(event: Event) -> int:
    return (event.origin.line or 0) if event.origin is not None else 0


def _through(check: JobCheck[Any], job: Job, events: Sequence[Event]) -> Finding:
    """Ranks that call one more operation than another rank, which was through or is gone."""
    ranks = ranks_in(events)
    who = rank_word(ranks) if ranks else "a rank"
    return check.finding(
        check.where(hosts_with(job, ranks), ranks=ranks),
        "another rank was through",
        f"{who} waited in an operation that another rank did not enter: that one was through, or ended",
        observed=quoted(events[0].text),
        evidence=[event.origin for event in events],
    )


def _told(check: JobCheck[Any], job: Job, events: Sequence[Event]) -> Finding:
    """By the word of a program or a person that topodiag does not know: that calls differ before who is missing, as
    ranks that called another operation are missed in this one."""
    differ = [event for event in events if event.kind == "mismatch"]
    first = (differ or events)[0]
    ranks = _ranks_of([event for event in events if event.kind == first.kind])
    who = rank_word(ranks) if ranks else "some ranks"
    return check.finding(
        check.where(hosts_with(job, ranks), ranks=ranks),
        "behind by words",
        f"{who}: {'calls of ranks differ' if differ else 'not where the others wait'}, in the text's own words:"
        f" {quoted(first.text)}",
        observed=quoted(first.text, 300),
        fix=(
            "compare the calls of these ranks: shapes of uneven batches, a branch or an order that only some take"
            if differ
            else f"find out what {who} was doing instead: `py-spy dump`, its log, the kernel log of its node",
        ),
        evidence=[event.origin for event in events],
    )


def _ranks_of(events: Sequence[Event]) -> list[int]:
    named = {int(word) for event in events for word in event.details.get("ranks", "").split(",") if word.isdecimal()}
    return sorted(named)[:MOST_RANKS]


def _differ(check: JobCheck[Any], job: Job, events: Sequence[Event]) -> Finding:
    first = events[0]
    ranks = [int(word) for word in first.details["ranks"].split(",") if word.isdecimal()]
    one, other = first.details["one"], first.details.get("other", "")
    numbers = [first.details.get(f"{side}_seq", "") for side in ("one", "other")]
    at = f" at number {numbers[0]}" if numbers[0] and numbers[0] == numbers[1] else ""
    words = f"; sequence numbers {numbers[0]} and {numbers[1]}" if all(numbers) and numbers[0] != numbers[1] else ""
    told = f"{one} on rank {ranks[0]}; {other} on rank {ranks[1]}" if len(ranks) > 1 else one
    return check.finding(
        check.where(hosts_with(job, ranks), ranks=sorted(ranks)),
        "different calls",
        f"{rank_word(sorted(ranks))} call different operations{at}: {one or 'one'} and {other or 'another'}{words}"
        if len(ranks) > 1
        else f"{rank_word(ranks)} calls {one or 'an operation'}, and other ranks call another one",
        observed=told,
        evidence=[event.origin for event in events],
    )


def _truncated(check: JobCheck[Any], events: Sequence[Event]) -> Finding:
    first = events[0]
    match = TRUNCATED.search(first.text)
    sizes = f": {match[1]} bytes came where {match[2]} were expected" if match is not None and match[1] else ""
    return check.of_events(
        events, "truncated message", f"ranks do not agree on an operation{sizes}", observed=first.text[:300]
    )
