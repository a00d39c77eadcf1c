"""JOB006 by stack dumps: who waits in a collective, and who is somewhere else."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from topodiag.checks.interface import JobCheck
from topodiag.checks.words import rank_word, ranks_in
from topodiag.lazy import regex
from topodiag.model.finding import Confidence, Finding, Severity
from topodiag.model.job import Job
from topodiag.model.stacks import Frame, Stack
from topodiag.words.fold import plural

MOST_NAMED = 8
_COLLECTIVE = regex(
    r"(?:_?(?:all_reduce|all_gather|reduce_scatter|all_to_all|broadcast|barrier|allreduce|allgather|reducescatter"
    r"|alltoall|monitored_barrier)\w{0,40}|nccl(?:All|Reduce|Broadcast|Send|Recv|Group)\w{0,40})\Z"
)
_OF_LIBRARIES = regex(r"distributed_c10d\.py|pynccl|/nccl/|horovod/|deepspeed/comm/")
"""Files whose functions of those names are collectives: others may only be called so."""
_AWAY = regex(
    r"(?:^|/)(?:threading|queue|selectors|socket|ssl|subprocess|shutil|zipfile|tarfile|pickle|serialization|iterators"
    r"|dataloader|checkpointing|connection|popen_fork|filesystem|tempfile)\.py|checkpoint|/datasets?/|dataloader"
)
"""Files in which a thread waits for something that is no collective: data, a lock, a disk, another process."""
_GPU = regex(r"(?:synchronize|item|cpu|tolist|wait_stream|wait_event|run_backward|_engine_run_backward|backward)\Z")
"""Functions in which the host waits for the GPU, which may itself be in a collective: no word on the rank."""
INNER = 12
"""Frames from the innermost in which it is looked for: below them stands the program's own loop."""


def by_stacks(check: JobCheck[Any], job: Job, hung: bool) -> Iterator[Finding]:
    """What the stacks of several processes say together."""
    inside: dict[str, list[Stack]] = defaultdict(list)
    away: list[Stack] = []
    elsewhere: list[Stack] = []
    for stack in job.stacks:
        operation = collective_of(stack)
        if operation:
            inside[operation].append(stack)
        elif any(_AWAY.search(frame.file) for frame in stack.frames[:INNER]):
            away.append(stack)
        elif not any(_GPU.match(frame.function) for frame in stack.frames[:INNER]):
            elsewhere.append(stack)
    waiting = [stack for group in inside.values() for stack in group]
    if waiting and away:
        yield _told(check, away, waiting, hung, Confidence.MEDIUM)
    elif waiting and elsewhere:  # computing, when the dump was taken: with a hang that is no moment but a state
        yield _told(check, elsewhere, waiting, hung, Confidence.LOW)


def collective_of(stack: Stack) -> str:
    """The collective that the thread is in, by its library's own function; "" where it is in none."""
    for frame in stack.frames[:INNER]:
        if _COLLECTIVE.match(frame.function) and (
            frame.function.startswith("nccl") or _OF_LIBRARIES.search(frame.file)
        ):
            return frame.function
    return ""


def _told(
    check: JobCheck[Any], others: Sequence[Stack], waiting: Sequence[Stack], hung: bool, confidence: Confidence
) -> Finding:
    first = others[0]
    who, wait = _names(others), _names(waiting)
    return check.finding(
        check.where(ranks=ranks_in(others)),
        check.advice("stacks", who=who),
        f"{who} {'is' if len(others) == 1 else 'are'} in {_place(first)}, while {wait}"
        f" {'waits' if len(waiting) == 1 else 'wait'} in {collective_of(waiting[0])}",
        severity=Severity.ERROR if hung else Severity.WARNING if confidence is Confidence.MEDIUM else Severity.INFO,
        observed=f"{_chain(first.frames)}; {plural(len(waiting), 'stack')} in {collective_of(waiting[0])}",
        evidence=[stack.origin for stack in (*others[:3], *waiting[:2])],
        confidence=confidence,
    )


def _names(stacks: Sequence[Stack]) -> str:
    if all(stack.rank >= 0 for stack in stacks):
        return rank_word(sorted({stack.rank for stack in stacks}))
    names = list(dict.fromkeys(stack.who for stack in stacks))
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + more


def _place(stack: Stack) -> str:
    """The innermost frame that says what the thread does: of a library's lock the caller says more."""
    outer = next((frame for frame in stack.frames[:INNER] if "/" in frame.file), stack.frames[0])
    return str(outer)


def _chain(frames: Sequence[Frame]) -> str:
    return " < ".join(frame.function for frame in frames[:4])
