"""JOB006 by the words of frameworks, by stack dumps, and by a split that some ranks did not enter."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

from topodiag.checks.interface import Advice, JobCheck, hosts_with, look_at, quoted, rank_word, ranks_in
from topodiag.checks.shared.job.text import failed, place_of
from topodiag.lazy import regex
from topodiag.model.diagnostics import Stack
from topodiag.model.finding import Confidence, Coverage, Finding, Severity
from topodiag.model.job import Communicator, Event, Job, Message
from topodiag.words.units import few, grouped, in_s, plural

_GIVES_NAME = "Comm name set to "


def by_openings(check: JobCheck, job: Job) -> Iterator[Finding]:
    entered = _entered(job)
    texts = (message.text.partition(_GIVES_NAME) for message in entered.values())
    named = [name.strip() for _, gives, name in texts if gives]
    parent = _parent(job, entered)
    if parent is None or not named:
        return
    late = sorted(int(rank) for rank in parent.ranks if int(rank) not in entered)
    hung = failed(job)
    name = max(sorted(set(named)), key=named.count)
    yield check.finding(
        check.where(hosts_with(job, late), ranks=late),
        Advice(Severity.ERROR, Confidence.MEDIUM),
        f"{rank_word(late)} did not enter the split of {parent.label} into {name}, in which the others wait",
        sure=hung,
        observed=f"{plural(len(entered), 'rank')} named the new communicator {name} and none began it;"
        f" nothing of it from {rank_word(late)}",
        expected=f"ncclCommSplit is called by all {parent.nranks} ranks of {parent.label},"
        " also by those that take no part (NCCL_SPLIT_NOCOLOR)",
        fix=look_at(job, late),
        cost=f"{plural(len(entered), 'rank')} wait" if hung else "the log may have been cut here",
        evidence=[message.origin for _, message in sorted(entered.items())][:2],
        coverage=Coverage(len(entered), parent.nranks, "ranks that entered"),
    )


def _entered(job: Job) -> dict[int, Message]:
    """By world rank, the last thing that was said of a communicator that did not begin. Processes of several ranks are
    left out: which of their GPUs entered is not told."""
    by_process = grouped((rank.process, rank.rank) for rank in job.ranks)
    opening = {at: process.opening for at, process in enumerate(job.processes) if process.opening is not None}
    return {by_process[at][0]: message for at, message in opening.items() if len(by_process.get(at, ())) == 1}


def _parent(job: Job, entered: dict[int, Message]) -> Communicator | None:
    """The smallest communicator that holds all who entered, where most of its ranks entered and all left lines."""
    known = job.by_rank
    holders = [c for c in job.communicators if entered and entered.keys() <= _ranks_in(c) and not c.destroyed]
    parent = min(holders, key=lambda communicator: (communicator.nranks, communicator.index), default=None)
    if parent is None or parent.nranks == len(entered) or 2 * len(entered) <= parent.nranks:
        return None
    whole = _ranks_in(parent) <= known.keys() and len(_ranks_in(parent)) == parent.nranks
    return parent if whole and parent.completed.all() else None


def _ranks_in(communicator: Communicator) -> set[int]:
    ranks: Sequence[int] = communicator.ranks.tolist()
    return set(ranks)


MOST_NAMED = 8
_COLLECTIVE = regex(
    r"(?:_?(?:all_reduce|all_gather|reduce_scatter|all_to_all|broadcast|barrier|allreduce|allgather|reducescatter"
    r"|alltoall|monitored_barrier)\w{0,40}|nccl(?:All|Reduce|Broadcast|Send|Recv|Group)\w{0,40})\Z"
)
_OF_LIBRARIES = ("distributed_c10d.py", "pynccl", "/nccl/", "horovod/", "deepspeed/comm/")
"""Files whose functions of those names are collectives: others may only be called so."""
_AWAY = regex(
    r"(?:^|/)(?:threading|queue|selectors|socket|ssl|subprocess|shutil|zipfile|tarfile|pickle|serialization|iterators"
    r"|dataloader|checkpointing|connection|popen_fork|filesystem|tempfile)\.py|checkpoint|/datasets?/|dataloader"
)
"""Files in which a thread waits for something that is no collective: data, a lock, a disk, another process."""
_GPU = frozenset({"synchronize", "item", "cpu", "tolist", "wait_stream", "wait_event", "run_backward",
                  "_engine_run_backward", "backward"})  # fmt: skip
"""Functions in which the host waits for the GPU, which may itself be in a collective: no word on the rank."""
INNER = 12
"""Frames from the innermost in which it is looked for: below them stands the program's own loop."""


