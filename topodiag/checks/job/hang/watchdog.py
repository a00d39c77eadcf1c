"""Who is behind in a hang, by what torch's watchdog says of each rank: the last work enqueued and completed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Unpack

from topodiag.checks.interface import FindingParts, JobCheck, hosts_with, hosts_word, quoted, rank_word, ranks_in
from topodiag.checks.job.hang.lost_rank import lost_a_peer, size_of
from topodiag.lazy import dataclass
from topodiag.model.finding import Confidence, Coverage, Finding
from topodiag.model.job import Event, Job
from topodiag.model.job_waits import only_waited
from topodiag.words.units import grouped, in_s, plural

POINT_TO_POINT = ("SEND", "RECV", "COALESCED")
"""Works that only two ranks count, so that sequence numbers differ between healthy ranks."""

WORLD = "0"


@dataclass(frozen=True, slots=True)
class RankProgress:
    """How far one rank came in a process group: sequence numbers of its last work enqueued and completed."""

    enqueued: int
    completed: int
    event: Event


def by_watchdog(check: JobCheck, job: Job) -> Iterable[Finding]:
    """JOB006 by the lines `last enqueued work: 6, last completed work: 4` of ProcessGroupNCCL.cpp, torch 2.2 and later.

    A rank that completed less than others is where the others wait. Where all are equal, ranks that reported nothing
    are told as a place to look at, which proves little: they may have been killed first. Ranks that wait in the same
    work with unlike amounts of data go before all that.
    """
    findings = [*by_calls(check, job)] or [*_by_progress(check, job)]
    if not findings and _lost_to_gpu(job):
        return
    yield from findings or [*_waits(check, job)] or _hung(check, job)


def _lost_to_gpu(job: Job) -> bool:
    """Whether a rank says that its GPU failed while others waited: they waited for it, which is told as the first
    error."""
    waited = {event.rank for event in job.events if event.kind == "watchdog" and "op" in event.details}
    broken = (event.rank for event in job.events if event.kind == "cuda" and not event.secondary)
    return any(rank >= 0 and rank not in waited for rank in broken)


def _by_progress(check: JobCheck, job: Job) -> Iterable[Finding]:
    """By the last work that ranks enqueued and completed."""
    waits = (event for event in job.events if event.kind == "watchdog")
    sent = {_group(event) for event in waits if event.details.get("op") in POINT_TO_POINT}
    for group, ranks in _standings(job).items():
        if group in sent or len(ranks) < 2:
            continue
        low = min(standing.completed for standing in ranks.values())
        if any(standing.completed > low for standing in ranks.values()):
            yield _stragglers(check, job, ranks, low)
        elif group == WORLD and low >= 0:
            yield from _silent(check, job, ranks, low)


def _standings(job: Job) -> Mapping[str, Mapping[int, RankProgress]]:
    """By process group and rank. No rank completes what it did not enqueue: where a group's first work hangs, torch 2.4
    prints memory that nothing was written to, `last enqueued NCCL work: 1, last completed NCCL work: 94904856301872`
    (ProcessGroupNCCL.cpp, lastCompletedSeq), and nothing was completed."""
    progress: dict[str, dict[int, RankProgress]] = defaultdict(dict)
    for event in job.events:
        work, completed = event.details.get("work", ""), event.details.get("completed", "")
        if event.kind == "watchdog" and event.rank >= 0 and work and completed and (group := _group(event)):
            enqueued, done = int(work), int(completed)
            progress[group].setdefault(event.rank, RankProgress(enqueued, done if done <= enqueued else 0, event))
    return progress or _gave_up(job)


def _gave_up(job: Job) -> Mapping[str, Mapping[int, RankProgress]]:
    """By the line `Watchdog caught collective operation timeout` alone, where all that printed one wait in the same
    work: it names no process group, so that others would not compare."""
    events = [e for e in job.events if e.kind == "watchdog" and e.rank >= 0 and e.details.get("seq", "").isdecimal()]
    works = {(event.details["seq"], event.details.get("op", "")) for event in events}
    if len(works) != 1 or works.pop()[1] in POINT_TO_POINT:
        return {}
    return {WORLD: {e.rank: RankProgress(int(e.details["seq"]), int(e.details["seq"]) - 1, e) for e in events[::-1]}}


def _group(event: Event) -> str:
    """The process group's name for all its ranks: its number counts those of one rank, unless it is the first."""
    return WORLD if event.details.get("group") == WORLD else event.details.get("guid", "")


