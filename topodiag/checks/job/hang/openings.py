"""JOB006 by a split that some ranks did not enter: the others named the new communicator, and it never began."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from topodiag.checks.interface import Advice, JobCheck
from topodiag.checks.shared.job.text import failed
from topodiag.checks.words import hosts_with, look_at, rank_word
from topodiag.model.finding import Confidence, Cost, Coverage, Finding, Severity
from topodiag.model.job import Communicator, Job, Message
from topodiag.words.fold import plural

_GIVES_NAME = "Comm name set to "


def by_openings(check: JobCheck[Any], job: Job) -> Iterator[Finding]:
    entered = _entered(job)
    named = [
        message.text.partition(_GIVES_NAME)[2].strip() for message in entered.values() if _GIVES_NAME in message.text
    ]
    parent = _parent(job, entered)
    if parent is None or not named:
        return
    late = sorted(int(rank) for rank in parent.ranks if int(rank) not in entered)
    hung = failed(job)
    name = max(sorted(set(named)), key=named.count)
    yield check.finding(
        check.where(hosts_with(job, late), ranks=late),
        Advice(),
        f"{rank_word(late)} did not enter the split of {parent.label} into {name}, in which the others wait",
        severity=Severity.ERROR if hung else Severity.WARNING,
        observed=f"{plural(len(entered), 'rank')} named the new communicator {name} and none began it;"
        f" nothing of it from {rank_word(late)}",
        expected=f"ncclCommSplit is called by all {parent.nranks} ranks of {parent.label},"
        " also by those that take no part (NCCL_SPLIT_NOCOLOR)",
        fix=look_at(job, late),
        cost=Cost(text=f"{plural(len(entered), 'rank')} wait" if hung else "the log may have been cut here"),
        evidence=[message.origin for _, message in sorted(entered.items())][:2],
        coverage=Coverage(len(entered), parent.nranks, "ranks that entered"),
        confidence=Confidence.MEDIUM if hung else Confidence.LOW,
    )


def _entered(job: Job) -> dict[int, Message]:
    """By world rank, the last thing that was said of a communicator that did not begin. Processes of several ranks are
    left out: which of their GPUs entered is not told."""
    by_process: dict[int, list[int]] = {}
    for rank in job.ranks:
        by_process.setdefault(rank.process, []).append(rank.rank)
    opening = {at: process.opening for at, process in enumerate(job.processes) if process.opening is not None}
    return {by_process[at][0]: message for at, message in opening.items() if len(by_process.get(at, ())) == 1}


def _parent(job: Job, entered: dict[int, Message]) -> Communicator | None:
    """The smallest communicator that holds all who entered, where most of its ranks entered and all left lines."""
    known = job.by_rank
    holders = [
        communicator
        for communicator in job.communicators
        if entered and entered.keys() <= _ranks(communicator) and not communicator.destroyed
    ]
    parent = min(holders, key=lambda communicator: (communicator.nranks, communicator.index), default=None)
    if parent is None or parent.nranks == len(entered) or 2 * len(entered) <= parent.nranks:
        return None
    whole = _ranks(parent) <= known.keys() and len(_ranks(parent)) == parent.nranks
    return parent if whole and parent.completed.all() else None


def _ranks(communicator: Communicator) -> set[int]:
    ranks: Sequence[int] = communicator.ranks.tolist()
    return set(ranks)