def by_stacks(check: JobCheck, job: Job, hung: bool) -> Iterator[Finding]:
    """What the stacks of several processes say together."""
    by_operation = grouped((collective_of(stack), stack) for stack in job.stacks)
    others = [(stack, stack.frames[:INNER]) for stack in by_operation.pop("", [])]
    waiting = list(chain(*by_operation.values()))
    away = [stack for stack, frames in others if any(_AWAY.search(frame.file) for frame in frames)]
    # Computing, when the dump was taken: with a hang that is no moment but a state.
    elsewhere = [stack for stack, frames in others if not any(frame.function in _GPU for frame in frames)]
    if waiting and (away or elsewhere):
        yield _elsewhere(check, away or elsewhere, waiting, hung, Confidence.MEDIUM if away else Confidence.LOW)


def collective_of(stack: Stack) -> str:
    """The collective that the thread is in, by its library's own function; "" where it is in none."""
    for frame in stack.frames[:INNER]:
        if _COLLECTIVE.match(frame.function) and (
            frame.function.startswith("nccl") or any(part in frame.file for part in _OF_LIBRARIES)
        ):
            return frame.function
    return ""


def _elsewhere(
    check: JobCheck, others: Sequence[Stack], waiting: Sequence[Stack], hung: bool, confidence: Confidence
) -> Finding:
    first = others[0]
    who, wait, chain = _names(others), _names(waiting), " < ".join(frame.function for frame in first.frames[:4])
    return check.finding(
        check.where(ranks=ranks_in(others)),
        check.advice("stacks", who=who),
        f"{who} {'is' if len(others) == 1 else 'are'} in {_place(first)}, while {wait}"
        f" {'waits' if len(waiting) == 1 else 'wait'} in {collective_of(waiting[0])}",
        severity=Severity.ERROR if hung else Severity.WARNING if confidence is Confidence.MEDIUM else Severity.INFO,
        observed=f"{chain}; {plural(len(waiting), 'stack')} in {collective_of(waiting[0])}",
        evidence=(*others[:3], *waiting[:2]),
        confidence=confidence,
    )


def _names(stacks: Sequence[Stack]) -> str:
    if all(stack.rank >= 0 for stack in stacks):
        return rank_word(sorted({stack.rank for stack in stacks}))
    return few(list(dict.fromkeys(stack.who for stack in stacks)), MOST_NAMED)


def _place(stack: Stack) -> str:
    """The innermost frame that says what the thread does: of a library's lock the caller says more."""
    return str(next((frame for frame in stack.frames[:INNER] if "/" in frame.file), stack.frames[0]))


NO_NEWS = frozenset({"note", "other", "peer closed"})
"""Kinds of events that name no cause by themselves."""
MOST_RANKS = 4096


def by_words(check: JobCheck, job: Job) -> Iterator[Finding]:
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
        yield _by_report(check, job, events)
    if not (stalled or mismatched or events):
        yield from _through(check, job)
    if not mismatched:
        yield from _truncated(check, job)