def _stragglers(check: JobCheck, job: Job, ranks: Mapping[int, RankProgress], low: int) -> Finding:
    worst = sorted(rank for rank, standing in ranks.items() if standing.completed == low)
    inside = [rank for rank in worst if ranks[rank].enqueued > low]
    high = max(standing.completed for standing in ranks.values())
    words = next((s.event.details["group_words"] for s in ranks.values() if s.event.details.get("group_words")), "")
    hosts = hosts_with(job, worst)
    done = len(ranks) - len(worst)
    lost = set(worst) <= lost_a_peer(job)
    return check.finding(
        check.where(hosts, ranks=worst),
        "behind by watchdog",
        f"{rank_word(worst)} {'lost a peer in' if lost else 'stopped at'} work {low + 1}"
        f"{f' of process group {words}' if words else ''}, which {plural(done, 'other rank')} completed",
        observed=f"last completed work {low} on {rank_word(worst)}, up to {high} elsewhere"
        + (f"; {rank_word(worst)} saw connections close, and waited for no timeout" if lost else ""),
        fix=(
            _find_the_lost(job, ranks)
            if lost
            else f"{rank_word(inside)} did enter it, and its data does not arrive: the network and GPU of"
            f" {hosts_word(hosts) or 'that rank'} (NET008, dmesg), then `py-spy dump`"
            if inside
            else f"find out what {rank_word(worst)} was doing instead: its own log, `py-spy dump`, dmesg",
            "TORCH_NCCL_TRACE_BUFFER_SIZE=2000 and TORCH_NCCL_DUMP_ON_TIMEOUT=1 next time: --flight reads the dumps",
        ),
        evidence=[
            *(ranks[rank].event for rank in worst),
            *(standing.event for standing in ranks.values() if standing.completed == high),
        ],
        coverage=Coverage(len(ranks), max(job.world_size, len(ranks)), "ranks reported"),
    )


def _find_the_lost(job: Job, ranks: Mapping[int, RankProgress]) -> str:
    """What to look at where a rank stopped because another one was gone."""
    silent = [rank for rank in range(min(size_of(job, ranks), 1 << 16)) if rank not in ranks]
    who = f"{rank_word(silent)}, of which there is no report" if 0 < len(silent) < len(ranks) else "who is gone"
    return (
        f"the network of the rank that is named need not fail: a peer ended or left its loop. Find out which, first"
        f" {who}: exit codes, the last lines of the logs, the number of steps"
    )


def _silent(check: JobCheck, job: Job, ranks: Mapping[int, RankProgress], low: int) -> Iterable[Finding]:
    size = max(job.world_size, max(ranks) + 1)
    spoke = {event.rank for event in job.events if event.kind == "watchdog"}
    silent = [rank for rank in range(min(size, 1 << 16)) if rank not in ranks and rank not in spoke]
    if not silent or len(silent) >= len(ranks):
        return
    events = [*(standing.event for standing in ranks.values()), *(e for e in job.events if e.kind == "watchdog")]
    operation = next((event.details["op"] for event in events if event.details.get("op")), "")
    words = f"{operation} number {low + 1}" if operation else f"work {low + 1}"
    yield check.finding(
        check.where(hosts_with(job, silent), ranks=silent[:4096]),
        "silent",
        f"{plural(len(ranks), 'rank')} waited in {words} until their watchdog; {rank_word(silent)} reported no timeout:"
        " look there first",
        observed=f"last completed work {low} on all ranks that reported{_wait_words(job)}",
        evidence=[standing.event for standing in ranks.values()],
        coverage=Coverage(len(ranks), size, "ranks reported"),
    )


def _waits(check: JobCheck, job: Job) -> Iterable[Finding]:
    """The wait itself, where no line tells who is behind: ranks, operation, group, size and how long. A watchdog times
    what its rank enqueued: where those of all ranks end one operation, all ranks entered it."""
    events = [e for e in job.events if e.kind == "watchdog" and not e.secondary and e.details.get("op")]
    if not events or {event.details["op"] for event in events} <= set(POINT_TO_POINT):
        return
    first = min(events, key=lambda event: (int(event.details.get("seq", "0")), event.rank))
    alike = [event for event in events if event.details.get("seq") == first.details.get("seq")]
    elsewhere = len(events) - len(alike)
    ranks = ranks_in(alike)
    came = 0 < job.world_size <= len(ranks)
    size = f" of {job.world_size}" if job.world_size > len(ranks) else ""
    who = f"all {job.world_size} ranks" if came else f"{rank_word(ranks)}{size}" if ranks else "a rank"
    open_ = "the log does not show which one held it up" if came else "no line says who did not come"
    in_others = "the ranks that report no timeout, or another operation"
    others = in_others if size or elsewhere else "ranks without a timeout, if any"
    yield check.finding(
        check.where(hosts_with(job, ranks), ranks=ranks[:4096]),
        check.advice("all wait") if came else check.advice("waits", others=others),
        f"{who} waited in {_operation_words(first, events)}{_elsewhere(events, alike)} until the watchdog: {open_}",
        observed=f"{plural(len(alike), 'timeout')} in the same operation"
        + (f", {elsewhere} in others" if elsewhere else "")
        + _wait_words(job),
        evidence=events,
    )


def _elsewhere(events: Sequence[Event], alike: Sequence[Event]) -> str:
    """Where the first two of the ranks wait that wait in another operation than most."""
    ranks = ranks_in(alike)
    others = {_operation_words(event, []): event.rank for event in events if event.rank >= 0}
    return "".join([f", rank {rank} in {words}" for words, rank in others.items() if rank not in ranks][:2])


