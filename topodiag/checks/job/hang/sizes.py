"""JOB006 by the sizes that torch's watchdogs name: ranks wait in the same work of one group with other amounts of data.

    [Rank 4] Watchdog caught .. WorkNCCL(SeqNum=610, OpType=COALESCED, NumelIn=56320, NumelOut=450560, ..
    [Rank 6] Watchdog caught .. WorkNCCL(SeqNum=610, OpType=COALESCED, NumelIn=76800, NumelOut=614400, ..

Both gather from eight ranks, and neither waits for what the other sends. So do ranks that wait at the same number in
other operations.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from topodiag.checks.interface import JobCheck
from topodiag.checks.job.straggler import hosts_with
from topodiag.checks.words import rank_word
from topodiag.model.finding import Confidence, Cost, Finding, Severity
from topodiag.model.job import Event, Job

_OF_SOME = frozenset({"", "SEND", "RECV", "COALESCED"})
"""Works that only some ranks of a group have."""
_FIX = (
    "the ranks have taken different ways before: a branch, a module that only some use, batches of other shapes;"
    " TORCH_NCCL_TRACE_BUFFER_SIZE=2000 keeps what each calls (--flight reads the dumps)",
    "TORCH_DISTRIBUTED_DEBUG=DETAIL names the first call that differs",
)


def by_calls(check: JobCheck[Any], job: Job) -> Iterator[Finding]:
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