def _stalled(check: JobCheck, job: Job, events: Sequence[Event]) -> Finding:
    ranks = _ranks_of(events)
    operation = events[0].details.get("op", "")
    who = rank_word(ranks) if ranks else "some ranks"
    waited = events[0].details.get("waited_ms", "")
    return check.of_events(
        events,
        "stalled",
        f"{who} did not enter {operation or 'an operation'} that the others wait in",
        check.where(hosts_with(job, ranks), ranks=ranks),
        observed=f"{plural(len(events), 'report')} of ranks that are missing"
        + (f", after {in_s(int(waited) / 1000)}" if waited else ""),
        fix=check.steps("doing instead", who=who if ranks else "the ranks that the log names below"),
    )


def _names_cause(event: Event, after: int) -> bool:
    """Whether a line says how a rank ended: a launcher's word of the ranks that this ended, below it, is none."""
    if event.kind in NO_NEWS:
        return False
    follows = event.kind == "ended" and event.details.get("how") in ("context", "exit", "aborted", "stopped")
    return not (follows and place_of(event)[1] > after)


def _through(check: JobCheck, job: Job) -> Iterator[Finding]:
    """Ranks that call one more operation than another rank, which was through or is gone."""
    events = [event for event in job.events if event.kind == "peer closed" and "finished" in event.details]
    if events and not any(_names_cause(event, place_of(events[0])[1]) for event in job.events):
        ranks = ranks_in(events)
        who = rank_word(ranks) if ranks else "a rank"
        yield check.of_events(
            events,
            "another rank was through",
            f"{who} waited in an operation that another rank did not enter: that one was through, or ended",
            check.where(hosts_with(job, ranks), ranks=ranks),
        )


def _by_report(check: JobCheck, job: Job, events: Sequence[Event]) -> Finding:
    """By the word of a program or a person that topodiag does not know: that calls differ before who is missing, as
    ranks that called another operation are missed in this one."""
    differ = [event for event in events if event.kind == "mismatch"]
    first = (differ or events)[0]
    ranks = _ranks_of([event for event in events if event.kind == first.kind])
    who = rank_word(ranks) if ranks else "some ranks"
    return check.of_events(
        events,
        "behind by words",
        f"{who}: {'calls of ranks differ' if differ else 'not where the others wait'}, in the text's own words:"
        f" {quoted(first.text)}",
        check.where(hosts_with(job, ranks), ranks=ranks),
        observed=quoted(first.text, 300),
        fix=check.steps("compare the calls" if differ else "not where others wait", who=who),
    )


def _ranks_of(events: Sequence[Event]) -> list[int]:
    named = {int(word) for event in events for word in event.details.get("ranks", "").split(",") if word.isdecimal()}
    return sorted(named)[:MOST_RANKS]


def _differ(check: JobCheck, job: Job, events: Sequence[Event]) -> Finding:
    first = events[0]
    ranks = [int(word) for word in first.details["ranks"].split(",") if word.isdecimal()]
    one, other = first.details["one"], first.details.get("other", "")
    numbers = [first.details.get(f"{side}_seq", "") for side in ("one", "other")]
    at = f" at number {numbers[0]}" if numbers[0] and numbers[0] == numbers[1] else ""
    words = f"; sequence numbers {numbers[0]} and {numbers[1]}" if all(numbers) and numbers[0] != numbers[1] else ""
    return check.of_events(
        events,
        "different calls",
        f"{rank_word(sorted(ranks))} call different operations{at}: {one or 'one'} and {other or 'another'}{words}"
        if len(ranks) > 1
        else f"{rank_word(ranks)} calls {one or 'an operation'}, and other ranks call another one",
        check.where(hosts_with(job, ranks), ranks=sorted(ranks)),
        observed=f"{one} on rank {ranks[0]}; {other} on rank {ranks[1]}" if len(ranks) > 1 else one,
    )


def _truncated(check: JobCheck, job: Job) -> Iterator[Finding]:
    cut = [event for event in job.events if event.level == "WARN" and "truncated" in event.details]
    if cut:
        named = cut[0].details
        wanted = f"bytes came where {named.get('awaited', '')} were expected"
        sizes = f": {named['received']} {wanted}" if "received" in named else ""
        yield check.of_events(cut, "truncated message", f"ranks do not agree on an operation{sizes}")