def _hung(check: JobCheck, job: Job) -> Iterable[Finding]:
    """That ranks waited until a watchdog, where its lines name no operation and the job names no error: what torch
    prints while it dumps and ends, alone."""
    if not only_waited(job):
        return
    events = [event for event in job.events if event.kind == "watchdog" and "watchdog ends" in event.details]
    if events:
        yield check.of_events(
            events,
            "hung without an operation",
            f"ranks waited in an operation until the watchdog ended them: {quoted(events[0].text)}",
            check.where(ranks=ranks_in(events)[:4096]),
        )


def _operation_words(first: Event, events: Sequence[Event]) -> str:
    """The operation, its number and its process group, as far as the lines name them."""
    number = f" number {first.details['seq']}" if "seq" in first.details else ""
    words = next((event.details["group_words"] for event in events if event.details.get("group_words")), "")
    return f"{first.details['op']}{number}" + (f" of process group {words}" if words else "")


def _wait_words(job: Job) -> str:
    """How long ranks waited, by what their watchdogs say."""
    waits = [
        int(event.details["ran_ms"]) / 1000
        for event in job.events
        if event.kind == "watchdog" and event.details.get("ran_ms", "").isdecimal()
    ]
    return f"; they waited {in_s(max(waits))}" if waits else ""


# Ranks that wait at the same number in other operations.


_OF_SOME = frozenset({"", "SEND", "RECV", "COALESCED"})
"""Works that only some ranks of a group have."""
_EQUAL_SIZES = frozenset({"ALLREDUCE", "_ALLGATHER_BASE", "_REDUCE_SCATTER_BASE", "BROADCAST", "REDUCE"})
"""Works to which all ranks bring the same amount of data."""


def by_calls(check: JobCheck, job: Job) -> Iterator[Finding]:
    """The first number at which ranks of one group wait in other operations, or in other sizes of one. Where no line
    names a group, only if all wait at that number: ranks of two groups seldom count alike."""
    for group, seq, waits in _waits_by_number(job):
        calls = _by_call(waits, group)
        if len(calls) < 2:
            continue
        evidence = [waits[ranks[0]] for ranks in calls.values()]
        confidence = Confidence.MEDIUM if group else Confidence.LOW
        yield calls_differ(check, job, calls, f"number {seq}", evidence=evidence, confidence=confidence)
        return


def calls_differ(
    check: JobCheck, job: Job, calls: Mapping[str, Sequence[int]], at: str, **parts: Unpack[FindingParts]
) -> Finding:
    """Ranks that called another operation than most, at one place of their order; `calls` are the ranks by call."""
    known = {call: sorted(rank for rank in ranks if rank >= 0) for call, ranks in calls.items()}
    (usual, most), *others = sorted(known.items(), key=lambda item: (-len(item[1]), item[1]))
    numbers = sorted(rank for _, ranks in others for rank in ranks)
    parts["observed"] = "; ".join(f"{call} on {rank_word(ranks)}" for call, ranks in ((usual, most), *others[:2]))
    where = check.where(hosts_with(job, numbers), ranks=numbers[:4096])
    message = f"{rank_word(numbers)} called {others[0][0]} where {rank_word(most)} called {usual}, {at}"
    return check.finding(where, "calls differ", message, **parts)


def _by_call(waits: Mapping[int, Event], group: str) -> Mapping[str, list[int]]:
    """The ranks by what they wait in: the operation, and its size where all call the same one. Of ranks in no named
    group, only one that is alone with its size: two groups of several ranks may be two stages of a pipeline."""
    details = [(rank, event.details) for rank, event in sorted(waits.items())]
    calls = grouped((named["op"], rank) for rank, named in details)
    sizes = grouped((f"{named['op']} ({named.get('numel_in', '')} elements)", rank) for rank, named in details)
    sized = len(calls) == 1 and calls.keys() <= _EQUAL_SIZES
    return sizes if sized and (group or min(map(len, sizes.values())) == 1) else calls


def _waits_by_number(job: Job) -> Iterator[tuple[str, int, Mapping[int, Event]]]:
    """By group ("" where no line names one) and number, the line of each rank that waits in an operation of all."""
    events = [e for e in job.events if e.kind == "watchdog" and e.rank >= 0 and e.details.get("seq", "").isdecimal()]
    events = [event for event in events if event.details.get("op", "") not in _OF_SOME]
    named = any(event.details.get("guid") or "group" in event.details for event in events)
    by_rank: dict[tuple[str, int], dict[int, Event]] = defaultdict(dict)
    for event in events:
        group = event.details.get("guid", "") or ("0" if event.details.get("group") == "0" else "")
        if group or not named:
            by_rank[group, int(event.details["seq"])].setdefault(event.rank, event)
    if not named and len(by_rank) > 1:
        return
    for (group, seq), waits in sorted(by_rank.items()):
        yield group, seq, waits
