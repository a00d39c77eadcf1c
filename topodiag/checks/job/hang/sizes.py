"""JOB006 by the sizes that torch's watchdogs name: ranks wait in the same work of one group with other amounts of data.

    [Rank 4] Watchdog caught .. WorkNCCL(SeqNum=610, OpType=COALESCED, NumelIn=56320, NumelOut=450560, ..
    [Rank 6] Watchdog caught .. WorkNCCL(SeqNum=610, OpType=COALESCED, NumelIn=76800, NumelOut=614400, ..

Both gather from eight ranks, and neither waits for what the other sends. So do ranks that wait at the same number in
other operations.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from topodiag.checks.interface import JobCheck
from topodiag.checks.job.straggler import hosts_with
from topodiag.checks.words import hosts_word, rank_word
from topodiag.lazy import dataclass
from topodiag.model.finding import Confidence, Cost, Finding, Severity
from topodiag.model.job import Event, Job

_EQUAL = frozenset({"ALLREDUCE", "BROADCAST", "REDUCE", "ALLREDUCE_COALESCED"})
"""Operations whose members all give as much as they get."""
_SHARED = frozenset(
    {
        "ALLGATHER", "_ALLGATHER_BASE", "REDUCE_SCATTER", "_REDUCE_SCATTER_BASE", "ALLGATHER_COALESCED", "COALESCED",
    }
)  # fmt: skip
"""Operations in which the whole is the part of one member times their number. What was coalesced may be sends and
receives, whose amounts differ between ranks that are well: then it is no such multiple. Not here: all-to-all."""

_OF_SOME = frozenset({"", "SEND", "RECV", "COALESCED"})
"""Works that only some ranks of a group have."""
_FIX = (
    "the ranks have taken different ways before: a branch, a module that only some use, batches of other shapes;"
    " TORCH_NCCL_TRACE_BUFFER_SIZE=2000 keeps what each calls (--flight reads the dumps)",
    "TORCH_DISTRIBUTED_DEBUG=DETAIL names the first call that differs",
)


@dataclass(frozen=True, slots=True)
class _Sized:
    """A work that a rank waits in: the amounts, and how many members the amounts are of (1 where all are equal)."""

    numbers: tuple[int, int]
    members: int
    event: Event


def by_sizes(check: JobCheck[Any], job: Job) -> Iterator[Finding]:
    """The first work in which ranks of one group wait with unlike amounts."""
    for (seq, operation, group, members), waits in _works(job).items():
        sizes: dict[tuple[int, int], list[_Sized]] = defaultdict(list)
        for wait in waits.values():
            sizes[wait.numbers].append(wait)
        # Ranks below the number of members are of one group, unless the job has more ranks than that.
        one_group = bool(group) or (max(waits) < members and job.world_size <= members)
        if len(sizes) < 2 or not one_group:
            continue
        ordered = sorted(sizes.values(), key=lambda held: -len(held))
        yield _finding(check, job, seq, operation, ordered, Confidence.MEDIUM if group else Confidence.LOW)
        return
    yield from _other_calls(check, job)


def _other_calls(check: JobCheck[Any], job: Job) -> Iterator[Finding]:
    """The first number at which ranks of one group wait in other operations. Where no line names a group, only if all
    wait at that number: ranks of two groups seldom count alike."""
    for group, seq, waits in _waits_by_number(job):
        calls: dict[str, list[int]] = defaultdict(list)
        for rank, event in sorted(waits.items()):
            calls[event.details["op"]].append(rank)
        if len(calls) < 2:
            continue
        ordered = sorted(calls.items(), key=lambda held: (-len(held[1]), held[1]))
        odd = sorted(rank for _, ranks in ordered[1:] for rank in ranks)
        yield check.finding(
            Severity.ERROR,
            f"{rank_word(odd)} {'waits' if len(odd) == 1 else 'wait'} in {ordered[1][0]} number {seq}, where"
            f" {rank_word(ordered[0][1])} {'waits' if len(ordered[0][1]) == 1 else 'wait'} in {ordered[0][0]}",
            observed="; ".join(f"{operation} on {rank_word(ranks)}" for operation, ranks in ordered[:3]),
            expected="the same operation on all ranks of the group",
            fix=_FIX,
            nodes=hosts_with(job, odd),
            ranks=odd[:4096],
            cost=Cost(text="neither operation ever ends: the watchdog ends the job"),
            evidence=[waits[ranks[0]].origin for _, ranks in ordered],
            confidence=Confidence.MEDIUM if group else Confidence.LOW,
        )
        return


def _waits_by_number(job: Job) -> Iterator[tuple[str, int, Mapping[int, Event]]]:
    """By group ("" where no line names one) and number, the line of each rank that waits in an operation of all."""
    told = [e for e in job.events if e.kind == "watchdog" and e.rank >= 0 and e.details.get("seq", "").isdecimal()]
    told = [event for event in told if event.details.get("op", "") not in _OF_SOME]
    named = any(event.details.get("guid") or "group" in event.details for event in told)
    made: dict[tuple[str, int], dict[int, Event]] = defaultdict(dict)
    for event in told:
        group = event.details.get("guid", "") or ("0" if event.details.get("group") == "0" else "")
        if group or not named:
            made[group, int(event.details["seq"])].setdefault(event.rank, event)
    if not named and len(made) > 1:
        return
    for (group, seq), waits in sorted(made.items()):
        yield group, seq, waits


def _works(job: Job) -> Mapping[tuple[int, str, str, int], Mapping[int, _Sized]]:
    """By number, operation, group ("" where the line names none) and members, what each rank waits in."""
    made: dict[tuple[int, str, str, int], dict[int, _Sized]] = defaultdict(dict)
    for event in job.events:
        named = event.details
        if event.kind != "watchdog" or event.rank < 0 or "numel_in" not in named or "seq" not in named:
            continue
        numbers = (int(named["numel_in"]), int(named["numel_out"]))
        members = _members(named.get("op", ""), *numbers)
        if members:
            group = named.get("guid", "") or ("0" if named.get("group") == "0" else "")
            key = (int(named["seq"]), named["op"], group, members)
            made[key].setdefault(event.rank, _Sized(numbers, members, event))
    return dict(sorted(made.items()))


def _members(operation: str, numel_in: int, numel_out: int) -> int:
    """How many members the amounts are of; 0 where they are no such multiple, or may differ between ranks."""
    low, high = sorted((numel_in, numel_out))
    if low < 1:
        return 0
    if operation in _EQUAL:
        return 1 if low == high else 0
    return high // low if operation in _SHARED and high > low and high % low == 0 else 0


def _finding(  # noqa: PLR0917 - what is said, of whom, and how surely
    check: JobCheck[Any], job: Job, seq: int, operation: str, sizes: Sequence[Sequence[_Sized]], sure: Confidence
) -> Finding:
    ranks = sorted(each.event.rank for held in sizes for each in held)
    told = "; ".join(
        f"{held[0].numbers[0]} elements in, {held[0].numbers[1]} out on {rank_word(sorted(e.event.rank for e in held))}"
        for held in sizes[:3]
    )
    hosts = hosts_with(job, ranks)
    return check.finding(
        Severity.ERROR,
        f"{rank_word(ranks)} wait in {operation} number {seq} with different amounts of data: they call it for other"
        " things",
        observed=told,
        expected="the same operation with the same amount on all ranks of the group",
        fix=_FIX,
        nodes=hosts,
        ranks=ranks[:4096],
        cost=Cost(
            text=f"the operation never ends{f' on {hosts_word(hosts)}' if hosts else ''}: the watchdog ends the job"
        ),
        evidence=[each.event.origin for held in sizes for each in held],
        confidence=sure,
    )
